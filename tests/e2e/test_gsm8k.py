"""A real set of prompts: 1,319 questions, one job each, each sent exactly once."""

import json
import os
import time
import unittest

import harness
from harness import Case, header

QUESTIONS = os.path.join(harness.SHARED, "data", "gsm8k_test.jsonl")


class Gsm8k(Case):
    @unittest.skipUnless(os.path.exists(QUESTIONS), f"the questions are not at {QUESTIONS}")
    def test_every_question_is_answered_by_one_call(self):
        with open(QUESTIONS, encoding="utf-8") as file:
            questions = [json.loads(line)["question"] for line in file]
        self.assertEqual(len(questions), 1319)
        world = self.start("--rpm", "6000", "--latency", "5ms..60ms", config={"daemon": {"log_level": "info"}})

        begin = time.monotonic()
        submitted = world.parallel(world.submit, questions, threads=6)
        took = time.monotonic() - begin
        print(f"submitted {len(submitted)} in {took:.1f} s", flush=True)
        self.assertEqual({s["outcome"] for s in submitted}, {"created"})
        ids = [s["job_id"] for s in submitted]
        self.assertEqual(len(set(ids)), 1319)

        world.aiq("wait", "--timeout", f"{120 * harness.SLOWER}s", *ids, rc=0, timeout=130)
        jobs = world.jobs("--status", "completed")
        self.assertEqual({job["job_id"] for job in jobs}, set(ids))

        calls = world.sim.calls()
        self.assertEqual(len(calls), 1319)
        sent = {header(call, "X-Aiq-Attempt") for call in calls}
        self.assertEqual(sent, {f"{job_id}.1.1" for job_id in ids})
        self.assertEqual(len({call["body_sha256"] for call in calls}), len(set(questions)))


if __name__ == "__main__":
    harness.main()

"""kill -9 and SIGSTOP at bad moments: nothing is lost, nothing is paid twice unseen."""

import os
import random
import signal
import time

import harness
from harness import Case, header, rule, wait_until


class Crash(Case):
    def test_two_hundred_jobs_survive_twenty_kills(self):
        seed = int(os.environ.get("AIQ_SEED") or random.SystemRandom().randrange(1 << 32))
        print(f"AIQ_SEED={seed}", flush=True)
        chance = random.Random(seed)
        world = self.start("--latency", "20ms..200ms", "--seed", "5", daemon=False,
                           config={"vendors.openai": {"max_in_flight": 4}})
        submitted = world.parallel(lambda n: world.submit(f"question {n}"), range(200), threads=4)
        ids = [s["job_id"] for s in submitted]
        for _ in range(20):
            world.start_daemon(wait=chance.random() < 0.8)
            # The moment itself is what is random here; nothing is waited for.
            time.sleep(chance.uniform(0.0, 0.5))
            world.kill_daemon()
        world.start_daemon()
        jobs = world.wait_final(ids, timeout=120)

        self.assertEqual(len(jobs), 200)
        self.assertLessEqual({j["status"] for j in jobs}, {"completed", "dead_lettered"})
        self.assertGreater(sum(j["status"] == "completed" for j in jobs), 150)
        for job in jobs:
            log = job["attempt_log"]
            self.assertEqual([a["attempt"] for a in log], list(range(1, len(log) + 1)), job)
            self.assertTrue(all(a["outcome"] and a["ended_at"] for a in log), job)
            completed = [a for a in log if a["outcome"] == "completed"]
            self.assertEqual(len(completed), job["status"] == "completed", job)
            maybe = [a for a in log if a["billed"] == "maybe"]
            self.assertLessEqual(len(maybe), 1 + 2, f"unknown_retries is 2: {job}")
        wait_until(lambda: world.sim.state()["in_flight"] == 0, 10, "the simulator is idle")
        self.assert_each_call_is_one_attempt(world.sim, jobs)
        # Nothing is claimed to have been answered that was never sent.
        sent = {header(call, "X-Aiq-Attempt") for call in world.sim.calls()}
        for job in jobs:
            for a in job["attempt_log"]:
                if a["outcome"] != "unknown":
                    self.assertIn(f"{job['job_id']}.{a['generation']}.{a['attempt']}", sent)
        self.assertEqual(world.aiq("db", "check", "--json").rc, 0)
        self.assertEqual(world.sql("SELECT count(*) FROM locks")[0][0], 0)

    def test_body_that_kills_the_process_is_dead_lettered(self):
        world = self.start(
            rules=[rule({"hold": True}, prompt_contains="poison")],
            config={"retry": {"crash_limit": 3, "unknown_retries": 10}},
        )
        poison = world.submit("poison")["job_id"]
        for crash in range(1, 4):
            world.sim.wait_held(1)
            world.kill_daemon()
            world.sim.release()
            wait_until(lambda: world.sim.state()["held"] == 0, 10, "nothing is held")
            harmless = world.submit(f"harmless {crash}")["job_id"]
            world.start_daemon()
        (job,) = world.wait_final([poison])
        self.assertEqual(job["status"], "dead_lettered")
        self.assert_outcomes(job, [("unknown", "maybe")] * 3)
        (letter,) = world.aiq("dlq", "list", "--json", rc=0).lines
        self.assertEqual((letter["job_id"], letter["reason"]), (poison, "crash_limit"))
        self.assertEqual(world.wait_final([harmless])[0]["status"], "completed")

    def test_retries_after_an_unknown_bill_are_bounded(self):
        world = self.start(
            rules=[rule({"hold": True}, prompt_contains="poison")],
            config={"retry": {"crash_limit": 10, "unknown_retries": 1}},
        )
        poison = world.submit("poison")["job_id"]
        for _ in range(2):
            world.sim.wait_held(1)
            world.kill_daemon()
            world.sim.release()
            wait_until(lambda: world.sim.state()["held"] == 0, 10, "nothing is held")
            world.start_daemon()
        (job,) = world.wait_final([poison])
        self.assert_outcomes(job, [("unknown", "maybe")] * 2)
        (letter,) = world.aiq("dlq", "list", "--json", rc=0).lines
        self.assertEqual(letter["reason"], "unknown_limit")

    def test_stopped_for_twice_the_lease_pays_once(self):
        lease_s = 1 * harness.SLOWER
        world = self.start(
            rules=[rule({"hold": True}, times=6, prompt_contains="held")],
            config={"daemon": {"lease": f"{lease_s}s", "log_level": "debug"}},
        )
        world.wait_final([world.submit("warm up")["job_id"]])
        ids = [world.submit(f"held {n}")["job_id"] for n in range(6)]
        world.sim.wait_held(6)
        world.signal(signal.SIGSTOP)
        # Some answers arrive while it is stopped, some only afterwards.
        time.sleep(2.2 * lease_s)
        world.sim.release()
        wait_until(lambda: world.sim.state()["held"] == 0, 10, "all answers are sent")
        world.signal(signal.SIGCONT)
        jobs = world.wait_final(ids)
        for job in jobs:
            self.assertEqual(job["status"], "completed")
            self.assert_outcomes(job, [("completed", "yes")])
        calls = [c for c in world.sim.calls() if "held" in c["prompt_head"]]
        self.assertEqual(len(calls), 6)

    def test_lease_is_renewed_while_a_long_call_runs(self):
        lease_s = 1 * harness.SLOWER
        world = self.start(
            rules=[rule({"delay": f"{int(2500 * lease_s)}ms"}, times=1)],
            config={"daemon": {"lease": f"{lease_s}s", "log_level": "debug"}},
        )
        (job,) = world.wait_final([world.submit("slow")["job_id"]])
        self.assert_outcomes(job, [("completed", "yes")])
        self.assertEqual(len(world.sim.calls()), 1)


if __name__ == "__main__":
    harness.main()

"""One job, end to end: submitted, answered once, also when the daemon is killed in the middle."""

import harness
from harness import CLAUDE, Case, header, rule


class OneJob(Case):
    def test_prompt_goes_in_and_the_answer_comes_out(self):
        world = self.start()
        submitted = world.submit("What is the capital of Portugal?", "--tenant", "acme")
        self.assertEqual(submitted["outcome"], "created")
        self.assertTrue(submitted["job_id"].isdecimal())
        (job,) = world.wait_final([submitted["job_id"]])
        self.assertEqual(job["status"], "completed")
        self.assertEqual(job["tenant"], "acme")
        self.assertEqual(job["vendor"], "openai")
        self.assertEqual(job["result_source"], "vendor")
        self.assertEqual(job["idempotency_key"], submitted["idempotency_key"])
        self.assert_outcomes(job, [("completed", "yes")])
        (attempt,) = job["attempt_log"]
        self.assertEqual((attempt["generation"], attempt["attempt"]), (1, 1))
        self.assertEqual(attempt["http_status"], 200)
        self.assertGreater(job["usage"]["input"], 0)
        self.assertGreater(job["usage"]["output"], 0)

        (call,) = world.sim.calls()
        self.assertEqual(call["path"], "/v1/chat/completions")
        self.assertEqual(header(call, "X-Aiq-Attempt"), f"{job['job_id']}.1.1")
        body = world.aiq("result", job["job_id"], rc=0).json
        self.assertEqual(body["object"], "chat.completion")
        text = world.aiq("result", "--text", job["job_id"], rc=0).out
        self.assertEqual(text.rstrip("\n"), body["choices"][0]["message"]["content"].rstrip("\n"))

    def test_anthropic_job(self):
        world = self.start()
        submitted = world.submit("Name a river.", model=CLAUDE)
        (job,) = world.wait_final([submitted["job_id"]])
        self.assertEqual((job["status"], job["vendor"]), ("completed", "anthropic"))
        (call,) = world.sim.calls()
        self.assertEqual(call["path"], "/v1/messages")
        self.assertEqual(header(call, "anthropic-version"), "2023-06-01")
        self.assertEqual(world.aiq("result", job["job_id"], rc=0).json["type"], "message")

    def test_run_prints_the_answer(self):
        world = self.start()
        result = world.aiq("run", "--model", harness.GPT, "--prompt", "Say hello.", rc=0)
        job = world.jobs()[0]
        text = world.aiq("result", "--text", job["job_id"], rc=0).out
        self.assertEqual(result.out, text)

    def test_killed_while_the_vendor_holds_its_answer(self):
        world = self.start(rules=[rule({"hold": True}, times=1)])
        job_id = world.submit("Will this survive?")["job_id"]
        world.sim.wait_held(1)
        self.assertEqual(world.show(job_id)["status"], "processing")
        world.kill_daemon()
        # What was acknowledged is there without a daemon, too.
        self.assertEqual(world.show(job_id)["job_id"], job_id)

        world.start_daemon()
        (job,) = world.wait_final([job_id])
        self.assertEqual(job["status"], "completed")
        self.assert_outcomes(job, [("unknown", "maybe"), ("completed", "yes")])
        self.assertEqual([a["attempt"] for a in job["attempt_log"]], [1, 2])
        self.assertTrue(all(a["ended_at"] for a in job["attempt_log"]))
        world.sim.release()
        harness.wait_until(lambda: len(world.sim.calls()) == 2, 10, "both calls in the journal")
        self.assert_each_call_is_one_attempt(world.sim, [job])

    def test_queued_without_a_daemon_and_worked_off_later(self):
        world = self.start(daemon=False)
        result = world.aiq("submit", "--model", harness.GPT, "--prompt", "Later, please.", rc=0)
        self.assertTrue(result.out.strip().isdecimal())
        self.assertIn("aiqd", result.err)
        self.assertEqual(world.show(result.out.strip())["status"], "queued")
        world.start_daemon()
        (job,) = world.wait_final([result.out.strip()])
        self.assertEqual(job["status"], "completed")


if __name__ == "__main__":
    harness.main()

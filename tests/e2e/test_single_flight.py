"""Equal requests at the same time: one asks the vendor, the others get its answer."""

import harness
from harness import GPT, Case, openai_error, rule

TENANTS = [f"t{n}" for n in range(10)]
GROUP = {f"tenants.{name}": {"cache_group": "everyone"} for name in TENANTS}
PROMPT = "the same question"


class SingleFlight(Case):
    def world_with_proven_vendor(self, act):
        """A held simulator and a vendor that would take more than one request at a time."""
        world = self.start(rules=[rule(act, times=1, prompt_contains=PROMPT)], config=GROUP)
        world.wait_final([world.submit("warm up", "--tenant", "t0")["job_id"]])
        return world

    def submit_fifty(self, world):
        return world.at_once(
            [
                lambda tenant=TENANTS[n % 10]: world.submit(PROMPT, "--tenant", tenant, timeout=60)
                for n in range(50)
            ]
        )

    def calls(self, world):
        return [c for c in world.sim.calls() if PROMPT in c["prompt_head"]]

    def check_fifty_results(self, world, submitted):
        jobs = {j["job_id"]: j for j in world.wait_final([s["job_id"] for s in submitted])}
        self.assertEqual({j["status"] for j in jobs.values()}, {"completed"})
        # Ten tenants, one job each: five submissions of a tenant are one job.
        self.assertEqual(len(jobs), 10)
        texts = [world.aiq("result", job_id, rc=0).out for job_id in jobs]
        self.assertEqual(len(set(texts)), 1)
        self.assertEqual(len({s["submission_id"] for s in submitted}), 50)
        return jobs

    def test_fifty_over_ten_tenants_are_one_call(self):
        world = self.world_with_proven_vendor({"hold": True})
        submitted = self.submit_fifty(world)
        world.sim.wait_held(1)
        locks = world.aiq("lock", "list", "--json", rc=0).lines
        self.assertEqual(len(locks), 1, locks)
        world.sim.release()
        jobs = self.check_fifty_results(world, submitted)
        self.assertEqual(len(self.calls(world)), 1)
        sources = sorted(j["result_source"] for j in jobs.values())
        self.assertEqual(sources, ["cache"] * 9 + ["vendor"])
        # Whoever was served from the cache has no attempt and no usage of its own.
        for job in jobs.values():
            self.assertEqual(len(job["attempt_log"]), 1 if job["result_source"] == "vendor" else 0)
        self.assertEqual(world.aiq("lock", "list", "--json", rc=0).lines, [])

    def test_failed_leader_costs_one_more_call(self):
        world = self.world_with_proven_vendor({**openai_error(500), "hold": True})
        submitted = self.submit_fifty(world)
        world.sim.wait_held(1)
        world.sim.release()
        self.check_fifty_results(world, submitted)
        self.assertEqual(len(self.calls(world)), 2)

    def test_lock_of_a_dead_daemon_is_free_at_once(self):
        world = self.world_with_proven_vendor({"hold": True})
        submitted = self.submit_fifty(world)
        world.sim.wait_held(1)
        world.kill_daemon()
        world.start_daemon()
        self.check_fifty_results(world, submitted)
        self.assertEqual(len(self.calls(world)), 2)

    def test_bypassing_requests_are_each_sent(self):
        world = self.start(rules=[rule({"hold": True}, times=2, prompt_contains=PROMPT)])
        world.wait_final([world.submit("warm up")["job_id"]])
        ids = [world.submit(PROMPT, "--bypass-cache", model=GPT)["job_id"] for _ in range(2)]
        self.assertEqual(len(set(ids)), 2)
        world.sim.wait_held(2)
        world.sim.release()
        self.assertEqual({j["status"] for j in world.wait_final(ids)}, {"completed"})
        self.assertEqual(len(self.calls(world)), 2)


if __name__ == "__main__":
    harness.main()

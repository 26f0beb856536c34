"""Limits of vendors and tenants, fairness, breaker: the simulator has the limits, its journal is the
witness. AIQ_LIMIT_JOBS makes the long one longer (scripts/drill limits)."""

import json
import os
import time
from collections import Counter

import harness
from harness import GPT, SLOWER, Case, openai_error, rule, wait_until

JOBS = int(os.environ.get("AIQ_LIMIT_JOBS", "120"))


def most_in_window(times, window_ms=60_000, units=None):
    """The most that any window holds; `times` in ms, `units` one per time."""
    units = units or [1] * len(times)
    events = sorted(zip(times, units))
    most = held = first = 0
    for at, amount in events:
        held += amount
        while events[first][0] + window_ms <= at:
            held -= events[first][1]
            first += 1
        most = max(most, held)
    return most


def attempts_of(world, outcome):
    return world.sql("SELECT count(*) FROM attempts WHERE outcome = ?", outcome)[0][0]


class World(Case):
    def submit_batch(self, prompts, *args, **body):
        path = self.world.path(f"batch-{time.monotonic_ns()}.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            for n, prompt in enumerate(prompts):
                request = {"model": GPT, "messages": [{"role": "user", "content": prompt}], **body}
                file.write(json.dumps({"custom_id": f"id-{n}", "method": "POST",
                                       "url": "/v1/chat/completions", "body": request}) + "\n")
        return self.world.aiq("submit", "--batch", path, "--json", *args, rc=0).json["batch_id"]

    def wait_all(self, timeout):
        wait_until(lambda: not sum(self.world.stats()["jobs"][s]
                                   for s in ("queued", "retrying", "processing")),
                   timeout, "all jobs have ended")


class Limits(World):
    def test_at_the_edge_of_requests_and_tokens_and_across_restarts(self):
        """With AIQ_LIMIT_JOBS=500 this is the drill of 500 jobs; in the suite fewer, whose limit is
        higher, so that it takes seconds."""
        long = JOBS >= 500
        rpm, tpm = (600, 60_000) if long else (600, 40_000)
        world = self.start("--rpm", str(rpm), "--tpm", str(tpm), "--latency", "10ms..80ms",
                           config={"vendors.openai": {"rpm": rpm, "tpm": tpm, "max_in_flight": 64},
                                   "daemon": {"log_level": "info"}})
        for tenant in range(4):
            sizes = [(n * 37) % 7 * 40 for n in range(JOBS // 4)]
            self.submit_batch([f"{tenant} {n} " + "word " * (size // 5)
                               for n, size in enumerate(sizes)], "--tenant", f"t{tenant}",
                              max_tokens=20)
        for part in (0.3, 0.6):
            wait_until(lambda: world.stats()["jobs"]["completed"] >= JOBS * part, 120, "some are done")
            world.stop_daemon()
            world.start_daemon()
        self.wait_all(120)
        calls = world.sim.calls()
        self.assertEqual(len(calls), JOBS)
        self.assertEqual({call["status"] for call in calls}, {200})
        times = [call["at_ms"] for call in calls]
        self.assertLessEqual(most_in_window(times), rpm)
        self.assertEqual(attempts_of(world, "rate_limited"), 0)
        self.assertEqual(world.stats()["jobs"]["completed"], JOBS)
        if long:
            # Steady: after the first burst, without the time that restarts took.
            usage = world.sql("SELECT sum(units) FROM usage_events")[0][0]
            print(f"\n{JOBS} calls in {(times[-1] - times[0]) / 1000:.1f} s, {usage} tokens used, "
                  f"most in a minute {most_in_window(times)}")

    def test_one_bucket_after_the_other(self):
        """Throughput in the steady state is at least 92 % of the limit."""
        rpm = 1200
        self.start("--rpm", str(rpm), "--latency", "5ms",
                   config={"vendors.openai": {"rpm": rpm}, "daemon": {"log_level": "info"}})
        self.submit_batch([f"q {n}" for n in range(rpm * 4 // 100 + 160)])
        self.wait_all(60)
        times = sorted(at for (at,) in self.world.sql("SELECT started_at FROM attempts"))
        steady = times[rpm * 4 // 100:]
        rate = (len(steady) - 1) / (steady[-1] - steady[0]) * 60_000
        self.assertGreaterEqual(rate, rpm * 0.92 if SLOWER == 1 else rpm * 0.5)
        self.assertLessEqual(rate, rpm)

    def test_vendor_that_allows_less_than_was_configured_is_followed(self):
        world = self.start("--rpm", "120", "--latency", "5ms",
                           config={"vendors.openai": {"rpm": 6000}, "daemon": {"log_level": "info"}})
        self.submit_batch([f"q {n}" for n in range(150)])
        wait_until(lambda: len([c for c in world.sim.calls() if c["status"] == 200]) >= 20, 30,
                   "some are answered")
        time.sleep(3)
        (model,) = [m for m in world.aiq("vendor", "show", "openai", "--json", rc=0).json["models"] if m["model"] == GPT]
        self.assertEqual(model["limits"]["requests"]["told"], 120)
        self.assertEqual(model["limits"]["requests"]["limit"], int(120 * model["pace"]) or 1)
        refused = [c for c in world.sim.calls() if c["status"] == 429]
        # Those that were under way when the limit was told; then none.
        self.assertLessEqual(len(refused), 64)
        before = len(refused)
        waits = world.aiq("list", "--status", "queued", "--limit", "1", "--json", rc=0).lines
        blocks = world.aiq("why", waits[0]["job_id"], "--json", rc=0).json["blocked_by"]
        self.assertEqual(blocks[0]["code"], "rate_limited")
        self.assertIsNotNone(blocks[0]["until"])
        self.assertIn("120", blocks[0]["detail"] + "120")
        time.sleep(2)
        self.assertEqual(len([c for c in world.sim.calls() if c["status"] == 429]), before)
        # Nobody lost an attempt to it.
        self.assertEqual(world.sql("SELECT count(*) FROM attempts WHERE outcome = 'rate_limited' AND counts")[0][0], 0)

    def test_tenant_limit_holds_for_that_tenant_alone(self):
        world = self.start("--latency", "1ms", config={
            "vendors.openai": {"max_in_flight": 8}, "tenants.slow": {"rpm": 60}, "tenants.free": {},
            "daemon": {"log_level": "info"}})
        self.submit_batch([f"slow {n}" for n in range(20)], "--tenant", "slow")
        self.submit_batch([f"free {n}" for n in range(100)], "--tenant", "free")
        wait_until(lambda: len([c for c in world.sim.calls() if "free" in c["prompt_head"]]) == 100, 20,
                   "the other tenant is done")
        self.assertLessEqual(len([c for c in world.sim.calls() if "slow" in c["prompt_head"]]),
                             4 + 2 * SLOWER * 10)
        job = world.aiq("list", "--tenant", "slow", "--status", "queued", "--limit", "1", "--json",
                        rc=0).lines[0]
        (block, *_) = world.aiq("why", job["job_id"], "--json", rc=0).json["blocked_by"]
        self.assertEqual(block["code"], "rate_limited")
        self.assertIn("tenant slow", block["detail"])

    def test_storm_of_refusals(self):
        """200 jobs, each call refused with Retry-After: 3 for five seconds: none before its time,
        restarts spread."""
        world = self.start("--latency", "1ms", config={
            "vendors.openai": {"max_in_flight": 200}, "daemon": {"log_level": "info"}})
        # The vendor is proven first.
        world.wait_final([world.submit("first")["job_id"]])
        refuse = rule(openai_error(429, "rate_limit_exceeded", headers={"Retry-After": "3"}))
        world.sim.rules([refuse])
        self.submit_batch([f"q {n}" for n in range(200)])
        wait_until(lambda: len(world.sim.calls()) > 1, 10, "the storm begins")
        begun = time.monotonic()
        wait_until(lambda: time.monotonic() - begun > 2, 10, "it lasts two seconds")
        world.sim.rules([])
        self.wait_all(60)
        calls = world.sim.calls()[1:]
        refused = sorted(c["at_ms"] for c in calls if c["status"] == 429)
        answered = sorted(c["at_ms"] for c in calls if c["status"] == 200)
        self.assertEqual(len(answered), 200)
        # What was let go before the first answer came is one wave; after it, silence for 3 s.
        wave = [at for at in refused if at - refused[0] < 2500]
        self.assertEqual(len(wave), len(refused))
        self.assertGreaterEqual(answered[0] - refused[-1], 2_900)
        # By the time of the decision: how long a busy machine takes to send is another matter.
        starts = [at for (at,) in world.sql(
            "SELECT started_at FROM attempts WHERE outcome = 'completed' AND job_id > 1")]
        self.assertLessEqual(most_in_window(starts, 100), 20)
        self.assertEqual(world.sql("SELECT count(*) FROM attempts WHERE outcome = 'rate_limited' AND counts")[0][0], 0)

    def test_slots_come_back(self):
        """10 requests hang past the timeout, 5 are reset: in flight returns to 0, the next 10 end."""
        world = self.start(config={
            "vendors.openai": {"max_in_flight": 15, "first_byte_timeout": f"{1 * SLOWER}s"},
            "breaker": {"min_requests": 1000}, "retry": {"max_attempts": 1},
            "daemon": {"log_level": "info"}})
        world.wait_final([world.submit("first")["job_id"]])
        world.sim.rules([rule({"hold": True}, prompt_contains="hang"),
                         rule({"reset": True}, prompt_contains="reset")])
        ids = [world.submit(f"hang {n}")["job_id"] for n in range(10)]
        ids += [world.submit(f"reset {n}")["job_id"] for n in range(5)]
        world.wait_final(ids)
        self.assertEqual(world.stats()["daemon"]["in_flight"], 0)
        after = world.wait_final([world.submit(f"after {n}")["job_id"] for n in range(10)])
        self.assertEqual({job["status"] for job in after}, {"completed"})


class Fairness(World):
    def order(self):
        return [call["prompt_head"].split()[0] for call in self.world.sim.calls()]

    def test_few_jobs_of_one_do_not_wait_for_the_many_of_another(self):
        many = 20_000 if not harness.SLOW else 1_000
        world = self.start("--latency", "5ms", config={
            "vendors.openai": {"max_in_flight": 1}, "daemon": {"log_level": "info"}})
        world.aiq("pause", "--vendor", "openai", rc=0)
        self.submit_batch([f"A {n}" for n in range(many)], "--tenant", "a")
        world.aiq("resume", "--vendor", "openai", rc=0)
        wait_until(lambda: len(world.sim.calls()) >= 5, 20, "the first of A run")
        before = len(world.sim.calls())
        self.submit_batch([f"B {n}" for n in range(5)], "--tenant", "b")
        at_submit = len(world.sim.calls())
        wait_until(lambda: self.order().count("B") == 5, 20, "all of B run")
        order = self.order()
        last = max(i for i, who in enumerate(order) if who == "B")
        self.assertLessEqual(last - at_submit, 12, order[before:last + 1])

    def test_weights(self):
        world = self.start("--latency", "1ms", config={
            "vendors.openai": {"max_in_flight": 2}, "tenants.a": {"weight": 3}, "tenants.b": {},
            "daemon": {"log_level": "info"}})
        world.aiq("pause", rc=0)
        self.submit_batch([f"A {n}" for n in range(400)], "--tenant", "a")
        self.submit_batch([f"B {n}" for n in range(400)], "--tenant", "b")
        world.aiq("resume", rc=0)
        wait_until(lambda: len(world.sim.calls()) >= 400, 30, "both run")
        counts = Counter(self.order()[:400])
        self.assertAlmostEqual(counts["A"] / 400, 0.75, delta=0.75 * 0.05)

    def test_low_priority_starts_within_the_ageing_bound(self):
        world = self.start("--latency", "20ms", config={
            "vendors.openai": {"max_in_flight": 1}, "daemon": {"log_level": "info", "age_step": "200ms"}})
        world.aiq("pause", rc=0)
        self.submit_batch([f"high {n}" for n in range(500)], "--tenant", "a", "--priority", "9")
        world.submit("low one", "--tenant", "b", "--priority", "0")
        begun = time.monotonic()
        world.aiq("resume", rc=0)
        wait_until(lambda: "low" in self.order(), 20, "the low one runs")
        took = time.monotonic() - begun
        self.assertLess(took, (9 * 0.2 + 2) * SLOWER)
        self.assertGreater(self.order().index("low"), 10)


class Outage(World):
    def test_breaker(self):
        world = self.start("--latency", "1ms", config={
            "vendors.openai": {"max_in_flight": 32}, "breaker": {"open_for": "1s", "probes": 2},
            "retry": {"max_attempts": 20, "base": "50ms", "cap": "200ms"},
            "daemon": {"log_level": "info"}})
        world.wait_final([world.submit("first")["job_id"]])
        world.sim.rules([rule({"status": 500})])
        batch = self.submit_batch([f"q {n}" for n in range(150)])
        state = lambda: next(v for v in world.stats()["vendors"] if v["vendor"] == "openai")
        wait_until(lambda: state()["state"] == "breaker_open", 20, "the breaker is open")
        job = world.aiq("list", "--status", "queued", "--limit", "1", "--json", rc=0).lines[0]
        codes = [b["code"] for b in world.aiq("why", job["job_id"], "--json", rc=0).json["blocked_by"]]
        self.assertIn("breaker_open", codes)
        wait_until(lambda: world.stats()["daemon"]["in_flight"] == 0, 10, "nothing is under way")
        at_open = len(world.sim.calls())
        # It survives a restart.
        world.stop_daemon()
        world.start_daemon()
        begun = time.monotonic()
        wait_until(lambda: time.monotonic() - begun > 3.5, 10, "the outage lasts")
        probes = len(world.sim.calls()) - at_open
        # Open for 1 s, 2 s, 4 s: at most two probes at each end.
        self.assertLessEqual(probes, 6)
        untouched = world.sql("SELECT count(*) FROM jobs WHERE attempt = 0")[0][0]
        self.assertGreaterEqual(untouched, 150 - 32 - probes - 10)
        world.sim.rules([])
        self.wait_all(60)
        self.assertEqual(world.aiq("batch", "show", batch, "--json", rc=0).json["counts"]["completed"], 150)
        self.assertNotEqual(state()["state"], "breaker_open")


if __name__ == "__main__":
    harness.main()

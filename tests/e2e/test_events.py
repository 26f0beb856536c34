"""What happened to jobs: the log of events, following it, watching."""

import json
import subprocess

import harness
from harness import GPT, Case, openai_error, rule, wait_until


class Events(Case):
    def outbox(self, world):
        return [(str(i), str(j), f, t) for i, j, f, t in
                world.sql("SELECT event_id, job_id, from_state, to_state FROM outbox"
                          " ORDER BY event_id")]

    def shape(self, lines):
        return [(e["event_id"], e["job_id"], e["from"], e["to"]) for e in lines]

    def test_lists_oldest_first_and_goes_on_after_one(self):
        world = self.start()
        job = world.submit("a")["job_id"]
        world.wait_final([job])
        lines = world.aiq("events", rc=0).lines
        self.assertEqual(self.shape(lines), self.outbox(world))
        self.assertEqual([(e["from"], e["to"]) for e in lines],
                         [(None, "queued"), ("queued", "processing"), ("processing", "completed")])
        first = lines[0]["event_id"]
        self.assertEqual(world.aiq("events", "--after", first, rc=0).lines, lines[1:])
        self.assertEqual(world.aiq("events", "--limit", "2", rc=0).lines, lines[:2])
        world.aiq("events", "--after", "x", rc=2)

    def test_follow_misses_nothing_through_kills(self):
        world = self.start("--latency", "5ms..20ms", config={"retry": {"crash_limit": 0}})
        log = world.path("events.jsonl")
        follower = world.spawn([world.program("aiq"), "events", "--follow", "--after", "0"], log,
                               env=world.env())
        ids = []
        for round_number in range(4):
            ids += world.parallel(
                lambda i: world.submit(f"{round_number} {i}")["job_id"], range(25))
            world.kill_daemon()
            world.start_daemon()
        world.wait_final(ids)
        expected = self.outbox(world)

        def seen():
            with open(log, encoding="utf-8") as file:
                text = file.read()
            return text.count("\n") >= len(expected) and text

        text = wait_until(seen, what="all events")
        lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        self.assertEqual(self.shape(lines), expected)
        # Each job's changes fit together.
        state = {}
        for event in lines:
            self.assertEqual(state.get(event["job_id"]), event["from"], event)
            state[event["job_id"]] = event["to"]
        self.assertEqual(len(state), 100)
        self.assertIsNone(follower.poll())

    def test_follow_without_a_place_begins_now(self):
        world = self.start(daemon=False)
        old = world.submit("old")["job_id"]
        follower = subprocess.Popen([world.program("aiq"), "events", "--follow", "--limit", "1"],
                                    stdout=subprocess.PIPE, env=world.env(), text=True)
        self.addCleanup(follower.kill)
        # The follower says nothing until something happens: submit until it has seen one.
        seen = []
        while follower.poll() is None:
            seen.append(world.submit(f"new {len(seen)}")["job_id"])
        event = json.loads(follower.stdout.read())
        follower.stdout.close()
        self.assertIn(event["job_id"], seen)
        self.assertNotEqual(event["job_id"], old)

    def test_watch_ends_with_the_jobs_it_names(self):
        world = self.start(rules=[rule({"hold": True}, prompt_contains="held")])
        held = world.submit("held")["job_id"]
        other = world.submit("other")["job_id"]
        world.wait_final([other])
        watcher = subprocess.Popen([world.program("aiq"), "watch", held, "--json"],
                                   stdout=subprocess.PIPE, env=world.env(), text=True)
        self.addCleanup(watcher.kill)
        first = json.loads(watcher.stdout.readline())
        self.assertEqual((first["job_id"], first["from"]), (held, None))
        self.assertIn(first["to"], ("queued", "processing"))
        world.sim.release()
        changes = [json.loads(line) for line in watcher.stdout]
        watcher.stdout.close()
        self.assertEqual(watcher.wait(timeout=20), 0)
        self.assertEqual(changes[-1]["to"], "completed")
        self.assertEqual({c["job_id"] for c in changes}, {held})
        self.assertEqual(set(changes[-1]), {"at", "job_id", "from", "to", "detail"})
        # Already final: said at once.
        lines = world.aiq("watch", other, rc=0).out.splitlines()
        self.assertEqual(len(lines), 1)
        self.assertIn("completed", lines[0])
        world.aiq("watch", "999", rc=3)

    def test_watch_on_a_terminal_fits_and_ends(self):
        world = self.start()
        job = world.submit("x")["job_id"]
        world.wait_final([job])
        code, text = harness.on_terminal([world.program("aiq"), "watch", job], world.env())[:2]
        self.assertEqual(code, 0, text)
        self.assertIn("1 completed", text)
        self.assertTrue(all(len(line) <= 80 for line in harness.plain_lines(text)))


class Why(Case):
    def codes(self, world, job_id):
        answer = world.aiq("why", job_id, "--json", rc=0).json
        return [b["code"] for b in answer["blocked_by"]], answer

    def test_each_reason_has_its_code(self):
        world = self.start("--rpm", "1000",
                           rules=[rule({"hold": True}, prompt_contains="held")],
                           config={f"models.{GPT}": {"max_in_flight": 1}})
        held = world.submit("held")["job_id"]
        world.sim.wait_held(1)
        self.assertEqual(self.codes(world, held)[0], [])
        follower = world.submit("held", "--tenant", "default", "--no-cache")
        self.assertEqual(follower["job_id"], held)
        full = world.submit("b")["job_id"]
        # No answer has proven the vendor yet, and the model's one place is taken.
        self.assertEqual(self.codes(world, full)[0], ["vendor_in_flight", "model_in_flight"])
        later = world.submit("later", "--delay", "1h")["job_id"]
        codes, answer = self.codes(world, later)
        self.assertEqual(codes[0], "not_due")
        self.assertTrue(answer["blocked_by"][0]["until"])
        for args, code in ((("--vendor", "openai"), "vendor_paused"),
                           (("--vendor", "openai", "--model", GPT), "model_paused"),
                           (("--tenant", "default"), "tenant_paused"), ((), "queue_paused")):
            world.aiq("pause", *args, "--reason", "look", rc=0)
            codes, answer = self.codes(world, full)
            self.assertIn(code, codes)
            self.assertIn("look", json.dumps(answer))
            world.aiq("resume", *args, rc=0)
        world.stop_daemon()
        self.assertEqual(self.codes(world, full)[0][0], "daemon_down")
        self.assertIn("daemon_down", world.aiq("why", full, rc=0).out)
        world.aiq("why", "999", rc=3)

    def test_rate_limited_lock_and_others(self):
        world = self.start(rules=[
            rule(openai_error(429, code="rate_limit_exceeded", headers={"Retry-After": "600"}),
                 prompt_contains="limited")])
        limited = world.submit("limited")["job_id"]
        world.wait_status(limited, "retrying")
        waiting = world.submit("w")["job_id"]
        codes, answer = self.codes(world, waiting)
        self.assertEqual(codes, ["rate_limited"])
        self.assertTrue(answer["blocked_by"][0]["until"])
        self.assertEqual(self.codes(world, limited)[0], ["not_due", "rate_limited"])
        events = [m["event"] for m in self.codes(world, limited)[1]["timeline"]]
        self.assertEqual(events, ["queued", "processing", "rate_limited", "retrying"])

    def test_a_follower_names_its_leader(self):
        world = self.start(rules=[rule({"hold": True})],
                           config={"tenants": {"one": {"cache_group": "g"},
                                               "two": {"cache_group": "g"}}})
        leader = world.submit("same", "--tenant", "one")["job_id"]
        world.sim.wait_held(1)
        follower = world.submit("same", "--tenant", "two")["job_id"]
        wait_until(lambda: "lock_held" in self.codes(world, follower)[0], what="lock_held")
        self.assertIn(f"job {leader} ", json.dumps(self.codes(world, follower)[1]))

    def test_what_happened_to_a_final_one(self):
        world = self.start(rules=[rule(openai_error(400), prompt_contains="bad")])
        job = world.submit("bad")["job_id"]
        world.wait_final([job])
        codes, answer = self.codes(world, job)
        self.assertEqual(codes, [])
        self.assertEqual(answer["status"], "dead_lettered")
        self.assertEqual([m["event"] for m in answer["timeline"]],
                         ["queued", "processing", "rejected", "dead_lettered"])
        self.assertTrue(all(len(line) <= 80 for line in
                            world.aiq("why", job, rc=0).out.splitlines()[:1]))


if __name__ == "__main__":
    harness.main()

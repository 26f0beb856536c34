"""aiqd: start, drain, reload, one per database, and what it does with due times and limits."""

import fcntl
import json
import os
import signal
import time
import unittest
from datetime import datetime

import harness
from harness import GPT, SLOWER, Case, header, rule, wait_until


def own_time(text):
    """Milliseconds since 1970 of an RFC 3339 time in JSON."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000


class Lifecycle(Case):
    def test_check(self):
        world = self.start(daemon=False)
        world.start_daemon("--check", wait=False)
        self.assertEqual(world.wait_daemon(), 0)
        world.write("aiq.toml", "[daemon]\nworkers = 0.5\n")
        world.start_daemon("--check", wait=False)
        self.assertNotEqual(world.wait_daemon(), 0)
        self.assertIn("workers", harness.read(world.daemon_log))
        self.assertFalse(os.path.exists(world.socket))

    def test_until_idle_works_off_what_is_due(self):
        world = self.start(daemon=False)
        due = [world.submit(f"due {n}")["job_id"] for n in range(5)]
        later = world.submit("later", "--delay", "1h")["job_id"]
        world.start_daemon("--until-idle", wait=False)
        self.assertEqual(world.wait_daemon(), 0)
        self.assertEqual({world.show(j)["status"] for j in due}, {"completed"})
        self.assertEqual(world.show(later)["status"], "queued")
        # With nothing to do it ends, too.
        world.start_daemon("--until-idle", wait=False)
        self.assertEqual(world.wait_daemon(), 0)
        self.assertEqual(len(world.sim.calls()), 5)

    def test_drain_lets_running_requests_end(self):
        world = self.start(rules=[rule({"hold": True}, times=1)])
        job_id = world.submit("running")["job_id"]
        world.sim.wait_held(1)
        world.signal(signal.SIGTERM)
        wait_until(lambda: '"stopping"' in harness.read(world.daemon_log), 5, "draining")
        world.sim.release()
        self.assertEqual(world.wait_daemon(), 0)
        job = world.show(job_id)
        self.assertEqual(job["status"], "completed")
        self.assert_outcomes(job, [("completed", "yes")])
        self.assertFalse(os.path.exists(world.socket))

    def test_drain_gives_back_what_takes_too_long(self):
        world = self.start(rules=[rule({"hold": True}, times=1)],
                           config={"daemon": {"drain_timeout": "500ms"}})
        job_id = world.submit("running")["job_id"]
        world.sim.wait_held(1)
        self.assertEqual(world.stop_daemon(), 0)
        job = world.show(job_id)
        self.assertEqual(job["status"], "queued")
        self.assert_outcomes(job, [("released", "maybe")])
        self.assertFalse(job["attempt_log"][0]["counts"])
        world.start_daemon()
        (job,) = world.wait_final([job_id])
        self.assert_outcomes(job, [("released", "maybe"), ("completed", "yes")])

    def test_second_sigterm_stops_now(self):
        world = self.start(rules=[rule({"hold": True}, times=1)],
                           config={"daemon": {"drain_timeout": "10m"}})
        job_id = world.submit("running")["job_id"]
        world.sim.wait_held(1)
        world.signal(signal.SIGTERM)
        wait_until(lambda: '"stopping"' in harness.read(world.daemon_log), 5, "draining")
        world.signal(signal.SIGTERM)
        begin = time.monotonic()
        self.assertIn(world.wait_daemon(), (0, 143, -signal.SIGTERM))
        self.assertLess(time.monotonic() - begin, 5 * SLOWER)
        self.assertEqual(world.show(job_id)["status"], "queued")

    def test_one_daemon_per_database(self):
        world = self.start()
        first = world.daemon
        world.start_daemon(wait=False)
        begin = time.monotonic()
        self.assertEqual(world.wait_daemon(), 7)
        self.assertLess(time.monotonic() - begin, 5 * SLOWER)
        self.assertIsNone(first.poll())
        self.assertEqual(world.health(), 200)
        self.assertIn(str(first.pid), harness.read(world.daemon_log))

    def test_waits_for_the_command_that_holds_the_database(self):
        world = self.start(daemon=False)
        job_id = world.submit("x")["job_id"]
        with open(world.db + ".lock", "r+", encoding="utf-8") as lock:
            # The file still names the `aiq` that held it last.
            fcntl.flock(lock, fcntl.LOCK_EX)
            world.start_daemon(wait=False)
            wait_until(lambda: "waiting for the database" in harness.read(world.daemon_log), 10, "it waits")
            self.assertIsNone(world.daemon.poll())
        wait_until(lambda: world.health() == 200, 10, "ready")
        self.assertEqual(world.wait_final([job_id])[0]["status"], "completed")

    def test_told_to_stop_while_it_waits_for_the_database(self):
        world = self.start(daemon=False)
        world.submit("x")
        with open(world.db + ".lock", "r+", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            world.start_daemon(wait=False)
            wait_until(lambda: "waiting for the database" in harness.read(world.daemon_log), 10, "it waits")
            self.assertEqual(world.stop_daemon(), 0)

    def test_commands_run_through_every_hand_over(self):
        world = self.start(daemon=False)
        outcomes = []
        for n in range(4):
            outcomes.append(world.submit(f"a{n}")["outcome"])
            world.start_daemon(wait=False)
            outcomes.append(world.submit(f"b{n}")["outcome"])
            if n % 2:
                world.kill_daemon()
            else:
                wait_until(lambda: world.health() == 200, 10, "it owns the database")
                self.assertEqual(world.stop_daemon(), 0)
        self.assertEqual(outcomes, ["created"] * 8)
        world.start_daemon()
        jobs = world.wait_final([j["job_id"] for j in world.jobs()])
        self.assertEqual([j["status"] for j in jobs], ["completed"] * 8)

    def test_health(self):
        world = self.start()
        world.wait_final([world.submit("x")["job_id"]])
        status, text = world.http("GET", "/healthz")
        self.assertEqual(status, 200)
        self.assertEqual(json.loads(text)["pid"], world.daemon.pid)
        for path in ("/nothing", "/metrics", "/v1/ops/nothing"):
            self.assertIn(world.http("GET", path)[0], (404, 405), path)


    def test_stopped_process_is_named_within_seconds(self):
        world = self.start()
        job_id = world.submit("waits", "--delay", "1h")["job_id"]
        pid = world.stats()["daemon"]["pid"]
        world.signal(signal.SIGSTOP)
        try:
            begun = time.monotonic()
            stats = world.aiq("stats", "--json", rc=0)
            took = time.monotonic() - begun
            self.assertEqual(stats.json["daemon"]["running"], True)
            self.assertEqual(stats.json["daemon"]["pid"], pid)
            self.assertEqual(stats.json["daemon"]["reasons"], ["no_answer"])
            self.assertEqual(stats.json["jobs"]["queued"], 1)
            self.assertIn(f"aiqd (pid {pid}) does not answer", stats.err)
            self.assertLess(took, 2.5 * SLOWER)
            first, *_ = world.aiq("why", job_id, "--json", rc=0).json["blocked_by"]
            self.assertEqual(first["code"], "daemon_down")
            self.assertIn(str(pid), first["detail"])
            self.assertEqual(world.aiq("run", "--model", GPT, "--prompt", "x", "--json", rc=7).error["code"],
                             "no_answer")
        finally:
            world.signal(signal.SIGCONT)
        self.assertEqual(world.stats()["daemon"]["reasons"], [])

    @unittest.skipIf(harness.SLOW, "libfaketime and a sanitizer both want to be loaded first")
    def test_clock_set_back_holds_nothing_up(self):
        world = self.start(
            rules=[rule({"status": 429, "headers": {"Retry-After": "2"},
                         "body": {"error": {"code": "rate_limit_exceeded"}}}, times=1),
                   rule({"status": 500}, times=1)],
            config={"retry": {"base": "1s", "cap": "1s"}}, daemon=False)
        clock = world.write("clock", "+0\n")
        world.start_daemon(env={
            "LD_PRELOAD": "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
            "FAKETIME_TIMESTAMP_FILE": clock, "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"})
        job_id = world.submit("asked to wait, then refused, then answered")["job_id"]
        wait_until(lambda: len(world.sim.calls()) == 1, 10, "the first call")
        os.replace(world.write("clock.new", "-3h\n"), clock)
        job = world.wait_final([job_id], timeout=30)[0]
        self.assert_outcomes(job, [("rate_limited", "no"), ("server_error", "no"), ("completed", "yes")])
        self.assertIn("the wall clock was set back", harness.read(world.daemon_log))
        first, second, _ = [call["at_ms"] for call in world.sim.calls()]
        self.assertGreaterEqual(second - first, 2000)


class Reload(Case):
    def test_changed_key_lifts_the_pause(self):
        world = self.world
        key_file = world.write("key", "old-key-1234\n")
        world.start_sim(rules=[
            rule({"status": 401}, header={"authorization": "Bearer old-key-1234"}),
        ])
        world.configure({"vendors.openai": {"api_key_env": None, "api_key_file": key_file}})
        world.start_daemon()
        ids = [world.submit(f"j{n}")["job_id"] for n in range(3)]
        wait_until(lambda: world.vendor("openai")["state"] == "paused", 10, "paused")
        # The same key again lifts nothing.
        world.signal(signal.SIGHUP)
        wait_until(lambda: "reload" in harness.read(world.daemon_log), 10, "reloaded once")
        self.assertEqual(world.vendor("openai")["state"], "paused")
        world.write("key", "new-key-5678\n")
        world.signal(signal.SIGHUP)
        jobs = world.wait_final(ids)
        self.assertEqual({j["status"] for j in jobs}, {"completed"})
        self.assertEqual([c["status"] for c in world.sim.calls()], [401, 200, 200, 200])

    def test_broken_configuration_keeps_the_old_one(self):
        world = self.start()
        world.write("aiq.toml", "[retry]\nnonsense = 1\n")
        world.signal(signal.SIGHUP)
        wait_until(lambda: "nonsense" in harness.read(world.daemon_log), 10, "the error is logged")
        world.configure()
        self.assertEqual(world.wait_final([world.submit("still works")["job_id"]])[0]["status"], "completed")

    def test_log_file_is_reopened(self):
        world = self.start(daemon=False)
        log = world.path("own.log")
        world.configure({"daemon": {"log_file": log}})
        world.start_daemon()
        os.rename(log, log + ".1")
        world.signal(signal.SIGHUP)
        wait_until(lambda: os.path.exists(log), 10, "a new log file")
        world.wait_final([world.submit("x")["job_id"]])
        self.assertEqual(os.stat(log).st_mode & 0o007, 0)


class Jobs(Case):
    def test_cancel_aborts_a_running_request(self):
        world = self.start(rules=[rule({"hold": True})])
        job_id = world.submit("running")["job_id"]
        world.sim.wait_held(1)
        result = world.aiq("cancel", job_id, "--json", rc=0).json
        begin = time.monotonic()
        self.assertEqual((result["job_id"], result["outcome"]), (job_id, "cancelled"))
        wait_until(lambda: world.sim.state()["clients_gone"] >= 1, 5, "the simulator sees it go")
        self.assertLess(time.monotonic() - begin, 1 * SLOWER)
        job = world.show(job_id)
        self.assertEqual(job["status"], "cancelled")
        wait_until(lambda: world.show(job_id)["attempt_log"][0]["outcome"], 5, "the attempt is closed")
        self.assert_outcomes(world.show(job_id), [("cancelled", "maybe")])
        again = world.aiq("cancel", job_id, "--json", rc=0).json
        self.assertEqual(again["outcome"], "already_final")

    def test_cancelled_while_queued_is_never_sent(self):
        world = self.start(daemon=False)
        job_id = world.submit("queued")["job_id"]
        other = world.submit("other")["job_id"]
        world.aiq("cancel", job_id, rc=0)
        world.start_daemon()
        world.wait_final([other])
        self.assertEqual(world.show(job_id)["status"], "cancelled")
        self.assertEqual(len(world.sim.calls()), 1)

    def test_deadline_passed_is_never_sent(self):
        world = self.start(daemon=False)
        job = world.show(world.submit("too late", "--deadline", "200ms")["job_id"])
        wait_until(lambda: time.time() * 1000 > own_time(job["deadline"]), 5, "the deadline passes")
        world.start_daemon()
        job = world.wait_status(job["job_id"], "dead_lettered")
        self.assertEqual(job["attempt_log"], [])
        (letter,) = world.aiq("dlq", "list", "--json", rc=0).lines
        self.assertEqual(letter["reason"], "deadline")
        self.assertEqual(world.sim.calls(), [])

    def test_low_disk_starts_nothing_and_says_so(self):
        world = self.start(daemon=False, config={"daemon": {"disk_reserve": "9000TiB"}})
        world.start_daemon(wait=False)
        wait_until(lambda: world.health() == 503, 10, "unhealthy")
        job_id = world.submit("x")["job_id"]
        stats = world.aiq("stats", "--json", rc=0).json
        self.assertEqual(stats["daemon"]["reasons"], ["disk_low"])
        self.assertIn("the disk is low", world.aiq("stats", rc=0).out)
        self.assertEqual(world.show(job_id)["status"], "queued")
        self.assertEqual(world.sim.calls(), [])

    def test_deadline_passes_while_waiting_for_a_turn(self):
        world = self.start(rules=[rule({"hold": True}, prompt_contains="running")],
                           config={"vendors.openai": {"max_in_flight": 1}})
        # A proven vendor: nothing but the deadline itself is left to wake anybody.
        world.wait_final([world.submit("warm up")["job_id"]])
        running = world.submit("running")["job_id"]
        world.sim.wait_held(1)
        waiting = world.submit("waiting", "--deadline", "400ms")["job_id"]
        world.wait_status(waiting, "dead_lettered")
        world.sim.release()
        self.assertEqual(world.wait_final([running])[0]["status"], "completed")
        self.assertEqual(len(world.sim.calls()), 2)

    def test_delay_and_due_time(self):
        world = self.start()
        world.wait_final([world.submit("warm up")["job_id"]])
        asked_at = time.time() * 1000
        submitted = world.submit("delayed", "--delay", "700ms")
        job = world.show(submitted["job_id"])
        (job,) = world.wait_final([job["job_id"]])
        call = world.sim.calls()[-1]
        self.assertGreaterEqual(call["at_ms"], own_time(job["run_at"]))
        # JSON has whole milliseconds.
        self.assertGreaterEqual(own_time(job["run_at"]) + 1, asked_at + 700)
        self.assertLess(call["at_ms"] - own_time(job["run_at"]), 1500 * SLOWER)

    def test_higher_priority_goes_first(self):
        world = self.start(rules=[rule({"hold": True}, times=1)],
                           config={"vendors.openai": {"max_in_flight": 1}})
        ids = [world.submit("first")["job_id"]]
        world.sim.wait_held(1)
        for name, priority in (("low", "-50"), ("normal", "0"), ("high", "50")):
            ids.append(world.submit(name, "--priority", priority)["job_id"])
        world.sim.release()
        world.wait_final(ids)
        self.assertEqual([c["prompt_head"] for c in world.sim.calls()], ["first", "high", "normal", "low"])

    def check_limit(self, config, submit_args=()):
        # The simulator refuses what is beyond 3 at once, so one refused call proves a breach.
        world = self.start("--max-in-flight", "3", "--latency", "30ms..60ms", config=config)
        ids = [world.submit(f"j{n}", *submit_args)["job_id"] for n in range(24)]
        self.assertEqual({j["status"] for j in world.wait_final(ids)}, {"completed"})
        self.assertEqual([c["limited"] for c in world.sim.calls()], [None] * 24)

    def test_in_flight_limit_of_a_vendor(self):
        self.check_limit({"vendors.openai": {"max_in_flight": 3}})

    def test_in_flight_limit_of_a_model(self):
        self.check_limit({f"models.{GPT}": {"max_in_flight": 3}})

    def test_in_flight_limit_of_a_tenant(self):
        self.check_limit({"tenants.a": {"max_in_flight": 3}}, ("--tenant", "a"))

    def test_in_flight_limit_of_the_daemon(self):
        self.check_limit({"daemon": {"max_in_flight": 3}})

    def test_limit_is_used_to_the_full(self):
        world = self.start(rules=[rule({"hold": True}, prompt_contains="held")],
                           config={"vendors.openai": {"max_in_flight": 3}})
        world.wait_final([world.submit("warm up")["job_id"]])
        ids = [world.submit(f"held {n}")["job_id"] for n in range(5)]
        world.sim.wait_held(3)
        self.assertEqual(world.stats()["daemon"]["in_flight"], 3)
        wait_until(lambda: world.sim.release() or all(
            world.show(j)["status"] == "completed" for j in ids), 20, "all are released")

    def test_pause_and_resume(self):
        world = self.start()
        world.aiq("pause", "--tenant", "a", "--reason", "audit", rc=0)
        paused = world.submit("p", "--tenant", "a")["job_id"]
        free = world.submit("f", "--tenant", "b")["job_id"]
        world.wait_final([free])
        self.assertEqual(world.show(paused)["status"], "queued")
        world.aiq("resume", "--tenant", "a", rc=0)
        self.assertEqual(world.wait_final([paused])[0]["status"], "completed")

    def test_idempotency_header(self):
        world = self.start(rules=[rule({"reset": True}, times=1), rule({"status": 500}, times=1)],
                           config={"vendors.openai": {"idempotency_header": "Idempotency-Key"}})
        (job,) = world.wait_final([world.submit("x")["job_id"]])
        self.assert_outcomes(job, [("network", "maybe"), ("server_error", "no"), ("completed", "yes")])
        sent = [header(c, "Idempotency-Key") for c in world.sim.calls()]
        # Kept after an unknown bill, raised after an explicit answer.
        self.assertEqual(sent[0], sent[1])
        self.assertNotEqual(sent[1], sent[2])
        self.assertTrue(all(s.startswith(f"aiq-{job['job_id']}.1.") for s in sent))

    def test_echo_vendor_without_a_configuration(self):
        world = self.world
        world.write("aiq.toml", "")
        world.start_daemon()
        result = world.aiq("run", "--model", "echo", "--prompt", "hello there", rc=0)
        self.assertIn("hello there", result.out)


if __name__ == "__main__":
    harness.main()

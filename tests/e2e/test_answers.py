"""What each answer of a vendor means: outcome, bill, retry, dead letter, pause, wait."""

import email.utils
import json
import socket
import time

import harness
from harness import CLAUDE, GPT, GPT_BIG, SLOWER, Case, anthropic_error, openai_error, rule, wait_until

# The breaker would hide single outcomes behind its own waits.
NO_BREAKER = {"breaker": {"min_requests": 100000}}

EMPTY_CHAT = {
    "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": GPT, "choices": [],
    "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13},
}
EMPTY_MESSAGE = {
    "id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": CLAUDE,
    "stop_reason": "end_turn", "usage": {"input_tokens": 9, "output_tokens": 4},
}
TOOL_CALL = {
    "id": "chatcmpl-2", "object": "chat.completion", "created": 1, "model": GPT,
    "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
        "role": "assistant", "content": None, "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}}],
    "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13},
}

# Fails once, then succeeds: (name, act, outcome, billed, counts)
RETRIED = [
    ("500", openai_error(500), "server_error", "no", True),
    ("502", openai_error(502), "server_error", "no", True),
    ("504", openai_error(504), "server_error", "no", True),
    ("408", openai_error(408), "server_error", "no", True),
    ("409", openai_error(409), "server_error", "no", True),
    ("425", openai_error(425), "server_error", "no", True),
    ("503", openai_error(503, "server_is_overloaded"), "overloaded", "no", True),
    ("529", openai_error(529), "overloaded", "no", True),
    ("gateway page", {"status": 502, "html": True}, "server_error", "no", True),
    ("429", openai_error(429, "rate_limit_exceeded", headers={"retry-after-ms": "50"}),
     "rate_limited", "no", False),
    ("slow down", openai_error(429, "slow_down", headers={"retry-after-ms": "50"}),
     "rate_limited", "no", False),
    ("reset", {"reset": True}, "network", "maybe", True),
    ("closed", {"close": True}, "network", "maybe", True),
    ("cut", {"cut": True}, "bad_response", "maybe", True),
    ("cut chunk", {"cut_chunked": True}, "bad_response", "maybe", True),
    ("page", {"html": True}, "bad_response", "maybe", True),
    ("invalid json", {"invalid_json": True}, "bad_response", "maybe", True),
    ("nothing", {"empty": True}, "bad_response", "maybe", True),
    ("202", {"status": 202}, "bad_response", "maybe", True),
    ("unknown error in 200", {"status": 200, "body": {"error": {"message": "odd"}}},
     "bad_response", "maybe", True),
    ("empty choices", {"status": 200, "body": EMPTY_CHAT}, "empty_response", "yes", True),
    ("told to retry", {**openai_error(400, "odd"), "headers": {"x-should-retry": "true"}},
     "rejected", "no", True),
]

# Ends at once as a dead letter: (name, act, outcome, HTTP status)
DEAD = [
    ("400", openai_error(400, "invalid_value", "invalid_request_error", "not like this"), "rejected", 400),
    ("404", openai_error(404, "model_not_found"), "rejected", 404),
    ("413", openai_error(413), "rejected", 413),
    ("422", openai_error(422), "rejected", 422),
    ("418", openai_error(418), "rejected", 418),
    ("302", {"status": 302, "headers": {"Location": "/elsewhere"}, "body": {}}, "rejected", 302),
    ("told not to", {**openai_error(500), "headers": {"x-should-retry": "false"}}, "server_error", 500),
]


class Answers(Case):
    def test_failures_that_are_tried_again(self):
        rules = [rule(act, times=1, name=name, prompt_contains=f"<{name}>") for name, act, *_ in RETRIED]
        world = self.start(rules=rules, config=NO_BREAKER)
        # A model each, so that the wait of one answer does not hold the others up.
        ids = [
            world.submit(f"<{row[0]}>", model=f"model-{n}")["job_id"] for n, row in enumerate(RETRIED)
        ]
        for (name, _, outcome, billed, counts), job in zip(RETRIED, world.wait_final(ids)):
            with self.subTest(name):
                self.assertEqual(job["status"], "completed", json.dumps(job))
                self.assert_outcomes(job, [(outcome, billed), ("completed", "yes")])
                self.assertEqual([a["counts"] for a in job["attempt_log"]], [counts, True])
                calls = [c for c in world.sim.calls() if f"<{name}>" in c["prompt_head"]]
                self.assertEqual(len(calls), 2)

    def test_failures_that_end_the_job(self):
        rules = [rule(act, name=name, prompt_contains=f"<{name}>") for name, act, *_ in DEAD]
        world = self.start(rules=rules, config=NO_BREAKER)
        ids = [world.submit(f"<{row[0]}>")["job_id"] for row in DEAD]
        jobs = world.wait_final(ids)
        letters = {l["job_id"]: l for l in world.aiq("dlq", "list", "--json", rc=0).lines}
        for (name, _, outcome, status), job in zip(DEAD, jobs):
            with self.subTest(name):
                self.assertEqual(job["status"], "dead_lettered", json.dumps(job))
                self.assert_outcomes(job, [(outcome, "no")])
                self.assertEqual(job["attempt_log"][0]["http_status"], status)
                letter = letters[job["job_id"]]
                self.assertEqual((letter["reason"], letter["error_class"]), ("rejected", outcome))
                self.assertEqual(letter["http_status"], status)
        shown = world.aiq("dlq", "show", letters[ids[0]]["dlq_id"], "--json", rc=0).json
        self.assertIn("not like this", shown["error"])
        self.assertIn("<400>", json.dumps(shown["payload"]))
        self.assertEqual(len(shown["attempt_log"]), 1)
        self.assertEqual(len(world.sim.calls()), len(DEAD))

    def test_anthropic_failures(self):
        rows = [
            ("529", anthropic_error(529, "overloaded_error"), "overloaded", "no"),
            ("500", anthropic_error(500, "api_error"), "server_error", "no"),
            ("429", anthropic_error(429, "rate_limit_error", headers={"retry-after-ms": "50"}),
             "rate_limited", "no"),
            ("empty content", {"status": 200, "body": EMPTY_MESSAGE}, "empty_response", "yes"),
        ]
        rules = [rule(act, times=1, name=name, prompt_contains=f"<{name}>") for name, act, *_ in rows]
        config = {**NO_BREAKER, "default_vendor": "anthropic"}
        world = self.start(rules=rules, config=config)
        ids = [
            world.submit(f"<{row[0]}>", "--max-tokens", "100", model=f"claude-{n}")["job_id"]
            for n, row in enumerate(rows)
        ]
        for (name, _, outcome, billed), job in zip(rows, world.wait_final(ids)):
            with self.subTest(name):
                self.assert_outcomes(job, [(outcome, billed), ("completed", "yes")])

    def test_error_object_in_a_200_means_what_it_says(self):
        acts = {
            "limited": {"status": 200, "body": {"error": {"code": "rate_limit_exceeded"}}},
            "overloaded": {"status": 200, "body": {"type": "error", "error": {"type": "overloaded_error"}}},
        }
        rules = [
            rule(acts["limited"], times=1, prompt_contains="<limited>"),
            rule(acts["overloaded"], times=1, prompt_contains="<overloaded>"),
        ]
        world = self.start(rules=rules, config=NO_BREAKER)
        limited = world.submit("<limited>")["job_id"]
        overloaded = world.submit("<overloaded>", model=CLAUDE)["job_id"]
        jobs = world.wait_final([limited, overloaded])
        self.assertEqual(
            [[a["outcome"] for a in job["attempt_log"]] for job in jobs],
            [["rate_limited", "completed"], ["overloaded", "completed"]],
        )

    def test_success_in_its_unusual_forms(self):
        world = self.start(rules=[rule({"status": 200, "body": TOOL_CALL}, prompt_contains="tool")])
        tool = world.submit("use a tool")["job_id"]
        short = world.submit("say a lot", "--max-tokens", "2")["job_id"]
        jobs = world.wait_final([tool, short])
        self.assertEqual([j["status"] for j in jobs], ["completed", "completed"])
        self.assertEqual([j["truncated"] for j in jobs], [False, True])

    def test_answer_larger_than_allowed(self):
        large = dict(EMPTY_CHAT, padding="x" * 100_000)
        world = self.start(
            rules=[rule({"status": 200, "body": large}, times=1)],
            config={"limits": {"response_bytes": "64KiB"}},
        )
        (job,) = world.wait_final([world.submit("large")["job_id"]])
        self.assert_outcomes(job, [("bad_response", "maybe"), ("completed", "yes")])

    def test_unreachable_vendors(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            closed_port = free.getsockname()[1]
        world = self.world
        world.start_sim()
        world.configure({
            "vendors.refused": {"api": "openai", "auth": "none",
                                "base_url": f"http://127.0.0.1:{closed_port}/v1"},
            "vendors.no-tls": {"api": "openai", "auth": "none",
                               "base_url": f"https://127.0.0.1:{world.sim.port}/v1"},
        })
        world.start_daemon()
        for vendor in ("refused", "no-tls"):
            with self.subTest(vendor):
                job_id = world.submit("hello?", "--vendor", vendor, "--max-attempts", "2")["job_id"]
                (job,) = world.wait_final([job_id])
                self.assertEqual(job["status"], "dead_lettered")
                self.assert_outcomes(job, [("network", "no")] * 2)
                (letter,) = world.aiq("dlq", "list", "--json", "--vendor", vendor, rc=0).lines
                self.assertEqual(letter["reason"], "attempts_exhausted")

    def test_each_timeout_is_told_apart(self):
        # A listener whose queue is full: connecting to it hangs.
        stuck = socket.socket()
        self.addCleanup(stuck.close)
        stuck.bind(("127.0.0.1", 0))
        stuck.listen(0)
        fillers = []
        for _ in range(4):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(stuck.getsockname())
            fillers.append(filler)
            self.addCleanup(filler.close)
        ms = 500 * SLOWER
        world = self.world
        world.start_sim(rules=[
            rule({"delay": "60s"}, times=1, prompt_contains="<no byte>"),
            rule({"body_delay": "60s"}, times=1, prompt_contains="<half a body>"),
        ])
        world.configure({
            **NO_BREAKER,
            "vendors.openai": {"first_byte_timeout": f"{ms}ms", "total_timeout": f"{2 * ms}ms"},
            "vendors.stuck": {"api": "openai", "auth": "none", "connect_timeout": f"{ms}ms",
                              "base_url": f"http://127.0.0.1:{stuck.getsockname()[1]}/v1"},
        })
        world.start_daemon()
        no_byte = world.submit("<no byte>")["job_id"]
        half = world.submit("<half a body>", model=GPT_BIG)["job_id"]
        unconnected = world.submit("x", "--vendor", "stuck", "--max-attempts", "1")["job_id"]
        jobs = world.wait_final([no_byte, half, unconnected])
        self.assert_outcomes(jobs[0], [("first_byte_timeout", "maybe"), ("completed", "yes")])
        self.assert_outcomes(jobs[1], [("total_timeout", "maybe"), ("completed", "yes")])
        self.assert_outcomes(jobs[2], [("connect_timeout", "no")])

    def test_attempts_are_used_up(self):
        world = self.start(rules=[rule(openai_error(500))], config={**NO_BREAKER, "retry": {"max_attempts": 3}})
        (job,) = world.wait_final([world.submit("never")["job_id"]])
        self.assert_outcomes(job, [("server_error", "no")] * 3)
        (letter,) = world.aiq("dlq", "list", "--json", rc=0).lines
        self.assertEqual((letter["reason"], letter["attempts"]), ("attempts_exhausted", 3))


class Waits(Case):
    def test_asked_for_waits_are_kept(self):
        world = self.start(config={"retry": {"max_attempts": 1}})
        date_epoch = int(time.time()) + 3
        date = email.utils.formatdate(date_epoch, usegmt=True)
        rows = [
            ("seconds", {"Retry-After": "2"}, 2000),
            ("milliseconds", {"retry-after-ms": "250"}, 250),
            ("fraction", {"Retry-After": "1.5"}, 1500),
            ("azure", {"x-ms-retry-after-ms": "700"}, 700),
            ("first wins", {"retry-after-ms": "300", "Retry-After": "60"}, 300),
            ("unreadable first", {"retry-after-ms": "soon", "Retry-After": "1"}, 1000),
            ("date", {"Retry-After": date}, None),
        ]
        world.sim.rules([
            rule(openai_error(429, "rate_limit_exceeded", headers=headers), times=1,
                 name=name, prompt_contains=f"<{name}>")
            for name, headers, _ in rows
        ])
        ids = [world.submit(f"<{row[0]}>", model=f"m-{n}")["job_id"] for n, row in enumerate(rows)]
        jobs = world.wait_final(ids)
        for (name, _, wait_ms), job in zip(rows, jobs):
            with self.subTest(name):
                # max_attempts is 1: being turned away does not use it up.
                self.assert_outcomes(job, [("rate_limited", "no"), ("completed", "yes")])
                self.assertEqual([a["counts"] for a in job["attempt_log"]], [False, True])
                first, second = [c["at_ms"] for c in world.sim.calls() if f"<{name}>" in c["prompt_head"]]
                if wait_ms is None:
                    self.assertGreaterEqual(second, date_epoch * 1000)
                    continue
                self.assertGreaterEqual(second - first, wait_ms)
                latest = wait_ms + max(1000, wait_ms / 3) + 1000 * SLOWER
                self.assertLessEqual(second - first, latest)
                self.assertEqual(job["attempt_log"][0]["retry_after_ms"], wait_ms)

    def test_wait_holds_for_every_job_of_the_model(self):
        limited = openai_error(429, "rate_limit_exceeded", headers={"Retry-After": "2"})
        world = self.start(rules=[rule(limited, times=1, model=GPT)])
        first = world.submit("one")["job_id"]
        wait_until(lambda: world.show(first)["attempt_log"][:1]
                   and world.show(first)["attempt_log"][0]["outcome"], 10, "the first answer")
        others = [world.submit(f"other {n}")["job_id"] for n in range(5)]
        free = world.submit("another model", model=GPT_BIG)["job_id"]
        world.wait_final([first, *others, free])
        calls = world.sim.calls()
        limited_at = calls[0]["at_ms"]
        for call in calls[1:]:
            if call["model"] == GPT:
                self.assertGreaterEqual(call["at_ms"] - limited_at, 2000)
            else:
                self.assertLess(call["at_ms"] - limited_at, 2000 * SLOWER)

    def test_limited_too_often_is_a_dead_letter(self):
        limited = openai_error(429, "rate_limit_exceeded", headers={"retry-after-ms": "1"})
        world = self.start(rules=[rule(limited)], config={"retry": {"uncounted_max": 2}})
        (job,) = world.wait_final([world.submit("never")["job_id"]])
        self.assertEqual(job["status"], "dead_lettered")
        (letter,) = world.aiq("dlq", "list", "--json", rc=0).lines
        self.assertEqual(letter["reason"], "rate_limit_exhausted")


class Pauses(Case):
    def check_vendor_pauses(self, act, outcome, vendor="openai", model=GPT):
        world = self.start(rules=[rule(act)], config=NO_BREAKER, daemon=False)
        ids = [world.submit(f"waiting {n}", model=model)["job_id"] for n in range(20)]
        world.start_daemon()
        wait_until(lambda: world.vendor(vendor)["state"] == "paused", 10, f"{vendor} is paused")
        entry = world.vendor(vendor)
        self.assertIn({"auth": "refused", "vendor_quota": "spend limit"}[outcome], entry["reason"])
        wait_until(lambda: len(world.jobs("--status", "queued")) == 20, 10, "20 jobs are queued")
        self.assertEqual(len(world.sim.calls()), 1)
        # A submit meanwhile wakes the daemon, but nothing is sent.
        world.submit("one more", model=model)
        self.assertEqual(len(world.sim.calls()), 1)
        attempted = [j for j in map(world.show, ids) if j["attempt_log"]]
        self.assertEqual(len(attempted), 1)
        self.assert_outcomes(attempted[0], [(outcome, "no")])
        self.assertFalse(attempted[0]["attempt_log"][0]["counts"])

        world.sim.rules([])
        world.aiq("resume", "--vendor", vendor, rc=0)
        jobs = world.wait_final(ids)
        self.assertEqual({j["status"] for j in jobs}, {"completed"})
        return world

    def test_openai_quota_by_type(self):
        self.check_vendor_pauses(openai_error(429, None, "insufficient_quota"), "vendor_quota")

    def test_openai_quota_by_code(self):
        self.check_vendor_pauses(openai_error(429, "organization_spend_limit_exceeded"), "vendor_quota")

    def test_payment_required(self):
        self.check_vendor_pauses(openai_error(402), "vendor_quota")

    def test_anthropic_quota(self):
        act = anthropic_error(429, "rate_limit_error", "monthly cap",
                              details={"error_code": "enforced_spend_limit_reached"})
        self.check_vendor_pauses(act, "vendor_quota", "anthropic", CLAUDE)

    def test_unauthorised(self):
        self.check_vendor_pauses(openai_error(401, "invalid_api_key"), "auth")

    def test_anthropic_unauthorised(self):
        self.check_vendor_pauses(anthropic_error(401, "authentication_error"), "auth", "anthropic", CLAUDE)

    def test_pause_outlives_a_restart(self):
        world = self.start(rules=[rule(openai_error(401, "invalid_api_key"))])
        job_id = world.submit("x")["job_id"]
        wait_until(lambda: world.vendor("openai")["state"] == "paused", 10, "paused")
        world.kill_daemon()
        world.start_daemon()
        self.assertEqual(world.vendor("openai")["state"], "paused")
        self.assertEqual(world.show(job_id)["status"], "queued")
        self.assertEqual(len(world.sim.calls()), 1)

    def test_forbidden_pauses_that_model_only(self):
        world = self.start(rules=[rule(openai_error(403, "model_not_allowed"), model=GPT)], daemon=False)
        forbidden = [world.submit(f"f{n}")["job_id"] for n in range(5)]
        allowed = [world.submit(f"a{n}", model=GPT_BIG)["job_id"] for n in range(5)]
        world.start_daemon()
        self.assertEqual({j["status"] for j in world.wait_final(allowed)}, {"completed"})
        wait_until(lambda: len(world.jobs("--status", "queued", "--model", GPT)) == 5, 10, "5 queued")
        self.assertEqual(len([c for c in world.sim.calls() if c["model"] == GPT]), 1)
        self.assertNotEqual(world.vendor("openai")["state"], "paused")
        world.sim.rules([])
        world.aiq("resume", "--vendor", "openai", "--model", GPT, rc=0)
        self.assertEqual({j["status"] for j in world.wait_final(forbidden)}, {"completed"})


if __name__ == "__main__":
    harness.main()

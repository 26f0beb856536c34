"""aiq as a careful command line tool: pipes, signals, terminals, usage errors, exit codes, JSON."""

import re
import signal
import subprocess
import time

import harness
from harness import CLAUDE, GPT, SLOWER, Case, openai_error, rule, wait_until


class Streams(Case):
    def shell(self, script, env=None):
        """Exit codes of a pipeline's parts, or of the command, as the last line says."""
        return subprocess.run(
            ["bash", "-c", script], env=self.world.env({"AIQ": self.world.program("aiq"), **(env or {})}),
            cwd=self.world.dir, capture_output=True, text=True, timeout=60 * SLOWER, check=False,
        )

    def fill(self, count):
        self.start(daemon=False)
        self.world.start_daemon()
        self.world.aiq("pause", "--reason", "test", rc=0)
        self.world.parallel(lambda n: self.world.submit(f"job {n} " + "x" * 100), range(count), 4)

    def test_head_closes_the_pipe(self):
        self.fill(220)
        for flags in ("", "--json"):
            done = self.shell(f'"$AIQ" list --limit 0 {flags} | head -n 1; echo "${{PIPESTATUS[0]}}"')
            self.assertEqual(done.stdout.splitlines()[-1], "0", done)
            self.assertEqual(done.stderr, "")

    def test_full_and_closed_outputs_are_errors(self):
        self.fill(2)
        for target in (">/dev/full", ">&-"):
            with self.subTest(target):
                done = self.shell(f'"$AIQ" list --json {target}')
                self.assertNotEqual(done.returncode, 0)
                self.assertTrue(done.stderr.strip())
        # A closed stderr or stdin changes nothing.
        self.assertEqual(self.shell('"$AIQ" list --json 2>&- <&- | wc -l').stdout.strip(), "2")

    def test_closed_stdout_is_never_mistaken_for_the_database(self):
        self.fill(1)
        self.shell(f'"$AIQ" submit --model {GPT} --prompt y >&- 2>&- <&-')
        self.assertEqual(self.world.aiq("db", "check").rc, 0)
        self.assertEqual(len(self.world.jobs()), 2)

    def on_terminal(self, *args, env=None):
        """Runs aiq on a terminal; returns (rc, text)."""
        command = [self.world.program("aiq"), *args]
        return harness.on_terminal(command, self.world.env({"TERM": "xterm-256color", **(env or {})}))

    def test_terminal_of_80_columns(self):
        self.fill(3)
        self.world.submit("long names", "--tenant", "t" * 64, "--correlation-id", "c" * 60,
                          model="a-model-with-quite-a-long-name-as-vendors-like-them-2024-06-20")
        for args in (("list",), ("stats",), ("cache", "stats"), ("lock", "list"), ("dlq", "list"),
                     ("vendor", "list")):
            with self.subTest(args):
                code, text = self.on_terminal(*args)
                self.assertEqual(code, 0, text)
                for line in harness.plain_lines(text):
                    self.assertLessEqual(len(line), 80, repr(line))

    def test_no_color(self):
        self.fill(2)
        _, plain = self.on_terminal("list", env={"NO_COLOR": "1"})
        self.assertNotIn("\x1b", plain)
        self.assertNotIn("\x1b", self.world.aiq("list", rc=0).out)
        self.assertNotIn("\x1b", self.world.aiq("stats", rc=0).out)

    def test_progress_only_on_a_terminal(self):
        self.fill(2)
        ids = [j["job_id"] for j in self.world.jobs()]
        result = self.world.aiq("wait", "--timeout", "300ms", *ids, rc=6)
        self.assertNotIn("\r", result.err + result.out)
        self.assertNotIn("\x1b", result.err + result.out)


class Signals(Case):
    def wait_and_signal(self, number):
        world = self.start(rules=[rule({"hold": True})])
        job_id = world.submit("held")["job_id"]
        world.sim.wait_held(1)
        log = world.path("wait.log")
        # Its own copy of the signal masks: a test runner may ignore SIGINT.
        process = world.spawn([world.program("aiq"), "wait", job_id], log,
                              preexec=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
        wait_until(lambda: self.catches(process.pid, signal.SIGINT), 10, "aiq runs its own code")
        begin = time.monotonic()
        process.send_signal(number)
        code = process.wait(10 * SLOWER)
        self.assertLess(time.monotonic() - begin, 2 * SLOWER)
        self.assertEqual(world.show(job_id)["status"], "processing")
        return code if code >= 0 else 128 - code

    @staticmethod
    def catches(pid, number):
        """Whether the process has a handler for the signal."""
        caught = re.search(r"^SigCgt:\s*([0-9a-f]+)", harness.read(f"/proc/{pid}/status"), re.MULTILINE)
        return int(caught.group(1), 16) >> (number - 1) & 1

    def test_interrupted(self):
        self.assertEqual(self.wait_and_signal(signal.SIGINT), 130)

    def test_terminated(self):
        self.assertEqual(self.wait_and_signal(signal.SIGTERM), 143)


class ExitCodes(Case):
    def test_usage_errors_write_nothing(self):
        world = self.start(daemon=False)
        world.aiq("db", "init", rc=0)
        prompt = ("--prompt", "x")
        for args in (
            ("nonsense",), (), ("submit",), ("submit", "--model", GPT),
            ("submit", *prompt), ("submit", "--model", GPT, *prompt, "--prompt-file", "f"),
            ("submit", "--model", GPT, *prompt, "--no-such-option"),
            ("submit", "--model", GPT, *prompt, "--priority", "101"),
            ("submit", "--model", GPT, *prompt, "--priority", "high"),
            ("submit", "--model", GPT, *prompt, "--delay", "5"),
            ("submit", "--model", GPT, *prompt, "--at", "tomorrow"),
            ("submit", "--model", GPT, *prompt, "--tenant", "not a name"),
            ("submit", "--model", "not a model", *prompt),
            ("submit", "--model", GPT, *prompt, "--endpoint", "messages"),
            ("submit", "--model", GPT, *prompt, "--label", "novalue"),
            ("submit", "--model", GPT, *prompt, "--vendor", "nobody"),
            ("submit", "--model", GPT, "--prompt-file", "/nowhere/at/all"),
            ("list", "--status", "sleeping"), ("list", "--since", "yesterday"),
            ("list", "--limit", "-1"), ("show",), ("show", "abc"), ("wait",), ("cache", "explain", "1"),
        ):
            with self.subTest(args):
                result = world.aiq(*args)
                self.assertEqual(result.rc, 2, result)
                self.assertTrue(result.err.strip())
                self.assertEqual(result.out, "")
        self.assertEqual(world.jobs(), [])

    def test_not_found(self):
        world = self.start(daemon=False)
        world.aiq("db", "init", rc=0)
        for args in (
            ("show", "999"), ("result", "999"), ("cancel", "999"), ("dlq", "show", "999"),
            ("cache", "show", "0" * 64), ("lock", "break", "cache:nothing", "--yes"),
            ("vendor", "show", "nobody"),
        ):
            with self.subTest(args):
                result = world.aiq(*args, "--json")
                self.assertEqual(result.rc, 3, result)
                self.assertEqual(result.out, "")
                self.assertEqual(set(result.error), {"code", "message", "hint"})
        self.assertEqual(world.aiq("submit", "--model", GPT, "--prompt", "x", "--only-if-cached").rc, 3)

    def test_the_answer_is_no(self):
        world = self.start(rules=[
            rule(openai_error(400), prompt_contains="bad"), rule({"hold": True}, prompt_contains="held"),
        ])
        self.assertEqual(world.aiq("run", "--model", GPT, "--prompt", "bad").rc, 1)
        self.assertEqual(world.aiq("submit", "--wait", "--model", GPT, "--prompt", "bad 2").rc, 1)
        job_id = world.submit("held")["job_id"]
        self.assertEqual(world.aiq("result", job_id).rc, 1)
        self.assertEqual(world.aiq("wait", "--timeout", "200ms", job_id).rc, 6)
        self.assertEqual(
            world.aiq("submit", "--wait", "--timeout", "200ms", "--model", GPT, "--prompt", "held").rc, 6
        )

    def test_any_and_all(self):
        world = self.start(rules=[rule(openai_error(400), prompt_contains="bad"),
                                  rule({"hold": True}, prompt_contains="held")])
        good = world.submit("good")["job_id"]
        bad = world.submit("bad")["job_id"]
        world.wait_final([good, bad])
        held = world.submit("held")["job_id"]
        self.assertEqual(world.aiq("wait", "--any", good, held).rc, 0)
        self.assertEqual(world.aiq("wait", "--all", good, bad).rc, 1)
        lines = world.aiq("wait", "--json", good, bad, rc=1).lines
        self.assertEqual({line["job_id"]: line["status"] for line in lines},
                         {good: "completed", bad: "dead_lettered"})

    def test_no_daemon(self):
        world = self.start(daemon=False)
        job_id = world.submit("x")["job_id"]
        for args in (("run", "--model", GPT, "--prompt", "y"), ("wait", job_id),
                     ("submit", "--wait", "--model", GPT, "--prompt", "y")):
            with self.subTest(args[0]):
                begin = time.monotonic()
                result = world.aiq(*args, "--json")
                self.assertEqual(result.rc, 7, result)
                self.assertTrue(result.error["hint"])
                self.assertLess(time.monotonic() - begin, 3 * SLOWER)

    def test_too_large_a_request_is_refused(self):
        world = self.start(daemon=False, config={"limits": {"request_bytes": "64KiB"}})
        result = world.aiq("submit", "--json", "--model", GPT, "--prompt-file", "-",
                           input="x" * 100_000)
        self.assertEqual(result.rc, 5, result)
        self.assertEqual(world.jobs(), [])

    def test_config_errors_name_key_and_line(self):
        world = self.world
        for text, words in (
            ("[retry]\nmax_atempts = 3\n", ("max_atempts", ":2")),
            ("[retry]\nbase = 5\n", ("base", ":2")),
            ('[retry]\nbase = "5 parsecs"\n', ("base", ":2")),
            ('[daemon]\nlog_level = "loud"\n', ("log_level", ":2")),
            ("[retry\n", (":1",)),
        ):
            with self.subTest(text):
                world.write("aiq.toml", text)
                result = world.aiq("config", "check")
                self.assertIn(result.rc, (1, 2), result)
                for word in words:
                    self.assertIn(word, result.out + result.err)
        world.configure()
        world.aiq("config", "check", rc=0)
        shown = world.aiq("config", "show", rc=0).out
        self.assertIn("unknown_retries", shown)
        self.assertIn("default", shown)

    def test_a_budget_that_is_not_held_is_said(self):
        world = self.world
        world.write("aiq.toml", '[tenants.acme]\nbudget = "10 USD/day"\n')
        result = world.aiq("config", "check", "--json", rc=0)
        self.assertEqual(len(result.json["warnings"]), 1)
        self.assertIn("tenants.acme.budget has no effect", result.err)
        world.start_daemon()
        self.assertIn("tenants.acme.budget has no effect", harness.read(world.daemon_log))

    def test_help_and_version(self):
        for args in (("--help",), ("submit", "--help"), ("cache", "--help"), ("--version",)):
            result = self.world.aiq(*args, rc=0)
            self.assertTrue(result.out.strip())
            self.assertEqual(result.err, "")


SHOW = {
    "job_id", "kind", "status", "tenant", "vendor", "model", "endpoint", "priority", "labels", "batch_id",
    "custom_id", "idempotency_key", "client_key", "cache_key", "correlation_id", "generation", "attempts",
    "max_attempts", "created_at", "run_at", "deadline", "started_at", "finished_at", "result_source",
    "stale", "truncated", "error", "usage", "cost", "attempt_log",
}
ATTEMPT = {
    "generation", "attempt", "outcome", "billed", "counts", "started_at", "ended_at", "http_status",
    "vendor_request_id", "connect_ms", "first_byte_ms", "total_ms", "retry_after_ms", "worker",
}
SUBMIT = {
    "job_id", "submission_id", "outcome", "status", "stale", "idempotency_key", "cache_key",
    "correlation_id",
}
DEAD_LETTER = {
    "dlq_id", "job_id", "tenant", "model", "reason", "error_class", "http_status", "error", "attempts",
    "generation", "state", "dead_at", "resolved_at", "resolved_by", "note", "correlation_id",
}
CACHE_STATS = {
    "entries", "bytes", "hits", "stale_hits", "misses", "hit_ratio", "avoided_tokens", "avoided_cost",
}
TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")


class EmptyAndWrong(Case):
    def test_a_variable_that_is_not_set_is_no_silent_default(self):
        world = self.start(daemon=False)
        for args in (("submit", "--model", GPT, "--prompt", "x", "--idempotency-key", ""),
                     ("list", "--db", ""),
                     ("list", "--db", ":memory:"),
                     ("cancel", "--status", "foo"),
                     ("list", "--status", "foo")):
            result = world.aiq(*args)
            self.assertEqual(result.rc, 2, result)


class Json(Case):
    def test_every_command_has_the_promised_members(self):
        world = self.start(rules=[rule(openai_error(400, "invalid_value"), prompt_contains="bad")])
        submitted = world.submit("good", "--label", "team=a", "--correlation-id", "c-1", "--priority", "3")
        self.assertEqual(set(submitted), SUBMIT)
        bad = world.submit("bad")["job_id"]
        job, dead = world.wait_final([submitted["job_id"], bad])

        self.assertLessEqual(SHOW, set(job))
        self.assertNotIn("result", job)
        self.assertLessEqual(ATTEMPT, set(job["attempt_log"][0]))
        self.assertEqual(job["labels"], {"team": "a"})
        self.assertEqual((job["correlation_id"], job["priority"]), ("c-1", 3))
        self.assertIsNone(job["error"])
        self.assertIsNone(job["deadline"])
        for name in ("created_at", "run_at", "started_at", "finished_at"):
            self.assertRegex(job[name], TIME)
        self.assertLessEqual({"class", "code", "message", "http_status"}, set(dead["error"]))
        self.assertEqual((dead["error"]["class"], dead["error"]["http_status"]), ("rejected", 400))
        with_result = world.show(job["job_id"], "--result")
        self.assertEqual(with_result["result"]["object"], "chat.completion")

        waited = world.aiq("submit", "--json", "--wait", "--model", CLAUDE, "--prompt", "w", rc=0).json
        self.assertLessEqual(SUBMIT | SHOW | {"result"}, set(waited))
        ran = world.aiq("run", "--json", "--model", GPT, "--prompt", "r", rc=0).json
        self.assertLessEqual(SUBMIT | SHOW | {"result"}, set(ran))

        listed = world.jobs()
        self.assertEqual([int(j["job_id"]) for j in listed],
                         sorted((int(j["job_id"]) for j in listed), reverse=True))
        for entry in listed:
            self.assertLessEqual({"job_id", "status", "tenant", "vendor", "model", "created_at"}, set(entry))

        (letter,) = world.aiq("dlq", "list", "--json", rc=0).lines
        self.assertEqual(set(letter), DEAD_LETTER)
        shown = world.aiq("dlq", "show", letter["dlq_id"], "--json", rc=0).json
        self.assertLessEqual(DEAD_LETTER | {"payload", "attempt_log"}, set(shown))

        stats = world.stats()
        self.assertLessEqual(
            {"jobs", "oldest_queued_seconds", "daemon", "vendors", "cache", "dlq_open", "locks"}, set(stats))
        self.assertLessEqual({"running", "pid", "version", "in_flight", "uptime_seconds"}, set(stats["daemon"]))
        self.assertTrue(stats["daemon"]["running"])
        self.assertEqual(stats["daemon"]["pid"], world.daemon.pid)
        for vendor in stats["vendors"]:
            self.assertLessEqual({"vendor", "state", "reason", "until", "in_flight"}, set(vendor))
        self.assertEqual((stats["jobs"]["completed"], stats["jobs"]["dead_lettered"]), (3, 1))
        self.assertEqual(stats["dlq_open"], 1)

        self.assertEqual(set(world.aiq("cache", "stats", "--json", rc=0).json), CACHE_STATS)
        explained = world.aiq("cache", "explain", job["job_id"], bad, "--json").json
        self.assertEqual(set(explained), {"same", "key_a", "key_b", "differences"})
        self.assertFalse(explained["same"])
        final = world.aiq("cancel", job["job_id"], "--json", rc=0).json
        self.assertEqual(final, {"job_id": job["job_id"], "outcome": "already_final", "status": "completed"})
        self.assertEqual(set(world.aiq("cache", "invalidate", "--all", "--json", rc=0).json), {"removed"})
        for args in (("vendor", "list"), ("vendor", "show", "openai"), ("lock", "list"), ("cache", "list"),
                     ("config", "show"), ("config", "check"), ("db", "info"), ("db", "check"),
                     ("pause", "--tenant", "t"), ("resume", "--tenant", "t")):
            with self.subTest(args):
                result = world.aiq(*args, "--json", rc=0)
                for entry in result.lines:
                    self.assertIsInstance(entry, dict)

    def test_list_pages_and_filters(self):
        world = self.start(daemon=False)
        ids = [world.submit(f"n{n}", "--tenant", "ab"[n % 2], "--label", f"n={n}")["job_id"] for n in range(7)]
        newest_first = ids[::-1]
        self.assertEqual([j["job_id"] for j in world.jobs()], newest_first)
        page = world.aiq("list", "--json", "--limit", "3", rc=0).lines
        self.assertEqual([j["job_id"] for j in page], newest_first[:3])
        rest = world.aiq("list", "--json", "--limit", "3", "--after", page[-1]["job_id"], rc=0).lines
        self.assertEqual([j["job_id"] for j in rest], newest_first[3:6])
        self.assertEqual({j["tenant"] for j in world.jobs("--tenant", "a")}, {"a"})
        self.assertEqual([j["job_id"] for j in world.jobs("--label", "n=4")], [ids[4]])
        self.assertEqual(len(world.jobs("--status", "queued")), 7)
        self.assertEqual(world.jobs("--status", "completed"), [])
        self.assertEqual(len(world.jobs("--since", "1h")), 7)
        self.assertEqual(world.jobs("--until", "1h"), [])


if __name__ == "__main__":
    harness.main()

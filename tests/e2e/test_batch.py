"""Files of requests: what goes in line by line, and what comes out in the same order."""

import gzip
import hashlib
import json
import os
import signal
import subprocess
import time
import unittest

import harness
from harness import GPT, Case, header, openai_error, rule, wait_until

DATA = os.path.join(harness.SHARED, "data")
GROQ_IN = os.path.join(DATA, "groq_batch_input.jsonl")
GROQ_OUT = os.path.join(DATA, "groq_batch_output.jsonl")
CANDIDATES = os.path.join(DATA, "batchlocallm_synthetic_candidates_10.jsonl")
MT_BENCH = os.path.join(DATA, "mt_bench_question.jsonl")
shared = unittest.skipUnless(os.path.isdir(DATA), f"the data sets are not at {DATA}")


def line(custom_id, prompt, url="/v1/chat/completions", **members):
    body = {"model": GPT, "messages": [{"role": "user", "content": prompt}]}
    return json.dumps({"custom_id": custom_id, "method": "POST", "url": url, "body": body, **members})


def read_lines(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(text) for text in file if text.strip()]


class Batch(Case):
    def save(self, name, data):
        path = self.world.path(name)
        with open(path, "wb") as file:
            file.write(data if isinstance(data, bytes) else "\n".join(data).encode())
        return path

    def batch(self, path, *args, rc=0, **kwargs):
        return self.world.aiq("submit", "--batch", path, "--json", *args, rc=rc, **kwargs).json

    def results(self, batch_id, *args, rc=0):
        return self.world.aiq("batch", "results", batch_id, *args, rc=rc).lines

    def wait(self, batch_id, rc=0, timeout=60):
        return self.world.aiq("batch", "wait", batch_id, "--json", "--timeout",
                              f"{timeout * harness.SLOWER}s", rc=rc, timeout=timeout + 10).json

    def kill_when(self, process, condition, what):
        """SIGKILL as soon as the condition holds; it must hold while the process still runs."""
        wait_until(lambda: condition() or process.poll() is not None, 30, what)
        self.assertIsNone(process.poll(), f"ended before: {what}")
        process.kill()
        process.wait(10)


class Files(Batch):
    @shared
    def test_real_files_come_out_in_order_under_the_right_custom_id(self):
        world = self.start(config={"default_vendor": "openai"})
        for path in (GROQ_IN, CANDIDATES):
            wanted = [entry["custom_id"] for entry in read_lines(path)]
            report = self.batch(path)
            self.assertEqual((report["lines"], report["created"], report["errors"]),
                             (len(wanted), len(wanted), []))
            counts = self.wait(report["batch_id"])["counts"]
            self.assertEqual(counts["completed"], len(wanted))
            results = self.results(report["batch_id"])
            self.assertEqual([r["custom_id"] for r in results], wanted)
            for result, entry in zip(results, read_lines(path)):
                self.assertEqual(result["response"]["status_code"], 200)
                self.assertTrue(result["response"]["request_id"])
                self.assertEqual(result["response"]["body"]["model"], entry["body"]["model"])
                self.assertIsNone(result["error"])
        # What was sent is the line's body, byte for byte.
        with open(GROQ_IN, encoding="utf-8") as file:
            first = file.readline()
        body = first[first.index('"body": ') + 8 : first.rindex("}")]
        sent = {call["body_sha256"] for call in world.sim.calls()}
        self.assertIn(hashlib.sha256(body.encode()).hexdigest(), sent)

    @shared
    def test_real_answers_come_back_byte_for_byte(self):
        with open(GROQ_OUT, encoding="utf-8") as file:
            texts = [text.rstrip("\n") for text in file if text.strip()]
        answers = {}
        for text in texts:
            begin = text.index('"body":') + len('"body":')
            end = text.rindex('},"error"')
            answers[json.loads(text)["custom_id"]] = text[begin:end]
        prompts = {entry["custom_id"]: entry["body"]["messages"][-1]["content"]
                   for entry in read_lines(GROQ_IN)}
        rules = [rule({"status": 200, "body": body,
                       "headers": {"content-type": "application/json", "x-request-id": f"id-{name}"}},
                      prompt_contains=prompts[name])
                 for name, body in answers.items()]
        self.start(rules=rules)
        batch_id = self.batch(GROQ_IN)["batch_id"]
        self.wait(batch_id)
        out = self.world.aiq("batch", "results", batch_id, rc=0).out.splitlines()
        self.assertEqual([json.loads(text)["custom_id"] for text in out],
                         [entry["custom_id"] for entry in read_lines(GROQ_IN)])
        for number, text in enumerate(out, 1):
            name = json.loads(text)["custom_id"]
            self.assertEqual(
                text,
                f'{{"id":"batch_req_1_{number}","custom_id":"{name}","response":{{"status_code":200,'
                f'"request_id":"id-{name}","body":{answers[name]}}},"error":null}}')

    @shared
    def test_the_line_of_the_manual_makes_a_batch_of_two_turn_prompts(self):
        with open(os.path.join(harness.SOURCE, "man", "aiq.1"), encoding="utf-8") as file:
            man = file.read().replace("\\e", "\\")
        begin = man.index("jq -c '")
        command = man[begin : man.index(" | aiq submit", begin)]
        self.start()
        made = subprocess.run(["sh", "-c", command.replace("questions.jsonl", MT_BENCH)],
                              capture_output=True, check=True)
        report = self.batch("-", "--priority", "5", input=made.stdout)
        self.assertEqual((report["lines"], report["created"]), (80, 80))
        self.assertEqual(self.wait(report["batch_id"])["counts"]["completed"], 80)
        results = self.results(report["batch_id"])
        self.assertEqual([r["custom_id"] for r in results],
                         [f"mt-{entry['question_id']}" for entry in read_lines(MT_BENCH)])
        self.assertEqual({job["priority"] for job in self.world.jobs("--batch", "b1")}, {5})

    def faulty(self):
        """A file with each fault, and the codes by line."""
        lines = [
            b"\xef\xbb\xbf" + line("a", "good 1").encode() + b"\r",
            b"",
            b'{"custom_id": "b", "method": "POST"',
            line("a", "again").encode(),
            line("c", "x").encode().replace(b'"x"', b'"\\ud800"'),
            line("d", "x", url="/v1/files").encode(),
            line("e", "\xe9").encode("utf-8").replace(b"\\u00e9", b"\xe9"),
            line("f", "x" * 70_000).encode(),
            line("g", "good 2", extra=1).encode(),
            b'{"custom_id": "h", "method": "POST", "url": "/v1/chat/completions"}',
            line("i", "x", method="GET").encode(),
            b'{"custom_id": "j", "custom_id": "j", "method": "POST", "url": "/v1/responses", "body": {}}',
            line("k", "x", body={"messages": []}).encode(),
            b"[]",
            line("l", "x").encode().replace(b'"x"', b'"a\x01b"'),
            line("", "x").encode(),
            line("\u00fc" * 200, "good 3").encode(),
        ]
        codes = {3: "invalid_json_line", 4: "duplicate_custom_id", 5: "invalid_request",
                 6: "unsupported_url", 7: "invalid_utf8", 8: "too_large", 10: "missing_field",
                 11: "invalid_request", 12: "invalid_json_line", 13: "invalid_request",
                 14: "invalid_json_line", 15: "invalid_json_line", 16: "invalid_request"}
        return b"\n".join(lines), codes

    def test_each_fault_is_named_by_line_and_code(self):
        data, codes = self.faulty()
        world = self.world
        world.configure({"limits": {"request_bytes": "64KiB"}})
        half = len(data) // 2
        forms = {"plain": data, "gz": gzip.compress(data),
                 "members": gzip.compress(data[:half]) + gzip.compress(data[half:])}
        for name, form in forms.items():
            path = self.save(name, form)
            jobs = len(world.jobs())
            atomic = self.batch(path, "--atomic", rc=2)
            self.assertEqual(len(world.jobs()), jobs, "nothing went in")
            self.assertIsNone(atomic["batch_id"])
            self.assertEqual(world.sql("SELECT count(*) FROM stage_rows")[0][0], 0)
            preview = self.batch(path, "--dry-run", rc=2)
            report = self.batch(path, "--scope", name, rc=2)
            for each in (atomic, report, preview):
                self.assertEqual({e["line"]: e["code"] for e in each["errors"]}, codes)
                self.assertEqual((each["lines"], each["rejected"]), (16, 13))
            self.assertEqual((report["created"], atomic["created"]), (3, 0))
            self.assertEqual(len(world.jobs("--batch", report["batch_id"])), 3)
            self.assertEqual(len(world.jobs()), jobs + 3)
        done = world.aiq("submit", "--batch", path, "--scope", "words", rc=2)
        self.assertEqual(done.out, "b7\n")
        self.assertIn("line 4: duplicate_custom_id: line 1 has this custom_id\n", done.err)
        self.assertIn("13 rejected", done.err)
        self.assertEqual(world.aiq("batch", "list", "--json").lines[0]["batch_id"], "b7")
        self.assertEqual(world.aiq("db", "check").rc, 0)

    def test_gzip_that_is_cut_is_told_after_what_was_good(self):
        lines = [line(f"c{n}", f"question {n} {hashlib.sha256(str(n).encode()).hexdigest()}")
                 for n in range(2000)]
        whole = gzip.compress("\n".join(lines).encode())
        self.world.configure()
        cut = self.save("cut.gz", whole[: len(whole) * 2 // 3])
        done = self.world.aiq("submit", "--batch", cut, "--json", rc=2)
        self.assertEqual(done.error["code"], "damaged_gzip")
        created = done.json["created"]
        self.assertTrue(100 < created < 1900, created)
        self.assertEqual(len(self.world.jobs()), created)
        done = self.world.aiq("submit", "--batch", cut, "--atomic", "--scope", "x", "--json", rc=2)
        self.assertEqual((done.error["code"], done.json["batch_id"]), ("damaged_gzip", None))
        self.assertEqual(len(self.world.jobs()), created)

    def test_options_apply_to_every_line(self):
        self.world.configure()
        path = self.save("in", [line("a", "1"), line("b", "2")])
        report = self.batch(path, "--tenant", "acme", "--label", "team=x", "--priority", "7",
                            "--delay", "1h", "--deadline", "2h", "--correlation-id", "corr",
                            "--max-attempts", "2", "--endpoint", "chat", "--model", GPT)
        self.assertEqual(report["created"], 2)
        jobs = [self.world.show(job["job_id"]) for job in self.world.jobs("--tenant", "acme")]
        for job in jobs:
            self.assertEqual((job["labels"], job["priority"], job["max_attempts"]),
                             ({"team": "x"}, 7, 2))
            self.assertEqual((job["correlation_id"], job["batch_id"]), ("corr", report["batch_id"]))
        self.assertEqual({job["custom_id"] for job in jobs}, {"a", "b"})
        self.assertEqual(len({(job["run_at"], job["deadline"]) for job in jobs}), 1)
        for options in (["--model", "gpt-4o"], ["--endpoint", "embeddings"]):
            report = self.batch(path, "--scope", "s", *options, rc=2)
            self.assertEqual([e["code"] for e in report["errors"]], ["invalid_request"] * 2)
        self.assertEqual(self.world.aiq("submit", "--batch", path, "--prompt", "x").rc, 2)
        self.assertEqual(self.world.aiq("submit", "--prompt", "x", "--atomic").rc, 2)
        self.assertEqual(self.world.aiq("submit", "--batch", self.world.path("absent")).rc, 2)

    def test_key_names_one_file(self):
        self.world.configure()
        path = self.save("in", [line("a", "1"), line("b", "2"), "broken"])
        first = self.batch(path, "--idempotency-key", "K", rc=2)
        again = self.batch(path, "--idempotency-key", "K", rc=2)
        self.assertEqual(first, again)
        with open(path, "rb") as file:
            self.assertEqual(self.batch("-", "--idempotency-key", "K", input=file.read(), rc=2), first)
        other = self.save("other", [line("a", "1")])
        done = self.world.aiq("submit", "--batch", other, "--idempotency-key", "K", "--json", rc=4)
        self.assertEqual(done.error["code"], "key_conflict")
        self.assertEqual(len(self.world.aiq("batch", "list", "--json", rc=0).lines), 1)
        # Without a key the file goes in anew, and asks for nothing twice.
        third = self.batch(path, rc=2)
        self.assertEqual((third["batch_id"], third["created"], third["existing"]), ("b2", 0, 2))


class Ends(Batch):
    def test_failures_have_their_two_forms(self):
        rejection = openai_error(400, "bad", "invalid_request_error", "no such thing")
        rules = [rule(rejection, prompt_contains="refused"),
                 rule({"status": 404, "body": "<html>gone</html>"}, prompt_contains="html"),
                 rule({"delay": "30s"}, prompt_contains="slow"),
                 rule({"close": True}, prompt_contains="dropped")]
        config = {"vendors.openai": {"first_byte_timeout": "300ms"},
                  "retry": {"max_attempts": 1, "unknown_retries": 0}}
        world = self.start(rules=rules, config=config, daemon=False)
        names = ["good", "refused", "html", "slow", "dropped"]
        path = self.save("in", [line(name, name) for name in names])
        expired = self.batch(self.save("late", [line("late", "late")]), "--deadline", "1ms")
        cancelled = self.batch(self.save("un", [line("unwanted", "unwanted")]))
        world.aiq("batch", "cancel", cancelled["batch_id"], rc=0)
        batch_id = self.batch(path)["batch_id"]
        self.assertEqual(self.results(batch_id, rc=1), [])
        world.start_daemon()
        done = self.wait(batch_id, rc=1)
        self.assertEqual((done["counts"]["completed"], done["counts"]["dead_lettered"]), (1, 4))
        out, err = world.path("out"), world.path("err")
        self.assertEqual(self.results(batch_id, "--output", out, "--errors", err), [])
        self.assertEqual([r["custom_id"] for r in read_lines(out)], ["good"])
        refused, html, slow, dropped = read_lines(err)
        self.assertEqual(refused["response"]["status_code"], 400)
        self.assertEqual(refused["response"]["body"], rejection["body"])
        self.assertIsNone(refused["error"])
        self.assertEqual(html["response"]["status_code"], 404)
        self.assertIn("error", html["response"]["body"])
        self.assertEqual((slow["response"], slow["error"]["code"]), (None, "request_timeout"))
        self.assertEqual((dropped["response"], dropped["error"]["code"]), (None, "network"))
        (late,) = self.results(expired["batch_id"])
        self.assertEqual((late["response"], late["error"]["code"]), (None, "batch_expired"))
        (unwanted,) = self.results(cancelled["batch_id"])
        self.assertEqual((unwanted["response"], unwanted["error"]["code"]), (None, "batch_cancelled"))
        waited = world.aiq("wait", "--batch", batch_id, "--json", rc=1)
        self.assertEqual(len(waited.lines), 5)
        self.assertEqual(world.aiq("batch", "show", "b99").rc, 3)
        self.assertEqual(world.aiq("batch", "results", "17").rc, 3)

    def test_equal_lines_share_a_job_and_keep_their_names(self):
        self.start()
        path = self.save("in", [line("a", "same"), line("b", "same"), line("c", "other")])
        report = self.batch(path, "--wait", "--timeout", "30s", timeout=40)
        self.assertEqual((report["created"], report["counts"]["completed"]), (2, 3))
        self.assertEqual(report["existing"] + report["cached"], 1)
        a, b, c = self.results(report["batch_id"])
        self.assertEqual([a["custom_id"], b["custom_id"], c["custom_id"]], ["a", "b", "c"])
        self.assertEqual(a["response"]["body"], b["response"]["body"])
        self.assertEqual(len(self.world.sim.calls()), 2)

    def test_job_runs_on_until_the_last_submission_is_withdrawn(self):
        world = self.start(rules=[rule({"hold": True}, prompt_contains="held")])
        path = self.save("in", [line("a", "held")])
        single = world.submit("held", model=GPT)
        first = self.batch(path)["batch_id"]
        second = self.batch(path)["batch_id"]
        world.sim.wait_held(1)
        (job,) = world.jobs()
        self.assertEqual(job["job_id"], single["job_id"])
        world.aiq("batch", "cancel", first, rc=0)
        self.assertEqual(world.show(job["job_id"])["status"], "processing")
        (row,) = world.aiq("cancel", "--batch", second, "--json", rc=0).lines
        self.assertEqual((row["outcome"], row["status"]), ("withdrawn", "processing"))
        self.assertEqual(self.wait(first, rc=1)["counts"]["cancelled"], 1)
        self.assertEqual(self.results(second)[0]["error"]["code"], "batch_cancelled")
        begin = time.monotonic()
        (row,) = world.aiq("cancel", single["submission_id"], "--json", rc=0).lines
        self.assertEqual(row["outcome"], "cancelled")
        wait_until(lambda: world.sim.state()["in_flight"] == 0, 5, "the request is aborted")
        self.assertLess(time.monotonic() - begin, 1 * harness.SLOWER)

    def test_force_stops_a_job_that_others_share(self):
        self.world.configure()
        path = self.save("in", [line("a", "shared"), line("b", "alone")])
        self.world.submit("shared", "--correlation-id", "mine")
        report = self.batch(path)
        rows = self.world.aiq("cancel", "--correlation-id", "mine", "--json", rc=0).lines
        self.assertEqual([row["outcome"] for row in rows], ["withdrawn"])
        self.world.submit("alone")
        counts = self.world.aiq("batch", "cancel", report["batch_id"], "--json", rc=0).json["counts"]
        self.assertEqual(counts["cancelled"], 2)
        self.assertEqual(sorted(job["status"] for job in self.world.jobs()), ["cancelled", "queued"])
        report = self.batch(path)
        self.world.aiq("batch", "cancel", report["batch_id"], "--force", rc=0)
        self.assertEqual({job["status"] for job in self.world.jobs()}, {"cancelled"})


class Crashes(Batch):
    LINES = 12_000 if not harness.SLOW else 3_000

    def make_file(self):
        return self.save("big", [line(f"id-{n}", f"question {n}") for n in range(self.LINES)])

    def rows(self, table):
        return self.world.sql(f"SELECT count(*) FROM {table}")[0][0]

    def spawn_load(self, path, *args):
        return self.world.spawn([self.world.program("aiq"), "submit", "--batch", path, *args],
                                self.world.path("load.log"))

    def loaded(self, least):
        def look():
            try:
                return self.rows("batch_lines") >= least
            except Exception:  # there is no database yet, or it is being made
                return False
        return look

    def assert_each_line_once(self, batches=1):
        world = self.world
        self.assertEqual(self.rows("batch_lines"), self.LINES * batches)
        self.assertEqual(self.rows("jobs"), self.LINES)
        self.assertEqual(len(world.aiq("batch", "list", "--json", rc=0).lines), batches)
        self.assertEqual(world.aiq("db", "check").rc, 0)

    def test_killed_client_goes_on_where_it_was(self):
        self.world.configure()
        path = self.make_file()
        self.kill_when(self.spawn_load(path), self.loaded(2000), "some lines are in")
        self.assertLess(self.rows("batch_lines"), self.LINES)
        report = self.batch(path, timeout=120)
        self.assertEqual((report["batch_id"], report["created"]), ("b1", self.LINES))
        self.assert_each_line_once()

    def test_killed_daemon_and_lease_of_nobody_is_lost(self):
        world = self.start("--latency", "1ms..5ms", config={"daemon": {"log_level": "info"}})
        path = self.make_file()
        load = self.spawn_load(path)
        wait_until(self.loaded(2000), 30, "some lines are in")
        begin = time.monotonic()
        world.stats()
        self.assertLess(time.monotonic() - begin, 1 * harness.SLOWER)
        self.assertIsNone(load.poll(), "it still loads")
        world.kill_daemon()
        world.start_daemon()
        self.assertEqual(load.wait(120 * harness.SLOWER), 0, harness.tail(world.path("load.log")))
        self.assertEqual(self.wait("b1", timeout=180, rc=None)["counts"]["queued"], 0)
        self.assert_each_line_once()
        self.assertEqual(self.rows("attempts WHERE outcome = 'lease_lost'"), 0)
        # The journal as the witness: whatever was sent twice was in flight when the daemon died.
        sent = [header(call, "X-Aiq-Attempt") for call in world.sim.calls()]
        self.assertEqual(len(sent), len(set(sent)))
        unknown = self.rows("attempts WHERE outcome = 'unknown'")
        self.assertLessEqual(len(sent), self.LINES + unknown)

    def test_two_shells_load_one_file_at_once(self):
        self.start(config={"daemon": {"log_level": "info"}}, daemon=False)
        path = self.make_file()
        # With a key, so that it is one batch also when one of them is done before the other begins.
        load = lambda: self.batch(path, "--idempotency-key", "K", timeout=120)
        one, two = self.world.at_once([load] * 2)
        self.assertEqual(one, two)
        self.assertEqual(one["created"], self.LINES)
        self.assert_each_line_once()
        # Without one they may be two batches; each job is still there once.
        self.world.at_once([lambda: self.batch(path, timeout=120)] * 2)
        self.assertEqual(self.rows("jobs"), self.LINES)

    def test_another_shell_gets_in_while_a_file_is_loaded_without_a_daemon(self):
        self.world.configure()
        path = self.make_file()
        load = self.spawn_load(path)
        wait_until(self.loaded(1000), 30, "some lines are in")
        self.world.submit("in between")
        self.assertIsNone(load.poll(), "it still loads")
        self.assertEqual(load.wait(60 * harness.SLOWER), 0)
        self.assertEqual(self.rows("jobs"), self.LINES + 1)

    def test_published_batch_is_finished_and_a_staging_one_dropped(self):
        self.world.configure()
        path = self.make_file()
        staging = lambda: self.loaded(2000)() and self.rows("stage_rows") >= 2000
        self.kill_when(self.spawn_load(path, "--atomic"), staging, "some lines are staged")
        self.assertEqual(self.rows("jobs"), 0)
        self.assertEqual(self.world.aiq("batch", "list", "--json", rc=0).lines, [])
        self.world.start_sim()
        self.world.configure({"daemon": {"log_level": "info"}})
        self.world.start_daemon()
        self.assertEqual((self.rows("batches"), self.rows("stage_rows")), (0, 0))
        self.world.stop_daemon()
        load = self.spawn_load(path, "--atomic")
        published = lambda: self.loaded(self.LINES)() and self.rows("jobs") > 0
        self.kill_when(load, published, "some staged lines are jobs")
        self.assertLess(self.rows("jobs"), self.LINES)
        self.world.start_daemon()
        self.assertEqual(self.world.aiq("batch", "show", "2", "--json", rc=0).json["created"],
                         self.LINES)
        self.assert_each_line_once()

    def test_atomic_goes_on_after_a_kill_too(self):
        self.world.configure()
        path = self.make_file()
        staging = lambda: self.loaded(2000)() and self.rows("stage_rows") >= 2000
        self.kill_when(self.spawn_load(path, "--atomic"), staging, "some lines are staged")
        report = self.batch(path, "--atomic", timeout=120)
        self.assertEqual((report["batch_id"], report["created"]), ("b1", self.LINES))
        self.assert_each_line_once()
        self.assertEqual(self.rows("stages"), 0)


if __name__ == "__main__":
    harness.main()

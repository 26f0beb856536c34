"""aiq-sim over loopback HTTP: usage, answers, limits, rules, holds, the journal, load."""

import base64
import concurrent.futures
import hashlib
import http.client
import json
import os
import signal
import struct
import subprocess
import time
import unittest

from sim_world import (
    BIN, CHAT, DEADLINE, SECRET, SLOWER, Answer, Case, Sim, chat, message, wait_until,
)


class CommandLine(Case):
    def run_sim(self, *args):
        return subprocess.run([BIN, *args], capture_output=True, text=True, timeout=DEADLINE, check=False)

    def test_help_and_version(self):
        shown = self.run_sim("--help")
        self.assertEqual(shown.returncode, 0)
        for flag in ("--listen", "--rules", "--journal", "--latency", "--rpm", "--tpm",
                     "--max-in-flight", "--seed", "--version"):
            self.assertIn(flag, shown.stdout)
        self.assertRegex(self.run_sim("--version").stdout, r"^aiq-sim \d+\.\d+\.\d+\n$")

    def test_wrong_usage_is_exit_2_and_says_why(self):
        for args, word in (
            (["--listen", "0.0.0.0:0"], "loopback"),
            (["--listen", "192.0.2.1:80"], "loopback"),
            (["--listen", "127.0.0.1"], "loopback"),
            (["--listen", "127.0.0.1:99999"], "loopback"),
            (["--latency", "fast"], "fast"),
            (["--latency", "2s..1s"], "2s..1s"),
            (["--rpm", "-1"], "--rpm takes a whole number, 0 or more"),
            (["--rules", os.path.join(self.folder, "absent")], "absent"),
            (["--unknown"], "unknown"),
        ):
            with self.subTest(args):
                ended = self.run_sim(*args)
                self.assertEqual(ended.returncode, 2)
                self.assertEqual(ended.stdout, "")
                self.assertIn(word, ended.stderr)

    def test_wrong_rule_is_exit_2_and_names_the_key(self):
        path = os.path.join(self.folder, "rules.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write('{"rules":[{"act":{"stauts":500}}]}')
        ended = self.run_sim("--rules", path)
        self.assertEqual(ended.returncode, 2)
        self.assertIn("rules[0].act: unknown key 'stauts'", ended.stderr)

    def test_port_in_use_is_exit_7(self):
        sim = self.start()
        self.assertEqual(self.run_sim("--listen", f"127.0.0.1:{sim.port}").returncode, 7)

    def test_stops_cleanly_on_both_signals_with_connections_open(self):
        for how in (signal.SIGTERM, signal.SIGINT):
            sim = Sim(self.folder, rules=[{"match": {"prompt_contains": "held"}, "act": {"hold": True}},
                                          {"match": {"prompt_contains": "late"}, "act": {"delay": "1h"}},
                                          {"match": {"prompt_contains": "half"}, "act": {"body_delay": "1h"}}])
            with sim.send_raw(chat("held")), sim.send_raw(chat("late")), sim.send_raw(chat("half")) as half:
                self.assertIn(b"200 OK", half.recv(100))
                wait_until(lambda: sim.state()["in_flight"] == 3, "three in flight")
                self.assertEqual(sim.stop(how), (0, ""))

    def test_full_journal_stops_it_without_an_answer(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        with subprocess.Popen([BIN, "--journal", "/dev/full"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as process:
            port = int(process.stdout.readline().rsplit(":", 1)[1])
            with self.assertRaises((http.client.HTTPException, ConnectionError)):
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
                connection.request("POST", CHAT, json.dumps(chat()))
                connection.getresponse()
            connection.close()
            self.assertEqual(process.wait(timeout=DEADLINE), 8)
            self.assertIn("journal", process.stderr.read())


class Answers(Case):
    def test_chat(self):
        sim = self.start()
        answer = sim.call(chat("12345678", n=2))
        self.assertEqual(answer.status, 200)
        self.assertTrue(answer.headers["x-request-id"])
        body = answer.json
        self.assertEqual((body["object"], body["model"]), ("chat.completion", "sim-small"))
        texts = [c["message"]["content"] for c in body["choices"]]
        self.assertEqual([c["index"] for c in body["choices"]], [0, 1])
        self.assertTrue(all(t.startswith("echo: 12345678") for t in texts))
        usage = body["usage"]
        self.assertEqual(usage["prompt_tokens"], 2)
        self.assertEqual(usage["completion_tokens"], sum(-(-len(t) // 4) for t in texts))
        self.assertEqual(usage["total_tokens"], usage["prompt_tokens"] + usage["completion_tokens"])

    def test_equal_requests_get_equal_text_and_seeds_differ(self):
        def text(sim):
            return sim.call(chat("same"), ).json["choices"][0]["message"]["content"]

        sim = self.start()
        first = text(sim)
        self.assertEqual(text(sim), first)
        others = {text(self.start("--seed", str(seed))) for seed in range(1, 6)}
        self.assertTrue(others - {first})

    def test_output_limit(self):
        sim = self.start()
        choice = sim.call(chat("a long prompt", max_tokens=2)).json["choices"][0]
        self.assertEqual((choice["finish_reason"], choice["message"]["content"]), ("length", "echo: a "))
        body = sim.call(message("a long prompt", max_tokens=2), "/v1/messages").json
        self.assertEqual((body["stop_reason"], body["usage"]["output_tokens"]), ("max_tokens", 2))

    def test_messages(self):
        sim = self.start()
        answer = sim.call(message("Hi", system="Be brief."), "/v1/messages")
        self.assertTrue(answer.headers["request-id"])
        body = answer.json
        self.assertEqual((body["type"], body["role"], body["stop_reason"]), ("message", "assistant", "end_turn"))
        self.assertTrue(body["content"][0]["text"].startswith("echo: Hi"))
        self.assertEqual(body["usage"]["input_tokens"], -(-len("HiBe brief.") // 4))

    def test_responses_and_embeddings_and_models(self):
        sim = self.start()
        body = sim.call({"model": "m", "input": "Hi there"}, "/v1/responses").json
        self.assertEqual((body["object"], body["status"], body["usage"]["input_tokens"]), ("response", "completed", 2))
        self.assertIn("Hi there", body["output"][0]["content"][0]["text"])
        body = sim.call({"model": "m", "input": ["one", "two"], "dimensions": 4}, "/v1/embeddings").json
        first, second = (item["embedding"] for item in body["data"])
        self.assertNotEqual(first, second)
        self.assertAlmostEqual(sum(x * x for x in first), 1, places=4)
        packed = sim.call({"model": "m", "input": "one", "dimensions": 4, "encoding_format": "base64"},
                          "/v1/embeddings").json["data"][0]["embedding"]
        for a, b in zip(struct.unpack("<4f", base64.b64decode(packed)), first):
            self.assertAlmostEqual(a, b, places=6)
        self.assertTrue(sim.call(None, "/v1/models", "GET").json["data"])

    def test_the_vendors_own_refusals(self):
        sim = self.start()
        for body, path, status, where in (
            (b"{", CHAT, 400, None),
            ({"messages": [{"role": "user", "content": "x"}]}, CHAT, 400, "model"),
            ({"model": "m"}, CHAT, 400, "messages"),
            (chat(n=0), CHAT, 400, "n"),
            (chat(stream=True), CHAT, 400, "stream"),
            ({"model": "m"}, "/v1/embeddings", 400, "input"),
            ({"model": "m"}, "/v1/nothing", 404, None),
        ):
            with self.subTest(path=path, body=body):
                answer = sim.call(body, path)
                self.assertEqual(answer.status, status)
                error = answer.json["error"]
                self.assertEqual((error["type"], error["param"]), ("invalid_request_error", where))
        answer = sim.call(chat(), "/v1/messages")
        self.assertEqual(answer.status, 400)
        self.assertEqual(answer.json["type"], "error")
        self.assertEqual(answer.json["error"], {"type": "invalid_request_error",
                                                "message": "max_tokens: Field required"})
        self.assertEqual(answer.json["request_id"], answer.headers["request-id"])
        self.assertEqual(sim.call(None, CHAT, "GET").status, 405)

    def test_large_body_and_kept_connection(self):
        sim = self.start()
        text = "x" * 3_000_000
        connection = http.client.HTTPConnection("127.0.0.1", sim.port, timeout=DEADLINE)
        self.addCleanup(connection.close)
        for _ in range(3):
            connection.request("POST", CHAT, json.dumps(chat(text)))
            answer = Answer(connection.getresponse())
            self.assertEqual(answer.json["usage"]["prompt_tokens"], 750_000)


class LimitsTest(Case):
    def test_requests_per_minute(self):
        sim = self.start("--rpm", "3")
        for left in ("2", "1", "0"):
            headers = sim.call(chat()).headers
            self.assertEqual(headers["x-ratelimit-remaining-requests"], left)
            self.assertRegex(headers["x-ratelimit-reset-requests"], r"^(1m0s|59(\.\d+)?s)$")
        refused = sim.call(chat())
        self.assertEqual(refused.status, 429)
        self.assertIn(int(refused.headers["retry-after"]), range(40, 61))
        self.assertEqual(refused.json["error"]["code"], "rate_limit_exceeded")
        refused = sim.call(message(), "/v1/messages")
        self.assertEqual(refused.json["error"]["type"], "rate_limit_error")
        self.assertEqual(refused.headers["anthropic-ratelimit-requests-limit"], "3")
        self.assertRegex(refused.headers["anthropic-ratelimit-requests-reset"], r"^\d{4}-\d\d-\d\dT.*Z$")
        self.assertEqual([line["limited"] for line in sim.journal()], [None] * 3 + ["rpm"] * 2)

    def test_tokens_per_minute(self):
        sim = self.start("--tpm", "100")
        self.assertEqual(sim.call(chat("x" * 40, max_tokens=80)).status, 200)  # 10 + 80
        refused = sim.call(chat("x" * 40, max_tokens=80))
        self.assertEqual((refused.status, refused.headers["x-ratelimit-remaining-tokens"]), (429, "10"))
        self.assertEqual(sim.call(chat("x" * 4, max_tokens=9)).status, 200)
        self.assertIn("too large", sim.call(chat("x" * 404, max_tokens=1)).json["error"]["message"])

    def test_in_flight(self):
        sim = self.start("--max-in-flight", "1", rules=[{"match": {"nth": 1}, "act": {"hold": True}}])
        with sim.send_raw(chat()) as held:
            wait_until(lambda: sim.state()["held"] == 1, "one held")
            self.assertEqual(sim.call(chat()).status, 429)
            sim.call(None, "/__sim/release")
            self.assertIn(b"200 OK", held.recv(100))
        wait_until(lambda: sim.state()["in_flight"] == 0, "none in flight")
        self.assertEqual(sim.call(chat()).status, 200)

    def test_latency(self):
        sim = self.start("--latency", "200ms..300ms")
        began = time.monotonic()
        sim.call(chat())
        self.assertGreaterEqual(time.monotonic() - began, 0.2)


class Rules(Case):
    def test_first_match_wins_and_counts(self):
        sim = self.start(rules=[
            {"name": "second", "match": {"prompt_contains": "a", "nth": 2}, "act": {"status": 500}},
            {"name": "late", "match": {"model": "sim-small", "nth": {"from": 4, "to": 5}}, "act": {"status": 503}},
            {"name": "once", "match": {"header": {"X-Test": "yes"}}, "act": {"status": 404}, "times": 1},
            {"name": "regex", "match": {"prompt_regex": "^b+$"}, "act": {"status": 409}},
        ])
        got = [sim.call(chat("a")).status for _ in range(6)]
        self.assertEqual(got, [200, 500, 200, 503, 503, 200])
        self.assertEqual([sim.call(chat("c"), headers={"x-test": "yes"}).status for _ in range(2)], [404, 200])
        self.assertEqual(sim.call(chat("bbb")).status, 409)
        self.assertEqual([line["rule"] for line in sim.journal()],
                         [None, "second", None, "late", "late", None, "once", None, "regex"])
        self.assertEqual(sim.state()["rules"][0], {"name": "second", "matched": 6, "used": 1})

    def test_rules_are_replaced_at_run_time(self):
        sim = self.start(rules=[{"act": {"status": 500}}])
        self.assertEqual(sim.call(chat()).status, 500)
        sim.rules()
        self.assertEqual(sim.call(chat()).status, 200)
        refused = sim.call({"rules": [{"act": {"delay": "soon"}}]}, "/__sim/rules")
        self.assertEqual(refused.status, 400)
        self.assertIn("rules[0].act.delay", refused.json["error"]["message"])
        self.assertEqual(sim.call(chat()).status, 200)

    def test_rule_ends_with_its_time(self):
        sim = self.start(rules=[{"act": {"status": 500}, "for": f"{SLOWER}s"}])
        self.assertEqual(sim.call(chat()).status, 500)
        wait_until(lambda: sim.call(chat()).status == 200, "the rule is over")

    def test_holds_are_released_by_name_and_all(self):
        sim = self.start(rules=[
            {"name": "a", "match": {"prompt_contains": "aaa"}, "act": {"hold": True}},
            {"name": "b", "match": {"prompt_contains": "bbb"}, "act": {"hold": True, "status": 500}},
        ])
        with sim.send_raw(chat("aaa")) as a, sim.send_raw(chat("bbb")) as b:
            wait_until(lambda: sim.state()["held"] == 2, "two held")
            self.assertEqual(sim.call({"rule": "a"}, "/__sim/release").json, {"released": 1})
            self.assertIn(b"200 OK", a.recv(100))
            self.assertEqual(sim.state()["held"], 1)
            self.assertEqual(sim.call({}, "/__sim/release").json, {"released": 1})
            self.assertIn(b"500 Internal", b.recv(100))
        self.assertEqual({line["answered"] for line in sim.journal()}, {"hold"})
        self.assertEqual({line["status"] for line in sim.journal()}, {200, 500})

    def test_client_that_leaves_ends_its_wait(self):
        sim = self.start(rules=[{"match": {"prompt_contains": "held"}, "act": {"hold": True}},
                                {"match": {"prompt_contains": "slow"}, "act": {"delay": "1h"}}])
        with sim.send_raw(chat("held")), sim.send_raw(chat("slow")):
            wait_until(lambda: sim.state()["in_flight"] == 2, "two in flight")
        state = wait_until(lambda: (s := sim.state())["in_flight"] == 0 and s, "none in flight")
        self.assertEqual((state["held"], state["clients_gone"]), (0, 2))


class JournalTest(Case):
    def test_line(self):
        sim = self.start()
        body = json.dumps(chat("p" * 100)).encode()
        answer = sim.call(body, headers={
            "Authorization": f"Bearer {SECRET}", "Cookie": SECRET, "X-Api-Key": SECRET,
            "Idempotency-Key": "aiq-1.1.1", "X-Aiq-Attempt": "1.1.1"})
        (line,) = sim.journal()
        self.assertEqual((line["seq"], line["path"], line["model"]), (1, CHAT, "sim-small"))
        self.assertEqual((line["body_sha256"], line["body_bytes"]), (hashlib.sha256(body).hexdigest(), len(body)))
        self.assertEqual(line["prompt_head"], "p" * 80)
        self.assertEqual((line["answered"], line["rule"], line["authorized"]), (200, None, True))
        self.assertEqual(line["usage"], answer.json["usage"])
        self.assertEqual((line["headers"]["idempotency-key"], line["headers"]["x-aiq-attempt"]),
                         ("aiq-1.1.1", "1.1.1"))
        self.assertNotIn(SECRET, json.dumps(line))
        self.assertLess(abs(line["at_ms"] / 1000 - time.time()), 10 * SLOWER)
        self.assertRegex(line["at"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")

    def test_line_is_there_before_the_answer_and_appended_across_runs(self):
        sim = self.start(rules=[{"act": {"hold": True}}])
        with sim.send_raw(chat()):
            wait_until(lambda: sim.state()["held"] == 1, "one held")
            self.assertEqual(len(sim.journal()), 1)
            sim.process.kill()
            sim.process.wait(timeout=DEADLINE)
            sim.process.stdout.close()
        sim = self.start()
        sim.call(chat())
        self.assertEqual(len(sim.journal()), 2)
        self.assertEqual(os.stat(sim.journal_path).st_mode & 0o777, 0o600)

    def test_control_paths_are_no_calls(self):
        sim = self.start("--rpm", "1")
        for _ in range(3):
            sim.state()
        self.assertEqual(sim.journal(), [])
        self.assertEqual(sim.call(chat()).status, 200)


class Load(Case):
    def test_many_held_connections_at_once(self):
        count = 700
        sim = self.start(rules=[{"act": {"hold": True}}])
        raws = [sim.send_raw(chat(f"number {n}")) for n in range(count)]
        try:
            wait_until(lambda: sim.state()["held"] == count, f"{count} held")
            self.assertEqual(sim.call(None, "/__sim/release").json, {"released": count})
            for n, raw in enumerate(raws):
                text = b""
                while b"echo: number %d\\n" % n not in text:
                    piece = raw.recv(65536)
                    self.assertTrue(piece)
                    text += piece
        finally:
            for raw in raws:
                raw.close()
        self.assertEqual(sorted(line["seq"] for line in sim.journal()), list(range(1, count + 1)))

    def test_many_delayed_connections_from_many_threads(self):
        sim = self.start("--latency", "1ms..50ms")
        with concurrent.futures.ThreadPoolExecutor(64) as pool:
            statuses = list(pool.map(lambda n: sim.call(chat(str(n))).status, range(1000)))
        self.assertEqual(set(statuses), {200})
        self.assertEqual(len(sim.journal()), 1000)
        self.assertEqual(sim.state()["in_flight"], 0)


if __name__ == "__main__":
    unittest.main()

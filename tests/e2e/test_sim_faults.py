"""Faults of aiq-sim, read from raw sockets: what a client sees must be what the rule says."""

import email.utils
import json
import re
import time
import unittest

from sim_world import SECRET, SLOWER, Case, chat, message, read_all


class Faults(Case):
    def one(self, act, **match):
        sim = self.start(rules=[{"name": "fault", "match": match, "act": act}])
        return sim

    def promised(self, head):
        return int(re.search(rb"\r\nContent-Length: (\d+)\r\n", head).group(1))

    def test_status_with_body_and_headers(self):
        sim = self.one({"status": 429, "body": {"error": {"code": "slow_down"}},
                        "headers": {"Retry-After": 2, "Date": "Sun, 06 Nov 1994 08:49:37 GMT"}})
        answer = sim.call(chat())
        self.assertEqual((answer.status, answer.json), (429, {"error": {"code": "slow_down"}}))
        self.assertEqual(answer.headers["retry-after"], "2")
        self.assertEqual(answer.headers["date"], "Sun, 06 Nov 1994 08:49:37 GMT")

    def test_date_is_now_unless_given(self):
        answer = self.start().call(chat())
        date = email.utils.parsedate_to_datetime(answer.headers["date"]).timestamp()
        self.assertLess(abs(date - time.time()), 5 * SLOWER)

    def test_status_alone_brings_the_vendors_body(self):
        sim = self.one({"status": 529})
        self.assertEqual(sim.call(message(), "/v1/messages").json["error"]["type"], "overloaded_error")
        sim.rules({"act": {"status": 401}})
        self.assertEqual(sim.call(chat()).json["error"]["code"], "invalid_api_key")

    def test_delay_before_the_first_byte(self):
        sim = self.one({"delay": "300ms"})
        began = time.monotonic()
        with sim.send_raw(chat()) as raw:
            raw.recv(1)
            self.assertGreaterEqual(time.monotonic() - began, 0.3)

    def test_delay_in_the_middle_of_the_body(self):
        sim = self.one({"body_delay": "400ms"})
        with sim.send_raw(chat()) as raw:
            early = raw.recv(65536)
            while b"\r\n\r\n" not in early or early.endswith(b"\r\n\r\n"):
                early += raw.recv(65536)
            began = time.monotonic()
            head, part = early.split(b"\r\n\r\n", 1)
            size = self.promised(head + b"\r\n")
            self.assertEqual(len(part), size // 2)
            while len(part) < size:
                part += raw.recv(65536)
            self.assertGreater(time.monotonic() - began, 0.2)
            self.assertEqual(json.loads(part)["object"], "chat.completion")

    def test_cut(self):
        for cut in (True, 0, 7):
            sim = self.one({"cut": cut})
            with self.subTest(cut), sim.send_raw(chat()) as raw:
                head, part = read_all(raw).split(b"\r\n\r\n", 1)
                size = self.promised(head + b"\r\n")
                self.assertEqual(len(part), size // 2 if cut is True else cut)
            self.assertEqual(sim.journal()[-1]["answered"], "cut")

    def test_cut_beyond_the_end_still_cuts(self):
        sim = self.one({"cut": 1_000_000})
        with sim.send_raw(chat()) as raw:
            head, part = read_all(raw).split(b"\r\n\r\n", 1)
            self.assertEqual(len(part), self.promised(head + b"\r\n") - 1)

    def test_cut_after_a_delay(self):
        sim = self.one({"cut": True, "body_delay": "50ms", "body": {"a": "b" * 100_000}})
        with sim.send_raw(chat()) as raw:
            head, part = read_all(raw).split(b"\r\n\r\n", 1)
            self.assertEqual(len(part), self.promised(head + b"\r\n") // 2)

    def test_chunked_without_its_last_chunk(self):
        sim = self.one({"cut_chunked": True})
        with sim.send_raw(chat()) as raw:
            head, rest = read_all(raw).split(b"\r\n\r\n", 1)
        self.assertIn(b"Transfer-Encoding: chunked", head)
        size, rest = rest.split(b"\r\n", 1)
        self.assertEqual(len(rest), int(size, 16) + 2)
        self.assertFalse(rest.endswith(b"0\r\n\r\n"))

    def test_close_before_any_byte(self):
        sim = self.one({"close": True, "delay": "20ms"})
        with sim.send_raw(chat()) as raw:
            self.assertEqual(read_all(raw), b"")

    def test_reset(self):
        sim = self.start()
        for act in ({"reset": True}, {"reset": True, "delay": "20ms"}):
            sim.rules({"act": act})
            for _ in range(20):
                with sim.send_raw(chat()) as raw, self.assertRaises(ConnectionResetError):
                    read_all(raw)
            line = sim.journal()[-1]
            self.assertEqual((line["answered"], line["status"], line["usage"]), ("reset", None, None))
            self.assertEqual(sim.state()["in_flight"], 0)

    def test_bodies_that_are_no_answer(self):
        sim = self.one({"invalid_json": True})
        answer = sim.call(chat())
        self.assertEqual(answer.status, 200)
        with self.assertRaises(ValueError):
            json.loads(answer.body)
        sim.rules({"act": {"empty": True}})
        answer = sim.call(chat())
        self.assertEqual((answer.status, answer.body), (200, b""))
        sim.rules({"act": {"html": True, "status": 502}})
        answer = sim.call(chat())
        self.assertEqual((answer.status, answer.headers["content-type"]), (502, "text/html"))
        self.assertIn(b"<html>", answer.body)
        sim.rules({"act": {"status": 202}})
        answer = sim.call(chat())
        self.assertEqual((answer.status, answer.body), (202, b""))

    def test_usage_is_replaced_or_left_out(self):
        given = {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6}
        sim = self.one({"usage": given})
        self.assertEqual(sim.call(chat()).json["usage"], given)
        self.assertEqual(sim.journal()[-1]["usage"], given)
        sim.rules({"act": {"usage": None}})
        self.assertNotIn("usage", sim.call(chat()).json)

    def test_echo_of_the_credential(self):
        for act in ({"echo_secret": True}, {"echo_secret": True, "status": 401},
                    {"echo_secret": True, "body": "key: "}):
            sim = self.one(act)
            for name, value in (("Authorization", f"Bearer {SECRET}"), ("X-Api-Key", SECRET)):
                answer = sim.call(chat(), headers={name: value})
                self.assertIn(SECRET.encode(), answer.body)
                self.assertIn(SECRET, answer.headers.values())
            with open(sim.journal_path, encoding="utf-8") as file:
                self.assertNotIn(SECRET, file.read())


if __name__ == "__main__":
    unittest.main()

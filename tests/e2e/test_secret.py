"""A secret that the vendor echoes is nowhere: no file, no log, no dump, no output."""

import base64
import json
import os
import sqlite3
import urllib.parse

import harness
from harness import GPT, Case, header, rule, wait_until

# Characters that change when text is escaped, so that escaped forms are looked for, too.
SECRET = 'kq7"X\\9/mZ+3wT=e2e-only'


class Secret(Case):
    def forms(self):
        return {
            SECRET,
            json.dumps(SECRET)[1:-1],
            json.dumps(json.dumps(SECRET)[1:-1])[1:-1],
            urllib.parse.quote(SECRET, safe=""),
            base64.b64encode(SECRET.encode()).decode().rstrip("="),
        }

    def assert_clean(self, place, data):
        for form in self.forms():
            self.assertNotIn(form.encode(), data, f"the secret is in {place}")

    def check_world(self, world, dead_job):
        outputs = []
        for args in (
            ("list", "--json"), ("list",), ("show", dead_job, "--json"), ("show", dead_job),
            ("dlq", "list", "--json"), ("dlq", "show", "1", "--json"), ("vendor", "list", "--json"),
            ("vendor", "show", "openai", "--json"), ("stats", "--json"), ("config", "show"),
            ("config", "show", "--json"), ("config", "check"), ("result", dead_job),
        ):
            result = world.aiq(*args, env=world.keys)
            outputs.append(result.out + result.err)
            self.assert_clean(f"the output of {args}", (result.out + result.err).encode())
        self.assertIn("[redacted]", "".join(outputs))
        self.assert_clean("GET /healthz", world.http("GET", "/healthz")[1].encode())
        connection = sqlite3.connect(f"file:{world.db}?mode=ro", uri=True)
        self.addCleanup(connection.close)
        self.assert_clean("a dump", "\n".join(connection.iterdump()).encode())
        for folder, _, names in os.walk(world.dir):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.isfile(path):
                    with open(path, "rb") as file:
                        self.assert_clean(name, file.read())

    def test_echoed_secret_is_nowhere(self):
        world = self.world
        world.keys["AIQ_TEST_OPENAI_KEY"] = SECRET
        echo = {"status": 401, "echo_secret": True}
        reject = {"status": 400, "echo_secret": True}
        fail = {"status": 500, "echo_secret": True}
        answer = {"echo_secret": True}
        world.start_sim(rules=[
            rule(reject, prompt_contains="<reject>"),
            rule(fail, times=1, prompt_contains="<fail>"),
            rule(answer, prompt_contains="<answer>"),
            rule(echo, times=1, prompt_contains="<auth>"),
        ])
        world.configure()
        world.start_daemon()
        dead, failed, answered = (
            world.submit(f"<{kind}>")["job_id"] for kind in ("reject", "fail", "answer")
        )
        jobs = world.wait_final([dead, failed, answered])
        self.assertEqual([j["status"] for j in jobs], ["dead_lettered", "completed", "completed"])
        # An answer that carries it is kept and shown without it.
        self.assert_clean("a result", world.aiq("result", answered, rc=0).out.encode())
        paused = world.submit("<auth>")["job_id"]
        wait_until(lambda: world.vendor("openai")["state"] == "paused", 10, "the vendor is paused")
        self.assertEqual(world.show(paused)["status"], "queued")
        self.assertTrue(all(call["authorized"] for call in world.sim.calls()))
        self.assertIsNone(header(world.sim.calls()[0], "authorization"))
        self.check_world(world, dead)
        world.stop_daemon()
        for name in os.listdir(world.dir):
            if os.path.isfile(world.path(name)):
                with open(world.path(name), "rb") as file:
                    self.assert_clean(f"{name} after the end", file.read())

    def test_escaped_forms_are_nowhere_either(self):
        world = self.world
        world.keys["AIQ_TEST_OPENAI_KEY"] = SECRET
        escaped = {
            "unicode": "".join(f"\\u{ord(c):04x}" for c in SECRET),
            "mixed": SECRET[:2] + "".join(f"\\u{ord(c):04X}" for c in SECRET[2:]),
            "percent": "".join(f"%{ord(c):02x}" for c in SECRET),
            "html": "".join(f"&#{ord(c)};" for c in SECRET),
        }
        # As text of a body, so that the escapes stand in it as they are.
        world.start_sim(rules=[
            rule({"status": 400, "body": '{"error":{"message":"key %s is bad"}}' % text},
                 prompt_contains=f"<{name}>")
            for name, text in escaped.items()
        ] + [
            rule({"status": 200, "body": json.dumps({
                "id": "c", "object": "chat.completion", "model": GPT, "choices": [{
                    "index": 0, "finish_reason": "stop",
                    "message": {"role": "assistant", "content": "@@"}}],
            }).replace("@@", " ".join(escaped.values()))}, prompt_contains="<answer>"),
        ])
        world.configure()
        world.start_daemon()
        jobs = [world.submit(f"<{name}>")["job_id"] for name in [*escaped, "answer"]]
        ended = world.wait_final(jobs)
        self.assertEqual([j["status"] for j in ended], ["dead_lettered"] * 4 + ["completed"])
        result = world.aiq("result", jobs[-1], "--text", rc=0).out
        self.assertEqual(result.strip(), " ".join(["[redacted]"] * 4))
        for job in ended[:4]:
            self.assertEqual(job["error"]["message"], "key [redacted] is bad")
        connection = sqlite3.connect(f"file:{world.db}?mode=ro", uri=True)
        self.addCleanup(connection.close)
        dump = "\n".join(connection.iterdump()).lower().encode()
        for name, text in escaped.items():
            self.assertNotIn(text.lower().encode(), dump, name)
        self.assert_clean("the log", harness.read(world.daemon_log).encode())

    def test_secrets_in_the_configuration_are_refused(self):
        world = self.world
        for section in (
            {"headers": {"Authorization": "Bearer abcdef"}},
            {"headers": {"x-api-key": "abcdef"}},
            {"base_url": "http://user:abcdef@127.0.0.1:1/v1"},
        ):
            with self.subTest(section=list(section)):
                world.configure({"vendors.openai": section})
                result = world.aiq("config", "check")
                self.assertNotEqual(result.rc, 0)
                self.assertTrue(result.out + result.err)
                self.assertNotIn("abcdef", result.out + result.err)

    def test_missing_key_is_told_at_start(self):
        world = self.world
        world.keys.clear()
        world.configure()
        world.start_daemon("--check", wait=False)
        self.assertNotEqual(world.wait_daemon(), 0)
        self.assertRegex(harness.read(world.daemon_log), "AIQ_TEST_(OPENAI|ANTHROPIC)_KEY")
        # `aiq` itself needs no keys.
        world.aiq("submit", "--model", GPT, "--prompt", "x", rc=0)


if __name__ == "__main__":
    harness.main()

"""Dead letters that an operator mends, and bodies that come out byte for byte."""

import hashlib
import json

import harness
from harness import CLAUDE, GPT, GPT_BIG, Case, openai_error, rule, wait_until

# What a general reader changes: integers beyond 64 bits, how a float is written, order, spaces.
NUMBERS = '"seed":123456789012345678901234567890, "temperature":1.0,"top_p":1e-1'


def body(content, model=GPT):
    return '{"model":"%s", %s,"messages":[{"role":"user","content":"%s"}]}' % (model, NUMBERS, content)


ANSWER = (
    '{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,'
    '"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],'
    '"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5},'
    '\n "big":98765432109876543210987, "float":0.10, "exp":1E+2}'
)
REFUSED = rule(openai_error(400, "invalid_value"), prompt_contains="bad")


class DlqEdit(Case):
    def dead(self, text, *args):
        """Submits a body that the vendor refuses; (job id, dlq id)."""
        job_id = self.world.submit_body(text, *args)["job_id"]
        self.world.wait_status(job_id, "dead_lettered")
        letters = self.world.aiq("dlq", "list", "--json", rc=0).lines
        return job_id, next(l["dlq_id"] for l in letters if l["job_id"] == job_id)

    def test_edit_keeps_what_failed_and_every_other_byte(self):
        world = self.start(rules=[REFUSED])
        job_id, dlq_id = self.dead(body("bad"))
        before = world.aiq("dlq", "show", dlq_id, "--json", rc=0)
        self.assertIn(f'"payload":{body("bad")},"original_payload":null', before.out)

        answer = world.aiq("dlq", "edit", dlq_id, "--json", "--set", '/messages/0/content="good=1"',
                           "--set", '/user="ann"', rc=0).json
        self.assertEqual((answer["job_id"], answer["model"]), (job_id, GPT))
        wanted = body("good=1")[:-1] + ',"user":"ann"}'
        shown = world.aiq("dlq", "show", dlq_id, "--json", rc=0)
        self.assertIn(f'"payload":{wanted},"original_payload":{body("bad")}', shown.out)
        self.assertEqual(shown.json["payload_target"],
                         {"vendor": "openai", "model": GPT, "endpoint": "chat"})
        preview = world.aiq("submit", "--dry-run", "--json", "--request", "-", input=wanted, rc=0).json
        self.assertEqual(answer["cache_key"], preview["cache_key"])
        self.assertEqual(world.show(job_id)["idempotency_key"], preview["idempotency_key"])
        # People see both, with the numbers as written.
        text = world.aiq("dlq", "show", dlq_id, rc=0).out
        for line in ('  "seed": 123456789012345678901234567890,', '      "content": "bad"',
                     '      "content": "good=1"'):
            self.assertIn(line, text.split("\n"))
        self.assertEqual(len(world.sim.calls()), 1, "an edit sends nothing")

    def test_another_model_or_vendor(self):
        world = self.start(rules=[REFUSED])
        job_id, dlq_id = self.dead(body("bad"))
        world.aiq("dlq", "edit", dlq_id, "--model", GPT_BIG, rc=0)
        self.assertIn(f'"payload":{body("bad", GPT_BIG)},', world.aiq("dlq", "show", dlq_id, "--json").out)
        self.assertEqual(world.show(job_id)["model"], GPT_BIG)

        refused = world.aiq("dlq", "edit", dlq_id, "--json", "--vendor", "anthropic", rc=2)
        self.assertEqual(refused.error["code"], "unsupported_endpoint")
        message = json.dumps({"model": CLAUDE, "max_tokens": 5,
                              "messages": [{"role": "user", "content": "hello"}]})
        world.aiq("dlq", "edit", dlq_id, "--request", "-", input=message, rc=0)
        job = world.show(job_id)
        self.assertEqual((job["vendor"], job["model"], job["endpoint"]), ("anthropic", CLAUDE, "messages"))
        self.assertEqual(world.aiq("dlq", "show", dlq_id, "--json").json["model"], GPT)

    def test_what_cannot_be_set_is_named_and_changes_nothing(self):
        world = self.start(rules=[REFUSED])
        _, dlq_id = self.dead(body("bad"))
        before = world.aiq("dlq", "show", dlq_id, "--json", rc=0).out
        rows = [
            (("--set", "/messages/4/content=1"), 2, "no_such_place", "/messages/4/content"),
            (("--set", "/a/b=1"), 2, "no_such_place", "/a/b"),
            (("--set", "messages=1"), 2, "invalid_pointer", "messages"),
            (("--set", "/user=ann"), 2, "invalid_json", "/user"),
            (("--set", "/user"), 2, "invalid_set", "/user"),
            (("--set", '/user="a"', "--request", "-"), 2, "contradiction", "--set"),
            (("--set", "=[]"), 2, "invalid_request", "object"),
            (("--model", "none-such", "--vendor", "nobody"), 2, "unknown_vendor", "nobody"),
            ((), 2, "missing_option", "nothing"),
        ]
        for args, rc, code, said in rows:
            with self.subTest(args=args):
                error = world.aiq("dlq", "edit", dlq_id, "--json", *args, input="{}", rc=rc).error
                self.assertEqual(error["code"], code)
                self.assertIn(said, error["message"])
        error = world.aiq("dlq", "edit", "999", "--json", "--model", GPT, rc=3).error
        self.assertEqual(error["code"], "no_such_dead_letter")
        self.assertEqual(world.aiq("dlq", "show", dlq_id, "--json", rc=0).out, before)

    def test_mended_letters_are_sent_as_they_stand(self):
        world = self.start(rules=[REFUSED])
        job_id, dlq_id = self.dead(body("bad"))
        answer = world.aiq("dlq", "edit", dlq_id, "--json", "--set", '/messages/0/content="still bad"',
                           "--replay", rc=0).json
        self.assertEqual((answer["outcome"], answer["generation"]), ("replayed", 2))
        second = wait_until(lambda: world.aiq("dlq", "list", "--json", rc=0).lines, 20, "a second letter")
        self.assertEqual([(l["job_id"], l["generation"]) for l in second], [(job_id, 2)])
        again = world.aiq("dlq", "edit", dlq_id, "--json", "--set", "/n=1", rc=4)
        self.assertEqual(again.error["code"], "already_resolved")

        # Another vendor and another body, in the third generation.
        message = '{"model":"%s","max_tokens":5,"seed":1.0,"messages":[{"role":"user","content":"ok"}]}' % CLAUDE
        world.aiq("dlq", "edit", second[0]["dlq_id"], "--request", "-", "--replay", input=message, rc=0)
        job = world.wait_status(job_id, "completed")
        self.assertEqual((job["generation"], job["vendor"], job["model"]), (3, "anthropic", CLAUDE))
        self.assertEqual([a["generation"] for a in job["attempt_log"]], [1, 2, 3])

        # What reached the vendors is what stands in the letters, byte for byte.
        sent = [body("bad"), body("still bad"), message]
        self.assertEqual([c["body_sha256"] for c in world.sim.calls()],
                         [hashlib.sha256(text.encode()).hexdigest() for text in sent])
        for n, letter in enumerate((dlq_id, second[0]["dlq_id"])):
            shown = world.aiq("dlq", "show", letter, "--json", rc=0)
            self.assertIn(f'"payload":{sent[n + 1]},"original_payload":{sent[n]}', shown.out)
            self.assertEqual([a["generation"] for a in shown.json["attempt_log"]], [1, 2][:n + 1])
            self.assertEqual(shown.json["state"], "replayed")

    def test_a_mended_letter_that_a_live_job_asks_too_stays_open(self):
        world = self.start(rules=[REFUSED, rule({"hold": True}, prompt_contains="good")])
        _, dlq_id = self.dead(body("bad"))
        live = world.submit_body(body("good"))["job_id"]
        world.sim.wait_held(1)
        result = world.aiq("dlq", "edit", dlq_id, "--json", "--set", '/messages/0/content="good"',
                           "--replay", rc=0)
        self.assertEqual((result.json["outcome"], result.json["duplicate_of"]), ("duplicate", live))
        self.assertIn(live, result.err)
        self.assertEqual(world.aiq("dlq", "show", dlq_id, "--json", rc=0).json["state"], "open")
        world.sim.release()

    def test_without_a_daemon(self):
        world = self.start(rules=[REFUSED])
        _, dlq_id = self.dead(body("bad"))
        world.stop_daemon()
        world.aiq("dlq", "edit", dlq_id, "--set", '/messages/0/content="good"', rc=0)
        self.assertIn(f'"payload":{body("good")},', world.aiq("dlq", "show", dlq_id, "--json").out)


class Bodies(Case):
    def test_answers_come_out_as_the_vendor_wrote_them(self):
        act = {"status": 200, "headers": {"Content-Type": "application/json"}, "body": ANSWER}
        world = self.start(rules=[rule(act)])
        shown = ANSWER.replace("\n", "")
        waited = world.aiq("submit", "--wait", "--json", "--model", GPT, "--prompt", "hi", rc=0)
        self.assertIn(f'"result":{shown}', waited.out)
        self.assertEqual(len(waited.lines), 1)
        job = waited.json
        self.assertIn(f'"result":{shown}', world.aiq("show", job["job_id"], "--result", "--json", rc=0).out)
        self.assertIn(f'"result":{shown}', world.aiq("cache", "show", job["cache_key"], "--json", rc=0).out)
        self.assertEqual(world.aiq("result", job["job_id"], rc=0).out, ANSWER)
        for args in (("show", job["job_id"], "--result"), ("cache", "show", job["cache_key"])):
            lines = world.aiq(*args, rc=0).out.split("\n")
            for line in ('  "big": 98765432109876543210987,', '  "float": 0.10,', '  "exp": 1E+2'):
                self.assertIn(line, lines)
        # Not asked for: not there.
        self.assertNotIn("result", world.show(job["job_id"]))


if __name__ == "__main__":
    harness.main()

"""What is the same request, and what is not: client keys, canonical JSON, tenants, groups."""

import harness
from harness import GPT, GPT_BIG, Case, openai_error, rule

MESSAGES = '"messages":[{"role":"user","content":"caf\u00e9"}]'


def body(extra="", messages=MESSAGES, model=GPT):
    return f'{{"model":"{model}",{messages}{extra}}}'


class ClientKeys(Case):
    def submit_fifty(self, world):
        return world.at_once(
            [lambda: world.aiq("submit", "--json", "--model", GPT, "--prompt", "once",
                               "--idempotency-key", "K-1", "--busy-timeout",
                               f"{60 * harness.SLOWER}s", timeout=90)] * 50
        )

    def check_fifty(self, world, results):
        self.assertEqual([r.rc for r in results], [0] * 50, [r for r in results if r.rc])
        self.assertEqual(len({r.json["job_id"] for r in results}), 1)
        outcomes = [r.json["outcome"] for r in results]
        self.assertEqual(outcomes.count("created"), 1, outcomes)
        self.assertEqual(outcomes.count("existing"), 49, outcomes)
        self.assertEqual(len(world.jobs()), 1)

    def test_fifty_at_once_are_one_job(self):
        world = self.start()
        results = self.submit_fifty(world)
        self.check_fifty(world, results)
        world.wait_final([results[0].json["job_id"]])
        self.assertEqual(len(world.sim.calls()), 1)

        submissions = world.sql("SELECT count(*) FROM submissions")
        conflict = world.aiq("submit", "--json", "--model", GPT, "--prompt", "another body",
                             "--idempotency-key", "K-1", rc=4)
        self.assertEqual(conflict.out, "")
        self.assertTrue(conflict.error["message"])
        self.assertEqual(len(world.jobs()), 1)
        self.assertEqual(world.sql("SELECT count(*) FROM submissions"), submissions)
        # The same key and request name the same job also when that is final.
        again = world.submit("once", "--idempotency-key", "K-1")
        self.assertEqual(again["job_id"], results[0].json["job_id"])
        self.assertEqual((again["outcome"], again["status"]), ("existing", "completed"))

    def test_fifty_at_once_without_a_daemon_are_one_job(self):
        world = self.start(daemon=False)
        self.check_fifty(world, self.submit_fifty(world))

    def test_client_key_belongs_to_its_tenant(self):
        world = self.start(daemon=False)
        one = world.submit("a", "--idempotency-key", "K", "--tenant", "one")
        two = world.submit("b", "--idempotency-key", "K", "--tenant", "two")
        self.assertEqual(two["outcome"], "created")
        self.assertNotEqual(one["job_id"], two["job_id"])


class CanonicalRequest(Case):
    def test_other_spellings_of_one_request_make_one_call(self):
        world = self.start()
        spellings = [
            body(',"temperature":0.7'),
            body(',"temperature":0.70'),
            body(',"temperature":7e-1'),
            body(', "temperature" : 70E-2 '),
            f'{{"temperature":0.7,{MESSAGES},"model":"{GPT}"}}',
            f'{{"model":"{GPT}","messages":[{{"content":"caf\\u00e9","role":"user"}}],"temperature":0.7}}',
            f'{{"model":"{GPT}","messages":[{{"content":"\\u0063af\u00e9","role":"user"}}],"temperature":0.7}}',
            body(',"temperature":0.7,"user":"u-1"'),
            body(',"temperature":0.7,"metadata":{"a":"b"},"store":true'),
        ]
        submitted = [world.submit_body(text) for text in spellings]
        self.assertEqual(len({s["idempotency_key"] for s in submitted}), 1)
        self.assertEqual(len({s["cache_key"] for s in submitted}), 1)
        self.assertEqual(submitted[0]["outcome"], "created")
        for entry in submitted[1:]:
            self.assertIn(entry["outcome"], ("existing", "cached"))
        world.wait_final([s["job_id"] for s in submitted])
        self.assertEqual(len(world.sim.calls()), 1)
        # Asked again after completion: still no second call.
        late = world.submit_body(spellings[2])
        self.assertEqual((late["outcome"], late["status"]), ("cached", "completed"))
        self.assertEqual(len(world.sim.calls()), 1)

    def test_streaming_is_switched_off_with_a_warning(self):
        world = self.start()
        plain = world.submit_body(body())
        result = world.aiq("submit", "--json", "--request", "-", rc=0,
                           input=body(',"stream":true,"stream_options":{"include_usage":true}'))
        self.assertIn("stream", result.err)
        self.assertEqual(result.json["idempotency_key"], plain["idempotency_key"])

    def test_what_differs_is_called_separately(self):
        world = self.start()
        different = [
            body(),
            body(messages='"messages":[{"role":"user","content":"cafe\u0301"}]'),  # NFD
            body(messages='"messages":[{"role":"user","content":" caf\u00e9"}]'),
            body(',"seed":1'),
            body(',"seed":"1"'),
            body(',"max_tokens":100'),
            body(',"max_tokens":101'),
            body(',"some_extension":null'),
            body(',"seed":12345678901234567890'),
            body(',"seed":12345678901234567891'),
            body(model=GPT_BIG),
        ]
        submitted = [world.submit_body(text) for text in different]
        self.assertEqual({s["outcome"] for s in submitted}, {"created"})
        self.assertEqual(len({s["idempotency_key"] for s in submitted}), len(different))
        self.assertEqual(len({s["cache_key"] for s in submitted}), len(different))
        jobs = world.wait_final([s["job_id"] for s in submitted])
        self.assertTrue(all(job["status"] in ("completed", "dead_lettered") for job in jobs))
        self.assertEqual(len(world.sim.calls()), len(different))

    def test_scope_locale_and_safety_belong_to_the_key(self):
        world = self.start(daemon=False)
        keys = {
            world.submit("same", *flags)["idempotency_key"]
            for flags in ((), ("--scope", "2024-06"), ("--locale", "de"), ("--safety", "strict"))
        }
        self.assertEqual(len(keys), 4)

    def test_service_tier_splits_jobs_but_not_cached_answers(self):
        world = self.start(daemon=False)
        flex = world.submit_body(body(',"service_tier":"flex"'))
        plain = world.submit_body(body())
        self.assertNotEqual(flex["idempotency_key"], plain["idempotency_key"])
        self.assertEqual(flex["cache_key"], plain["cache_key"])

    def test_bodies_that_have_no_canonical_form_are_refused(self):
        world = self.start(daemon=False)
        world.aiq("db", "init", rc=0)
        deep = "[" * 200 + "]" * 200
        for name, text in [
            ("duplicate member", body(f',"model":"{GPT}"')),
            ("duplicate member by escape", body(',"\\u006dodel":"x"')),
            ("lone surrogate", body(messages='"messages":[{"role":"user","content":"\\ud800"}]')),
            ("depth", body(f',"x":{deep}')),
            ("invalid UTF-8", body().encode().replace(b"caf", b"\xff\xfe")),
            ("not JSON", "{"),
            ("not an object", "[1]"),
            ("two values", body() + body()),
        ]:
            with self.subTest(name):
                result = world.aiq("submit", "--json", "--request", "-", input=text, rc=2)
                self.assertEqual(result.out, "")
                self.assertTrue(result.error["message"])
        self.assertEqual(world.jobs(), [])

    def test_model_that_contradicts_the_body_is_refused(self):
        world = self.start(daemon=False)
        world.aiq("submit", "--request", "-", "--model", GPT_BIG, input=body(), rc=2)

    def test_dry_run_tells_the_keys_and_writes_nothing(self):
        world = self.start(daemon=False)
        world.aiq("db", "init", rc=0)
        dry = world.aiq("submit", "--json", "--request", "-", "--dry-run", input=body(), rc=0).json
        self.assertEqual(world.jobs(), [])
        real = world.submit_body(body())
        self.assertEqual(dry["idempotency_key"], real["idempotency_key"])
        self.assertEqual(dry["cache_key"], real["cache_key"])


class Tenants(Case):
    def test_tenants_never_share_unless_in_one_group(self):
        groups = {
            "tenants.a": {"cache_group": "g"},
            "tenants.b": {"cache_group": "g"},
            "tenants.c": {},
            "tenants.d": {"cache_group": "other"},
        }
        world = self.start(config=groups)
        answers = {}
        for tenant in "abcd":
            submitted = world.submit("shared?", "--tenant", tenant)
            (job,) = world.wait_final([submitted["job_id"]])
            self.assertEqual(job["status"], "completed")
            answers[tenant] = job
        self.assertEqual(answers["a"]["cache_key"], answers["b"]["cache_key"])
        self.assertEqual(len({job["idempotency_key"] for job in answers.values()}), 4)
        self.assertEqual(
            {t: job["result_source"] for t, job in answers.items()},
            {"a": "vendor", "b": "cache", "c": "vendor", "d": "vendor"},
        )
        self.assertEqual(len(world.sim.calls()), 3)

    def test_unknown_tenant_is_refused_once_tenants_are_configured(self):
        world = self.start(config={"tenants.a": {"weight": 1}}, daemon=False)
        world.aiq("submit", "--model", GPT, "--prompt", "x", "--tenant", "nobody", rc=5)
        world.aiq("submit", "--model", GPT, "--prompt", "x", "--tenant", "a", rc=0)
        world.aiq("submit", "--model", GPT, "--prompt", "x", rc=0)

    def test_disabled_tenant_is_refused(self):
        world = self.start(config={"tenants.a": {"disabled": True}}, daemon=False)
        world.aiq("submit", "--model", GPT, "--prompt", "x", "--tenant", "a", rc=5)


class Rejected(Case):
    def test_rejected_request_is_not_asked_again_unless_told_to(self):
        world = self.start(rules=[rule(openai_error(400, "invalid_value"), prompt_contains="bad")])
        first = world.submit("a bad one")
        world.wait_final([first["job_id"]])
        again = world.aiq("submit", "--json", "--model", GPT, "--prompt", "a bad one", rc=0)
        self.assertEqual(again.json["outcome"], "existing")
        self.assertEqual(again.json["status"], "dead_lettered")
        self.assertTrue(again.err.strip(), "a warning is due")
        self.assertEqual(len(world.sim.calls()), 1)
        world.aiq("submit", "--wait", "--model", GPT, "--prompt", "a bad one", rc=1)
        self.assertEqual(len(world.sim.calls()), 1)
        fresh = world.submit("a bad one", "--resubmit")
        self.assertEqual(fresh["outcome"], "created")
        world.wait_final([fresh["job_id"]])
        self.assertEqual(len(world.sim.calls()), 2)
        # The same text under another tenant is another request.
        self.assertEqual(world.submit("a bad one", "--tenant", "t")["outcome"], "created")


if __name__ == "__main__":
    harness.main()

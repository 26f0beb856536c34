"""The life of a cached answer: who may store one, for how long, how it is renewed, how it goes."""

import json
import time
from datetime import datetime

import harness
from harness import GPT, GPT_BIG, Case, openai_error, rule, wait_until
from test_answers import DEAD, NO_BREAKER, RETRIED

NO_JITTER = {"jitter": 0.0}


def seconds(text):
    """A time as `aiq --json` prints it."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class CacheLife(Case):
    def answered(self, world, prompt, *args, **kwargs):
        submitted = world.submit(prompt, *args, **kwargs)
        (job,) = world.wait_final([submitted["job_id"]])
        self.assertEqual(job["status"], "completed")
        return job

    def entry(self, world, key):
        return world.aiq("cache", "show", key, "--json", rc=0).json

    def entries(self, world):
        return world.aiq("cache", "list", "--json", "--limit", "0", rc=0).lines

    def wait_state(self, world, key, state):
        wait_until(lambda: self.entry(world, key)["state"] == state, 10, f"the entry is {state}")

    def removed(self, world, *args):
        return world.aiq("cache", "invalidate", "--json", *args, rc=0).json["removed"]

    def refreshes(self, world):
        return [j for j in world.jobs() if world.show(j["job_id"])["kind"] == "refresh"]

    # -- renewal

    def test_fifty_stale_reads_at_once_are_one_refresh(self):
        rules = [rule({"hold": True}, nth=2)]
        world = self.start(rules=rules, config={"cache": {"soft_ttl": "1s", "hard_ttl": "1h", **NO_JITTER}})
        key = self.answered(world, "q")["cache_key"]
        self.wait_state(world, key, "stale")
        reads = world.at_once([lambda: world.submit("q", timeout=60) for _ in range(50)])
        self.assertEqual({(r["outcome"], r["status"], r["stale"]) for r in reads}, {("cached", "completed", True)})
        self.assertEqual(len({r["job_id"] for r in reads}), 50)
        # The refresh is still on the wire: nobody waited for it.
        world.sim.wait_held(1)
        self.assertEqual(len(world.sim.calls()), 2)
        world.sim.release()
        (refresh,) = self.refreshes(world)
        world.wait_final([refresh["job_id"]])
        self.assertEqual(len(world.sim.calls()), 2)
        self.assertEqual(self.entry(world, key)["job_id"], refresh["job_id"])

    def test_after_the_hard_end_fifty_at_once_are_one_call(self):
        names = [f"t{n}" for n in range(5)]
        config = {"cache": {"soft_ttl": "2s", "hard_ttl": "2s", **NO_JITTER},
                  **{f"tenants.{name}": {"cache_group": "all"} for name in names}}
        world = self.start(rules=[rule({"hold": True}, nth=2)], config=config)
        key = self.answered(world, "q", "--tenant", "t0")["cache_key"]
        # Maintenance removes it soon after its end.
        wait_until(lambda: world.aiq("cache", "show", key, "--json").rc == 3, 10, "the entry is gone")
        submitted = world.at_once(
            [lambda name=names[n % 5]: world.submit("q", "--tenant", name, timeout=60) for n in range(50)])
        self.assertEqual({s["outcome"] for s in submitted}, {"created", "existing"})
        world.sim.wait_held(1)
        world.sim.release()
        jobs = world.wait_final([s["job_id"] for s in submitted])
        self.assertEqual([j["status"] for j in jobs], ["completed"] * 5)
        self.assertEqual(len(world.sim.calls()), 2)

    def test_a_failed_refresh_rests_for_a_soft_ttl(self):
        refused = rule(openai_error(400, "invalid_value"), nth=2)
        config = {"cache": {"soft_ttl": "3s", "hard_ttl": "1h", **NO_JITTER}}
        world = self.start(rules=[refused], config=config)
        key = self.answered(world, "q")["cache_key"]
        self.wait_state(world, key, "stale")
        self.assertTrue(world.submit("q")["stale"])
        (refresh,) = self.refreshes(world)
        (failed,) = world.wait_final([refresh["job_id"]])
        self.assertEqual(failed["status"], "dead_lettered")
        # The old answer stands, and counts as fresh for as long again from the failure on.
        entry = self.entry(world, key)
        self.assertNotEqual(entry["job_id"], refresh["job_id"])
        self.assertAlmostEqual(seconds(entry["soft_until"]) - seconds(failed["finished_at"]), 3.0, places=2)
        for _ in range(3):
            self.assertEqual(world.submit("q")["outcome"], "cached")
        if time.time() < seconds(entry["soft_until"]):
            self.assertEqual(len(self.refreshes(world)), 1)
        self.wait_state(world, key, "stale")
        self.assertTrue(world.submit("q")["stale"])
        world.wait_final([j["job_id"] for j in self.refreshes(world)])
        self.assertEqual(len(self.refreshes(world)), 2)
        self.assertEqual(len(world.sim.calls()), 3)
        self.assertNotEqual(self.entry(world, key)["job_id"], entry["job_id"])

    # -- what is kept, and for how long

    def test_failures_are_never_kept(self):
        acts = {name: act for name, act, *_ in RETRIED + DEAD}
        rules = [rule(act, prompt_contains=f"<{name}>") for name, act in acts.items()]
        config = {**NO_BREAKER, "retry": {"uncounted_max": 1, "give_up_after": "1s"}}
        world = self.start(rules=rules, config=config)
        ids = [world.submit(f"<{name}>", "--max-attempts", "1", model=f"model-{n}")["job_id"]
               for n, name in enumerate(acts)]
        jobs = world.wait_final(ids)
        self.assertEqual({j["status"] for j in jobs}, {"dead_lettered"})
        self.assertEqual(self.entries(world), [])
        stats = world.aiq("cache", "stats", "--json", rc=0).json
        self.assertEqual((stats["entries"], stats["bytes"], stats["hits"]), (0, 0, 0))
        # Good answers afterwards are.
        world.sim.rules([])
        self.answered(world, "<500>", model="model-0")
        self.assertEqual(len(self.entries(world)), 1)

    def test_an_answer_cut_at_its_limit_says_so_from_the_cache_too(self):
        body = {"id": "c", "object": "chat.completion", "created": 1, "model": GPT,
                "choices": [{"index": 0, "finish_reason": "length",
                             "message": {"role": "assistant", "content": "half of"}}],
                "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}}
        world = self.start(rules=[rule({"status": 200, "body": body})])
        self.assertTrue(self.answered(world, "q")["truncated"])
        hit = world.submit("q")
        self.assertEqual(hit["outcome"], "cached")
        self.assertTrue(world.show(hit["job_id"])["truncated"])

    def test_times_by_request_tenant_model_and_config(self):
        world = self.start(config={
            "cache": {"soft_ttl": "1h", "hard_ttl": "2h", **NO_JITTER},
            f"models.{GPT}": {"cache": {"soft_ttl": "10m", "hard_ttl": "20m"}},
            "tenants.short": {"cache": {"hard_ttl": "5m"}},
        })
        rows = [
            ("default", GPT_BIG, [], 3600, 7200),
            ("default", GPT, [], 600, 1200),
            ("short", GPT, [], 300, 300),
            ("short", GPT_BIG, [], 300, 300),
            ("short", GPT, ["--ttl", "30m"], 300, 1800),
            ("default", GPT_BIG, ["--ttl", "1m"], 60, 60),
        ]
        for n, (tenant, model, args, soft, hard) in enumerate(rows):
            with self.subTest(tenant=tenant, model=model, args=args):
                key = self.answered(world, f"q{n}", "--tenant", tenant, *args, model=model)["cache_key"]
                entry = self.entry(world, key)
                made = seconds(entry["created_at"])
                self.assertAlmostEqual(seconds(entry["soft_until"]) - made, soft, places=2)
                self.assertAlmostEqual(seconds(entry["hard_until"]) - made, hard, places=2)
        # A life of no time is none.
        before = len(self.entries(world))
        self.answered(world, "none", "--ttl", "0s")
        self.assertEqual(len(self.entries(world)), before)

    def test_policy_of_tenant_over_model_over_config(self):
        world = self.start(config={
            "cache": {"policy": "off"},
            f"models.{GPT}": {"cache": {"policy": "all"}},
            "tenants.none": {"cache": {"policy": "off"}},
            "tenants.exact": {"cache": {"policy": "deterministic"}},
        })
        rows = [
            ("default", GPT, [], True),
            ("default", GPT_BIG, [], False),
            ("none", GPT, [], False),
            ("exact", GPT_BIG, ["--temperature", "0"], True),
            ("exact", GPT, ["--temperature", "0.5"], False),
            # The request can do without the cache, and not open it.
            ("default", GPT, ["--bypass-cache"], False),
            ("none", GPT, ["--ttl", "1h"], False),
        ]
        for n, (tenant, model, args, kept) in enumerate(rows):
            with self.subTest(tenant=tenant, model=model, args=args):
                before = len(self.entries(world))
                options = ("--tenant", tenant, *args)
                self.answered(world, f"q{n}", *options, model=model)
                self.assertEqual(len(self.entries(world)) - before, int(kept))
                again = world.submit(f"q{n}", *options, model=model)
                self.assertEqual(again["outcome"], "cached" if kept else "created")

    def test_a_batch_fills_the_cache_for_its_ttl_without_one_end_for_all(self):
        world = self.start(config={"daemon": {"max_in_flight": 64}})
        lines = [{"custom_id": f"r{n}", "method": "POST", "url": "/v1/chat/completions",
                  "body": {"model": GPT, "messages": [{"role": "user", "content": f"question {n}"}]}}
                 for n in range(200)]
        path = world.write("batch.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
        batch = world.aiq("submit", "--batch", path, "--ttl", "2h", "--json", rc=0).json
        world.aiq("batch", "wait", batch["batch_id"], "--timeout", "60s", rc=0, timeout=70)
        entries = self.entries(world)
        self.assertEqual(len(entries), 200)
        lives = sorted(seconds(e["hard_until"]) - seconds(e["created_at"]) for e in entries)
        self.assertGreaterEqual(lives[0], 7200 * 0.9 - 0.01)
        self.assertLessEqual(lives[-1], 7200)
        ends = sorted(seconds(e["hard_until"]) for e in entries)
        # 200 over 12 minutes: in no second more than a twentieth of them.
        self.assertTrue(all(ends[i] - ends[i - 10] > 1.0 for i in range(10, 200)), ends)

    # -- the end

    def test_the_least_recently_used_go_when_it_is_full(self):
        text = "x" * 20_000
        body = {"id": "c", "object": "chat.completion", "created": 1, "model": GPT,
                "choices": [{"index": 0, "finish_reason": "stop",
                             "message": {"role": "assistant", "content": text}}],
                "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}}
        world = self.start(rules=[rule({"status": 200, "body": body})], config={"cache": {"max_bytes": "110KiB"}})
        keys = {}
        for name in "abcde":
            keys[name] = self.answered(world, name)["cache_key"]
        self.assertEqual(len(self.entries(world)), 5)
        self.assertEqual(world.submit("a")["outcome"], "cached")  # used again, so not the first to go
        for name in "fg":
            keys[name] = self.answered(world, name)["cache_key"]
        stats = lambda: world.aiq("cache", "stats", "--json", rc=0).json
        wait_until(lambda: stats()["bytes"] <= 110 * 1024, 10, "the cache is within its limit")
        left = {e["cache_key"] for e in self.entries(world)}
        self.assertEqual(left, {keys[name] for name in "adefg"})
        self.assertEqual(world.submit("a", "--only-if-cached")["outcome"], "cached")
        world.aiq("submit", "--model", GPT, "--prompt", "b", "--only-if-cached", rc=3)
        # The jobs keep what they were answered.
        first = world.jobs()[-1]
        self.assertIn(text, world.aiq("result", first["job_id"], rc=0).out)

    def test_no_limit_on_the_size(self):
        world = self.start(config={"cache": {"max_bytes": "0"}})
        self.answered(world, "a")
        self.assertEqual(world.aiq("cache", "stats", "--json", rc=0).json["entries"], 1)
        # A pass of maintenance that removes what is over has come by.
        key = self.answered(world, "b", "--ttl", "1ms")["cache_key"]
        wait_until(lambda: world.aiq("cache", "show", key, "--json").rc == 3, 10, "the ended entry is gone")
        self.assertEqual(world.submit("a")["outcome"], "cached")

    def test_invalidate_by_each_property(self):
        config = {"tenants.a": {"cache_group": "g"}, "tenants.b": {"cache_group": "g"},
                  "limits": {"unknown_tenants": "accept"}}
        world = self.start(config=config)
        self.answered(world, "1", "--label", "team=red")
        self.answered(world, "2", "--label", "team=red", model=GPT_BIG)
        self.answered(world, "3", "--label", "team=blue")
        self.answered(world, "4", "--tenant", "a")
        self.assertEqual(world.submit("4", "--tenant", "b")["outcome"], "cached")
        self.answered(world, "5", "--tenant", "c")
        self.assertEqual(len(self.entries(world)), 5)
        # Every filter has to match.
        self.assertEqual(self.removed(world, "--label", "team=green"), 0)
        self.assertEqual(self.removed(world, "--label", "team=red", "--model", GPT), 1)
        self.assertEqual(self.removed(world, "--model", GPT_BIG, "--tenant", "a"), 0)
        self.assertEqual(self.removed(world, "--model", GPT_BIG), 1)
        self.assertEqual(self.removed(world, "--label", "team=blue", "--older-than", "1h"), 0)
        self.assertEqual(self.removed(world, "--label", "team=blue", "--older-than", "0s"), 1)
        # What a tenant paid for its group goes with its name, and is gone for the whole group.
        self.assertEqual(self.removed(world, "--tenant", "b"), 0)
        self.assertEqual(self.removed(world, "--tenant", "a"), 1)
        world.aiq("submit", "--model", GPT, "--prompt", "4", "--tenant", "b", "--only-if-cached", rc=3)
        self.assertEqual(self.removed(world, "--all"), 1)
        self.assertEqual(self.entries(world), [])

    def test_explain_names_what_is_not_in_the_body(self):
        world = self.start(daemon=False)
        one = world.submit("q", "--scope", "monday", "--locale", "de")
        other = world.submit("q", "--scope", "tuesday", "--safety", "strict")
        answer = world.aiq("cache", "explain", one["job_id"], other["job_id"], "--json", rc=0).json
        self.assertEqual(answer["differences"], ["scope", "locale", "safety"])


if __name__ == "__main__":
    harness.main()

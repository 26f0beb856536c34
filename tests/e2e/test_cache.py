"""The cache: what answers, how long, who may read and store, and what an operator can do with it."""

import json
import time

import harness
from harness import GPT, Case, wait_until

NO_JITTER = {"jitter": 0.0}


class Cache(Case):
    def answered(self, world, prompt, *args):
        submitted = world.submit(prompt, *args)
        (job,) = world.wait_final([submitted["job_id"]])
        self.assertEqual(job["status"], "completed")
        return job

    def test_hit_has_the_same_answer_and_says_so(self):
        world = self.start()
        first = self.answered(world, "q")
        hit = world.submit("q")
        self.assertEqual((hit["outcome"], hit["status"], hit["stale"]), ("cached", "completed", False))
        job = world.show(hit["job_id"])
        self.assertEqual(job["result_source"], "cache")
        result = world.aiq("result", hit["job_id"], rc=0)
        self.assertEqual(result.out, world.aiq("result", first["job_id"], rc=0).out)
        self.assertIn("cache", result.err)
        self.assertEqual(len(world.sim.calls()), 1)
        # A hit needs no daemon.
        world.stop_daemon()
        self.assertEqual(world.submit("q")["outcome"], "cached")
        world.aiq("result", world.submit("q")["job_id"], rc=0)

    def test_stale_answer_is_served_and_refreshed_once(self):
        world = self.start(config={"cache": {"soft_ttl": "1s", "hard_ttl": "1h", **NO_JITTER}})
        self.answered(world, "q")
        done = time.time()
        wait_until(lambda: time.time() > done + 1.05, 5, "the soft TTL passes")
        world.aiq("pause", rc=0)
        stale = [world.submit("q") for _ in range(5)]
        self.assertEqual({(s["outcome"], s["stale"]) for s in stale}, {("cached", True)})
        refreshes = [j for j in world.jobs() if world.show(j["job_id"])["kind"] == "refresh"]
        self.assertEqual(len(refreshes), 1)
        self.assertIsNone(world.show(refreshes[0]["job_id"])["idempotency_key"])
        world.aiq("resume", rc=0)
        world.wait_final([refreshes[0]["job_id"]])
        self.assertEqual(len(world.sim.calls()), 2)
        fresh = world.submit("q")
        self.assertEqual((fresh["outcome"], fresh["stale"]), ("cached", False))
        self.assertEqual(world.aiq("cache", "stats", "--json", rc=0).json["stale_hits"], 5)

    def test_hard_ttl_ends_an_entry(self):
        world = self.start(config={"cache": {"soft_ttl": "500ms", "hard_ttl": "500ms", **NO_JITTER}})
        self.answered(world, "q")
        done = time.time()
        wait_until(lambda: time.time() > done + 0.55, 5, "the hard TTL passes")
        self.assertEqual(world.submit("q")["outcome"], "created")

    def test_ttl_of_one_request(self):
        world = self.start()
        self.answered(world, "q", "--ttl", "300ms")
        done = time.time()
        wait_until(lambda: time.time() > done + 0.35, 5, "its TTL passes")
        self.assertEqual(world.submit("q")["outcome"], "created")

    def test_controls(self):
        world = self.start()
        self.answered(world, "q")
        calls = lambda: len(world.sim.calls())
        self.assertEqual(calls(), 1)
        # Not reading, still storing.
        job = self.answered(world, "q", "--no-cache")
        self.assertEqual((job["result_source"], calls()), ("vendor", 2))
        self.assertEqual(world.submit("q")["outcome"], "cached")
        # Reading, not storing.
        self.answered(world, "unstored", "--no-store")
        self.assertEqual(calls(), 3)
        self.assertEqual(world.aiq("submit", "--model", GPT, "--prompt", "unstored", "--only-if-cached").rc, 3)
        self.assertEqual(world.submit("q", "--no-store")["outcome"], "cached")
        # Neither.
        job = self.answered(world, "q", "--bypass-cache")
        self.assertEqual((job["result_source"], calls()), ("vendor", 4))
        self.assertIsNone(job["idempotency_key"])
        # From the cache or not at all.
        self.assertEqual(world.submit("q", "--only-if-cached")["outcome"], "cached")
        world.aiq("submit", "--model", GPT, "--prompt", "never asked", "--only-if-cached", rc=3)
        self.assertEqual(calls(), 4)

    def test_max_age(self):
        world = self.start()
        self.answered(world, "q")
        done = time.time()
        self.assertEqual(world.submit("q", "--max-age", "1h")["outcome"], "cached")
        wait_until(lambda: time.time() > done + 0.15, 5, "the entry ages")
        self.assertEqual(world.submit("q", "--max-age", "100ms")["outcome"], "created")

    def test_bypass_can_be_forbidden(self):
        world = self.start(config={"tenants.a": {"allow_bypass": False}}, daemon=False)
        world.aiq("submit", "--model", GPT, "--prompt", "x", "--tenant", "a", "--bypass-cache", rc=5)

    def test_policies(self):
        world = self.start(config={
            f"models.{GPT}": {"cache": {"policy": "deterministic"}},
            "models.uncached": {"vendor": "openai", "cache": {"policy": "off"}},
        })
        self.answered(world, "warm", "--temperature", "0")
        self.assertEqual(world.submit("warm", "--temperature", "0")["outcome"], "cached")
        self.answered(world, "free", "--temperature", "0.9")
        self.assertEqual(world.submit("free", "--temperature", "0.9")["outcome"], "created")
        first = world.submit("x", model="uncached")
        world.wait_final([first["job_id"]])
        self.assertEqual(world.submit("x", model="uncached")["outcome"], "created")

    def test_invalidate(self):
        world = self.start()
        for prompt in ("a", "b", "c"):
            self.answered(world, prompt, "--tenant", "t" if prompt != "c" else "other")
        entries = world.aiq("cache", "list", "--json", rc=0).lines
        self.assertEqual(len(entries), 3)
        key = world.submit("a", "--tenant", "t")["cache_key"]
        self.assertEqual(world.aiq("cache", "show", key, "--json", rc=0).json["cache_key"], key)
        removed = lambda *args: world.aiq("cache", "invalidate", "--json", *args, rc=0).json["removed"]
        self.assertEqual(removed("--key", key), 1)
        self.assertEqual(removed("--key", key), 0)
        self.assertEqual(removed("--tenant", "t"), 1)
        self.assertEqual(removed("--older-than", "1h"), 0)
        self.assertEqual(removed("--all"), 1)
        self.assertEqual(world.aiq("cache", "stats", "--json", rc=0).json["entries"], 0)
        self.assertEqual(world.submit("a", "--tenant", "t")["outcome"], "created")
        # Without a selection nothing is removed.
        world.aiq("cache", "invalidate", rc=2)

    def test_explain(self):
        world = self.start(daemon=False)
        a = world.write("a.json", json.dumps({"model": GPT, "messages": [], "temperature": 0.7, "user": "x"}))
        b = world.write("b.json", '{"temperature":7e-1,"messages":[],"model":"%s"}' % GPT)
        c = world.write("c.json", json.dumps(
            {"model": GPT, "messages": [{"role": "user", "content": "hi"}], "temperature": 0.8}))
        same = world.aiq("cache", "explain", a, b, "--json", rc=0).json
        self.assertEqual((same["same"], same["differences"]), (True, []))
        self.assertEqual(same["key_a"], same["key_b"])
        other = world.aiq("cache", "explain", a, c, "--json").json
        self.assertFalse(other["same"])
        pointers = {d if isinstance(d, str) else d["pointer"] for d in other["differences"]}
        self.assertEqual(pointers, {"/messages/0", "/temperature"})

    def test_stats_count(self):
        world = self.start()
        self.answered(world, "q")
        for _ in range(3):
            world.submit("q")
        stats = world.aiq("cache", "stats", "--json", rc=0).json
        self.assertEqual((stats["entries"], stats["hits"], stats["stale_hits"]), (1, 3, 0))
        self.assertGreaterEqual(stats["misses"], 1)
        self.assertGreater(stats["bytes"], 0)
        self.assertGreater(stats["avoided_tokens"], 0)


if __name__ == "__main__":
    harness.main()

"""Usage in the vendors' words comes out in our disjoint meters."""

import harness
from harness import CLAUDE, GPT, Case, rule

METERS = ("input", "cache_read", "cache_write_5m", "cache_write_1h", "output")

# (name, model, endpoint arguments, usage as the vendor says it, expected meters; others are 0)
VECTORS = [
    ("anthropic cache write", CLAUDE,
     {"input_tokens": 3, "cache_creation_input_tokens": 12304, "cache_read_input_tokens": 0,
      "output_tokens": 550},
     {"input": 3, "cache_write_5m": 12304, "output": 550}),
    ("anthropic write by kind", CLAUDE,
     {"input_tokens": 7, "cache_creation_input_tokens": 300, "cache_read_input_tokens": 40,
      "cache_creation": {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 200},
      "output_tokens": 5},
     {"input": 7, "cache_read": 40, "cache_write_5m": 100, "cache_write_1h": 200, "output": 5}),
    ("openai cached and reasoning", GPT,
     {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100,
      "prompt_tokens_details": {"cached_tokens": 800},
      "completion_tokens_details": {"reasoning_tokens": 60}},
     {"input": 200, "cache_read": 800, "output": 100}),
    ("openai plain", GPT, {"prompt_tokens": 24, "completion_tokens": 15, "total_tokens": 39},
     {"input": 24, "output": 15}),
]


class Usage(Case):
    def events(self, world, job_id):
        return dict(world.sql("SELECT meter, units FROM usage_events WHERE job_id = ?", int(job_id)))

    def test_vectors(self):
        world = self.start(
            rules=[rule({"usage": row[2]}, prompt_contains=f"<{row[0]}>") for row in VECTORS]
        )
        ids = [world.submit(f"<{row[0]}>", model=row[1])["job_id"] for row in VECTORS]
        for (name, _, _, expected), job in zip(VECTORS, world.wait_final(ids)):
            with self.subTest(name):
                self.assertEqual(set(job["usage"]), set(METERS))
                got = {meter: job["usage"][meter] or 0 for meter in METERS}
                self.assertEqual(got, {meter: expected.get(meter, 0) for meter in METERS})
                # A meter without units makes no event.
                self.assertEqual(self.events(world, job["job_id"]), expected)
                self.assert_outcomes(job, [("completed", "yes")])

    def test_responses_and_embeddings(self):
        said = {"input_tokens": 90, "input_tokens_details": {"cached_tokens": 30},
                "output_tokens": 12, "output_tokens_details": {"reasoning_tokens": 8}, "total_tokens": 102}
        world = self.start(rules=[
            rule({"usage": said}, path="/v1/responses"),
            rule({"usage": {"prompt_tokens": 8, "total_tokens": 8}}, path="/v1/embeddings"),
        ])
        responses = world.submit_body({"model": GPT, "input": "hi"}, "--endpoint", "responses")["job_id"]
        embeddings = world.submit_body(
            {"model": "text-embedding-3-small", "input": "hi"}, "--endpoint", "embeddings"
        )["job_id"]
        jobs = world.wait_final([responses, embeddings])
        self.assertEqual([j["status"] for j in jobs], ["completed"] * 2, jobs)
        self.assertEqual(self.events(world, responses), {"input": 60, "cache_read": 30, "output": 12})
        self.assertEqual(self.events(world, embeddings), {"input": 8})
        # An embedding has no text.
        world.aiq("result", "--text", embeddings, rc=2)

    def test_no_usage_is_unknown_and_not_zero(self):
        world = self.start(rules=[rule({"usage": None})])
        (job,) = world.wait_final([world.submit("silent")["job_id"]])
        self.assertEqual(job["status"], "completed")
        self.assertIsNone(job["usage"])
        self.assert_outcomes(job, [("completed", "maybe")])
        self.assertEqual(world.sql("SELECT usage_state FROM attempts"), [("missing",)])

    def test_impossible_usage_makes_no_event(self):
        said = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15,
                "prompt_tokens_details": {"cached_tokens": 11}}
        world = self.start(rules=[rule({"usage": said})])
        (job,) = world.wait_final([world.submit("odd")["job_id"]])
        self.assertEqual(job["status"], "completed")
        self.assertEqual(self.events(world, job["job_id"]), {})
        self.assertEqual(world.sql("SELECT usage_state FROM attempts"), [("invalid",)])

    def test_cache_hits_use_nothing(self):
        world = self.start()
        world.wait_final([world.submit("twice")["job_id"]])
        before = world.sql("SELECT count(*) FROM usage_events")
        again = world.submit("twice")
        self.assertEqual(again["outcome"], "cached")
        self.assertEqual(world.sql("SELECT count(*) FROM usage_events"), before)
        stats = world.aiq("cache", "stats", "--json", rc=0).json
        self.assertEqual(stats["hits"], 1)
        self.assertGreater(stats["avoided_tokens"], 0)


if __name__ == "__main__":
    harness.main()

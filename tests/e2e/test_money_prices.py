"""The price book: taking one in, setting a price, asking what holds."""

import json
import os
import unittest
from decimal import Decimal

import harness
from harness import Case

LITELLM = os.path.join(harness.SHARED, "data", "litellm_model_prices.json")
MARCH = "2026-03-01T00:00:00Z"
BOOK = """{
  "gpt-x": {"litellm_provider": "openai", "input_cost_per_token": 2.5e-06,
            "output_cost_per_token": 1e-05, "input_cost_per_image": 0.001},
  "groq/llama": {"litellm_provider": "groq", "input_cost_per_token": 5e-08,
                 "input_cost_per_token_above_128k_tokens": 1e-07, "output_cost_per_token": 8e-08},
  "dear": {"litellm_provider": "openai", "input_cost_per_token": 0.0006}
}"""


def prices(shown):
    return {(p["meter"], p["above_tokens"]): p["price_per_million"] for p in shown["prices"]}


class Prices(Case):
    def test_import_says_what_it_took_and_again_changes_nothing(self):
        world = self.start(daemon=False)
        world.write("book.json", BOOK)
        args = ("price", "import", world.path("book.json"), "--effective-from", MARCH, "--json")
        took = world.aiq(*args, rc=0).json
        self.assertEqual(
            {k: v for k, v in took.items() if k != "problems"},
            {"imported": 6, "unchanged": 0, "quarantined": 1, "skipped": 1},
        )
        self.assertEqual(
            sorted((p["model"], p["key"], p["value"], p["code"]) for p in took["problems"]),
            [
                ("dear", "input_cost_per_token", "0.0006", "outlier"),
                ("gpt-x", "input_cost_per_image", "0.001", "per_image"),
                ("groq/llama", "output_cost_per_token_above_128k_tokens", None, "no_tier_price"),
            ],
        )
        again = world.aiq(*args, rc=0).json
        self.assertEqual((again["imported"], again["unchanged"]), (0, 6))
        dear = world.aiq(*args, "--allow-outliers", rc=0).json
        self.assertEqual((dear["imported"], dear["quarantined"]), (1, 0))

        shown = world.aiq("price", "show", "llama", "--vendor", "groq", "--json", rc=0).json
        self.assertEqual(shown["model"], "groq/llama")
        self.assertEqual(
            prices(shown),
            {("input", 0): "0.05", ("input", 128000): "0.10", ("output", 0): "0.08", ("output", 128000): None},
        )
        self.assertIn("none", world.aiq("price", "show", "groq/llama", rc=0).out)
        world.aiq("price", "show", "gpt-x", "--at", "2026-02-28T23:59:59Z", rc=3)

    def test_a_price_holds_from_its_time_and_a_wrong_one_is_corrected(self):
        world = self.start(daemon=False)
        one = ("price", "set", "--vendor", "v", "--model", "m", "--json")
        world.aiq(*one, "--meter", "input=2.50", "--meter", "output=10", "--effective-from", MARCH, rc=0)
        later = "2026-04-01T00:00:00Z"
        set_ = world.aiq(*one, "--meter", "input=2.40", "--effective-from", later, rc=0).json
        self.assertEqual((set_["imported"], set_["prices"][0]["price_per_million"]), (1, "2.40"))
        world.aiq(*one, "--meter", "input=2.45", "--effective-from", later, rc=0)
        self.assertEqual(world.aiq(*one, "--meter", "input=2.450", "--effective-from", later, rc=0).json["imported"], 0)

        def at(time):
            return prices(world.aiq("price", "show", "m", "--at", time, "--json", rc=0).json)

        self.assertEqual(at(MARCH), {("input", 0): "2.50", ("output", 0): "10.00"})
        self.assertEqual(at(later)[("input", 0)], "2.45")
        listed = world.aiq("price", "list", "--at", later, "--json", rc=0).lines
        self.assertEqual([row["price_per_million"] for row in listed], ["2.45", "10.00"])
        self.assertEqual(len(world.aiq("price", "list", "--all", "--json", rc=0).lines), 4)

        # A price that can't be charged exactly is no price.
        for price, code in (
            ("0.0000001", "price_not_representable"),
            ("1e30", "amount_overflow"),
            ("-1", "invalid_price"),
            ("x", "invalid_price"),
        ):
            refused = world.aiq(*one, "--meter", f"input={price}", rc=2)
            self.assertEqual(refused.error["code"], code)
        world.aiq(*one, "--meter", "input=none", rc=0)
        self.assertIsNone(
            prices(world.aiq("price", "show", "m", "--json", rc=0).json)[("input", 0)]
        )

    def test_a_book_moves_to_another_database(self):
        world = self.start(daemon=False)
        other = ("--db", world.path("other.db"))
        world.write("book.json", BOOK)
        world.aiq("price", "import", world.path("book.json"), "--effective-from", MARCH, rc=0)
        world.aiq("price", "set", "--vendor", "groq", "--model", "llama", "--meter", "input=0.06",
                  "--effective-from", MARCH, rc=0)
        rows = world.aiq("price", "list", "--all", "--limit", 0, "--json", rc=0).out
        self.assertEqual(len(rows.splitlines()), 7)
        moved = world.aiq(*other, "price", "import", "-", "--format", "aiq", "--json", input=rows, rc=0).json
        self.assertEqual(moved["imported"], 6)  # the corrected row stays behind
        again = world.aiq(*other, "price", "import", "-", "--format", "aiq", "--json", input=rows, rc=0).json
        self.assertEqual((again["imported"], again["unchanged"]), (0, 6))

        def held(*book):
            return sorted(
                (r["vendor"], r["model"], r["meter"], r["above_tokens"], r["price_per_million"] or "")
                for r in world.aiq(*book, "price", "list", "--json", rc=0).lines
            )

        self.assertEqual(held(*other), held())
        bad = rows.replace('"0.05"', '"0.00000005"')
        refused = world.aiq(*other, "price", "import", "-", "--format", "aiq", "--json", input=bad, rc=2)
        self.assertEqual(refused.error["code"], "invalid_price_file")

    def test_a_request_is_estimated_at_its_worst(self):
        world = self.start(daemon=False)
        body = json.dumps({"model": harness.GPT, "max_tokens": 1000, "messages": [{"role": "user", "content": "x" * 400}]})

        def preview(request=body):
            return world.aiq("submit", "--dry-run", "--json", "--request", "-", input=request, rc=0).json

        vendor = preview()["vendor"]
        self.assertIsNone(preview()["estimated_cost"])
        one = ("price", "set", "--vendor", vendor, "--model", harness.GPT)
        world.aiq(*one, "--meter", "input=2", rc=0)
        self.assertIsNone(preview()["estimated_cost"])  # output has no price
        world.aiq(*one, "--meter", "output=8", "--meter", "cache_write_1h=4", rc=0)
        seen = preview()
        tokens = seen["estimated_tokens"]
        cost = Decimal(tokens["input"] * 4 + 1000 * 8) / 1000000
        self.assertEqual((Decimal(seen["estimated_cost"]), seen["currency"]), (cost, "USD"))
        self.assertEqual(world.jobs(), [])

    def test_through_the_daemon(self):
        world = self.start()
        world.write("book.json", BOOK)
        took = world.aiq("price", "import", world.path("book.json"), "--json", rc=0).json
        self.assertEqual(took["imported"], 6)

    @unittest.skipUnless(os.path.exists(LITELLM), f"LiteLLM's file is not at {LITELLM}")
    def test_litellms_own_file(self):
        world = self.start(daemon=False)
        took = world.aiq("price", "import", LITELLM, "--effective-from", MARCH, "--json", rc=0).json
        with open(LITELLM, encoding="utf-8") as file:
            models = json.load(file, parse_float=str)
        # Every model of the file is heard of: as prices, or as a problem.
        named = {p["model"] for p in took["problems"]}
        rows = world.aiq("price", "list", "--all", "--limit", 0, "--json", rc=0).lines
        named |= {row["model"] for row in rows}
        self.assertEqual(named, set(models) - {"sample_spec"})
        self.assertEqual(len(rows), took["imported"])
        shown = world.aiq("price", "show", "gpt-4o-mini", "--vendor", "openai", "--json", rc=0).json
        self.assertEqual(
            prices(shown), {("input", 0): "0.15", ("output", 0): "0.60", ("cache_read", 0): "0.075"}
        )


if __name__ == "__main__":
    unittest.main()

"""From jobs to money: what the simulator's journal says was used is what is charged, to the last
digit, through retries, answers from the cache, an unknown outcome and a dead letter."""

import json
import os
import unittest
from collections import defaultdict
from decimal import Decimal

import harness
from harness import CLAUDE, GPT, header, rule

PROMPTS = os.path.join(harness.SOURCE, "examples", "prompts.jsonl")
PRICES = {  # per million tokens
    GPT: ("openai", Decimal("0.15"), Decimal("0.60")),
    CLAUDE: ("anthropic", Decimal("0.8"), Decimal("4.000001")),
}
RULES = [
    rule({"status": 429, "headers": {"Retry-After": "0.2"},
          "body": {"error": {"message": "slow down", "code": "rate_limit_exceeded"}}},
         times=2, prompt_contains="lighthouse keeper"),
    rule({"status": 500, "body": {"error": {"message": "oops"}}}, times=1, prompt_contains="pancake"),
    # Paid for, and of no use.
    rule({"status": 200, "body": {"id": "x", "object": "chat.completion", "model": GPT, "choices": [],
                                  "usage": {"prompt_tokens": 31, "completion_tokens": 7, "total_tokens": 38}}},
         times=1, prompt_contains="tomato passata"),
    # Nobody knows what it cost.
    rule({"reset": True}, times=1, prompt_contains="planned outage"),
    rule({"status": 400, "body": {"error": {"message": "impossible", "code": "invalid_value"}}},
         prompt_contains="zero tokens"),
]


def used(usage):
    """(tokens in, tokens out) in either vendor's words."""
    usage = usage or {}
    return (usage.get("prompt_tokens", usage.get("input_tokens", 0)),
            usage.get("completion_tokens", usage.get("output_tokens", 0)))


def price_of(model, usage):
    _, into, out = PRICES[model]
    tokens_in, tokens_out = used(usage)
    return (tokens_in * into + tokens_out * out) / 1_000_000


class Jobs(harness.Case):
    def ask(self, *args, rc=0):
        return self.world.aiq("--json", *args, rc=rc, timeout=60).lines

    def submit(self, prompt):
        args = ["--tenant", prompt["tenant"], "--prompt", prompt["prompt"]]
        if prompt.get("system"):
            args += ["--system", prompt["system"]]
        if prompt.get("max_tokens"):
            args += ["--max-tokens", prompt["max_tokens"]]
        return self.world.aiq("submit", "--json", "--model", prompt["model"], *args, rc=0).json["job_id"]

    def owed(self, tenants):
        """By tenant, from the journal: each request names its attempt."""
        owed = defaultdict(Decimal)
        for line in self.world.sim.calls():
            job = header(line, "X-Aiq-Attempt").split(".")[0]
            owed[tenants[job]] += price_of(line["model"], line["usage"])
        return dict(owed)

    def test_to_the_last_digit(self):
        world = self.start(rules=RULES, config={"retry": {"base": "20ms", "cap": "100ms"}})
        for model, (vendor, into, out) in PRICES.items():
            self.ask("price", "set", "--vendor", vendor, "--model", model, "--meter", f"input={into}",
                     "--meter", f"output={out}", "--effective-from", "2026-01-01T00:00:00Z")
        with open(PROMPTS, encoding="utf-8") as file:
            prompts = [json.loads(line) for line in file]
        ids = world.parallel(self.submit, prompts, threads=4)
        jobs = world.wait_final(ids)
        outcomes = {a["outcome"] for job in jobs for a in job["attempt_log"]}
        self.assertLessEqual({"completed", "rate_limited", "server_error", "empty_response", "network", "rejected"},
                             outcomes)
        self.assertEqual({job["status"] for job in jobs}, {"completed", "dead_lettered"})
        self.assert_each_call_is_one_attempt(world.sim, jobs)

        hits = self.ask("cache", "stats")[0]["hits"]
        again = self.submit(prompts[0])
        cached = world.wait_final([again])[0]
        self.assertEqual((cached["result_source"], cached["cost"]["amount"]), ("cache", "0.00"))
        stats = self.ask("cache", "stats")[0]
        self.assertEqual(stats["hits"], hits + 1)

        self.ask("cost", "aggregate")
        everyone = {job["job_id"]: job["tenant"] for job in jobs}
        owed = self.owed(everyone)
        self.assertTrue(all(amount > 0 for amount in owed.values()), owed)
        shown = {row["tenant"]: Decimal(row["amount"]) for row in self.ask("cost", "summary", "--by", "total")}
        self.assertEqual(shown, owed)
        # What each job says of itself comes to the same.
        costs = [world.show(job)["cost"] for job in everyone]
        each = sum(Decimal(cost["amount"]) for cost in costs if cost)
        self.assertEqual(each, sum(owed.values()))

        self.check_avoided(stats, [job for job in jobs if job["result_source"] == "cache"] + [cached])
        self.check_unknown(jobs)
        self.check_invoices(owed)

    def check_avoided(self, stats, cached):
        saved = Decimal(0)
        for job in cached:
            if job["result_source"] != "cache":
                continue
            body = json.loads(self.world.aiq("result", job["job_id"], rc=0).out)
            saved += price_of(job["model"], body["usage"])
        self.assertEqual(Decimal(stats["avoided_cost"]), saved)
        self.assertGreater(saved, 0)

    def check_unknown(self, jobs):
        (job,) = [j for j in jobs if any(a["billed"] == "maybe" for a in j["attempt_log"])]
        self.assert_outcomes(job, [("network", "maybe"), ("completed", "yes")])
        (finding,) = self.ask("audit")  # severity warn: exit 0
        self.assertEqual((finding["code"], finding["severity"], finding["refs"]),
                         ("unknown_outcome", "warn", [job["job_id"]]))
        (line,) = [c for c in self.world.sim.calls() if header(c, "X-Aiq-Attempt") == f"{job['job_id']}.1.1"]
        _, into, out = PRICES[job["model"]]
        worst = (line["body_bytes"] * into + 200 * out) / 1_000_000
        self.assertEqual(Decimal(finding["amount"]), worst)
        self.assertEqual(self.ask("audit", "--check", "completed_without_usage", "--check", "usage_missing"), [])

    def check_invoices(self, owed):
        (letter,) = self.ask("dlq", "list")
        self.assertEqual((letter["reason"], letter["attempts"]), ("rejected", 1))
        month = self.ask("cost", "summary", "--by", "month")[0]["period_start"]
        for tenant, amount in owed.items():
            (draft,) = self.ask("invoice", "draft", "--tenant", tenant, "--period", month, "--by", "month")
            self.assertEqual(Decimal(draft["total"]) - Decimal(draft["rounding"]), amount)
        self.assertTrue(all(row["ok"] for row in self.ask("invoice", "verify")))


if __name__ == "__main__":
    unittest.main()

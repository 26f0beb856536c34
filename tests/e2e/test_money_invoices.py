"""Invoices through the programs: drafts follow the ledger, issued ones stay, an hour is billed once."""

import json
import sqlite3
import subprocess
import unittest
from decimal import Decimal

import harness

H0, H1 = "2026-03-01T00:00:00.000Z", "2026-03-01T01:00:00.000Z"


def event(n, units, at="2026-03-01T00:05:00Z", tenant="acme", currency="USD"):
    return {
        "event_id": n, "tenant": tenant, "model": "m-large", "meter": "input", "units": units,
        "price_per_million": "2.50", "currency": currency, "occurred_at": at,
    }


class Invoices(harness.Case):
    def setUp(self):
        super().setUp()
        self.start(daemon=False)

    def ask(self, *args, rc=0, **kwargs):
        return self.world.aiq("--json", *args, rc=rc, **kwargs)

    def load(self, *events):
        lines = "".join(json.dumps(e) + "\n" for e in events)
        self.ask("usage", "import", "-", input=lines)
        return self.ask("cost", "aggregate").json

    def draft(self, start, by="hour", *args, rc=0, tenant="acme"):
        done = self.ask("invoice", "draft", "--tenant", tenant, "--period", start, "--by", by, *args, rc=rc)
        return done.json if rc == 0 else done.error["code"]

    def billed(self, *args):
        rows = self.ask("cost", "summary", "--billed", "--by", "hour", *args).lines
        return {(r["tenant"], r["period_start"], r["currency"]): Decimal(r["amount"]) for r in rows}

    def test_late_use_is_billed_by_the_next_one(self):
        self.load(event("e1", 400000), event("e2", 3))
        first = self.draft(H0)
        self.assertEqual((first["state"], first["total"], first["rounding"]), ("draft", "1.00", "-0.0000075"))
        self.assertEqual([line["kind"] for line in first["lines"]], ["usage", "rounding"])
        self.assertEqual(sum(Decimal(line["amount"]) for line in first["lines"]), Decimal("1.00"))
        self.assertEqual(first["lines"][0]["units"], 400003)
        issued = self.ask("invoice", "issue", first["invoice_id"]).json
        self.assertEqual(issued["state"], "issued")

        self.load(event("late", 80000), event("e3", 40000, "2026-03-01T01:30:00Z"))
        second = self.draft(H1)
        self.assertEqual(second["total"], "0.30")
        self.assertEqual(
            [(line["service_period"], line["amount"], line["late"]) for line in second["lines"]],
            [(H0, "0.20", True), (H1, "0.10", False)],
        )
        self.assertEqual(self.ask("invoice", "show", first["invoice_id"]).json, issued)
        self.ask("invoice", "verify")
        billed = self.billed()
        for invoice in self.ask("invoice", "list").lines:
            exact = billed[(invoice["tenant"], invoice["period_start"], invoice["currency"])]
            self.assertEqual(Decimal(invoice["total"]) - Decimal(invoice["rounding"]), exact)
        self.assertEqual(self.draft(H0, rc=4), "issued")
        self.assertEqual(self.ask("invoice", "void", first["invoice_id"], rc=4).error["code"], "issued")

    def test_an_hour_is_billed_once(self):
        self.load(event("e1", 400000))
        hour = self.draft(H0)
        self.assertEqual(self.draft(H0, "day", rc=4), "period_invoiced")
        self.assertEqual(self.draft("2026-03-01T00:30:00Z", rc=2), "invalid_period")
        self.assertEqual(self.draft(H1, "month", rc=2), "invalid_period")
        self.ask("invoice", "void", hour["invoice_id"], "--reason", "by the month")
        month = self.draft(H0, "month")
        self.assertEqual((month["total"], month["period_end"]), ("1.00", "2026-04-01T00:00:00.000Z"))
        self.assertEqual(self.draft(H0, rc=4), "period_invoiced")
        states = {row["invoice_id"]: row["state"] for row in self.ask("invoice", "list").lines}
        self.assertEqual(states, {hour["invoice_id"]: "void", month["invoice_id"]: "draft"})

    def test_two_at_once_make_one_invoice(self):
        self.load(event("e1", 400000))
        command = [self.world.program("aiq"), "--json", "invoice", "draft", "--tenant", "acme", "--period", H0]
        runs = [
            subprocess.Popen([*command, "--by", by], env=self.world.env(), stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
            for by in ("hour", "day", "month", "hour")
        ]
        done = [(run.communicate(timeout=60 * harness.SLOWER), run.returncode) for run in runs]
        codes = sorted(rc for _, rc in done)
        made = {json.loads(out)["invoice_id"] for (out, _), rc in done if rc == 0}
        self.assertEqual(len(made), 1, done)
        self.assertTrue(set(codes) <= {0, 4}, done)
        self.assertEqual(len(self.ask("invoice", "list").lines), 1)

    def test_hold_release_and_what_stops_an_issue(self):
        self.load(event("e1", 400000))
        invoice = self.draft(H0)["invoice_id"]
        held = self.ask("invoice", "hold", invoice, "--reason", "asked the customer").json
        self.assertEqual((held["state"], held["held_reason"]), ("held", "asked the customer"))
        self.assertEqual(self.ask("invoice", "issue", invoice, rc=4).error["code"], "held")
        self.ask("invoice", "release", invoice)
        lines = json.dumps(event("e2", 1)) + "\n"
        self.ask("usage", "import", "-", input=lines)
        self.assertEqual(self.ask("invoice", "issue", invoice, rc=4).error["code"], "unposted_usage")
        self.ask("cost", "aggregate")
        self.ask("usage", "import", "-", input=json.dumps(event("e2", 2)) + "\n", rc=4)
        self.draft(H0)
        self.assertEqual(self.ask("invoice", "issue", invoice, rc=4).error["code"], "event_id_conflict")
        conflict = self.ask("usage", "conflicts", "list").lines[0]["conflict_id"]
        self.ask("usage", "conflicts", "keep", conflict, "--reason", "first is right", "--by", "ops")
        self.ask("cost", "freeze", "--tenant", "acme", "--period", H0, "--reason", "look", "--by", "ops")
        self.assertEqual(self.ask("invoice", "issue", invoice, rc=4).error["code"], "frozen")
        self.ask("cost", "unfreeze", "--tenant", "acme", "--period", H0)
        self.ask("invoice", "issue", invoice)
        self.ask("invoice", "issue", "99", rc=3)

    def test_each_currency_has_its_own(self):
        self.load(event("e1", 400000), event("e2", 800000, currency="EUR"))
        self.assertEqual(self.draft(H0, rc=2), "several_currencies")
        totals = {cur: self.draft(H0, "hour", "--currency", cur)["total"] for cur in ("USD", "EUR")}
        self.assertEqual(totals, {"USD": "1.00", "EUR": "2.00"})

    def test_verify_tells_what_is_not_billed_so(self):
        self.load(event("e1", 400000))
        invoice = self.draft(H0)["invoice_id"]
        connection = sqlite3.connect(self.world.db)
        with connection:
            connection.execute("UPDATE invoices SET total_whole = 3")
        connection.close()
        (row,) = self.ask("invoice", "verify", rc=1).lines
        self.assertEqual((row["total"], row["billed"], row["delta"], row["ok"]), ("3.00", "1.00", "2.00", False))
        self.assertIn("3.00", self.world.aiq("invoice", "verify", invoice, rc=1).out)
        csv = self.world.aiq("invoice", "verify", "--format", "csv", rc=1).out
        self.assertEqual(csv.splitlines()[1].split(",")[6:10], ["3.00", "1.00", "1.00", "2.00"])
        self.draft(H0)
        self.ask("invoice", "verify")

    def test_through_the_daemon(self):
        self.world.start_daemon()
        self.load(event("e1", 400000))
        invoice = self.draft(H0)
        self.assertEqual(self.ask("invoice", "issue", invoice["invoice_id"]).json["state"], "issued")


if __name__ == "__main__":
    unittest.main()

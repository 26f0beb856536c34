"""An incident from the import of another system's tables to the end of its repair: the worked one,
number by number, and generated ones against an oracle that knows nothing of the programs."""

import json
import os
import random
import signal
import subprocess
import threading
import time
import unittest
from collections import Counter
from decimal import Decimal

import harness
import incident
from incident import FILES, HOUR_MS, MARCH, instant, money

WORKED = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", "..", "shared", "incident"))
ORDERS = [list(FILES), list(reversed(FILES))]


class Incident(harness.Case):
    def setUp(self):
        super().setUp()
        self.world.start_sim()
        self.world.configure()

    def ask(self, *args, rc=0, stdin=None):
        done = self.world.aiq("--json", *args, input=stdin, timeout=120, rc=rc)
        return [json.loads(line) for line in done.out.splitlines()]

    def one(self, *args, rc=0, stdin=None):
        rows = self.ask(*args, rc=rc, stdin=stdin)
        self.assertEqual(len(rows), 1, rows)
        return rows[0]

    def load(self, folder, kinds=None, shuffle=None):
        out = {}
        for kind in kinds or FILES:
            with open(os.path.join(folder, FILES[kind]), encoding="utf-8") as file:
                lines = file.readlines()
            if shuffle and kind != "usage":  # of deliveries the first counts
                shuffle.shuffle(lines)
            out[kind] = self.one("import", kind, "-", stdin="".join(lines))
            if kind != "usage":  # of these, contradictions
                self.assertEqual(out[kind]["errors"], [], kind)
        return out

    def audit(self, *args, rc=1):
        return self.ask("audit", *args, rc=rc)

    @staticmethod
    def says(findings):
        return Counter((f["code"], f["severity"], f["tenant"], f["period_start"], f["amount"]) for f in findings)

    def plan(self, name="plan.json"):
        path = self.world.path(name)
        self.world.aiq("repair", "plan", "-o", path, rc=0, timeout=120)
        with open(path, encoding="utf-8") as file:
            return path, json.load(file)

    def tables(self):
        """All that a repair could change."""
        return {
            table: self.world.sql(f"SELECT * FROM {table} ORDER BY 1, 2, 3")
            for table in ("cost_ledger", "tenant_cost_summary", "invoices", "invoice_hours", "freezes", "repairs",
                          "usage_events", "credit_notes", "cost_runs")
        }

    def open_errors(self):
        return {f["code"] for f in self.audit(rc=None) if f["severity"] == "error" and not f["acknowledged_by"]}

    def ledger_total(self):
        return sum((Decimal(row["amount"]) for row in self.ask("cost", "ledger", "--limit", "0")), Decimal(0))


@unittest.skipUnless(os.path.isdir(WORKED), f"the worked incident is not there: {WORKED}")
class Worked(Incident):
    def setUp(self):
        super().setUp()
        with open(os.path.join(WORKED, "expected.json"), encoding="utf-8") as file:
            self.expected = json.load(file)

    def when(self, text):
        return text.replace("00Z", "00.000Z")

    def check_findings(self):
        want = Counter(
            (f["code"], f["severity"], f["tenant"], self.when(f["period"]), f.get("amount"))
            for f in self.expected["findings"]
        )
        found = self.audit()
        self.assertEqual(self.says(found), want)
        # What a finding says besides.
        known = {"code", "severity", "tenant", "period", "amount", "amount_pico"}
        for want_one in self.expected["findings"]:
            extra = {k: v for k, v in want_one.items() if k not in known}
            same = [f["detail"] for f in found if f["code"] == want_one["code"] and f["tenant"] == want_one["tenant"]
                    and f["period_start"] == self.when(want_one["period"]) and f["amount"] == want_one.get("amount")]
            self.assertTrue(any(extra.items() <= detail.items() for detail in same), (want_one, same))

    def check_plan(self, plan):
        rows = [
            (r["source_type"], r["idempotency_key"], r["tenant"], r["service_period"], r["posting_period"],
             r["source_ref"], r["amount"], r["reason"])
            for r in plan["repair_entries"]
        ]
        self.assertEqual(rows, [
            (r["source_type"], r["idempotency_key"], r["tenant"], self.when(r["service_period"]),
             self.when(r["posting_period"]), r["source_ref"], r["amount"], r["reason"])
            for r in self.expected["repair_entries"]
        ])
        periods = {(p["tenant"], p["period_start"]): p for p in plan["tenant_periods"]}
        for want in self.expected["tenant_periods"]:
            got = periods.pop((want["tenant"], self.when(want["period"])))
            self.assertEqual(
                [got[k] for k in ("ledger_before", "ledger_after", "ledger_delta", "summary_before",
                                  "summary_after", "billed_after")],
                [want[k] for k in ("ledger_before", "ledger_after", "ledger_delta", "summary_before",
                                   "summary_after", "posting_period_total_after")],
            )
        self.assertEqual(periods, {})
        marks = {i["invoice_id"]: i for i in plan["invoices"]}
        for want in self.expected["invoices"]:
            if want["invoice_id"] is None:
                (draft,) = plan["to_draft"]
                self.assertEqual((draft["tenant"], draft["period_start"]), (want["tenant"], self.when(want["period"])))
                self.assertEqual(Decimal(draft["total_expected"]) * 100, want["total_cents_expected"])
                continue
            got = marks.pop(want["invoice_id"])
            self.assertEqual(
                (got["state"], got["mark"], got["needs_regeneration"],
                 Decimal(got["total"]) * 100, Decimal(got["total_expected"]) * 100),
                (want["state"], want["mark"], want["needs_regeneration"],
                 want["total_cents_before"], want["total_cents_expected"]),
            )
        self.assertEqual(marks, {})
        totals = self.expected["totals"]
        self.assertEqual((plan["before"], plan["after"], plan["delta"]),
                         (totals["ledger_before"], totals["ledger_after"], totals["ledger_delta"]))

    def test_from_import_to_the_end(self):
        counts = self.load(WORKED)
        self.assertEqual({k: v["imported"] for k, v in counts.items()},
                         {"usage": 21, "ledger": 26, "summary": 8, "runs": 11, "credits": 1, "invoices": 8})
        self.check_findings()
        before = self.tables()
        path, plan = self.plan()
        self.check_plan(plan)
        self.assertEqual(self.tables(), before, "a plan writes nothing")

        totals = self.expected["totals"]
        done = self.one("repair", "apply", path)
        self.assertEqual(
            {k: done[k] for k in ("rows_appended", "periods_rebuilt", "before", "after", "delta", "already_applied")},
            {"rows_appended": 6, "periods_rebuilt": 9, "before": totals["ledger_before"],
             "after": "14.0600010725", "delta": totals["ledger_delta"], "already_applied": False},
        )
        self.assertEqual(done["invoices_held"], sum(i["mark"] == "hold" for i in self.expected["invoices"]))
        self.check_after(path, done)

    def check_after(self, path, done):
        self.assertEqual(self.ledger_total(), Decimal("14.0600010725"))
        for flag, member in ((), "summary_after"), (("--billed",), "posting_period_total_after"):
            shown = {(r["tenant"], r["period_start"]): r["amount"] for r in self.ask("cost", "summary", *flag)}
            self.assertEqual(shown, {(p["tenant"], self.when(p["period"])): p[member]
                                     for p in self.expected["tenant_periods"]})
        states = {i["invoice_id"]: i["state"] for i in self.ask("invoice", "list", "--limit", "0")}
        self.assertEqual(states, {
            i["invoice_id"]: "held" if i["mark"] == "hold" else i["state"]
            for i in self.expected["invoices"] if i["invoice_id"]
        })
        self.assertEqual(self.open_errors(), {"event_id_conflict"})
        # A second time: nothing.
        before = self.tables()
        again = self.one("repair", "apply", path)
        self.assertEqual(again, dict(done, already_applied=True))
        self.assertEqual(self.tables(), before)
        self.assertEqual([r["repair_id"] for r in self.ask("repair", "list")], [done["repair_id"]])
        shown = self.one("repair", "show", done["repair_id"])
        self.assertEqual(len(shown["plan"]["repair_entries"]), 6)
        self.assertEqual(len(shown["snapshot"]["tenant_periods"]), 9)
        # Nothing is left to repair, and aggregation finds nothing to post.
        self.assertEqual(self.plan("second.json")[1]["repair_entries"], [])
        self.assertEqual(self.one("cost", "aggregate")["posted"], 0)
        self.assertEqual(self.ledger_total(), Decimal("14.0600010725"))
        # A person decides on the event that came with two payloads.
        (conflict,) = self.ask("usage", "conflicts", "list")
        self.one("usage", "conflicts", "keep", conflict["conflict_id"], "--reason", "asked the vendor", "--by", "ann")
        self.assertEqual([f for f in self.audit(rc=0) if f["severity"] == "error"], [])

    def test_any_order_and_twice(self):
        for n, order in enumerate(ORDERS):
            with self.subTest(order=order):
                if n:
                    self.doCleanups()
                    self.setUp()
                self.load(WORKED, order, random.Random(n))
                again = self.load(WORKED, order)
                for kind, count in again.items():
                    self.assertEqual((count["imported"], count["conflicts"]), (0, 0), kind)
                self.check_findings()
                self.check_plan(self.plan()[1])

    def test_through_a_daemon(self):
        self.load(WORKED)
        path, _ = self.plan()
        self.world.start_daemon()
        self.check_findings()
        done = self.one("repair", "apply", path)
        self.assertEqual(done["after"], "14.0600010725")
        self.assertEqual(self.open_errors(), {"event_id_conflict"})

    # What makes a plan outdated: anything of its hours that changed since.
    def test_plan_outdated(self):
        late = {"event_id": "E99", "tenant": "acme", "model": "m", "meter": "input", "units": 1,
                "price_per_million": "1", "currency": "USD", "occurred_at": "2026-03-01T01:00:00Z"}
        row = {"ledger_id": "L9", "tenant": "bolt", "service_period": "2026-03-01T00:00:00Z", "source_type": "usage",
               "source_ref": "E99", "amount_pico": 1, "currency": "USD", "posted_at": "2026-03-01T03:00:00Z"}
        self.load(WORKED)
        for change in (
            lambda: self.one("import", "usage", "-", stdin=json.dumps(late)),
            lambda: self.one("import", "ledger", "-", stdin=json.dumps(row)),
            lambda: self.one("cost", "reverse", "L000022", "--reason", "by hand"),
            lambda: self.one("invoice", "hold", "INV-acme-2", "--reason", "by hand"),
            lambda: self.one("usage", "conflicts", "keep", "1", "--reason", "x", "--by", "ann"),
        ):
            path, _ = self.plan()
            change()
            before = self.tables()
            error = self.world.aiq("--json", "repair", "apply", path, rc=4).error
            self.assertEqual(error["code"], "plan_outdated")
            self.assertEqual(self.tables(), before)
        path, plan = self.plan()
        plan["repair_entries"][0]["amount"] = "-1.00"
        error = self.world.aiq("--json", "repair", "apply", self.world.write("edited.json", json.dumps(plan)),
                               rc=2).error
        self.assertEqual(error["code"], "plan_changed")
        for text in ("{}", "[]", "no JSON", json.dumps({"format": "aiq.repair.1"})):
            self.world.aiq("repair", "apply", self.world.write("bad.json", text), rc=2)
        self.one("repair", "apply", path)


class Generated(Incident):
    def check_marks(self, oracle, plan):
        self.assertEqual({i["invoice_id"]: i["mark"] for i in plan["invoices"]},
                         {k: v for k, v in oracle.marks.items() if k in {i["invoice_id"] for i in plan["invoices"]}})
        self.assertEqual({i["invoice_id"] for i in plan["invoices"] if i["mark"] == "hold"},
                         {k for k, mark in oracle.marks.items() if mark == "hold"})
        self.assertEqual({(d["tenant"], d["period_start"]): Decimal(d["total_expected"]) * 100
                          for d in plan["to_draft"]},
                         {(t, instant(p)): cents for (t, p), cents in oracle.to_draft.items()})

    def run_one(self, seed, events):
        case = incident.Incident(seed, events)
        oracle = incident.Oracle(case)
        folder = self.world.path(f"incident-{seed}")
        os.makedirs(folder)
        case.write(folder)
        self.load(folder, ORDERS[seed % 2], random.Random(seed))
        self.assertEqual(self.says(self.audit()), oracle.findings)
        path, plan = self.plan(f"plan-{seed}.json")
        rows = {(r["idempotency_key"], r["tenant"], r["service_period"], r["posting_period"], r["amount"],
                 r["reason"]) for r in plan["repair_entries"]}
        self.assertEqual(rows, oracle.rows)
        self.assertEqual(len(plan["repair_entries"]), len(oracle.rows))
        self.check_marks(oracle, plan)
        done = self.one("repair", "apply", path)
        self.assertEqual(done["after"], money(sum(oracle.after.values())))
        for flag, want in ((), oracle.after), (("--billed",), oracle.billed):
            shown = {(r["tenant"], r["period_start"]): r["amount"] for r in self.ask("cost", "summary", *flag)}
            self.assertEqual(shown, {(t, instant(p)): money(total) for (t, p), total in want.items()})
        self.assertEqual(self.open_errors() - {"event_id_conflict"}, set())
        self.assertEqual(self.one("repair", "apply", path)["already_applied"], True)
        for conflict in self.ask("usage", "conflicts", "list", "--limit", "0"):
            self.one("usage", "conflicts", "keep", conflict["conflict_id"], "--reason", "first one", "--by", "ann")
        self.assertEqual([f for f in self.audit(rc=0) if f["severity"] == "error"], [])
        self.assertEqual(self.one("cost", "aggregate")["posted"], 0)

    def test_incidents(self):
        seeds = os.environ.get("AIQ_SEEDS")
        events = int(os.environ.get("AIQ_EVENTS", "250"))
        for n, seed in enumerate(map(int, seeds.split(",")) if seeds else (1, 2, 3)):
            with self.subTest(seed=seed, events=events):
                if n:
                    self.doCleanups()
                    self.setUp()
                self.run_one(seed, events)

    def test_killed_while_it_applies(self):
        """All of it or nothing, wherever it is killed."""
        case = incident.Incident(7, 600)
        oracle = incident.Oracle(case)
        folder = self.world.path("incident")
        os.makedirs(folder)
        case.write(folder)
        self.load(folder)
        path, _ = self.plan()
        before = self.tables()
        begun = time.monotonic()
        self.one("import", "usage", os.path.join(folder, FILES["usage"]))  # how long a start takes
        span = time.monotonic() - begun
        done = False
        for n in range(12):
            child = subprocess.Popen([self.world.program("aiq"), "repair", "apply", path], env=self.world.env(),
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            timer = threading.Timer(span * (n + 1) / 12, child.kill)
            timer.start()
            rc = child.wait(timeout=60 * harness.SLOWER)
            timer.cancel()
            self.assertIn(rc, (0, -signal.SIGKILL))
            now = self.tables()
            if now == before:
                continue
            done = True
            break
        if not done:
            self.one("repair", "apply", path)
        self.assertEqual(len(self.tables()["repairs"]), 1)
        self.assertEqual(len(self.tables()["cost_ledger"]), len(before["cost_ledger"]) + len(oracle.rows))
        self.assertEqual(self.one("repair", "apply", path)["already_applied"], True)
        self.assertEqual(self.ledger_total(), Decimal(money(sum(oracle.after.values()))))
        self.assertEqual(self.open_errors() - {"event_id_conflict"}, set())


class Nothing(Incident):
    def test_a_sound_ledger_needs_no_repair(self):
        events = [{"event_id": f"E{n}", "tenant": "acme", "model": "m", "meter": "input", "units": 10,
                   "price_per_million": "1", "currency": "USD", "occurred_at": instant(MARCH + n * HOUR_MS)}
                  for n in range(3)]
        self.one("usage", "import", "-", stdin="\n".join(map(json.dumps, events)))
        self.one("cost", "aggregate")
        self.assertEqual(self.audit(rc=0), [])
        path, plan = self.plan()
        self.assertEqual((plan["repair_entries"], plan["tenant_periods"], plan["invoices"]), ([], [], []))
        self.assertEqual(self.one("repair", "apply", path)["rows_appended"], 0)
        self.assertEqual(self.world.aiq("repair", "show", "99").rc, 3)

    def test_a_finding_that_was_acknowledged_is_left_alone(self):
        row = {"ledger_id": "G1", "tenant": "acme", "service_period": "2026-03-01T00:00:00Z", "source_type": "usage",
               "source_ref": "GHOST", "amount_pico": 5, "currency": "USD", "posted_at": "2026-03-01T03:00:00Z"}
        self.one("import", "ledger", "-", stdin=json.dumps(row))
        (finding,) = self.audit("--check", "posting_without_source")
        self.assertEqual(len(self.plan()[1]["repair_entries"]), 1)
        self.one("audit", "ack", finding["finding_id"], "--reason", "agreed with the customer", "--by", "ann")
        self.assertEqual(self.plan("p2.json")[1]["repair_entries"], [])


if __name__ == "__main__":
    harness.main()

"""Another system's tables, taken in as found and audited: the worked incident."""

import json
import pathlib
import subprocess
import unittest

import harness

INCIDENT = pathlib.Path(__file__).resolve().parents[3] / "shared" / "incident"
TABLES = {
    "usage": "usage_events.jsonl",
    "ledger": "ledger_before.jsonl",
    "summary": "summary_before.jsonl",
    "runs": "aggregation_runs.jsonl",
    "credits": "credit_notes.jsonl",
    "invoices": "invoices_before.jsonl",
}
# Members of an expected finding that stand in `detail`.
IN_FINDING = {"code", "severity", "tenant", "period", "amount", "amount_pico"}


def ledger_row(n, ref, amount, **more):
    row = {
        "ledger_id": f"L{n}", "idempotency_key": f"k{n}", "tenant": "acme",
        "service_period": "2026-03-01T00:00:00Z", "source_type": "usage", "source_ref": ref,
        "amount_pico": amount, "currency": "USD", "posted_at": f"2026-03-01T01:00:0{n}Z",
        "payload_hash": f"h{n}",
    }
    row.update(more)
    return row


def usage_event(ref, units, price="1.00", **more):
    row = {
        "event_id": ref, "tenant": "acme", "model": "m", "meter": "input", "units": units,
        "price_per_million": price, "currency": "USD", "occurred_at": "2026-03-01T00:05:00Z",
        "received_at": "2026-03-01T00:05:01Z",
    }
    row.update(more)
    return row


class Audit(harness.Case):
    def setUp(self):
        super().setUp()
        self.world.start_sim()
        self.world.configure()

    def aiq(self, *args, rc=0, stdin=None):
        done = subprocess.run(
            [self.world.program("aiq"), "--json", *args],
            input=stdin, capture_output=True, text=True, env=self.world.env(),
            timeout=60 * harness.SLOWER, check=False,
        )
        self.assertEqual(done.returncode, rc, f"{args}: {done.stdout}{done.stderr}")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def load(self, table, rows, *args):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        return self.aiq("import", table, "-", *args, stdin=text)[0]

    def audit(self, *args, rc=1):
        return self.aiq("audit", *args, rc=rc)

    def codes(self, *args, rc=1):
        return sorted(f["code"] for f in self.audit(*args, rc=rc))


@unittest.skipUnless(INCIDENT.is_dir(), f"{INCIDENT} is absent")
class WorkedIncident(Audit):
    def import_all(self, tables=TABLES):
        return {name: self.aiq("import", name, str(INCIDENT / TABLES[name]))[0] for name in tables}

    def assert_expected(self):
        expected = json.loads((INCIDENT / "expected.json").read_text())["findings"]

        def key(row):
            return json.dumps(row, sort_keys=True)

        want, got = [], []
        for row in expected:
            want.append([row["code"], row["severity"], row["tenant"], row["period"][:19],
                         row.get("amount"),
                         {k: v for k, v in row.items() if k not in IN_FINDING}])
        for row in self.audit():
            names = {k for w in want if w[0] == row["code"] for k in w[5]}
            extra = {k: v for k, v in row["detail"].items() if k in names}
            if "invoice_id" in row["detail"]:
                extra["invoice_id"] = row["detail"]["invoice_id"]
            got.append([row["code"], row["severity"], row["tenant"], row["period_start"][:19],
                        row["amount"], extra])
        self.assertEqual(sorted(map(key, got)), sorted(map(key, want)))

    def test_gives_exactly_the_expected_findings(self):
        done = self.import_all()
        self.assertEqual({k: done["usage"][k] for k in ("imported", "duplicates", "conflicts")},
                         {"imported": 21, "duplicates": 1, "conflicts": 1})
        self.assertEqual(done["ledger"]["imported"], 26)
        self.assert_expected()

    def test_a_second_import_adds_nothing(self):
        self.import_all()
        for name, done in self.import_all().items():
            self.assertEqual((done["imported"], done["conflicts"], done["errors"]), (0, 0, []), name)
            lines = (INCIDENT / TABLES[name]).read_text().splitlines()
            self.assertEqual(done["duplicates"], len(lines), name)
        self.assert_expected()

    def test_the_order_of_the_files_does_not_matter(self):
        self.import_all(reversed(TABLES))
        self.assert_expected()

    def test_aggregation_leaves_imported_hours_alone(self):
        self.import_all()
        self.aiq("cost", "aggregate")
        self.assert_expected()


class Checks(Audit):
    def test_sound_tables_have_no_findings(self):
        self.load("usage", [usage_event("E1", 1000), usage_event("E2", 7)])
        self.load("ledger", [ledger_row(1, "E1", 10**9), ledger_row(2, "E2", 7 * 10**6)])
        self.load("summary", [{"tenant": "acme", "period": "2026-03-01T00:00:00Z",
                               "currency": "USD", "total_pico": 10**9 + 7 * 10**6}])
        self.assertEqual(self.audit(rc=0), [])

    def test_same_id_with_other_content_is_a_conflict_and_not_written(self):
        self.load("ledger", [ledger_row(1, "E1", 5)])
        done = self.load("ledger", [ledger_row(1, "E1", 6)])
        self.assertEqual((done["imported"], done["conflicts"]), (0, 1))
        self.assertEqual(done["errors"][0]["code"], "import_conflict")
        rows = self.aiq("cost", "ledger")
        self.assertEqual([row["amount"] for row in rows], ["0.000000000005"])
        # Ids are unique within a source only.
        other = self.load("ledger", [ledger_row(1, "E1", 6)], "--source", "other")
        self.assertEqual(other["imported"], 1)

    def test_a_bad_line_is_reported_and_the_others_are_taken(self):
        done = self.load("ledger", [ledger_row(1, "E1", 5), {"ledger_id": "L2"},
                                    ledger_row(3, "E3", 1.5), ledger_row(4, "E4", 5)])
        self.assertEqual(done["imported"], 2)
        self.assertEqual([e["line"] for e in done["errors"]], [2, 3])

    def test_totals_beyond_int64_are_exact(self):
        most = 2**63 - 1
        units = most // 10**6
        rows, events, total = [], [], 0
        for n in range(1, 6):
            events.append(usage_event(f"E{n}", units))
            rows.append(ledger_row(n, f"E{n}", units * 10**6))
            total += units * 10**6
        self.assertGreater(total, most)
        self.load("usage", events)
        self.load("ledger", rows)
        self.load("summary", [{"tenant": "acme", "period": "2026-03-01T00:00:00Z",
                               "currency": "USD", "total_pico": str(total)}])
        self.assertEqual(self.audit(rc=0), [])
        self.load("ledger", [ledger_row(6, "E1", units * 10**6, payload_hash="h1")])
        found = {f["code"]: f for f in self.audit()}
        self.assertEqual(set(found), {"duplicate_posting", "raw_vs_ledger_mismatch",
                                      "posting_event_ratio", "summary_vs_ledger_mismatch"})
        whole, rest = divmod(units * 10**6, 10**12)
        self.assertEqual(found["summary_vs_ledger_mismatch"]["amount"],
                         f"-{whole}.{rest:012d}".rstrip("0"))

    def test_postings_without_a_source_or_an_original(self):
        self.load("ledger", [
            ledger_row(1, "E1", 10),
            ledger_row(2, "L9", -3, source_type="correction"),
            ledger_row(3, "CN", -2, source_type="credit_note"),
        ])
        self.load("credits", [{"credit_note_id": "CN", "tenant": "acme", "amount_pico": -2,
                               "service_period": "2026-03-01T00:00:00Z", "currency": "USD",
                               "status": "draft"},
                              {"credit_note_id": "C2", "tenant": "acme", "amount_pico": -2,
                               "service_period": "2026-03-01T00:00:00Z", "currency": "USD",
                               "status": "approved"}])
        found = self.audit("--check", "posting_without_source", "--check", "orphan_correction",
                           "--check", "missing_credit_note_posting")
        self.assertEqual(sorted((f["code"], f["refs"]) for f in found),
                         [("missing_credit_note_posting", ["C2"]), ("orphan_correction", ["L2"]),
                          ("posting_without_source", ["L1"]), ("posting_without_source", ["L3"])])

    def test_a_reversed_duplicate_is_resolved(self):
        self.load("usage", [usage_event("E1", 1000)])
        rows = [ledger_row(1, "E1", 10**9), ledger_row(2, "E1", 10**9)]
        back = ledger_row(3, "L2", -10**9, source_type="reversal")
        # The reversal comes before what it reverses.
        self.load("ledger", [back])
        self.load("ledger", rows)
        found = self.audit("--check", "duplicate_posting", "--check", "raw_vs_ledger_mismatch",
                           "--check", "orphan_correction", "--check", "posting_event_ratio", rc=0)
        self.assertEqual([(f["code"], f["severity"]) for f in found],
                         [("duplicate_posting", "info")])

    def test_acknowledged_errors_do_not_count(self):
        self.load("ledger", [ledger_row(1, "E1", 10)])
        found = self.audit("--check", "posting_without_source")
        done = self.aiq("audit", "ack", found[0]["finding_id"], "--reason", "known", "--by", "ops")
        self.assertEqual(done[0]["acknowledged_by"], "ops")
        again = self.audit("--check", "posting_without_source", rc=0)
        self.assertEqual([f["severity"] for f in again], ["info"])
        self.aiq("audit", "ack", "0" * 16, "--reason", "x", rc=3)
        self.aiq("audit", "--check", "nonsense", rc=2)

    def test_totals(self):
        self.load("usage", [usage_event("E1", 1000)])
        self.load("ledger", [ledger_row(1, "E1", 10**9)])
        self.load("summary", [{"tenant": "acme", "period": "2026-03-01T00:00:00Z",
                               "currency": "USD", "total_pico": -5}])
        done = self.aiq("audit", "totals")[0]
        self.assertEqual(done["totals"], [{"tenant": "acme", "currency": "USD", "events": 1,
                                           "units": "1000", "ledger_rows": 1,
                                           "amount": "0.001"}])
        self.assertEqual([n["amount"] for n in done["negative_summaries"]], ["-0.000000000005"])

    def test_run_retries_only_when_asked(self):
        self.load("runs", [{"tenant": "acme", "period": "2026-03-01T00:00:00Z", "job_id": "j",
                            "started_at": "2026-03-01T01:00:00Z", "status": "success",
                            "finished_at": "2026-03-01T01:00:09Z", "retry_count": 3}])
        self.assertEqual(self.codes(rc=0), [])
        self.assertEqual(self.codes("--check", "run_retries", rc=0), ["run_retries"])


if __name__ == "__main__":
    unittest.main()

"""aiq sql: reading with SQL, and nothing else."""

import csv
import io
import json
import os
import unittest
from decimal import Decimal

import harness

VIEWS = ["v_jobs", "v_attempts", "v_usage", "v_ledger", "v_summary", "v_runs", "v_invoices"]


def event(n, units, at, tenant="acme", price="2.50"):
    return {
        "event_id": n, "tenant": tenant, "model": "m", "meter": "input", "units": units,
        "price_per_million": price, "currency": "USD", "occurred_at": at,
    }


class Sql(harness.Case):
    def setUp(self):
        super().setUp()
        self.start(daemon=False)

    def sql(self, *args, rc=0):
        return self.world.aiq("--json", "sql", *args, rc=rc)

    def load(self, *events):
        self.world.aiq("usage", "import", "-", input="".join(json.dumps(e) + "\n" for e in events), rc=0)
        self.world.aiq("cost", "aggregate", rc=0)

    def test_what_an_incident_begins_with(self):
        self.load(
            event("a", 400000, "2026-03-01T00:00:00Z"),
            event("b", 1, "2026-03-01T00:00:00.500Z", price="0.15"),
            event("c", 7, "2026-03-02T00:00:00Z"),
            event("d", 5, "2026-03-01T23:59:59.999Z", tenant="bolt"),
        )
        interval = "created_at >= '2026-03-01T00:00:00Z' AND created_at < '2026-03-02'"
        rows = self.sql(
            "SELECT tenant_id, count(*) AS events, sum(units) AS units FROM v_usage "
            f"WHERE {interval} GROUP BY tenant_id ORDER BY tenant_id"
        ).lines
        self.assertEqual(
            rows,
            [{"tenant_id": "acme", "events": 2, "units": 400001}, {"tenant_id": "bolt", "events": 1, "units": 5}],
        )
        rows = self.sql(
            "SELECT tenant_id, count(*) AS n, sum(amount) AS amount FROM v_ledger "
            "WHERE period_start BETWEEN '2026-03-01' AND '2026-03-01T23:00:00Z' GROUP BY tenant_id ORDER BY 1"
        ).lines
        self.assertEqual([(r["tenant_id"], r["n"], r["amount"]) for r in rows], [("acme", 2, "1.00000015"), ("bolt", 1, "0.0000125")])
        self.assertEqual(self.sql("SELECT * FROM v_summary WHERE total_amount < 0").lines, [])
        self.world.aiq("cost", "credit", "--tenant", "bolt", "--period", "2026-03-01T23:00:00Z", "--amount", "1.25",
                       "--reason", "r", "--approved-by", "ops", "--allow-negative", rc=0)
        rows = self.sql("SELECT tenant_id, period_start, total_amount, sign FROM v_summary WHERE total_amount < 0").lines
        self.assertEqual(
            rows,
            [{"tenant_id": "bolt", "period_start": "2026-03-01T23:00:00.000Z", "total_amount": "-1.2499875", "sign": -1}],
        )

    def test_amounts_are_exact_whatever_their_size(self):
        dear = "1000000000000.000001"
        self.load(*(event(n, 9, "2026-03-01T00:00:00Z", price=dear) for n in "abc"),
                  event("x", 1, "2026-03-01T00:00:00Z", price="0.000001"))
        exact = sum(Decimal(dear) / 1000000 * 9 for _ in "abc") + Decimal("0.000000000001")
        for query in (
            "SELECT sum(amount) AS t FROM v_ledger",
            "SELECT total_amount AS t FROM v_summary",
            "SELECT sum(total_amount) AS t FROM v_summary",
            "SELECT sum(amount) OVER (ORDER BY ledger_id ROWS BETWEEN 9 PRECEDING AND CURRENT ROW) AS t "
            "FROM v_ledger ORDER BY ledger_id DESC LIMIT 1",
        ):
            self.assertEqual(Decimal(self.sql(query).json["t"]), exact, query)
        self.assertEqual(self.sql("SELECT sum(amount) AS t FROM v_ledger WHERE 0").json["t"], None)
        self.assertEqual(self.sql("SELECT price_per_million AS p FROM v_usage WHERE event_id = 'x'").json["p"], "0.000001")

    def test_every_view_has_rows_and_names(self):
        self.world.start_daemon()
        job = self.world.submit("hello")
        self.world.wait_final([job["job_id"]])
        self.load(event("a", 400000, "2026-03-01T00:00:00Z"))
        self.world.aiq("invoice", "draft", "--tenant", "acme", "--period", "2026-03-01T00:00:00Z", "--by", "hour", rc=0)
        listed = {row["view"]: row["columns"] for row in self.world.aiq("--json", "sql", rc=0).lines}
        self.assertEqual(list(listed), VIEWS)
        for view in VIEWS:
            rows = self.sql(f"SELECT * FROM {view}").lines
            self.assertTrue(rows, view)
            self.assertEqual(list(rows[0]), listed[view])
            self.assertIn("tenant_id", rows[0])
            for name, value in rows[0].items():
                if name.endswith("_at") and value is not None:
                    self.assertRegex(value, r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        (job_row,) = self.sql(f"SELECT status, attempts FROM v_jobs WHERE job_id = {job['job_id']}").lines
        self.assertEqual(job_row, {"status": "completed", "attempts": 1})
        (invoice,) = self.sql("SELECT state, total_amount FROM v_invoices").lines
        self.assertEqual(invoice, {"state": "draft", "total_amount": "1.00"})

    def test_it_only_reads(self):
        self.load(event("a", 400000, "2026-03-01T00:00:00Z"))
        before = os.stat(self.world.db).st_size
        for statement in (
            "DELETE FROM v_jobs", "DELETE FROM usage_pending", "UPDATE invoices SET total_whole = 1",
            "INSERT INTO meta VALUES ('a', 'b')", "CREATE TABLE t (a)", "CREATE TEMP TABLE t (a)", "DROP TABLE jobs",
            "ATTACH '/dev/null' AS x", "PRAGMA journal_mode = DELETE", "PRAGMA user_version", "VACUUM", "BEGIN",
            "SELECT 1; SELECT 2", "SELECT 1; DELETE FROM meta", "", "  ", "-- nothing", "SELEC 1",
            "SELECT body FROM requests", "SELECT * FROM jobs", "SELECT * FROM sqlite_master",
            "SELECT load_extension('x')", "WITH t AS (SELECT * FROM jobs) SELECT * FROM t",
            "SELECT * FROM pragma_table_info('jobs')",
        ):
            error = self.sql(statement, rc=2).error
            self.assertEqual(error["code"], "sql_error", statement)
        self.assertEqual(os.stat(self.world.db).st_size, before)
        self.assertEqual(self.sql("WITH t AS (SELECT units FROM v_usage) SELECT count(*) AS n, max(units) AS u FROM t;").json, {"n": 1, "u": 400000})

    def test_it_stops_in_time(self):
        endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
        self.load(event("a", 1, "2026-03-01T00:00:00Z"))
        self.assertEqual(self.sql(endless, "--timeout", "100ms", rc=6).error["code"], "timeout")
        self.sql(endless + " WHERE i > 0 LIMIT 1", "--timeout", "50ms", rc=6)

    def test_output(self):
        self.load(event("a,\"b\"", 1, "2026-03-01T00:00:00Z"))
        query = "SELECT event_id, vendor, job_id, 1.0 / 4 AS q FROM v_usage"
        out = self.world.aiq("sql", query, "--format", "csv", rc=0).out
        self.assertEqual(list(csv.reader(io.StringIO(out))), [["event_id", "vendor", "job_id", "q"], ["a,\"b\"", "", "", "0.25"]])
        self.assertEqual(self.sql(query).json, {"event_id": "a,\"b\"", "vendor": "", "job_id": None, "q": "0.25"})
        self.assertIn("event_id", self.world.aiq("sql", query, rc=0).out)


class Absent(harness.Case):
    def test_without_a_database(self):
        self.start(daemon=False)
        self.world.aiq("--json", "sql", "SELECT 1", rc=8)


if __name__ == "__main__":
    unittest.main()

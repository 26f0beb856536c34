"""Usage to ledger to summary, through the programs: retries, many at once, crashes, redeliveries,
late events, freezes, corrections. Amounts are compared to the last digit."""

import json
import os
import signal
import sqlite3
import subprocess
import threading
import unittest
from decimal import Decimal

import harness

H = "2026-03-01T{:02d}:00:00.000Z"
HOUR_MS = 3_600_000
MARCH = 1_772_323_200_000  # 2026-03-01T00:00:00Z


def event(n, tenant="acme", units=400000, price="2.50", at="2026-03-01T00:05:00Z", **more):
    out = {
        "event_id": n if isinstance(n, str) else f"E{n:05d}",
        "tenant": tenant,
        "model": "m-large",
        "meter": "input",
        "units": units,
        "occurred_at": at,
    }
    if price is not None:
        out.update(price_per_million=price, currency="USD")
    out.update(more)
    return out


# 1.00 + 0.50 + 0.00000015
THREE = [
    event(1),
    event(2, units=50000, price="10.00", meter="output"),
    event(3, units=1, price="0.15", at="2026-03-01T00:59:59.999Z"),
]


class Money(harness.Case):
    def setUp(self):
        super().setUp()
        self.world.start_sim()
        self.world.configure()

    # -- helpers -----------------------------------------------------------------------------

    def aiq(self, *args, rc=0, stdin=None):
        done = subprocess.run(
            [self.world.program("aiq"), *args],
            input=stdin, capture_output=True, text=True, env=self.world.env(),
            timeout=60 * harness.SLOWER, check=False,
        )
        self.assertEqual(done.returncode, rc, f"{args}: {done.stdout}{done.stderr}")
        return done

    def ask(self, *args, rc=0, stdin=None):
        done = self.aiq("--json", *args, rc=rc, stdin=stdin)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def one(self, *args, rc=0, stdin=None):
        rows = self.ask(*args, rc=rc, stdin=stdin)
        self.assertEqual(len(rows), 1, rows)
        return rows[0]

    def load(self, events, rc=0):
        return self.one("usage", "import", "-", rc=rc, stdin="".join(json.dumps(e) + "\n" for e in events))

    def aggregate(self, *args):
        return self.one("cost", "aggregate", *args)

    def total(self, *args):
        rows = self.ask("cost", "summary", "--by", "total", *args)
        return sum((Decimal(row["amount"]) for row in rows), Decimal(0))

    def ledger(self, *args):
        return self.ask("cost", "ledger", "--limit", "0", *args)

    def sql(self, text, *values):
        """A stock sqlite3, as an operator has it."""
        connection = sqlite3.connect(self.world.db)
        try:
            with connection:
                return connection.execute(text, values).fetchall()
        finally:
            connection.close()

    def issue(self, tenant, hour, currency="USD"):
        """An issued invoice of one hour."""
        start = MARCH + hour * HOUR_MS
        self.sql(
            "INSERT INTO invoices (tenant, currency, period_start, period_end, state, total_whole, "
            "total_pico, rounding_pico, lines, created_at, updated_at, issued_at, actor) "
            "VALUES (?, ?, ?, ?, 'issued', 0, 0, 0, '[]', ?, ?, ?, 'test')",
            tenant, currency, start, start + HOUR_MS, start, start, start,
        )
        self.sql(
            "INSERT INTO invoice_hours (tenant, currency, period, invoice_key, issued) "
            "SELECT ?, ?, ?, max(invoice_key), 1 FROM invoices", tenant, currency, start,
        )

    def counts_add_up(self):
        for run in self.ask("cost", "runs", "--limit", "0"):
            self.assertEqual(
                run["events"], run["posted"] + run["replayed"] + run["conflicts"] + run["unpriced"], run
            )

    def both_periods_balance(self):
        """The sum over the hours of use is the sum over the hours that bill."""
        self.assertEqual(self.total(), self.total("--billed"))


class Retry(Money):
    def test_five_times(self):
        self.assertEqual(
            self.load(THREE), {"accepted": 3, "duplicates": 0, "conflicts": 0, "rejected": 0, "errors": []}
        )
        first = self.aggregate()
        self.assertEqual((first["posted"], first["replayed"], first["periods"]), (3, 0, 1))
        for _ in range(4):
            again = self.aggregate()
            self.assertEqual((again["posted"], again["replayed"], again["busy"]), (0, 3, 0))
        row = self.one("cost", "summary")
        self.assertEqual(row["amount"], "1.50000015")
        self.assertEqual(row["usage_amount"], "1.50000015")
        self.assertEqual((row["events"], row["ledger_rows"], row["stale"]), (3, 3, False))
        self.assertEqual((row["period_start"], row["period_end"]), (H.format(0), H.format(1)))
        self.counts_add_up()

    def test_a_scope(self):
        self.load(THREE + [event(9, tenant="bolt", at="2026-03-01T02:00:00Z")])
        first = self.aggregate("--tenant", "bolt")
        self.assertEqual((first["posted"], first["periods"]), (1, 1))
        second = self.aggregate("--from", H.format(0), "--to", H.format(1))
        self.assertEqual((second["posted"], second["periods"]), (3, 1))
        third = self.aggregate("--from", H.format(0), "--to", H.format(3))
        self.assertEqual((third["posted"], third["replayed"], third["periods"]), (0, 4, 2))
        self.counts_add_up()


class Concurrency(Money):
    def run_at_once(self, daemon):
        if daemon:
            self.world.start_daemon()
        self.load([event(n, units=1000, price="0.15") for n in range(100)])
        codes, lock = [], threading.Lock()

        def three_times():
            for _ in range(3):
                done = subprocess.run(
                    [self.world.program("aiq"), "cost", "aggregate"], capture_output=True, text=True,
                    env=self.world.env(), timeout=60 * harness.SLOWER, check=False,
                )
                with lock:
                    codes.append((done.returncode, done.stderr))

        threads = [threading.Thread(target=three_times) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(codes), 24)
        self.assertLessEqual({rc for rc, _ in codes}, {0, 7}, codes)
        self.assertEqual(len(self.ledger()), 100)
        self.assertEqual(self.one("cost", "summary")["amount"], "0.015")
        self.counts_add_up()

    def test_without_a_daemon(self):
        self.run_at_once(False)

    def test_with_a_daemon(self):
        self.run_at_once(True)

    def test_the_daemon_aggregates_by_itself(self):
        self.world.configure({"daemon": {"aggregate_every": "1s"}})
        self.world.start_daemon()
        self.load(THREE)
        harness.wait_until(
            lambda: self.total() == Decimal("1.50000015"), 20, "aiqd posted what was imported"
        )
        self.assertEqual({run["initiator"] for run in self.ask("cost", "runs")}, {"daemon"})


class Crash(Money):
    EVENTS = 10_000

    def check_end(self):
        self.aggregate()
        self.assertEqual(len(self.ledger()), self.EVENTS)
        self.assertEqual(self.total(), Decimal("0.15") * self.EVENTS / 1000)
        self.assertEqual(self.ask("cost", "runs", "--outcome", "abandoned")[0]["outcome"], "abandoned")
        self.assertEqual(self.one("cost", "rebuild", "--verify")["changed"], 0)
        self.assertEqual(self.ask("cost", "summary", "--by", "total")[0]["stale"], False)
        self.counts_add_up()

    def test_between_posting_and_summary(self):
        """Killed with part of an hour posted, and once more with all of it."""
        self.load([event(n, units=1000, price="0.15") for n in range(self.EVENTS)])
        for part in (500, 2000):
            process = subprocess.Popen(
                [self.world.program("aiq"), "cost", "aggregate"], env=self.world.env(),
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )

            def posted():
                rows = self.sql("SELECT count(*) FROM cost_ledger")[0][0]
                return rows >= part or process.poll() is not None

            harness.wait_until(posted, 20, "a part is posted")
            process.send_signal(signal.SIGKILL)
            process.wait(10)
        self.check_end()

    def test_the_daemon_dies_with_the_answer(self):
        """It may have committed a step whose answer is lost; who asked goes on without it."""
        self.world.configure({"daemon": {"aggregate_every": ""}})
        self.world.start_daemon()
        self.load([event(n, units=1000, price="0.15") for n in range(self.EVENTS)])
        process = subprocess.Popen(
            [self.world.program("aiq"), "--json", "cost", "aggregate"], env=self.world.env(),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        harness.wait_until(
            lambda: self.sql("SELECT count(*) FROM cost_ledger")[0][0] >= 500, 20, "a part is posted"
        )
        self.world.kill_daemon()
        out, err = process.communicate(timeout=60 * harness.SLOWER)
        self.assertEqual(process.returncode, 0, err)
        counts = json.loads(out)
        self.assertEqual(counts["posted"] + counts["replayed"], self.EVENTS)
        self.assertEqual(self.aggregate()["posted"], 0)
        self.assertEqual(len(self.ledger()), self.EVENTS)
        self.assertEqual(self.total(), Decimal("0.15") * self.EVENTS / 1000)
        self.assertEqual(self.one("cost", "rebuild", "--verify")["changed"], 0)
        self.counts_add_up()


class Redelivery(Money):
    def test_same_payload(self):
        self.load(THREE)
        self.aggregate()
        again = self.load([{**THREE[0], "received_at": "2026-03-01T05:00:00Z"}])
        self.assertEqual((again["accepted"], again["duplicates"], again["conflicts"]), (0, 1, 0))
        self.assertEqual(self.aggregate()["replayed"], 3)
        self.assertEqual(self.total(), Decimal("1.50000015"))

    def conflict(self):
        done = self.load([{**THREE[0], "units": 800000}], rc=4)
        self.assertEqual((done["conflicts"], done["errors"][0]["code"]), (1, "event_id_conflict"))
        row = self.one("usage", "conflicts", "list")
        self.assertEqual((row["event_id"], row["units"], row["state"]), ("E00001", 800000, "open"))
        return row["conflict_id"]

    def test_keep(self):
        self.load(THREE)
        self.aggregate()
        conflict = self.conflict()
        self.conflict()  # once per payload
        self.aggregate()
        self.assertEqual(self.total(), Decimal("1.50000015"))
        kept = self.one("usage", "conflicts", "keep", conflict, "--reason", "wrong copy", "--by", "ann")
        self.assertEqual((kept["state"], kept["decided_by"]), ("kept", "ann"))
        self.assertEqual(self.total(), Decimal("1.50000015"))
        self.ask("usage", "conflicts", "keep", conflict, rc=4)
        self.ask("usage", "conflicts", "replace", conflict, rc=4)
        self.ask("usage", "conflicts", "keep", "999", rc=3)
        self.load([{**THREE[0], "units": 800000}], rc=4)  # refused for good
        self.assertEqual(self.ask("usage", "conflicts", "list"), [])

    def test_replace_after_posting(self):
        self.load(THREE)
        self.aggregate()
        conflict = self.conflict()
        done = self.one("usage", "conflicts", "replace", conflict, "--reason", "corrected")
        self.assertEqual(len(done["reversed"]), 1)
        self.assertIsNotNone(done["posted"])
        self.assertEqual(self.total(), Decimal("2.50000015"))
        self.aggregate()
        self.assertEqual(self.total(), Decimal("2.50000015"))
        self.assertEqual(
            sorted(row["idempotency_key"] for row in self.ledger("--ref", "E00001")),
            ["usage|acme|E00001", f"usage|acme|E00001|{conflict}"],
        )
        self.assertEqual(self.one("cost", "rebuild", "--verify")["changed"], 0)

    def test_replace_before_posting(self):
        self.load(THREE)
        conflict = self.conflict()
        done = self.one("usage", "conflicts", "replace", conflict)
        self.assertEqual((done["reversed"], done["posted"]), ([], None))
        self.assertEqual(self.aggregate()["posted"], 3)
        self.assertEqual(self.total(), Decimal("2.50000015"))
        self.assertEqual(len(self.ledger()), 3)


class Late(Money):
    def test_after_issue(self):
        self.load(THREE)
        self.aggregate()
        self.issue("acme", 0)
        invoices = self.sql("SELECT * FROM invoices")
        self.load([event(20, units=20000, price="10.00", at="2026-03-01T00:59:30Z")])
        done = self.aggregate()
        self.assertEqual((done["posted"], done["late"]), (1, 1))
        row = self.one("cost", "ledger", "--ref", "E00020")
        self.assertEqual((row["service_period"], row["posting_period"]), (H.format(0), H.format(1)))
        self.assertEqual(self.one("cost", "summary")["amount"], "1.70000015")
        billed = {r["period_start"]: r["amount"] for r in self.ask("cost", "summary", "--billed")}
        self.assertEqual(billed, {H.format(0): "1.50000015", H.format(1): "0.20"})
        self.assertEqual(self.sql("SELECT * FROM invoices"), invoices)
        self.both_periods_balance()
        with self.assertRaisesRegex(sqlite3.IntegrityError, "issued invoice"):
            self.sql(
                "INSERT INTO cost_ledger (idempotency_key, tenant, source_type, source_ref, "
                "service_period, posting_period, occurred_at, posted_at, amount_pico, currency, "
                "payload_hash) VALUES ('k', 'acme', 'usage', 'x', ?, ?, 0, 0, 1, 'USD', '')",
                MARCH, MARCH,
            )


class Overflow(Money):
    def test_beyond_64_bits(self):
        nine = "9000000.00"
        self.load([event(n, units=1_000_000, price=nine) for n in range(3)])
        self.assertEqual(self.aggregate()["posted"], 3)
        self.assertEqual(self.one("cost", "summary")["amount"], "27000000.00")
        self.assertEqual(self.one("cost", "summary", "--billed")["amount"], "27000000.00")
        self.assertEqual(self.one("cost", "summary", "--tz", "Asia/Kolkata", "--by", "day")["amount"], "27000000.00")
        table = self.aiq("cost", "summary", "--format", "csv").stdout
        self.assertIn(",27000000.00,27000000.00,", table)
        self.assertEqual(self.one("cost", "rebuild", "--verify")["changed"], 0)

    def test_refused(self):
        bad = [
            (event(1, units=1_000_000, price="10000000.00"), "amount_overflow"),
            (event(2, units=1, price="0.0000001"), "price_not_representable"),
            (event(3, price="-1"), "invalid_price_per_million"),
            (event(4, units=0), "invalid_units"),
            (event(5, units=1.5), "invalid_units"),
            (event("job:1:1.1:input"), "reserved_event_id"),
            (event(7, currency="usd"), "invalid_currency"),
            ({**event(8), "meter": None}, "missing_field"),
            (event(9, at="yesterday"), "invalid_occurred_at"),
            (event(10, colour="red"), "unknown_field"),
            (event(11, price="1e400"), "amount_overflow"),
        ]
        lines = "".join(json.dumps(e) + "\n" for e, _ in bad) + "{\n" + '{"a":1,"a":2}\n'
        done = self.one("usage", "import", "-", rc=2, stdin=lines)
        self.assertEqual((done["accepted"], done["rejected"]), (0, len(bad) + 2))
        self.assertEqual(
            [(e["line"], e["code"]) for e in done["errors"]],
            [(i + 1, code) for i, (_, code) in enumerate(bad)]
            + [(len(bad) + 1, "invalid_json_line"), (len(bad) + 2, "invalid_json_line")],
        )
        self.assertEqual(self.sql("SELECT count(*) FROM usage_events"), [(0,)])
        # A number is read as it is written: 0.1 x 3 is not 0.30000000000000004.
        self.one("usage", "import", "-", stdin=json.dumps(event(12, units=3_000_000)).replace('"2.50"', "0.1"))
        self.aggregate()
        self.assertEqual(self.total(), Decimal("0.3"))


class Days(Money):
    def test_kolkata(self):
        # 18:29:59.999Z is 23:59:59.999 in Kolkata, 18:30Z is the next day there.
        self.load([
            event(1, units=1, price="1.00", at="2026-03-01T18:29:59.999Z"),
            event(2, units=2, price="1.00", at="2026-03-01T18:30:00.000Z"),
            event(3, units=4, price="1.00", at="2026-03-01T23:59:59.999Z"),
            event(4, units=8, price="1.00", at="2026-03-02T00:00:00.000Z"),
        ])
        self.aggregate()

        def days(*args):
            return [(r["period_start"], r["period_end"], r["amount"])
                    for r in self.ask("cost", "summary", "--by", "day", *args)]

        self.assertEqual(days(), [
            ("2026-03-01T00:00:00.000Z", "2026-03-02T00:00:00.000Z", "0.000007"),
            ("2026-03-02T00:00:00.000Z", "2026-03-03T00:00:00.000Z", "0.000008"),
        ])
        self.assertEqual(days("--tz", "Asia/Kolkata"), [
            ("2026-02-28T18:30:00.000Z", "2026-03-01T18:30:00.000Z", "0.000001"),
            ("2026-03-01T18:30:00.000Z", "2026-03-02T18:30:00.000Z", "0.000014"),
        ])
        self.assertEqual(self.total(), Decimal("0.000015"))
        self.assertEqual(self.total("--tz", "Asia/Kolkata"), Decimal("0.000015"))
        bounded = self.total("--tz", "Asia/Kolkata", "--from", "2026-03-01T18:30:00Z")
        self.assertEqual(bounded, Decimal("0.000014"))
        self.ask("cost", "summary", "--tz", "Mars/Olympus", rc=2)


class Freeze(Money):
    FREEZE = ("--tenant", "acme", "--period", H.format(0))
    WHY = ("--reason", "audit", "--by", "ann")

    def test_holds_back_and_posts_once(self):
        self.load(THREE + [event(9, tenant="bolt")])
        self.ask("cost", "freeze", *self.FREEZE, rc=2)
        self.one("cost", "freeze", *self.FREEZE, *self.WHY)
        done = self.aggregate()
        self.assertEqual((done["posted"], done["frozen"]), (1, 1))
        self.assertEqual({row["tenant"] for row in self.ledger()}, {"bolt"})
        self.assertEqual(self.ask("cost", "runs", "--tenant", "acme")[0]["outcome"], "frozen")
        self.load([event(10)])  # ingest stays open
        self.aggregate()
        self.assertEqual(self.ledger("--tenant", "acme"), [])
        with self.assertRaisesRegex(sqlite3.IntegrityError, "frozen"):
            self.sql(
                "INSERT INTO cost_ledger (idempotency_key, tenant, source_type, source_ref, "
                "service_period, posting_period, occurred_at, posted_at, amount_pico, currency, "
                "payload_hash) VALUES ('k', 'acme', 'usage', 'x', ?, ?, 0, 0, 1, 'USD', '')",
                MARCH, MARCH,
            )
        self.one("cost", "unfreeze", *self.FREEZE)
        self.ask("cost", "unfreeze", *self.FREEZE, rc=3)
        self.assertEqual(self.aggregate()["posted"], 4)
        self.assertEqual(self.aggregate()["posted"], 0)
        self.assertEqual(self.total("--tenant", "acme"), Decimal("2.50000015"))

    def test_in_the_middle_of_a_run(self):
        """Nothing of the hour commits after the freeze; the other tenant's goes on."""
        many = 4000
        self.load([event(n, units=1000, price="0.15") for n in range(many)]
                  + [event(n, tenant="bolt", units=1000, price="0.15") for n in range(100)])
        process = subprocess.Popen(
            [self.world.program("aiq"), "cost", "aggregate"], env=self.world.env(),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        count = "SELECT count(*) FROM cost_ledger WHERE tenant = 'acme'"
        harness.wait_until(lambda: self.sql(count)[0][0] > 0, 20, "a part is posted")
        self.one("cost", "freeze", *self.FREEZE, *self.WHY)
        at_freeze = self.sql(count)
        self.assertEqual(process.wait(60), 0)
        self.assertEqual(self.sql(count), at_freeze)
        self.assertEqual(len(self.ledger("--tenant", "bolt")), 100)
        self.one("cost", "unfreeze", *self.FREEZE)
        self.aggregate()
        self.assertEqual(self.total("--tenant", "acme"), Decimal("0.15") * many / 1000)
        self.assertEqual(self.sql(count), [(many,)])


class Rebuild(Money):
    def test_an_edited_summary(self):
        self.load(THREE + [event(9, at="2026-03-01T04:00:00Z")])
        self.aggregate()
        before = self.one("cost", "rebuild")
        self.assertEqual((before["periods"], before["changed"]), (2, 0))
        self.sql("UPDATE tenant_cost_summary SET service_total_whole = 7 WHERE period = ?", MARCH)
        verified = self.one("cost", "rebuild", "--verify", rc=1)
        self.assertEqual(verified["changed"], 1)
        mended = self.one("cost", "rebuild")
        self.assertEqual(mended["deltas"], [{
            "tenant": "acme", "period_start": H.format(0), "currency": "USD",
            "before": "7.50000015", "after": "1.50000015", "delta": "-6.00",
        }])
        again = self.one("cost", "rebuild")
        self.assertEqual((again["changed"], again["content_hash"]), (0, before["content_hash"]))
        self.sql("DELETE FROM tenant_cost_summary")
        self.assertEqual(self.one("cost", "rebuild")["content_hash"], before["content_hash"])

    def test_any_order(self):
        events = THREE + [event(n, at=f"2026-03-01T{n % 5:02d}:30:00Z", units=n) for n in range(10, 40)]
        hashes = set()
        for order in (events, events[::-1], events[7:] + events[:7]):
            other = harness.World()
            self.addCleanup(other.close)
            other.configure()
            self.world, mine = other, self.world
            for part in (order[:11], order[11:]):
                self.load(part)
                self.aggregate()
            hashes.add(self.one("cost", "rebuild", "--verify")["content_hash"])
            self.world = mine
        self.assertEqual(len(hashes), 1)


class Corrections(Money):
    def test_credit(self):
        self.load(THREE)
        self.aggregate()
        credit = ("cost", "credit", "--tenant", "acme", "--period", H.format(0), "--reason", "goodwill",
                  "--approved-by", "ann")
        self.ask(*credit, "--amount", "2.00", rc=5)
        note = self.one(*credit, "--amount", "0.75", "--id", "CN-1")
        self.assertEqual((note["amount"], note["source_type"]), ("-0.75", "credit_note"))
        again = self.one(*credit, "--amount", "0.75", "--id", "CN-1")
        self.assertEqual(again["ledger_id"], note["ledger_id"])
        self.ask(*credit, "--amount", "0.80", "--id", "CN-1", rc=4)
        row = self.one("cost", "summary")
        self.assertEqual((row["amount"], row["credit_amount"]), ("0.75000015", "-0.75"))
        self.one(*credit, "--amount", "2.00", "--allow-negative")
        self.assertEqual(self.total(), Decimal("-1.24999985"))

    def test_reverse(self):
        self.load(THREE)
        self.aggregate()
        first = self.ledger("--ref", "E00001")[0]["ledger_id"]
        self.issue("acme", 0)
        reversal = self.one("cost", "reverse", first, "--reason", "test call")
        self.assertEqual((reversal["amount"], reversal["reverses"]), ("-1.00", first))
        self.assertEqual(reversal["posting_period"], H.format(1))
        self.assertEqual(self.total(), Decimal("0.50000015"))
        self.ask("cost", "reverse", first, "--reason", "again", rc=4)
        self.ask("cost", "reverse", "4711", "--reason", "x", rc=3)
        self.assertEqual(self.aggregate()["posted"], 0)  # its event is waived
        self.load([THREE[0]])
        self.aggregate()
        self.assertEqual(self.total(), Decimal("0.50000015"))
        back = self.one("cost", "reverse", reversal["ledger_id"], "--reason", "it was real")
        self.assertEqual(back["amount"], "1.00")
        self.assertEqual(self.total(), Decimal("1.50000015"))
        self.ask("cost", "reverse", reversal["ledger_id"], "--reason", "again", rc=4)
        self.both_periods_balance()
        found = self.one("cost", "explain", first)
        self.assertEqual([row["in_force"] for row in found["rows"]], [True, False, True])
        self.assertEqual(found["rows"][0]["invoice"]["state"], "issued")
        self.assertEqual(found["events"][0]["event_id"], "E00001")
        by_event = self.one("cost", "explain", "--event", "E00001")
        self.assertEqual(by_event["rows"], found["rows"])
        self.assertEqual(len(self.one("cost", "explain", "--tenant", "acme", "--period", H.format(0))["rows"]), 5)


class Unpriced(Money):
    def test_is_not_zero(self):
        self.load([event(1, price=None), event(2)])
        done = self.aiq("--json", "cost", "aggregate")
        self.assertIn("have no price", done.stderr)
        counts = json.loads(done.stdout)
        self.assertEqual((counts["posted"], counts["unpriced"]), (1, 1))
        self.assertEqual([e["event_id"] for e in self.ask("usage", "list", "--state", "unpriced")], ["E00001"])
        self.assertEqual(self.total(), Decimal("1.00"))
        self.assertTrue(self.one("cost", "summary")["stale"])
        self.counts_add_up()

    def set_price(self, unit_pico, effective_from=0):
        self.sql(
            "INSERT INTO prices (vendor, model, meter, currency, unit_pico, effective_from, origin, "
            "actor, created_at) VALUES ('v', 'm-large', 'input', 'USD', ?, ?, 'set', 'test', 0)",
            unit_pico, effective_from,
        )

    def test_a_price_comes_and_is_corrected(self):
        self.load([event(n, price=None, units=1_000_000) for n in range(3)] + [event(9)])
        self.assertEqual(self.aggregate()["unpriced"], 3)
        self.set_price(2_000_000)  # 2.00 per million
        done = self.aggregate()
        self.assertEqual((done["posted"], done["unpriced"]), (3, 0))
        self.assertEqual(self.total(), Decimal("7.00"))
        self.set_price(1_500_000)
        self.assertEqual(self.total(), Decimal("7.00"))
        first = self.ledger("--ref", "E00000")[0]
        self.one("cost", "reverse", first["ledger_id"], "--reason", "test call")
        plan = self.one("cost", "reprice", "--dry-run")
        self.assertEqual((plan["changed"], plan["delta"]), (2, {"USD": "-1.00"}))
        self.assertEqual(self.total(), Decimal("5.00"))
        done = self.one("cost", "reprice", "--reason", "wrong price")
        self.assertEqual((done["changed"], done["delta"]), (2, {"USD": "-1.00"}))
        self.assertEqual(self.total(), Decimal("4.00"))
        again = self.one("cost", "reprice")
        self.assertEqual((again["changed"], again["skipped"]), (0, 0))
        # What takes a row back takes its corrections along.
        second = self.ledger("--ref", "E00001", "--type", "usage")[0]
        back = self.one("cost", "reverse", second["ledger_id"], "--reason", "test call")
        self.assertEqual((back["amount"], [row["amount"] for row in back["also"]]), ("-2.00", ["0.50"]))
        self.assertEqual(self.total(), Decimal("2.50"))
        self.both_periods_balance()
        self.assertEqual(self.one("cost", "rebuild", "--verify")["changed"], 0)


class Jobs(Money):
    def test_from_job_to_ledger(self):
        self.world.start_daemon()
        job = self.ask("submit", "--prompt", "How much?", "--model", harness.GPT, "--wait")[-1]["job_id"]
        shown = self.one("show", job)
        self.assertEqual(shown["cost"], {"amount": None, "currency": None, "posted": False})
        for meter, unit in (("input", 150_000), ("output", 600_000)):
            self.sql(
                "INSERT INTO prices (vendor, model, meter, currency, unit_pico, effective_from, "
                "origin, actor, created_at) VALUES ('openai', ?, ?, 'USD', ?, 0, 'set', 'test', 0)",
                harness.GPT, meter, unit,
            )
        usage = shown["usage"]
        owed = (usage["input"] * Decimal("0.15") + usage["output"] * Decimal("0.60")) / 1_000_000
        self.assertGreater(owed, 0)
        before = self.one("show", job)["cost"]
        self.assertEqual((Decimal(before["amount"]), before["posted"]), (owed, False))
        self.assertEqual(self.aggregate()["posted"], 2)
        after = self.one("show", job)["cost"]
        self.assertEqual((Decimal(after["amount"]), after["currency"], after["posted"]), (owed, "USD", True))
        self.assertEqual(self.total(), owed)
        rows = self.ledger()
        self.assertEqual({row["source_ref"] for row in rows}, {f"job:{job}:1.1:input", f"job:{job}:1.1:output"})
        self.assertEqual({row["job_id"] for row in rows}, {job})
        cached = self.ask("submit", "--prompt", "How much?", "--model", harness.GPT, "--wait")[-1]
        self.assertEqual(cached["outcome"], "cached")
        again = self.one("show", cached["job_id"])["cost"]
        self.assertEqual(again, {"amount": "0.00", "currency": None, "posted": True})
        self.aggregate()
        self.assertEqual(self.total(), owed)


if __name__ == "__main__":
    harness.main()

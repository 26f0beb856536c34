"""Incidents of any size by a seed: the six files of another system with faults of every kind mixed
in, and what is right about them, worked out here from the rules alone, with Python's integers.

    python3 incident.py SEED EVENTS FOLDER   writes the files and expected.json
"""

import json
import os
import random
import sys
from collections import Counter, defaultdict
from datetime import datetime, timezone

HOUR_MS = 3_600_000
MARCH = 1_772_323_200_000  # 2026-03-01T00:00:00Z
PICO = 10**12
CENT = 10**10
FILES = {
    "usage": "usage_events.jsonl",
    "ledger": "ledger_before.jsonl",
    "summary": "summary_before.jsonl",
    "runs": "aggregation_runs.jsonl",
    "credits": "credit_notes.jsonl",
    "invoices": "invoices_before.jsonl",
}


def instant(ms):
    at = datetime.fromtimestamp(ms // 1000, timezone.utc)
    return at.strftime("%Y-%m-%dT%H:%M:%S") + f".{ms % 1000:03d}Z"


def money(pico):
    whole, rest = divmod(abs(pico), PICO)
    digits = f"{rest:012d}".rstrip("0").ljust(2, "0")
    return f"{'-' if pico < 0 else ''}{whole}.{digits}"


def to_cents(pico):
    """Half away from zero."""
    whole, rest = divmod(abs(pico), CENT)
    whole += 2 * rest >= CENT
    return -whole if pico < 0 else whole


def per_million(unit_pico):
    whole, rest = divmod(unit_pico, 10**6)
    return f"{whole}.{rest:06d}"


def whole_number(value):
    """As a file has it: beyond 2^53 as text."""
    return value if abs(value) < 2**53 else str(value)


class Incident:
    """The state of another system: lists of plain dicts, times in ms, amounts in pico."""

    def __init__(self, seed, events, tenants=4, hours=6):
        self.random = random.Random(seed)
        self.tenants = [f"t{n:02d}" for n in range(tenants)]
        self.hours = [MARCH + n * HOUR_MS for n in range(hours)]
        self.deliveries, self.ledger, self.summary = [], [], []
        self.runs, self.credits, self.invoices = [], [], []
        self.make_usage(events)
        self.make_ledger()
        self.make_credits()
        self.make_corrections()
        self.make_runs()
        self.make_summary()
        self.make_invoices()

    def chance(self, one_in):
        return self.random.randrange(one_in) == 0

    # -- usage -------------------------------------------------------------------------------

    def make_usage(self, count):
        r = self.random
        huge = {(t, h) for t in self.tenants for h in self.hours if self.chance(5)}
        later = []
        for n in range(count):
            tenant, hour = r.choice(self.tenants), r.choice(self.hours)
            # Hours whose sums pass int64 beside hours of parts of a cent.
            big = (tenant, hour) in huge
            at = hour + r.randrange(HOUR_MS)
            event = {
                "event_id": f"E{n:06d}",
                "tenant": tenant,
                "model": r.choice(["m-large", "m-small", "m-nano"]),
                "meter": r.choice(["input", "output"]),
                "units": r.randrange(5 * 10**11, 8 * 10**11) if big else r.randrange(1, 10**6),
                "unit_pico": r.randrange(9 * 10**6, 11 * 10**6) if big else r.choice([37500, 150000, 2500000, 1]),
                "occurred_at": at,
                "received_at": at + r.randrange(1, 5000),
            }
            if self.chance(30):  # late
                event["received_at"] = self.hours[-1] + 2 * HOUR_MS + r.randrange(HOUR_MS)
            self.deliveries.append(event)
            if self.chance(25):
                later.append(dict(event, received_at=event["received_at"] + 60_000))
                if self.chance(3):
                    later.append(dict(event, received_at=event["received_at"] + 90_000))
            if self.chance(60):
                other = dict(event, units=event["units"] + r.choice([-1, 1, 7]), received_at=event["received_at"] + 70_000)
                if other["units"] > 0:
                    later.append(other)
        r.shuffle(later)
        self.deliveries += later

    @staticmethod
    def payload(event):
        return {k: v for k, v in event.items() if k != "received_at"}

    def accepted(self):
        out = {}
        for event in self.deliveries:
            out.setdefault((event["tenant"], event["event_id"]), event)
        return out

    # -- the ledger as found -----------------------------------------------------------------

    def add_row(self, tenant, period, kind, ref, amount, job, posted_at, retry=0):
        n = len(self.ledger)
        self.ledger.append({
            "ledger_id": f"L{n:06d}",
            "idempotency_key": f"{kind}|{ref}|{job}|{retry}|{n}",
            "tenant": tenant,
            "service_period": period,
            "posting_period": period,
            "source_type": kind,
            "source_ref": ref,
            "amount": amount,
            "job_id": job,
            "retry_count": retry,
            "posted_at": posted_at,
            "payload_hash": f"{kind}-{tenant}-{ref}-{amount}",
        })

    def make_ledger(self):
        for (tenant, ref), event in self.accepted().items():
            period = event["occurred_at"] // HOUR_MS * HOUR_MS
            cost = event["units"] * event["unit_pico"]
            if self.chance(20):
                continue  # missing
            job = f"job-{tenant}-{period // HOUR_MS}"
            at = period + HOUR_MS + self.random.randrange(1000)
            self.add_row(tenant, period, "usage", ref, cost, job, at)
            while self.chance(12):  # again, by a retry, by another job, at the same moment
                again = self.random.choice([0, 1, 60_000])
                if self.chance(2):
                    self.add_row(tenant, period, "usage", ref, cost, job, at + again, retry=1)
                else:
                    self.add_row(tenant, period, "usage", ref, cost, job + "-b", at + again)
            if self.chance(80):
                self.add_row(tenant, period, "usage", "GHOST-" + ref, cost, job, at)

    def make_credits(self):
        for n in range(len(self.tenants) * len(self.hours)):
            tenant, period = self.random.choice(self.tenants), self.random.choice(self.hours)
            note = {
                "credit_note_id": f"CN-{n:04d}",
                "tenant": tenant,
                "service_period": period,
                "amount": -self.random.randrange(1, 3 * PICO),
                "status": "draft" if self.chance(6) else "approved",
                "created_at": period + 90 * 60_000,
            }
            self.credits.append(note)
            if self.chance(5):
                continue  # never posted
            job = f"op-{n}"
            self.add_row(tenant, period, "credit_note", note["credit_note_id"], note["amount"], job, note["created_at"])
            if self.chance(5):
                self.add_row(
                    tenant, period, "credit_note", note["credit_note_id"], note["amount"],
                    job + "-b", note["created_at"] + 5,
                )

    def make_corrections(self):
        usage = [row for row in self.ledger if row["source_type"] == "usage"]
        for n in range(len(self.tenants) * len(self.hours) // 3):
            if not usage:
                return
            row = self.random.choice(usage)
            if self.chance(2):
                self.add_row(
                    row["tenant"], row["service_period"], "correction", f"L9{n:05d}",
                    self.random.randrange(-9 * PICO, 9 * PICO), f"fix-{n}", row["posted_at"] + 7,
                )
            else:  # names a row: as it should be
                self.add_row(
                    row["tenant"], row["service_period"], "correction", row["ledger_id"], 1, f"fix-{n}",
                    row["posted_at"] + 7,
                )

    def make_runs(self):
        for tenant in self.tenants:
            for period in self.hours:
                job = f"job-{tenant}-{period // HOUR_MS}"
                start = period + HOUR_MS
                self.runs.append({"job_id": job, "tenant": tenant, "period": period, "started_at": start,
                                  "finished_at": start + 9000, "retry_count": 0, "status": "success"})
                if self.chance(3):
                    # Beside it, right after it (which is no overlap), or long after.
                    begin = start + self.random.choice([0, 4000, 8999, 9000, 60_000])
                    self.runs.append({"job_id": job + "-b", "tenant": tenant, "period": period,
                                      "started_at": begin, "finished_at": begin + 5000, "retry_count": 0,
                                      "status": self.random.choice(["success", "success", "failed"])})
                if self.chance(8):
                    self.runs.append({"job_id": job, "tenant": tenant, "period": period,
                                      "started_at": start + HOUR_MS, "finished_at": start + HOUR_MS + 1,
                                      "retry_count": 3, "status": "success"})

    def totals(self, by="service_period"):
        out = defaultdict(int)
        for row in self.ledger:
            out[row["tenant"], row[by]] += row["amount"]
        return out

    def make_summary(self):
        for (tenant, period), total in sorted(self.totals().items()):
            if self.chance(9):
                continue
            if self.chance(9):
                total += self.random.choice([1, -PICO, 5 * PICO, CENT // 2])
            self.summary.append({"tenant": tenant, "period": period, "total": total})

    def make_invoices(self):
        shown = {(s["tenant"], s["period"]): s["total"] for s in self.summary}
        billed = self.totals("posting_period")
        for n, (key, total) in enumerate(sorted(billed.items())):
            if self.chance(8):
                continue
            tenant, period = key
            created = period + 2 * HOUR_MS
            invoice = {"invoice_id": f"INV-{n:04d}", "tenant": tenant, "period": period, "state": "draft",
                       "cents": to_cents(shown.get(key, total)), "created_at": created}
            if self.chance(4):
                # Issued for the truth as it was known, or for what the ledger said.
                invoice["state"] = "issued"
                invoice["cents"] = to_cents(total)
                if self.chance(2):
                    invoice["cents"] = to_cents(self.truth_known_at(tenant, period, created))
            elif self.chance(6):
                invoice["cents"] += self.random.choice([-100, 1, 12345])
            self.invoices.append(invoice)

    def truth_known_at(self, tenant, period, when):
        total = sum(row["amount"] for row in self.ledger
                    if (row["tenant"], row["posting_period"]) == (tenant, period))
        facts = Facts(self)
        total -= sum(row["amount"] for row in facts.wrong if (row["tenant"], row["posting_period"]) == (tenant, period))
        total += sum(cost for t, p, cost, known in facts.missing_sources()
                     if (t, p) == (tenant, period) and known < when)
        return total

    # -- files -------------------------------------------------------------------------------

    def lines(self):
        def timed(row, *names):
            return {k: instant(v) if k in names else v for k, v in row.items()}

        out = {kind: [] for kind in FILES}
        for e in self.deliveries:
            row = timed(e, "occurred_at", "received_at")
            row["price_per_million"] = per_million(row.pop("unit_pico"))
            out["usage"].append(dict(row, currency="USD"))
        for e in self.ledger:
            row = timed(e, "service_period", "posting_period", "posted_at")
            row["amount_pico"] = whole_number(row.pop("amount"))
            out["ledger"].append(dict(row, currency="USD"))
        for e in self.summary:
            row = timed(e, "period")
            row["total_pico"] = whole_number(row.pop("total"))
            out["summary"].append(dict(row, currency="USD"))
        for e in self.runs:
            out["runs"].append(timed(e, "period", "started_at", "finished_at"))
        for e in self.credits:
            row = timed(e, "service_period", "created_at")
            row["amount_pico"] = whole_number(row.pop("amount"))
            out["credits"].append(dict(row, currency="USD", reason="generated", approved_by="ann"))
        for e in self.invoices:
            row = timed(e, "period", "created_at")
            row["total_cents"] = row.pop("cents")
            out["invoices"].append(dict(row, currency="USD"))
        return out

    def write(self, folder):
        for kind, rows in self.lines().items():
            with open(os.path.join(folder, FILES[kind]), "w", encoding="utf-8") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)


class Facts:
    """What is right and wrong in the ledger, before any period is looked at."""

    def __init__(self, incident):
        self.events = incident.accepted()
        self.notes = {(n["tenant"], n["credit_note_id"]): n for n in incident.credits if n["status"] == "approved"}
        sources = defaultdict(list)
        for row in incident.ledger:
            if row["source_type"] in ("usage", "credit_note"):
                sources[row["source_type"], row["tenant"], row["source_ref"]].append(row)
        self.kept, self.doubles, self.unsourced = [], [], []
        for (kind, tenant, ref), rows in sources.items():
            known = self.events if kind == "usage" else self.notes
            rows.sort(key=lambda row: (row["posted_at"], row["ledger_id"]))
            if (tenant, ref) not in known:
                self.unsourced += rows
                continue
            self.kept.append(rows[0])
            self.doubles += rows[1:]
        ids = {row["ledger_id"] for row in incident.ledger}
        self.orphans = [row for row in incident.ledger
                        if row["source_type"] == "correction" and row["source_ref"] not in ids]
        self.wrong = self.doubles + self.unsourced + self.orphans
        self.unposted = [e for key, e in self.events.items() if ("usage", *key) not in sources]
        self.uncredited = [n for key, n in self.notes.items() if ("credit_note", *key) not in sources]

    def missing_sources(self):
        """(tenant, period, amount, since when it is known)"""
        for e in self.unposted:
            yield e["tenant"], e["occurred_at"] // HOUR_MS * HOUR_MS, e["units"] * e["unit_pico"], e["received_at"]
        for n in self.uncredited:
            yield n["tenant"], n["service_period"], n["amount"], n["created_at"]


class Oracle:
    """findings: Counter of (code, severity, tenant, period, amount or None)
    rows: set of (key, tenant, service period, posting period, amount, reason)
    after: ledger totals by (tenant, period); billed: the same by posting period
    marks: invoice id -> keep or hold; to_draft: {(tenant, period): cents}"""

    def __init__(self, incident):
        self.incident, self.facts = incident, Facts(incident)
        self.findings = Counter()
        self.suspect = set()
        self.find_deliveries()
        self.find_rows()
        self.find_totals()
        self.find_dashboard()
        self.find_runs()
        self.plan()

    def add(self, code, severity, tenant, period, pico):
        self.findings[code, severity, tenant, instant(period), None if pico is None else money(pico)] += 1
        if severity != "info" and code not in ("event_id_conflict", "extreme_period_delta"):
            self.suspect.add((tenant, period))

    def find_deliveries(self):
        seen, apart = {}, set()
        for e in self.incident.deliveries:
            key = e["tenant"], e["event_id"]
            period = e["occurred_at"] // HOUR_MS * HOUR_MS
            first = seen.setdefault(key, e)
            if first is e:
                continue
            if Incident.payload(first) == Incident.payload(e):
                self.add("duplicate_delivery", "info", e["tenant"], period, 0)
            elif (key, e["units"]) not in apart:
                apart.add((key, e["units"]))
                self.add("event_id_conflict", "error", e["tenant"], period,
                         (e["units"] - first["units"]) * first["unit_pico"])

    def find_rows(self):
        for code, rows in (("duplicate_posting", self.facts.doubles),
                           ("posting_without_source", self.facts.unsourced),
                           ("orphan_correction", self.facts.orphans)):
            for row in rows:
                self.add(code, "error", row["tenant"], row["service_period"], row["amount"])
        payloads = defaultdict(list)
        for row in self.incident.ledger:
            if row["source_type"] in ("usage", "credit_note"):
                payloads[row["tenant"], row["payload_hash"]].append(row)
        for rows in payloads.values():
            if len({row["job_id"] for row in rows}) > 1:
                row = rows[0]
                self.add("same_payload_different_job", "error", row["tenant"], row["service_period"], row["amount"])
        for e in self.facts.unposted:
            self.add("missing_posting", "error", e["tenant"], e["occurred_at"] // HOUR_MS * HOUR_MS,
                     e["units"] * e["unit_pico"])
        for n in self.facts.uncredited:
            self.add("missing_credit_note_posting", "error", n["tenant"], n["service_period"], n["amount"])

    def find_totals(self):
        raw, charged = defaultdict(int), defaultdict(int)
        events, postings = Counter(), Counter()
        for e in self.facts.events.values():
            key = e["tenant"], e["occurred_at"] // HOUR_MS * HOUR_MS
            raw[key] += e["units"] * e["unit_pico"]
            events[key] += 1
        for row in self.incident.ledger:
            if row["source_type"] == "usage":
                key = row["tenant"], row["service_period"]
                charged[key] += row["amount"]
                postings[key] += 1
        for key in set(raw) | set(charged):
            if raw[key] != charged[key]:
                self.add("raw_vs_ledger_mismatch", "error", *key, charged[key] - raw[key])
            if events[key] != postings[key]:
                self.add("posting_event_ratio", "warn", *key, None)
        credits = defaultdict(int)
        for row in self.facts.kept:
            if row["source_type"] == "credit_note":
                credits[row["tenant"], row["service_period"]] += row["amount"]
        for key, total in self.incident.totals().items():
            if total < 0:
                fine = total - credits[key] >= 0 and charged[key] >= 0
                self.add("negative_total_with_credit_note" if fine else "negative_total_without_credit_note",
                         "info" if fine else "error", *key, total)

    def find_dashboard(self):
        shown = {(s["tenant"], s["period"]): s["total"] for s in self.incident.summary}
        ledger = self.incident.totals()
        for key, total in ledger.items():
            if key not in shown:
                self.add("summary_row_missing", "error", *key, total)
            elif shown[key] != total:
                self.add("summary_vs_ledger_mismatch", "error", *key, shown[key] - total)
        for (tenant, period), now in shown.items():
            before = shown.get((tenant, period - HOUR_MS), 0)
            if before == 0 or abs(now - before) < PICO:
                continue
            if abs(now) >= 3 * abs(before) or now * before < 0:
                self.add("extreme_period_delta", "warn", tenant, period, now - before)
        for invoice in self.incident.invoices:
            key = invoice["tenant"], invoice["period"]
            if key in shown and invoice["cents"] != to_cents(shown[key]):
                self.add("invoice_vs_dashboard_mismatch", "error", *key,
                         (invoice["cents"] - to_cents(shown[key])) * CENT)

    def find_runs(self):
        doubled = {(row["tenant"], row["service_period"]) for row in self.facts.doubles}
        by_unit = defaultdict(list)
        for run in self.incident.runs:
            if run["status"] == "success":
                by_unit[run["tenant"], run["period"]].append(run)
        for key, runs in by_unit.items():
            for i, a in enumerate(runs):
                for b in runs[i + 1:]:
                    if min(a["finished_at"], b["finished_at"]) > max(a["started_at"], b["started_at"]):
                        self.add("concurrent_runs", "error" if key in doubled else "info", *key, None)

    # -- repair ------------------------------------------------------------------------------

    def plan(self):
        issued = {(i["tenant"], i["period"]): i for i in self.incident.invoices if i["state"] == "issued"}
        billed = self.incident.totals("posting_period")
        wanted = []  # key, tenant, service period, base hour, amount, reason, known since
        for reason, rows in (("duplicate_posting", self.facts.doubles),
                             ("posting_without_source", self.facts.unsourced),
                             ("orphan_correction", self.facts.orphans)):
            for row in rows:
                wanted.append((f"reversal|{row['ledger_id']}", row["tenant"], row["service_period"],
                               row["posting_period"], -row["amount"], reason, 0))
        for e in self.facts.unposted:
            period = e["occurred_at"] // HOUR_MS * HOUR_MS
            wanted.append((f"usage|{e['tenant']}|{e['event_id']}", e["tenant"], period, period,
                           e["units"] * e["unit_pico"], "missing_posting", e["received_at"]))
        for n in self.facts.uncredited:
            wanted.append((f"credit_note|{n['credit_note_id']}", n["tenant"], n["service_period"],
                           n["service_period"], n["amount"], "missing_credit_note_posting", n["created_at"]))
        would_be = dict(billed)
        for _, tenant, _, base, amount, _, known in wanted:
            invoice = issued.get((tenant, base))
            if invoice and known < invoice["created_at"]:
                would_be[tenant, base] = would_be.get((tenant, base), 0) + amount
        self.rows, self.after, self.billed = set(), self.incident.totals(), billed
        for key, tenant, service, base, amount, reason, known in wanted:
            posting, invoice = base, issued.get((tenant, base))
            if invoice and not (known < invoice["created_at"]
                                and to_cents(would_be[tenant, base]) == invoice["cents"]):
                while (tenant, posting) in issued:
                    posting += HOUR_MS
            self.rows.add((key, tenant, instant(service), instant(posting), money(amount), reason))
            self.after[tenant, service] += amount
            self.billed[tenant, posting] += amount
            self.suspect.add((tenant, posting))
        self.mark()

    def mark(self):
        self.marks, invoiced = {}, set()
        for invoice in self.incident.invoices:
            key = invoice["tenant"], invoice["period"]
            invoiced.add(key)
            hold = invoice["state"] == "draft" and key in self.suspect
            self.marks[invoice["invoice_id"]] = "hold" if hold else "keep"
        self.to_draft = {key: to_cents(total) for key, total in self.billed.items() if key not in invoiced}


def main():
    seed, events, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    incident = Incident(seed, events)
    oracle = Oracle(incident)
    os.makedirs(folder, exist_ok=True)
    incident.write(folder)
    with open(os.path.join(folder, "expected.json"), "w", encoding="utf-8") as file:
        json.dump({
            "findings": [[*finding, n] for finding, n in sorted(oracle.findings.items(), key=str)],
            "repair_entries": sorted(oracle.rows),
            "ledger_after": money(sum(oracle.after.values())),
            "marks": oracle.marks,
        }, file, indent=1)


if __name__ == "__main__":
    main()

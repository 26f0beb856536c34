#!/usr/bin/env python3
"""How long money takes: N usage events through import, aggregation, rebuild and audit, with the peak of
memory of each command; then 1,000 events more. Not a test: it prints numbers.

    AIQ_BIN_DIR=build/release tests/bench/money.py [N]
"""

import json
import os
import random
import shutil
import sys
import tempfile
import time

BIN = os.environ["AIQ_BIN_DIR"]
TENANTS, HOURS = 20, 50  # 1,000 tenant-hours


def write_events(path, first, count, seed, hours=range(HOURS)):
    rng = random.Random(seed)
    with open(path, "w", encoding="utf-8") as out:
        for n in range(first, first + count):
            hour = rng.choice(hours)
            out.write(json.dumps({
                "event_id": f"ev-{n:09d}",
                "tenant": f"tenant-{rng.randrange(TENANTS):02d}",
                "model": "m-small",
                "meter": rng.choice(["input", "output"]),
                "units": rng.randrange(1, 100_000),
                "price_per_million": rng.choice(["0.15", "0.60", "2.50"]),
                "currency": "USD",
                "occurred_at": f"2026-03-{1 + hour // 24:02d}T{hour % 24:02d}:{rng.randrange(60):02d}:00Z",
            }) + "\n")


def measure(env, *args):
    begun = time.monotonic()
    pid = os.fork()
    if pid == 0:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.execve(os.path.join(BIN, "aiq"), ["aiq", *args], env)
    _, status, usage = os.wait4(pid, 0)
    return os.waitstatus_to_exitcode(status), time.monotonic() - begun, usage.ru_maxrss / 1024


def main():
    total = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    folder = tempfile.mkdtemp(prefix="aiq-bench-")
    env = {"PATH": "/usr/bin:/bin", "HOME": folder, "AIQ_DB": os.path.join(folder, "aiq.db"),
           "AIQ_CONFIG": os.path.join(folder, "aiq.toml")}
    open(env["AIQ_CONFIG"], "w").close()

    def row(what, count, *args):
        code, seconds, mib = measure(env, *args)
        print(f"{what:32} {count:>10,} {seconds:9.2f} s {count / seconds:12,.0f}/s {mib:8.1f} MiB", flush=True)
        if code != 0:
            sys.exit(f"{what}: exit {code}")

    try:
        print(f"{'':32} {'rows':>10} {'time':>11} {'rate':>14} {'memory':>12}")
        events = os.path.join(folder, "events.jsonl")
        done = 0
        for size in (1_000, total):
            write_events(events, done, size - done, size)
            row(f"import, {done:,} there", size - done, "usage", "import", events)
            row(f"aggregate, {done:,} there", size - done, "cost", "aggregate")
            done = size
            # As it goes: what is new belongs to the hour that is. Then late ones, all over.
            for what, hours in (("new hour", [HOURS + size % 7]), ("old hours", range(HOURS))):
                write_events(events, done, 1_000, size + 1, hours)
                row(f"import 1,000, {what}", 1_000, "usage", "import", events)
                row(f"aggregate 1,000, {what}", 1_000, "cost", "aggregate")
                done += 1_000
            row("aggregate, nothing new", 1, "cost", "aggregate")
        row("rebuild", done, "cost", "rebuild")
        row("rebuild --verify", done, "cost", "rebuild", "--verify")
        row("summary by hour", done, "cost", "summary")
        row("summary by day in Kolkata", done, "cost", "summary", "--by", "day", "--tz", "Asia/Kolkata")
        row("audit, all checks", done, "audit")
        row("audit totals", done, "audit", "totals")
        print(f"database: {os.path.getsize(env['AIQ_DB']) / 2**20:,.0f} MiB")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()

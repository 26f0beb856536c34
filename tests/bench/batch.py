#!/usr/bin/env python3
"""How long a batch takes to go in and to come out, with the peak of memory of each side. Checks, too:
every line is in once, no lease is lost, `aiq stats` answers within a second all the while.

    AIQ_BIN_DIR=build/release tests/bench/batch.py [LINES] [--no-daemon] [--work] [--kill]

--no-daemon: only the file. --work: aiqd answers the jobs meanwhile, by a simulator. --kill: SIGKILL
of aiqd, then of aiq, in the middle; the same command again must end with each line once.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "e2e"))
import harness  # noqa: E402


def write_file(path, lines):
    body = {"model": harness.GPT, "messages": [{"role": "user", "content": ""}]}
    filler = "x" * 250  # about 400 bytes a line
    with open(path, "w", encoding="utf-8") as out:
        for n in range(lines):
            body["messages"][0]["content"] = f"question {n}: {filler}"
            out.write(json.dumps({"custom_id": f"id-{n}", "method": "POST",
                                  "url": "/v1/chat/completions", "body": body}) + "\n")


def peak_mib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return 0.0


class Stats:
    """Asks for the numbers again and again, and keeps the longest time it took."""

    def __init__(self, world):
        self.world, self.longest, self.stop = world, 0.0, threading.Event()
        self.thread = threading.Thread(target=self.ask)
        self.thread.start()

    def ask(self):
        while not self.stop.wait(0.5):
            begun = time.monotonic()
            self.world.aiq("stats", "--json", rc=0)
            self.longest = max(self.longest, time.monotonic() - begun)

    def end(self):
        self.stop.set()
        self.thread.join()
        return self.longest


def run(world, args):
    """One command: exit code, seconds, peak of memory."""
    begun = time.monotonic()
    pid = os.fork()
    if pid == 0:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.execve(world.program("aiq"), ["aiq", *args], world.env())
    _, status, usage = os.wait4(pid, 0)
    return os.waitstatus_to_exitcode(status), time.monotonic() - begun, usage.ru_maxrss / 1024


def in_now(world):
    try:
        return world.sql("SELECT count(*) FROM batch_lines")[0][0]
    except Exception:  # the database is being made
        return 0


def killed_load(world, path, lines):
    """A load whose daemon, then whose client is killed."""
    load = world.spawn([world.program("aiq"), "submit", "--batch", path], world.path("load.log"))
    harness.wait_until(lambda: in_now(world) > lines // 4, 600, "a quarter is in")
    world.kill_daemon()
    world.start_daemon()
    harness.wait_until(lambda: in_now(world) > lines // 2, 600, "a half is in")
    assert load.poll() is None, "the load ended before it was killed"
    load.kill()
    load.wait()
    print(f"killed with {in_now(world):,} lines in", flush=True)


def main():
    flags = [a for a in sys.argv[1:] if a.startswith("--")]
    sizes = [int(a) for a in sys.argv[1:] if not a.startswith("--")]
    lines = sizes[0] if sizes else 100_000
    world = harness.World()
    try:
        path = world.path("batch.jsonl")
        write_file(path, lines)
        print(f"{lines:,} lines, {os.path.getsize(path) / 2**20:,.0f} MiB", flush=True)
        if "--work" in flags:
            world.start_sim("--latency", "1ms..20ms")
        world.configure({"daemon": {"log_level": "info", "log_file": ""},
                         "vendors.openai": {"max_in_flight": 128}})
        if "--no-daemon" not in flags:
            world.start_daemon()
            if "--work" not in flags:
                world.aiq("pause", rc=0)
        stats = Stats(world)
        if "--kill" in flags:
            killed_load(world, path, lines)
        code, seconds, mib = run(world, ["submit", "--batch", path])
        longest = stats.end()
        print(f"in:   exit {code}, {seconds:.1f} s, {lines / seconds:,.0f} lines/s, aiq {mib:.1f} MiB"
              + ("" if "--no-daemon" in flags else f", aiqd {peak_mib(world.daemon.pid):.1f} MiB")
              + f", stats at most {longest:.2f} s", flush=True)
        assert code == 0 and longest < 1, (code, longest)
        assert in_now(world) == lines, in_now(world)
        assert world.sql("SELECT count(*) FROM jobs")[0][0] == lines
        if "--work" in flags:
            begun = time.monotonic()
            code, _, mib = run(world, ["batch", "wait", "b1", "--json"])
            print(f"wait: exit {code}, {time.monotonic() - begun:.1f} s more, aiq {mib:.1f} MiB, "
                  f"aiqd {peak_mib(world.daemon.pid):.1f} MiB", flush=True)
            lost = world.sql("SELECT count(*) FROM attempts WHERE outcome = 'lease_lost'")[0][0]
            assert lost == 0, lost
            assert code == 0 or "--kill" in flags, code
            code, seconds, mib = run(world, ["batch", "results", "b1"])
            print(f"out:  exit {code}, {seconds:.1f} s, {lines / seconds:,.0f} lines/s, "
                  f"aiq {mib:.1f} MiB", flush=True)
            blocked_pipe(world)
        print(f"log:  {os.path.getsize(world.db + '-wal') / 2**20 if os.path.exists(world.db + '-wal') else 0:.1f} MiB, "
              f"database {os.path.getsize(world.db) / 2**20:,.0f} MiB")
    finally:
        world.close()


def blocked_pipe(world):
    """`batch results` that nobody reads holds no read transaction: the log does not grow by it."""
    reader = subprocess.Popen([world.program("aiq"), "batch", "results", "b1"], env=world.env(),
                              stdout=subprocess.PIPE)
    try:
        for n in range(2_000):
            world.submit(f"beside a blocked reader {n}")
        wal = os.path.getsize(world.db + "-wal") / 2**20
        print(f"blocked reader: the log has {wal:.1f} MiB after 2,000 more jobs", flush=True)
        assert wal < 64, wal
    finally:
        reader.send_signal(signal.SIGKILL)
        reader.wait()
        reader.stdout.close()


if __name__ == "__main__":
    main()

"""Keeping: copies under load, putting one back, files of an older version, cleaning up."""

import json
import os
import signal
import sqlite3
import subprocess
import threading
import time
import unittest

import harness
from harness import FINAL, GPT, SLOWER, Case, UnixConnection, rule, wait_until

SECONDS = float(os.environ.get("AIQ_KEEP_SECONDS", "5"))
RATE = int(os.environ.get("AIQ_KEEP_RATE", "200"))
SCHEMA_V1 = os.path.join(harness.SOURCE, "tests", "store", "schema_v1.sql")


def rows(path, statement):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=5)
    try:
        return connection.execute(statement).fetchall()
    finally:
        connection.close()


class Submitter(threading.Thread):
    """Submits over one connection to the daemon at a steady rate; `acknowledged` grows."""

    def __init__(self, world, per_second, name):
        super().__init__()
        self.world, self.gap, self.label = world, 1 / per_second, name
        self.acknowledged, self.error = [], None
        self.ended = threading.Event()

    def run(self):
        connection = UnixConnection(self.world.socket, 30 * SLOWER)
        try:
            due = time.monotonic()
            while not self.ended.is_set():
                body = json.dumps({"model": GPT, "prompt": f"{self.label} {len(self.acknowledged)}"})
                connection.request("POST", "/v1/ops/submit", body, {"X-Aiq-Protocol": "1"})
                answer = connection.getresponse()
                text = answer.read().decode()
                if answer.status != 200:
                    raise AssertionError(f"{answer.status} {text}")
                self.acknowledged.append(int(json.loads(text)["job_id"]))
                due += self.gap
                self.ended.wait(max(0.0, due - time.monotonic()))
        except Exception as error:  # pylint: disable=broad-except
            self.error = error
        finally:
            connection.close()


class Backup(Case):
    def test_under_load_each_copy_has_all_that_was_acknowledged(self):
        world = self.start("--latency", "5ms..20ms", "--seed", "1")
        threads = [Submitter(world, RATE / 4, f"t{n}") for n in range(4)]
        for thread in threads:
            thread.start()
        copies = []
        try:
            begun = time.monotonic()
            while time.monotonic() - begun < SECONDS:
                before = [job for thread in threads for job in list(thread.acknowledged)]
                copy = world.path(f"copy{len(copies)}.db")
                report = world.aiq("db", "backup", "--json", copy, rc=0).json
                copies.append((copy, before, report))
                pause = begun + len(copies) * min(1, SECONDS / 5) - time.monotonic()
                threads[0].ended.wait(max(0.0, pause))
        finally:
            for thread in threads:
                thread.ended.set()
            for thread in threads:
                thread.join(60 * SLOWER)
        for thread in threads:
            self.assertIsNone(thread.error)
        self.assertGreaterEqual(len(copies), 3)
        self.assertGreater(len(copies[-1][1]), 20 * SECONDS)
        for copy, before, report in copies:
            self.assertEqual(report["bytes"], os.path.getsize(copy))
            self.assertEqual(os.stat(copy).st_mode & 0o7777, 0o600)
            target = copy + ".restored"
            restored = world.aiq("--db", target, "db", "restore", "--json", copy, rc=0).json
            self.assertIsNone(restored["previous"])
            self.assertEqual(restored["faults"], [])
            self.assertEqual(restored["jobs"], report["jobs"])
            world.aiq("--db", target, "db", "check", rc=0)
            there = {row[0] for row in rows(copy, "SELECT job_id FROM jobs")}
            self.assertEqual(len(there), report["jobs"])
            self.assertLessEqual(set(before), there)
            for suffix in ("", "-wal", "-shm", ".lock"):
                if os.path.exists(target + suffix):
                    os.unlink(target + suffix)
            os.unlink(copy)

    def test_what_is_refused(self):
        world = self.start(daemon=False)
        copy = world.path("copy.db")
        self.assertEqual(world.aiq("db", "backup", "--json", copy).error["code"], "no_database")
        world.submit("a")
        world.aiq("db", "backup", copy, rc=0)
        other = world.write("letter.txt", "dear reader")
        for args, code in ((("-",), "not_a_path"), ((other,), "exists"),
                           ((world.db,), "same_file"),
                           ((world.db + "-wal",), "same_file"),
                           ((world.dir,), "not_a_file")):
            result = world.aiq("db", "backup", "--json", *args, rc=2)
            self.assertEqual(result.error["code"], code)
        world.submit("b")
        self.assertEqual(world.aiq("db", "backup", "--json", copy, rc=0).json["jobs"], 2)

    def test_no_space_leaves_no_part(self):
        world = self.start(daemon=False)
        world.submit_body({"model": GPT, "messages": [{"role": "user", "content": "x" * 300_000}]})
        copy = world.path("copy.db")
        result = world.aiq("db", "backup", "--json", copy, rc=8,
                           prefix=("prlimit", "--fsize=100000"))
        self.assertEqual(result.error["code"], "disk_full")
        self.assertEqual([n for n in os.listdir(world.dir) if n.startswith("copy.db")], [])


class Restore(Case):
    def test_of_an_old_one_sends_nothing_until_resumed(self):
        world = self.start(rules=[rule({"hold": True}, times=1)])
        running = world.submit("running")["job_id"]
        world.sim.wait_held(1)
        world.aiq("pause", "--vendor", "openai", rc=0)
        waiting = world.submit("waiting")["job_id"]
        copy = world.path("copy.db")
        self.assertEqual(world.aiq("db", "backup", "--json", copy, rc=0).json["jobs"], 2)
        world.aiq("resume", "--vendor", "openai", rc=0)
        world.sim.release()
        later = world.submit("later")["job_id"]
        world.wait_final([running, waiting, later])
        sent = len(world.sim.calls())

        busy = world.aiq("db", "restore", "--json", copy, rc=7)
        self.assertEqual(busy.error["code"], "daemon_running")
        self.assertTrue(busy.error["hint"])
        world.stop_daemon()
        done = world.aiq("db", "restore", "--json", copy, rc=0).json
        self.assertEqual((done["jobs"], done["open_attempts"]), (2, 1))
        self.assertEqual(len(rows(done["previous"], "SELECT job_id FROM jobs")), 3)
        self.assertFalse(os.path.exists(done["previous"] + "-wal"))

        world.start_daemon()
        attempt = world.show(running)["attempt_log"][0]
        self.assertEqual((attempt["outcome"], attempt["billed"]), ("unknown", "maybe"))
        new = world.submit("new")["job_id"]
        self.assertEqual(int(new), int(waiting) + 1_000_001)
        whole = world.stats()["pauses"]
        self.assertEqual([(p["vendor"], p["cause"]) for p in whole if not p["vendor"]],
                         [(None, "restored")])
        self.assertIn(copy, [p["reason"] for p in whole if not p["vendor"]][0])
        world.kill_daemon()  # nor does another start
        world.start_daemon()
        world.aiq("resume", "--vendor", "openai", rc=0)  # nor the end of another pause
        for job in (running, waiting, new):
            self.assertNotIn(world.show(job)["status"], FINAL)
        self.assertEqual(len(world.sim.calls()), sent)

        world.aiq("resume", rc=0)
        for job in world.wait_final([running, waiting, new]):
            self.assertEqual(job["status"], "completed")
        self.assertEqual(len(world.sim.calls()), sent + 3)
        world.aiq("db", "check", rc=0)

    def test_a_bad_copy_changes_nothing(self):
        world = self.start(daemon=False)
        world.submit("a")
        text = world.write("text", "no database\n" * 2000)
        with sqlite3.connect(world.path("foreign.db")) as other:
            other.execute("CREATE TABLE t (a)")
        for path, rc, code in ((text, 8, "corrupt"), (world.path("foreign.db"), 8, "corrupt"),
                               (world.path("none"), 2, "no_such_file"), ("-", 2, "not_a_path"),
                               (world.db, 2, "same_file")):
            result = world.aiq("db", "restore", "--json", path, rc=rc)
            self.assertEqual(result.error["code"], code)
        self.assertEqual(len(world.jobs()), 1)
        self.assertEqual([n for n in os.listdir(world.dir) if "restore" in n], [])

    def test_killed_at_any_time_leaves_the_old_or_the_new_one(self):
        world = self.start(daemon=False)
        for n in range(3):
            world.submit(f"old {n}")
        copy = world.path("copy.db")
        world.aiq("db", "backup", copy, rc=0)
        world.submit("only here")
        outcomes = set()
        for step in range(16):
            process = subprocess.Popen(
                [world.program("aiq"), "db", "restore", copy], env=world.env(),
                cwd=world.dir, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                process.wait(0.004 * step * SLOWER)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
            process.wait(10)
            self.assertTrue(os.path.exists(world.db))
            outcomes.add(len(world.jobs()))
            world.aiq("db", "check", rc=0)
        self.assertLessEqual(outcomes, {3, 4})
        # However often: the file with the fourth job is still there.
        kept = [n for n in os.listdir(world.dir) if ".before-restore-" in n and n[-1].isalnum()]
        files = [world.path(n) for n in kept if not n.endswith(("-wal", "-shm"))] + [world.db]
        self.assertIn(4, [rows(f, "SELECT count(*) FROM jobs")[0][0] for f in files])


class Migrate(Case):
    def make_v1(self, path):
        """A file as the first version left it: a waiting job, in its lane."""
        connection = sqlite3.connect(path)
        connection.executescript(harness.read(SCHEMA_V1))
        connection.executescript("""
            PRAGMA application_id = 0x61697100; PRAGMA user_version = 1;
            INSERT INTO meta VALUES ('created_at', '1700000000000'), ('key_version', '1'),
              ('age_step_ms', '60000');
            INSERT INTO lanes (tenant, vendor, model) VALUES ('default', 'openai', 'gpt-4o-mini');
            INSERT INTO jobs (lane_id, kind, endpoint, state, wait, live, priority, rank,
              created_at, run_at, max_attempts, idempotency_key, cache_key, cache_owner, cache_read,
              cache_store, coalesce, soft_ttl, hard_ttl, correlation_id)
              VALUES (1, 'request', 'chat', 'queued', 'ready', 1, 0, 1700000000000, 1700000000000,
              1700000000000, 5, randomblob(32), randomblob(32), 'tenant:default', 1, 1, 1,
              1000000, 1000000, 'c');
            INSERT INTO requests (job_id, body) VALUES (1, CAST(
              '{"model":"gpt-4o-mini","messages":[{"role":"user","content":"old"}]}' AS BLOB));
            INSERT INTO submissions (job_id, tenant, outcome, priority, run_at, created_at,
              correlation_id, actor) VALUES (1, 'default', 'created', 0, 1700000000000,
              1700000000000, 'c', 'uid:0');
            UPDATE job_counts SET n = 1 WHERE state = 'queued';
        """)
        connection.close()

    def test_aiq_refuses_an_older_file_until_it_is_migrated(self):
        world = self.start(daemon=False)
        self.make_v1(world.db)
        for command in (("stats",), ("list",), ("submit", "--model", GPT, "--prompt", "x"),
                        ("db", "check")):
            error = world.aiq(*command, "--json", rc=8).error
            self.assertEqual(error["code"], "schema_version")
            self.assertIn("aiq db migrate", error["message"])
        report = world.aiq("db", "migrate", "--json", rc=0).json
        self.assertEqual(report["from"], 1)
        self.assertEqual(report["backup"], f"{world.db}.before-v{report['to']}")
        self.assertEqual(rows(report["backup"], "PRAGMA user_version"), [(1,)])
        world.aiq("db", "check", rc=0)
        self.assertEqual([j["job_id"] for j in world.jobs()], ["1"])
        again = world.aiq("db", "migrate", "--json", rc=0).json
        self.assertEqual((again["from"], again["backup"]), (report["to"], None))
        # An older copy can be put back, too.
        done = world.aiq("db", "restore", "--json", report["backup"], rc=0).json
        self.assertEqual((done["migrated_from"], done["schema_version"]), (1, report["to"]))
        world.aiq("db", "check", rc=0)

    def test_aiqd_migrates_at_its_start_and_works(self):
        world = self.start(daemon=False)
        self.make_v1(world.db)
        world.start_daemon()
        self.assertEqual(world.wait_status(1, "completed")["job_id"], "1")
        copies = [n for n in os.listdir(world.dir) if ".before-v" in n]
        self.assertEqual(len(copies), 1)
        self.assertEqual(rows(world.path(copies[0]), "SELECT state FROM jobs"), [("queued",)])
        self.assertEqual(world.aiq("db", "migrate", "--json", rc=7).error["code"], "daemon_running")
        world.aiq("db", "check", rc=0)


class Prune(Case):
    COUNTS = ("jobs", "attempts", "results", "batches", "client_keys", "events")

    def prune(self, *args):
        return self.world.aiq("db", "prune", "--json", *args, rc=0).json

    def test_keeps_what_a_cache_entry_needs(self):
        world = self.start(config={"retention": {"completed": "1ms", "outbox": "1ms"}}, daemon=False)
        world.configure({"retention": {"completed": ""}})
        world.start_daemon()
        first = world.submit("asked twice", "--label", "team=x")["job_id"]
        world.wait_final([first])
        answer = world.aiq("result", "--json", first, rc=0).json
        world.configure({"retention": {"completed": "1ms", "outbox": "1ms"}})
        world.signal(signal.SIGHUP)

        def pruned():
            counts = self.prune("--dry-run")
            return counts if counts["jobs"] == 1 else None

        counted = wait_until(pruned, 10, "the daemon has the new configuration")
        self.assertEqual((counted["results"], counted["attempts"]), (0, 1))
        self.assertEqual([j["job_id"] for j in world.jobs()], [first])
        self.assertEqual(self.prune(), counted)
        self.assertEqual(world.jobs(), [])
        world.aiq("show", "--json", first, rc=3)
        world.aiq("db", "check", rc=0)

        second = world.submit("asked twice")
        self.assertEqual(second["outcome"], "cached")
        self.assertEqual(world.aiq("result", "--json", second["job_id"], rc=0).json["body"],
                         answer["body"])
        self.assertEqual(len(world.sim.calls()), 1)
        world.aiq("cache", "invalidate", "--all", rc=0)
        world.aiq("result", second["job_id"], rc=0)
        self.assertEqual(self.prune()["results"], 1)
        self.assertEqual(world.sql("SELECT count(*) FROM results"), [(0,)])
        self.assertGreater(world.sql("SELECT count(*) FROM usage_events")[0][0], 0)
        world.aiq("db", "check", rc=0)

    def test_aiqd_cleans_up_by_itself_but_not_what_was_just_restored(self):
        world = self.start(config={"retention": {"completed": "1ms"}}, daemon=False)
        job = world.submit("a")["job_id"]
        world.configure({"retention": {"completed": ""}})
        world.start_daemon()
        world.wait_final([job])
        copy = world.path("copy.db")
        world.aiq("db", "backup", copy, rc=0)
        world.stop_daemon()

        world.configure({"retention": {"completed": "1ms"}})
        world.start_daemon()
        wait_until(lambda: world.jobs() == [], 10, "aiqd has removed the old job")
        world.stop_daemon()
        self.assertIn("removed what is over", harness.read(world.daemon_log))

        world.aiq("db", "restore", copy, rc=0)
        world.start_daemon()
        wait_until(lambda: "nothing is removed while" in harness.read(world.daemon_log), 10,
                   "aiqd leaves it alone")
        self.assertEqual(len(world.jobs()), 1)
        world.aiq("resume", rc=0)
        world.stop_daemon()
        world.start_daemon()
        wait_until(lambda: world.jobs() == [], 10, "aiqd cleans up again")
        world.aiq("db", "check", rc=0)

    def test_without_a_daemon_and_with_nothing_to_do(self):
        world = self.start(daemon=False)
        self.assertEqual(world.aiq("db", "prune", "--json", rc=8).error["code"], "no_database")
        world.submit("a")
        self.assertEqual(self.prune(), dict.fromkeys(self.COUNTS, 0))
        world.aiq("cancel", "1", rc=0)
        world.configure({"retention": {"cancelled": "0s", "outbox": "0s", "client_keys": "0s"}})
        self.assertEqual(self.prune("--dry-run")["jobs"], 1)
        self.assertEqual(world.aiq("db", "prune", rc=0).out, "removed 1 job, 2 events\n")
        self.assertEqual(world.stats()["jobs"]["cancelled"], 0)


if __name__ == "__main__":
    harness.main()

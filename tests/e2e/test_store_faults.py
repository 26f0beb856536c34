"""Disks and files that misbehave: the right exit code, a sentence that helps, nothing lost.

max_page_count belongs to one connection and can't be set from outside; the store's own tests do it.
"""

import fcntl
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import unittest

import harness
from harness import GPT, SLOWER, Case, rule, wait_until


class StoreFaults(Case):
    def submit(self, prompt="x", *args, **kwargs):
        return self.world.aiq("submit", "--json", "--model", GPT, "--prompt", prompt, *args, **kwargs)

    def aiqd(self, *args):
        """The exit code of an aiqd that is expected to end by itself."""
        command = [self.world.program("aiqd"), *args]
        return subprocess.run(command, env=self.world.env(keys=True), timeout=30 * SLOWER,
                              capture_output=True, check=False).returncode

    def assert_helps(self, result, code):
        self.assertEqual(result.rc, code, result)
        self.assertEqual(result.out, "")
        error = result.error
        self.assertTrue(error["message"], result)
        self.assertTrue(error["hint"], result)

    def test_file_size_limit_without_a_daemon(self):
        world = self.start(daemon=False)
        first = self.submit("first", rc=0).json["job_id"]
        limit = os.path.getsize(world.db) + 8192
        prlimit = ("prlimit", f"--fsize={limit}")
        big = world.aiq("submit", "--json", "--model", GPT, "--prompt-file", "-",
                        input="y" * 2_000_000, prefix=prlimit)
        self.assert_helps(big, 8)
        self.assertEqual([j["job_id"] for j in world.jobs()], [first])
        self.assertEqual(world.aiq("db", "check").rc, 0)
        self.submit("second", rc=0)

    def test_daemon_keeps_a_paid_answer_until_it_can_be_stored(self):
        large = {"id": "c", "object": "chat.completion", "created": 1, "model": GPT,
                 "choices": [{"index": 0, "finish_reason": "stop",
                              "message": {"role": "assistant", "content": "z" * 2_000_000}}],
                 "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}
        world = self.start(rules=[rule({"hold": True, "status": 200, "body": large}, times=1)])
        job_id = world.submit("large answer")["job_id"]
        world.sim.wait_held(1)
        sizes = [os.path.getsize(p) for p in (world.db, world.db + "-wal", world.daemon_log)]
        _, hard = resource.prlimit(world.daemon.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(world.daemon.pid, resource.RLIMIT_FSIZE, (max(sizes) + 65536, hard))
        world.sim.release()
        wait_until(lambda: world.health() == 503, 15, "storage trouble shows on /healthz")
        self.assertIsNone(world.daemon.poll())
        self.assertEqual(world.show(job_id)["status"], "processing")
        resource.prlimit(world.daemon.pid, resource.RLIMIT_FSIZE, (hard, hard))
        (job,) = world.wait_final([job_id])
        self.assertEqual(job["status"], "completed")
        self.assert_outcomes(job, [("completed", "yes")])
        self.assertEqual(len(world.sim.calls()), 1)
        wait_until(lambda: world.health() == 200, 15, "healthy again")

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "needs root and setpriv")
    def test_read_only_folder(self):
        world = self.start(daemon=False)
        # A copy of the program and folders that a stranger may enter.
        os.chmod(world.dir, 0o755)
        program = shutil.copy(world.program("aiq"), world.path("aiq"))
        os.chmod(program, 0o755)
        os.chmod(world.config_path, 0o644)
        folder = world.path("locked")
        os.mkdir(folder)
        world.db = os.path.join(folder, "aiq.db")
        os.chmod(folder, 0o555)
        world.program = lambda name: os.path.join(world.dir, name)
        stranger = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
        result = self.submit(prefix=stranger)
        self.assert_helps(result, 8)
        self.assertIn(folder, result.err)
        self.assertEqual(os.listdir(folder), [])

    def test_corrupt_file(self):
        world = self.start(daemon=False)
        self.submit(rc=0)
        intact = open(world.db, "rb").read()
        for name, damage in (
            ("not a database", b"this is not a database " * 1000),
            ("cut", intact[:100]),
        ):
            with self.subTest(name):
                for suffix in ("-wal", "-shm"):
                    if os.path.exists(world.db + suffix):
                        os.remove(world.db + suffix)
                with open(world.db, "wb") as file:
                    file.write(damage)
                self.assert_helps(self.submit("after"), 8)
                self.assert_helps(world.aiq("list", "--json"), 8)
                world.start_daemon(wait=False)
                self.assertEqual(world.wait_daemon(), 8)
                with open(world.db, "rb") as file:
                    self.assertEqual(file.read(), damage, "a damaged file is left as it is")

    def test_damaged_page_is_found(self):
        world = self.start(daemon=False)
        for n in range(5):
            self.submit(f"job {n}", rc=0)
        with sqlite3.connect(world.db) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            size = connection.execute("PRAGMA page_size").fetchone()[0]
            root = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name='jobs'").fetchone()[0]
        connection.close()
        with open(world.db, "r+b") as file:
            file.seek((root - 1) * size)
            file.write(b"\xff" * size)
        result = world.aiq("db", "check", "--json")
        self.assertIn(result.rc, (1, 8), result)
        self.assertTrue(result.out + result.err)

    def test_newer_schema(self):
        world = self.start(daemon=False)
        self.submit(rc=0)
        connection = sqlite3.connect(world.db)
        connection.execute("PRAGMA user_version = 9999")
        connection.close()
        for args in (("submit", "--model", GPT, "--prompt", "y"), ("list",)):
            self.assert_helps(world.aiq(*args, "--json"), 8)
        world.start_daemon(wait=False)
        self.assertEqual(world.wait_daemon(), 8)
        self.assertIn("9999", harness.read(world.daemon_log))

    def test_held_lock(self):
        world = self.start(daemon=False)
        first = self.submit(rc=0).json["job_id"]
        with open(world.db + ".lock", "a", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.assert_helps(self.submit("y", "--busy-timeout", "300ms"), 7)
            # Reading needs no lock.
            self.assertEqual([j["job_id"] for j in world.jobs()], [first])
        self.submit("y", rc=0)

    def test_foreign_write_transaction(self):
        world = self.start(daemon=False)
        self.submit(rc=0)
        foreign = sqlite3.connect(world.db, isolation_level=None)
        self.addCleanup(foreign.close)
        foreign.execute("BEGIN IMMEDIATE")
        self.assert_helps(self.submit("y", "--busy-timeout", "300ms"), 7)
        self.assertEqual(len(world.jobs()), 1)
        foreign.execute("COMMIT")
        self.submit("y", rc=0)

    def test_foreign_write_transaction_beside_a_daemon(self):
        world = self.start(rules=[rule({"hold": True}, times=1)])
        held = world.submit("held")["job_id"]
        world.sim.wait_held(1)
        foreign = sqlite3.connect(world.db, isolation_level=None)
        self.addCleanup(foreign.close)
        foreign.execute("BEGIN IMMEDIATE")
        world.sim.release()
        self.assert_helps(self.submit("y", "--busy-timeout", f"{500 * SLOWER}ms"), 7)
        self.assertEqual(world.show(held)["status"], "processing")
        foreign.execute("COMMIT")
        (job,) = world.wait_final([held])
        self.assertEqual(job["status"], "completed")
        # Exit 7 meant "not done": the daemon does not carry it out behind its caller's back.
        self.assertEqual([c["prompt_head"] for c in world.sim.calls()], ["held"])
        self.assertEqual(len(world.jobs()), 1)
        again = self.submit("y", rc=0).json["job_id"]
        world.wait_final([again])
        vendor_jobs = [j for j in world.jobs() if world.show(j["job_id"])["result_source"] == "vendor"]
        self.assertEqual(len(vendor_jobs), 2)

    def test_another_program_opens_and_closes_the_file_beside_a_daemon(self):
        world = self.start()
        world.wait_final([world.submit("before")["job_id"]])
        log = os.stat(world.db + "-wal").st_ino
        for n in range(3):
            # A stock shell: read-write, and it checkpoints and deletes the log if it may.
            foreign = sqlite3.connect(world.db)
            self.assertEqual(foreign.execute("SELECT count(*) FROM jobs").fetchone()[0], 1 + n)
            foreign.close()
            self.assertEqual(os.stat(world.db + "-wal").st_ino, log, "the log was deleted under aiqd")
            world.wait_final([world.submit(f"after {n}")["job_id"]])
        self.assertEqual(world.stop_daemon(), 0)
        self.assertEqual(len(world.jobs()), 4)
        self.assertEqual(len(world.sim.calls()), 4)

    def test_one_file_has_one_owner_under_all_its_names(self):
        world = self.start(rules=[rule({"hold": True})])
        held = world.submit("held")["job_id"]
        world.sim.wait_held(1)
        real, link = world.db, world.path("link.db")
        os.symlink(real, link)
        world.db = link
        # Through the link it is the same daemon, the same queue and the same lock.
        self.assertEqual(world.show(held)["status"], "processing")
        second = world.aiq("db", "info", "--json", rc=0).json
        self.assertEqual(os.path.realpath(second["path"]), os.path.realpath(real))
        self.assertEqual(self.aiqd("--db", link), 7)
        world.db = real
        world.sim.release()
        world.wait_final([held])
        self.assertEqual(len(world.sim.calls()), 1)
        self.assertEqual(world.stop_daemon(), 0)
        os.link(real, world.path("hard.db"))
        self.assert_helps(self.submit("x"), 8)

    def test_nothing_but_a_socket_is_replaced_by_the_socket(self):
        world = self.start(daemon=False)
        precious = world.write("notes.txt", "precious")
        for path in (precious, world.db):
            world.configure({"daemon": {"socket": path}})
            world.aiq("db", "init", rc=0)
            self.assertEqual(self.aiqd("--until-idle"), 8)
        self.assertEqual(harness.read(precious), "precious")
        self.assertEqual(world.aiq("db", "check").rc, 0)

    def test_absent_database(self):
        world = self.start(daemon=False)
        for args in (("list",), ("stats",), ("show", "1")):
            result = world.aiq(*args, "--json")
            self.assertIn(result.rc, (0, 3, 8), result)
            self.assertFalse(os.path.exists(world.db), "a reading command makes no file")
        for args in (("db", "check"), ("db", "info")):
            self.assert_helps(world.aiq(*args, "--json"), 8)
        world.aiq("db", "init", rc=0)
        self.assertEqual(os.stat(world.db).st_mode & 0o777, 0o600)

    def test_modes_of_what_is_made(self):
        world = self.start(daemon=False)
        world.db = world.path("new/sub/aiq.db")
        old = os.umask(0)
        self.addCleanup(os.umask, old)
        self.submit(rc=0)
        self.assertEqual(os.stat(os.path.dirname(world.db)).st_mode & 0o777, 0o700)
        for name in os.listdir(os.path.dirname(world.db)):
            mode = os.stat(os.path.join(os.path.dirname(world.db), name)).st_mode & 0o777
            self.assertEqual(mode, 0o600, name)

    def test_killed_while_writing(self):
        world = self.start(daemon=False)
        self.submit("before", rc=0)
        for n in range(10):
            process = world.spawn(
                [world.program("aiq"), "submit", "--model", GPT, "--prompt", f"k{n}"], world.path("k.log"))
            wait_until(lambda: process.poll() is not None or os.path.exists(world.db + "-wal"), 5, "writes")
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait(10)
        self.assertEqual(world.aiq("db", "check").rc, 0)
        self.submit("after", rc=0)


if __name__ == "__main__":
    harness.main()

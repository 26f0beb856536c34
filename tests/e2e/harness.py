"""The world of one end-to-end test: a temporary folder, a configuration, the built programs.

Drives `aiq`, `aiqd` and `aiq-sim` as an operator would: processes, signals, files, loopback HTTP.
Nothing of the product is linked. Every wait polls something observable and has a deadline; under
the sanitizers AIQ_SLOW=1 makes the deadlines longer.
"""

import ctypes
import fcntl
import glob
import http.client
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import tempfile
import termios
import threading
import time
import unittest
import urllib.request
from concurrent.futures import ThreadPoolExecutor

BIN = os.environ.get("AIQ_BIN_DIR") or os.path.join(
    os.path.dirname(__file__), "..", "..", "build", "release"
)
SOURCE = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
SHARED = os.environ.get("AIQ_SHARED") or os.path.join(SOURCE, "..", "shared")
SLOW = os.environ.get("AIQ_SLOW") == "1"
SLOWER = 6 if SLOW else 1

OPENAI_KEY = "test-openai-key-7c1f0e2b9d"
ANTHROPIC_KEY = "test-anthropic-key-40aa81c3e5"
GPT = "gpt-4o-mini"
GPT_BIG = "gpt-4o"
CLAUDE = "claude-3-5-haiku-latest"

FINAL = {"completed", "failed", "dead_lettered", "cancelled"}

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def _die_with_parent():
    """In a child: a test that is killed by its time limit leaves nothing running."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def wait_until(condition, timeout=10, what="condition"):
    """Polls until `condition()` is truthy and returns that value; raises after the deadline."""
    deadline = time.monotonic() + timeout * SLOWER
    pause = 0.005
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout * SLOWER} s: {what}")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)


class Result:
    """What one run of a program left: exit code, both streams, JSON of stdout."""

    def __init__(self, args, rc, out, err):
        self.args_ = args
        self.rc = rc
        self.out = out
        self.err = err

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def lines(self):
        """stdout as JSON Lines."""
        return [json.loads(line) for line in self.out.splitlines() if line.strip()]

    @property
    def error(self):
        """The error object that stands on stderr with --json."""
        for line in self.err.splitlines():
            if line.startswith('{"error"'):
                return json.loads(line)["error"]
        raise AssertionError(f"no error object on stderr: {self}")

    def __repr__(self):
        return (
            f"aiq {' '.join(map(str, self.args_))} -> {self.rc}\n"
            f"  stdout: {self.out[:2000]!r}\n  stderr: {self.err[:2000]!r}"
        )


def toml_value(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, list):
        return "[" + ", ".join(toml_value(v) for v in value) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(k)} = {toml_value(v)}" for k, v in value.items()) + " }"
    return json.dumps(value)


def to_toml(config):
    """TOML of a two-level configuration: {"retry": {...}, "vendors.openai": {...}}."""
    top = [f"{k} = {toml_value(v)}" for k, v in config.items() if not isinstance(v, dict)]
    out = top
    for section, values in config.items():
        if not isinstance(values, dict):
            continue
        kind, _, name = section.partition(".")
        out.append(f"\n[{kind}.{json.dumps(name)}]" if name else f"\n[{kind}]")
        out += [f"{k} = {toml_value(v)}" for k, v in values.items()]
    return "\n".join(out) + "\n"


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Sim:
    """A running aiq-sim."""

    def __init__(self, world, args, rules, number):
        self.world = world
        self.journal_path = world.path(f"sim{number}.jsonl")
        self.log_path = world.path(f"sim{number}.log")
        command = [world.program("aiq-sim"), "--listen", "127.0.0.1:0", "--journal", self.journal_path]
        if rules is not None:
            rules_path = world.path(f"sim{number}.rules.json")
            world.write(rules_path, json.dumps({"rules": rules}))
            command += ["--rules", rules_path]
        self.process = world.spawn(command + list(args), self.log_path)
        self.url = wait_until(self._address, 10, "aiq-sim says where it listens")

    def _address(self):
        if self.process.poll() is not None:
            raise AssertionError(f"aiq-sim ended:\n{tail(self.log_path)}")
        for line in read(self.log_path).splitlines():
            if line.startswith("listening on http://") and line[-1].isdigit():
                return line.split()[-1]
        return None

    @property
    def port(self):
        return int(self.url.rsplit(":", 1)[1])

    def call(self, method, path, body=None):
        request = urllib.request.Request(
            self.url + path, method=method, data=None if body is None else json.dumps(body).encode()
        )
        with urllib.request.urlopen(request, timeout=10 * SLOWER) as answer:
            return answer.read().decode()

    def rules(self, rules):
        """Replaces the rules; their counters begin anew."""
        self.call("POST", "/__sim/rules", {"rules": rules})

    def release(self):
        self.call("POST", "/__sim/release", {})

    def state(self):
        return json.loads(self.call("GET", "/__sim/state"))

    def journal(self):
        """The requests received, oldest first; a line that is still being written is left out."""
        if not os.path.exists(self.journal_path):
            return []
        lines = read(self.journal_path).split("\n")[:-1]
        return sorted((json.loads(line) for line in lines if line), key=lambda line: line["seq"])

    def calls(self):
        """The journal's vendor calls only."""
        return [line for line in self.journal() if not line["path"].startswith("/__sim")]

    def wait_held(self, count, timeout=15):
        """Until the simulator holds `count` requests that it has not answered yet."""
        wait_until(lambda: self.state()["held"] >= count, timeout, f"{count} held requests")


def header(line, name):
    """A header of a journal line, whatever its case; None when absent."""
    for key, value in line["headers"].items():
        if key.lower() == name.lower():
            return value
    return None


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def tail(path, lines=40):
    return "\n".join(read(path).splitlines()[-lines:]) if os.path.exists(path) else "(absent)"


class World:
    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="aiq-e2e-")
        self.db = self.path("aiq.db")
        self.socket = self.db + ".sock"
        self.config_path = self.path("aiq.toml")
        self.children = []
        self.sims = []
        self.daemon = None
        self.daemon_starts = 0
        self.keys = {"AIQ_TEST_OPENAI_KEY": OPENAI_KEY, "AIQ_TEST_ANTHROPIC_KEY": ANTHROPIC_KEY}
        self.failure_text = ""

    # -- files -------------------------------------------------------------------------------

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, text):
        path = self.path(name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def configure(self, overrides=None, base_url=None):
        """Writes aiq.toml: both vendors at the first simulator, short retries; then `overrides`,
        {"section": {key: value}}, where None removes a key or a section."""
        url = base_url or (self.sims[0].url if self.sims else "http://127.0.0.1:1")
        config = {
            "default_vendor": "openai",
            "daemon": {"log_level": "debug"},
            "retry": {"base": "50ms", "cap": "400ms"},
            "vendors.openai": {
                "api": "openai",
                "base_url": url + "/v1",
                "api_key_env": "AIQ_TEST_OPENAI_KEY",
                "attempt_header": "X-Aiq-Attempt",
            },
            "vendors.anthropic": {
                "api": "anthropic",
                "base_url": url,
                "api_key_env": "AIQ_TEST_ANTHROPIC_KEY",
                "attempt_header": "X-Aiq-Attempt",
            },
            f"models.{GPT}": {"vendor": "openai"},
            f"models.{GPT_BIG}": {"vendor": "openai"},
            f"models.{CLAUDE}": {"vendor": "anthropic", "max_output_tokens": 512},
        }
        for section, values in (overrides or {}).items():
            if values is None:
                config.pop(section, None)
            elif isinstance(values, dict):
                merged = {**config.get(section, {}), **values}
                config[section] = {k: v for k, v in merged.items() if v is not None}
            else:
                config[section] = values
        self.write("aiq.toml", to_toml(config))

    # -- processes ---------------------------------------------------------------------------

    @staticmethod
    def program(name):
        return os.path.join(BIN, name)

    def env(self, extra=None, keys=False):
        env = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": self.dir,
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "AIQ_CONFIG": self.config_path,
            "AIQ_DB": self.db,
        }
        for name in ("ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"):
            # Reports go to files, so that no test overlooks one.
            options = os.environ.get(name, "")
            env[name] = f"{options}:log_path={self.path('sanitizer')}:exitcode=99".lstrip(":")
        if keys:
            env.update(self.keys)
        env.update(extra or {})
        return {k: v for k, v in env.items() if v is not None}

    def spawn(self, command, log_path, env=None, preexec=None):
        """A child in its own process group, with both streams in a log file."""

        def prepare():
            _die_with_parent()
            if preexec:
                preexec()

        with open(log_path, "ab") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=env or self.env(),
                cwd=self.dir,
                start_new_session=True,
                preexec_fn=prepare,
            )
        self.children.append(process)
        return process

    def start_sim(self, *args, rules=None):
        sim = Sim(self, args, rules, len(self.sims))
        self.sims.append(sim)
        return sim

    @property
    def sim(self):
        return self.sims[0]

    @property
    def daemon_log(self):
        return self.path("aiqd.log")

    def start_daemon(self, *args, wait=True, env=None, preexec=None):
        command = [self.program("aiqd"), "--config", self.config_path, "--db", self.db, *args]
        self.daemon = self.spawn(command, self.daemon_log, self.env(env, keys=True), preexec)
        self.daemon_starts += 1
        if wait:
            process = self.daemon

            def ready():
                if process.poll() is not None:
                    raise AssertionError(
                        f"aiqd ended with {process.returncode}:\n{tail(self.daemon_log)}"
                    )
                return self.health() == 200

            wait_until(ready, 20, "aiqd answers 200 on /healthz")
        return self.daemon

    def health(self):
        """Status of GET /healthz; None when nothing answers."""
        try:
            return self.http("GET", "/healthz")[0]
        except OSError:
            return None
        except http.client.HTTPException:
            return None

    def http(self, method, path, body=None, timeout=10):
        """(status, text) of one request to the daemon's socket."""
        connection = UnixConnection(self.socket, timeout * SLOWER)
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def signal(self, number):
        os.kill(self.daemon.pid, number)

    def kill_daemon(self):
        """kill -9, and waits until it is gone."""
        self.daemon.kill()
        self.daemon.wait(10)

    def stop_daemon(self, timeout=40):
        """SIGTERM; returns the exit code."""
        if self.daemon and self.daemon.poll() is None:
            self.daemon.terminate()
            self.daemon.wait(timeout * SLOWER)
        return self.daemon.returncode

    def wait_daemon(self, timeout=30):
        return self.daemon.wait(timeout * SLOWER)

    # -- aiq ---------------------------------------------------------------------------------

    def aiq(self, *args, input=None, env=None, timeout=30, rc=None, cwd=None, prefix=()):
        """Runs aiq to its end. With `rc` given, any other exit code is an AssertionError."""
        command = [*prefix, self.program("aiq"), *map(str, args)]
        done = subprocess.run(
            command,
            input=input.encode() if isinstance(input, str) else input,
            stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True,
            env=self.env(env),
            cwd=cwd or self.dir,
            timeout=timeout * SLOWER,
            check=False,
        )
        result = Result(
            args,
            done.returncode,
            done.stdout.decode("utf-8", "replace"),
            done.stderr.decode("utf-8", "replace"),
        )
        if rc is not None and result.rc != rc:
            raise AssertionError(f"expected exit {rc}: {result}")
        return result

    def submit(self, prompt, *args, model=GPT, rc=0, **kwargs):
        """`aiq submit --json` of a prompt; returns its object."""
        return self.aiq(
            "submit", "--json", "--model", model, "--prompt", prompt, *args, rc=rc, **kwargs
        ).json

    def submit_body(self, body, *args, rc=0, **kwargs):
        """`aiq submit --json --request -` of a raw body (text, bytes or an object)."""
        text = body if isinstance(body, (str, bytes)) else json.dumps(body)
        return self.aiq("submit", "--json", "--request", "-", *args, input=text, rc=rc, **kwargs).json

    def show(self, job_id, *args):
        return self.aiq("show", "--json", job_id, *args, rc=0).json

    def jobs(self, *args):
        return self.aiq("list", "--json", "--limit", "0", *args, rc=0).lines

    def stats(self):
        return self.aiq("stats", "--json", rc=0).json

    def vendor(self, name):
        """The vendor's entry in `aiq stats`, or None."""
        for entry in self.stats()["vendors"]:
            if entry["vendor"] == name:
                return entry
        return None

    def wait_status(self, job_id, status, timeout=20):
        """Until the job is in `status` (a name or a set of names); returns `show`."""
        wanted = {status} if isinstance(status, str) else set(status)

        def arrived():
            job = self.show(job_id)
            if job["status"] in FINAL and job["status"] not in wanted:
                raise AssertionError(f"job {job_id} ended as {job['status']}: {json.dumps(job)}")
            return job if job["status"] in wanted else None

        return wait_until(arrived, timeout, f"job {job_id} is {sorted(wanted)}")

    def wait_final(self, job_ids, timeout=60):
        """Until all jobs are final; returns `show` of each, in order."""
        ids = list(dict.fromkeys(job_ids))
        result = self.aiq("wait", "--timeout", f"{timeout * SLOWER}s", *ids, timeout=timeout + 10)
        if result.rc not in (0, 1):
            raise AssertionError(f"not all final: {result}")
        return [self.show(job_id) for job_id in ids]

    def parallel(self, function, items, threads=8):
        """function(item) for each item, `threads` at once; results in order."""
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(function, items))

    def at_once(self, functions):
        """Runs all functions as nearly at the same moment as threads can; results in order."""
        gate = threading.Barrier(len(functions))

        def run(function):
            gate.wait()
            return function()

        with ThreadPoolExecutor(len(functions)) as pool:
            return list(pool.map(run, functions))

    def sql(self, statement, *values):
        """Rows of a read-only query; only for what no command shows."""
        connection = sqlite3.connect(f"file:{self.db}?mode=ro", uri=True, timeout=5)
        try:
            return connection.execute(statement, values).fetchall()
        finally:
            connection.close()

    # -- end ---------------------------------------------------------------------------------

    def close(self):
        """Ends every child, keeps the logs' ends for a failure, returns the sanitizers' reports."""
        for child in self.children:
            if child.poll() is None:
                try:
                    os.killpg(child.pid, signal.SIGCONT)
                    os.killpg(child.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            child.wait(10)
        logs = sorted(glob.glob(self.path("*.log")))
        self.failure_text = "\n".join(f"--- {os.path.basename(p)}\n{tail(p)}" for p in logs)
        reports = "\n".join(read(p) for p in glob.glob(self.path("sanitizer.*")))
        if os.environ.get("AIQ_KEEP") == "1":
            print(f"kept: {self.dir}")
        else:
            shutil.rmtree(self.dir, ignore_errors=True)
        return reports


class Case(unittest.TestCase):
    """A test with a world of its own, cleaned up whatever happens."""

    maxDiff = None

    def setUp(self):
        self.world = World()
        self.addCleanup(self._close)

    def _close(self):
        reports = self.world.close()
        self.assertEqual(reports, "", "a sanitizer reported")

    def run(self, result=None):
        before = len(result.errors) + len(result.failures) if result else 0
        super().run(result)
        if result and len(result.errors) + len(result.failures) > before:
            print(f"=== logs of {self.id()}\n{self.world.failure_text}", flush=True)
        return result

    def start(self, *sim_args, rules=None, config=None, daemon=True):
        """The usual world: a simulator, a configuration that points to it, a daemon."""
        self.world.start_sim(*sim_args, rules=rules)
        self.world.configure(config)
        if daemon:
            self.world.start_daemon()
        return self.world

    def assert_outcomes(self, job, expected):
        """The attempts' (outcome, billed) in order."""
        self.assertEqual(
            [(a["outcome"], a["billed"]) for a in job["attempt_log"]], expected, json.dumps(job)
        )

    def assert_each_call_is_one_attempt(self, sim, jobs):
        """Every request that reached the vendor names one attempt row, and no two the same one."""
        rows = {
            f"{job['job_id']}.{a['generation']}.{a['attempt']}" for job in jobs for a in job["attempt_log"]
        }
        sent = [header(line, "X-Aiq-Attempt") for line in sim.calls()]
        self.assertEqual(len(sent), len(set(sent)), "an attempt was sent twice")
        self.assertLessEqual(set(sent), rows, "a request has no attempt row")


def rule(act, times=None, name=None, **match):
    """One rule of the simulator."""
    out = {"match": match, "act": act}
    if name:
        out["name"] = name
    if times is not None:
        out["times"] = times
    return out


def openai_error(status, code=None, kind=None, message="no", headers=None):
    return {
        "status": status,
        "headers": headers or {},
        "body": {"error": {"message": message, "type": kind, "param": None, "code": code}},
    }


def anthropic_error(status, kind, message="no", headers=None, details=None):
    error = {"type": kind, "message": message}
    if details:
        error["details"] = details
    return {
        "status": status,
        "headers": headers or {},
        "body": {"type": "error", "error": error, "request_id": "req_test"},
    }


ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def plain_lines(text):
    """The lines that a terminal would show at last: no escape codes, overwritten text gone."""
    lines = ESCAPE.sub("", text.replace("\r\n", "\n")).split("\n")
    return [line.rsplit("\r", 1)[-1] for line in lines]


def on_terminal(command, env, columns=80, timeout=60):
    """Runs a command on a terminal of so many columns; returns (rc, text)."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        command, stdin=follower, stdout=follower, stderr=follower, env=env, start_new_session=True,
    )
    os.close(follower)
    text = b""
    deadline = time.monotonic() + timeout * SLOWER
    try:
        while select.select([leader], [], [], max(0.0, deadline - time.monotonic()))[0]:
            try:
                piece = os.read(leader, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            text += piece
        return process.wait(max(1.0, deadline - time.monotonic())), text.decode("utf-8", "replace")
    finally:
        os.close(leader)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)


def main():
    unittest.main(verbosity=2)

"""A running aiq-sim and its client, for the tests of the simulator alone."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
import unittest

BIN = os.path.join(os.environ.get("AIQ_BIN_DIR", "build/dev"), "aiq-sim")
SLOWER = 5 if os.environ.get("AIQ_SLOW") else 1
DEADLINE = 20 * SLOWER
SECRET = "sk-test-0123456789abcdef"
CHAT = "/v1/chat/completions"


def chat(text="Hello", **more):
    return {"model": "sim-small", "messages": [{"role": "user", "content": text}], **more}


def message(text="Hello", **more):
    return {"max_tokens": 1000, **chat(text, **more)}


def wait_until(condition, what):
    deadline = time.monotonic() + DEADLINE
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"in vain: {what}")


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = {k.lower(): v for k, v in response.getheaders()}
        self.body = response.read()

    @property
    def json(self):
        return json.loads(self.body)


class Sim:
    def __init__(self, folder, *args, rules=None):
        self.journal_path = os.path.join(folder, "journal.jsonl")
        command = [BIN, "--listen", "127.0.0.1:0", "--journal", self.journal_path, *args]
        if rules is not None:
            path = os.path.join(folder, "rules.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"rules": rules}, file)
            command += ["--rules", path]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        found = re.fullmatch(r"listening on http://127\.0\.0\.1:(\d+)\n", line)
        if not found:
            raise AssertionError(f"said {line!r}")
        self.port = int(found.group(1))

    def call(self, body, path=CHAT, method="POST", headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE)
        try:
            data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
            connection.request(method, path, data, headers or {})
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=DEADLINE)

    def send_raw(self, body):
        """A connection on which the request was sent and nothing read yet."""
        data = json.dumps(body).encode()
        raw = self.connect()
        raw.sendall(b"POST %s HTTP/1.1\r\nHost: sim\r\nContent-Length: %d\r\n\r\n%s"
                    % (CHAT.encode(), len(data), data))
        return raw

    def state(self):
        return self.call(None, "/__sim/state", "GET").json

    def rules(self, *rules):
        answer = self.call({"rules": list(rules)}, "/__sim/rules")
        if answer.status != 200:
            raise AssertionError(answer.body)

    def journal(self):
        with open(self.journal_path, encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        code = self.process.wait(timeout=DEADLINE)
        rest = self.process.stdout.read()
        self.process.stdout.close()
        return code, rest


def read_all(raw):
    """Everything until the end of the stream; a reset raises."""
    out = b""
    while piece := raw.recv(65536):
        out += piece
    return out


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def start(self, *args, rules=None):
        sim = Sim(self.folder, *args, rules=rules)

        def end():
            if sim.process.poll() is None:
                code, rest = sim.stop()
                self.assertEqual((code, rest), (0, ""))

        self.addCleanup(end)
        return sim

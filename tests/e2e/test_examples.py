"""What stands in examples/ works, and so does the quickstart that shows it."""

import collections
import json
import os
import unittest

import harness
from harness import Case

EXAMPLES = os.path.join(harness.SOURCE, "examples")


class Examples(Case):
    def test_configuration_is_valid(self):
        env = {"OPENAI_API_KEY": "x-openai", "ANTHROPIC_API_KEY": "x-anthropic"}
        path = os.path.join(EXAMPLES, "aiq.toml")
        self.world.aiq("--config", path, "config", "check", env={**env, "AIQ_CONFIG": None}, rc=0)

    def test_rules_are_understood(self):
        with open(os.path.join(EXAMPLES, "sim-rules.json"), encoding="utf-8") as file:
            rules = json.load(file)["rules"]
        sim = self.world.start_sim(rules=rules)
        self.assertEqual(len(sim.state()["rules"]), len(rules))

    def test_prompts(self):
        with open(os.path.join(EXAMPLES, "prompts.jsonl"), encoding="utf-8") as file:
            lines = file.read().splitlines()
        rows = [json.loads(line) for line in lines]
        self.assertGreaterEqual(len(rows), 60)
        self.assertEqual(len({row["tenant"] for row in rows}), 2)
        self.assertEqual(len({row["model"] for row in rows}), 2)
        self.assertEqual(len({row["model"] for row in rows if "claude" in row["model"]}), 1)
        self.assertGreater(max(collections.Counter(lines).values()), 1, "some are equal")

    @unittest.skipIf(harness.SLOW, "a show for people, not for sanitizers")
    def test_quickstart_shows_everything_and_leaves_nothing_running(self):
        temporary = self.world.path("tmp")
        os.mkdir(temporary)
        code, text = harness.on_terminal(
            [os.path.join(harness.SOURCE, "scripts", "quickstart")],
            {"PATH": os.environ["PATH"], "HOME": self.world.dir, "TMPDIR": temporary, "TERM": "xterm",
             "AIQ_BIN_DIR": os.path.abspath(harness.BIN), "LC_ALL": "C.UTF-8"},
            timeout=240,
        )
        self.assertEqual(code, 0, text)
        for words in ("avoided_cost", "USD", "rate_limited", "completed", "rejected", "posted:", "Done"):
            self.assertIn(words, text)
        for line in harness.plain_lines(text):
            self.assertLessEqual(len(line), 80, line)
        self.assertEqual(os.listdir(temporary), [])
        self.assertEqual(self.running_below(temporary), [])

    @staticmethod
    def running_below(folder):
        """Processes whose working directory was in `folder`."""
        found = []
        for pid in filter(str.isdecimal, os.listdir("/proc")):
            try:
                if os.readlink(f"/proc/{pid}/cwd").startswith(folder):
                    found.append(pid)
            except OSError:
                continue
        return found


if __name__ == "__main__":
    harness.main()

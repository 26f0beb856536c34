"""Manual pages and `--help` tell the same: every command and every option stands in both."""

import os
import re
import subprocess
import unittest

import harness

MAN = os.path.join(harness.SOURCE, "man")
PROGRAMS = {"aiq": "aiq.1", "aiqd": "aiqd.8", "aiq-sim": "aiq-sim.1"}

# A line of --help that defines something: two spaces or more, then its name.
OPTION_LINE = re.compile(r"^\s+(?:-\w\s*,\s*)?--[a-z]")
LONG = re.compile(r"(?<![\w-])--([a-z][a-z0-9-]*)")
COMMAND_LINE = re.compile(r"^  ([a-z][a-z-]*)(?:\s{2,}|\s*$)")


def help_of(program, path):
    done = subprocess.run(
        [os.path.join(harness.BIN, program), *path, "--help"],
        capture_output=True, text=True, timeout=30 * harness.SLOWER, check=False,
        env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "COLUMNS": "80"},
    )
    if done.returncode != 0:
        raise AssertionError(f"{program} {path} --help: {done.returncode} {done.stderr}")
    return done.stdout


def options_of(text):
    """Long options that the help defines: those at the beginning of a line."""
    found = set()
    for line in text.splitlines():
        if OPTION_LINE.match(line):
            head = re.split(r"\s{2,}", line.strip())[0]
            found |= set(LONG.findall(head))
    return found


def commands_of(text):
    """Names of the commands below, which the usage line announces by COMMAND."""
    if "COMMAND" not in text.splitlines()[0]:
        return []
    found, inside = [], False
    for line in text.splitlines():
        if line and not line[0].isspace():
            inside = line.endswith(":") and not line.startswith("usage:")
        elif inside and COMMAND_LINE.match(line):
            found.append(COMMAND_LINE.match(line).group(1))
    return found


def walk(program, path=()):
    """{command path: its own options} of the whole tree."""
    text = help_of(program, path)
    tree = {path: options_of(text) - {"help", "version"}}
    for name in commands_of(text):
        tree.update(walk(program, (*path, name)))
    return tree


class Page:
    """The options and words of an mdoc page, by section."""

    def __init__(self, name):
        with open(os.path.join(MAN, name), encoding="utf-8") as file:
            self.source = file.read()
        self.options = set(re.findall(r"\bFl\s+-([a-z][a-z0-9-]*)", self.source))
        self.options |= set(re.findall(r"\\-\\-([a-z][a-z0-9\\-]*)", self.source))
        self.sections = {}
        for chunk in re.split(r"^\.S[hs] ", self.source, flags=re.MULTILINE)[1:]:
            heading, _, body = chunk.partition("\n")
            self.sections[heading.strip().strip('"').lower()] = body

    def names(self, path):
        """Whether the page speaks of the command `a b`."""
        words = r"\s+(?:Cm\s+)?".join(map(re.escape, path))
        return re.search(rf"(?:^|[\s\"]){words}(?:[\s\"]|$)", self.source, re.MULTILINE)


class Man(unittest.TestCase):
    def test_every_option_stands_in_both(self):
        for program, page_name in PROGRAMS.items():
            page = Page(page_name)
            offered = set().union(*walk(program).values())
            documented = page.options - {"help", "version"}
            with self.subTest(program):
                self.assertEqual(sorted(offered - documented), [], "missing in the manual page")
                self.assertEqual(sorted(documented - offered), [], "documented, but not offered")

    def test_every_command_stands_in_the_page(self):
        tree = walk("aiq")
        self.assertGreater(len(tree), 15, "the command tree was not understood")
        page = Page("aiq.1")
        for path in tree:
            if path:
                with self.subTest(" ".join(path)):
                    self.assertTrue(page.names(path), "not in aiq.1")

    def test_options_stand_with_their_command(self):
        """Where a section is headed by a command, it names all options of that command."""
        page = Page("aiq.1")
        checked = 0
        for path, options in walk("aiq").items():
            section = page.sections.get(" ".join(path)) or page.sections.get("aiq " + " ".join(path))
            if not path or section is None:
                continue
            checked += 1
            inside = set(re.findall(r"\bFl\s+-([a-z][a-z0-9-]*)", section))
            common = set(re.findall(r"\bFl\s+-([a-z][a-z0-9-]*)", page.sections.get("options", "")))
            common |= set(
                re.findall(r"\bFl\s+-([a-z][a-z0-9-]*)", page.sections.get("global options", ""))
            )
            with self.subTest(" ".join(path)):
                self.assertEqual(sorted(options - inside - common), [])
        self.assertGreater(checked, 10, "no sections headed by commands were found")

    def test_every_key_of_the_configuration_is_explained(self):
        shown = subprocess.run(
            [os.path.join(harness.BIN, "aiq"), "config", "show", "--json"],
            capture_output=True, text=True, timeout=30 * harness.SLOWER, check=True,
            env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "AIQ_CONFIG": ""},
        ).stdout
        keys = {key.rsplit(".", 1)[-1] for key in re.findall(r'"key"\s*:\s*"([^"]+)"', shown)}
        self.assertGreater(len(keys), 20, shown[:500])
        with open(os.path.join(MAN, "aiq.toml.5"), encoding="utf-8") as file:
            page = file.read()
        missing = sorted(k for k in keys if not re.search(rf"\b{re.escape(k)}\b", page))
        self.assertEqual(missing, [])


if __name__ == "__main__":
    harness.main()

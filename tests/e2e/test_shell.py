"""Completion as the shells themselves do it, and `aiq help`."""

import os
import resource
import shutil
import subprocess
import unittest

import harness
from harness import GPT, Case

# Types a line into bash's completion, as readline would: the words are broken by bash's own rules.
BASH = r"""
source <("$AIQ" completion bash)
COMP_LINE=$1 COMP_POINT=${#1}
pieces=$(sed -E 's/([=:]+)/\n\1\n/g; s/[[:blank:]]+/\n/g' <<<"$1" | sed '/^$/d')
mapfile -t COMP_WORDS <<<"$pieces"
COMP_WORDS[0]=$AIQ
COMP_LINE=${AIQ}${COMP_LINE#aiq}
COMP_POINT=${#COMP_LINE}
if [[ $1 == *' ' ]]; then COMP_WORDS+=(""); fi
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_aiq
printf '%s\n' "${COMPREPLY[@]}"
"""

# A zsh on a terminal of its own. After each completion a key writes down what the line has become.
ZSH = r"""
zmodload zsh/zpty zsh/zselect
results=$WORK/zsh.lines
: >$results
wait_for() {
  local shown deadline=$((SECONDS + 20))
  while (( $(wc -l <$results) < $1 )); do
    (( SECONDS < deadline )) || { print -u2 "no answer $1 of zsh"; exit 1; }
    zpty -r -t shell shown || zselect -t 2 || true
  done
}
zpty -b shell zsh -f -i
zpty -w shell "cd ${(q)WORK}; path=(${(q)AIQ:h} \$path); autoload -Uz compinit; compinit -D -u"
zpty -w shell "source <(aiq completion zsh)"
zpty -w shell "note() { print -r -- \$BUFFER >>${(q)results}; zle kill-buffer }"
zpty -w shell "zle -N note; bindkey '^X' note; print started >>${(q)results}"
wait_for 1
count=1
for line in "$@"; do
  zpty -w -n shell "$line"$'\t\x18'
  wait_for $((++count))
done
zpty -d shell
tail -n +2 $results
"""


class Shell(Case):
    def setUp(self):
        super().setUp()
        world = self.world
        world.configure()
        self.first = world.submit("one", "--tenant", "acme", "--label", "team=red")["job_id"]
        self.second = world.submit("two")["job_id"]
        self.env = {**world.env(), "AIQ": os.path.join(harness.BIN, "aiq"),
                    "WORK": world.dir}
        self.env["PATH"] = harness.BIN + ":/usr/bin:/bin"

    def candidates(self, *words):
        done = self.world.aiq("__complete", *words, rc=0)
        self.assertEqual(done.err, "")
        return done.out.splitlines()

    def words(self, *words):
        return [line.split("\t")[0] for line in self.candidates(*words)]

    def shell(self, *command):
        done = subprocess.run(command, env=self.env, cwd=self.world.dir, capture_output=True,
                              text=True, timeout=60 * harness.SLOWER, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        return done.stdout.split("\n")[:-1]

    def test_candidates_from_the_database(self):
        self.assertEqual(self.words("wait", ""), [self.second, self.first])
        self.assertIn("queued, acme, " + GPT, self.candidates("show", self.first)[0])
        self.assertEqual(self.words("list", "--tenant", "a"), ["acme"])
        self.assertEqual(self.words("submit", "--model", "gpt"), ["gpt-4o", GPT])
        self.assertEqual(self.words("pause", "--vendor", "o"), ["openai"])
        self.assertEqual(self.words("list", "--label", "t"), ["", "team="])
        self.world.aiq("cancel", self.first, rc=0)
        self.assertEqual(self.words("wait", ""), [self.second])
        self.assertEqual(self.words("show", ""), [self.second, self.first])

    def test_silent_when_something_is_wrong(self):
        missing = self.world.path("missing.db")
        self.assertEqual(self.candidates("--db", missing, "show", ""), [])
        self.assertFalse(os.path.exists(missing))
        broken = self.world.path("broken.toml")
        with open(broken, "w", encoding="utf-8") as file:
            file.write("not toml")
        self.assertEqual(self.candidates("--config", broken, "show", ""), [])
        self.assertIn("list", self.words("--config", broken, ""))
        garbage = self.world.path("garbage.db")
        with open(garbage, "wb") as file:
            file.write(b"x" * 8192)
        self.assertEqual(self.candidates("--db", garbage, "dlq", "show", ""), [])
        for words in ((), ("nothing", "there", ""), ("--", "x"), ("\udcff",), ("-",), ("--=",)):
            self.candidates(*words)

    @unittest.skipIf(harness.SLOW, "a limit of time, not for sanitizers")
    def test_quick(self):
        best = min(self.timed("show", "") for _ in range(5))
        self.assertLess(best, 0.05)

    def timed(self, *words):
        """Seconds of a processor, so that a busy machine does not decide."""
        begin = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.candidates(*words)
        end = resource.getrusage(resource.RUSAGE_CHILDREN)
        return end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime

    def bash(self, line):
        return self.shell("bash", "--norc", "-c", BASH, "bash", line)

    def test_bash(self):
        self.assertEqual(self.bash("aiq su"), ["submit"])
        self.assertEqual(self.bash("aiq db b"), ["backup"])
        self.assertEqual(self.bash("aiq show "), [self.second, self.first])
        self.assertEqual(self.bash("aiq list --status q"), ["queued"])
        # bash replaces only what stands after the "=" or ":".
        self.assertEqual(self.bash("aiq list --status=q"), ["queued"])
        self.assertEqual(len(self.bash("aiq list --status=")), 7)
        self.assertEqual(self.bash("aiq list --label t"), ["team="])
        self.assertEqual(self.bash("aiq list --jso"), ["--json"])
        for name in ("file one", "file two"):
            with open(self.world.path(name), "w", encoding="utf-8"):
                pass
        self.assertEqual(sorted(self.bash("aiq db backup fil")), ["file one", "file two"])
        self.assertEqual(sorted(self.bash("aiq submit --request=fil")), ["file one", "file two"])
        self.assertEqual(self.bash("aiq submit --prompt "), [""])

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_fish(self):
        def fish(line):
            script = f"{self.env['AIQ']} completion fish | source; complete -C '{line}'"
            return [row.split("\t")[0] for row in
                    self.shell("fish", "--no-config", "-c", script)]

        self.assertEqual(fish("aiq su"), ["submit"])
        self.assertEqual(fish("aiq show "), [self.second, self.first])
        self.assertEqual(fish("aiq list --status q"), ["queued"])
        self.assertEqual(fish("aiq list --status=q"), ["--status=queued"])
        self.assertEqual(fish("aiq list --jso"), ["--json"])
        self.assertEqual(fish("aiq list --label t"), ["team="])
        with open(self.world.path("body.json"), "w", encoding="utf-8"):
            pass
        self.assertEqual(fish("aiq submit --request bod"), ["body.json"])

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh(self):
        with open(self.world.path("body.json"), "w", encoding="utf-8"):
            pass
        typed = ["aiq su", "aiq list --status q", "aiq list --status=q", "aiq list --label t",
                 "aiq submit --request bod", "aiq submit --request=bod", "aiq lock b"]
        self.assertEqual(
            self.shell("zsh", "-f", "-c", ZSH, "zsh", *typed),
            ["aiq submit ", "aiq list --status queued ", "aiq list --status=queued ",
             "aiq list --label team=", "aiq submit --request body.json ",
             "aiq submit --request=body.json ", "aiq lock break "],
        )

    def test_help(self):
        aiq = self.world.aiq
        self.assertEqual(aiq("help", rc=0).out, aiq("--help", rc=0).out)
        self.assertEqual(aiq("help", "dlq", "list", rc=0).out, aiq("dlq", "list", "--help", rc=0).out)
        self.assertIn("130", aiq("help", "exit-codes", rc=0).out)
        self.assertEqual(aiq("help", "states", "--json", rc=0).json["topic"], "states")
        for words, hint in ((("exitcodes",), "aiq help exit-codes"),
                            (("dlq", "lsit"), "aiq help dlq list"), (("sbumit",), "aiq help submit")):
            self.assertIn(f"did you mean '{hint}'?", aiq("help", *words, rc=2).err)
        self.assertIn("there is no help for 'states'", aiq("help", "states", "x", rc=2).err)
        self.assertIn("did you mean 'queued'?", aiq("list", "--status", "quued", rc=2).err)


if __name__ == "__main__":
    harness.main()

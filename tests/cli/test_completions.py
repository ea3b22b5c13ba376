"""The completions of bash, zsh and fish, asked as the shells ask them."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
import patience  # noqa: E402
from harness import GuardedTest, SystemTest  # noqa: E402

BUILD = pathlib.Path(os.environ["RLMD_BUILD_ROOT"])
COMMANDS = "batch doctor exec merge plan results review serve status top trace work".split()

ASKED = """\
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
compopt() { :; }
_rlmd
printf '%s\\n' "${COMPREPLY[@]}"
"""

# A shell in a terminal of its own completes the line; what it would insert is shown.
# A shell in a terminal of its own completes the line, and shows it.
ZSH = """\
zmodload zsh/zpty || exit 9
zpty shell zsh -f -i
zpty -w shell "PS1=; fpath=($1 \$fpath); autoload -U compinit; compinit -u -D; cd $2"
zpty -w -n shell "$3"$'\\t'
zpty -w shell ''
zpty -w shell 'print END''OF'
while zpty -r shell line; do
    print -r -- $line
    [[ $line == *ENDOF* ]] && break
done
"""


class Bash(GuardedTest):
    def complete(self, *words):
        done = subprocess.run(["bash", "--norc", "-c", ASKED, "bash", BUILD / "share/rlmd",
                               "rlmd", *words], text=True, capture_output=True, cwd=self.dir,
                              timeout=patience.hung())
        self.assertEqual(done.stderr, "")
        return sorted(done.stdout.split("\n")[:-1]) if done.stdout != "\n" else []

    def test_commands_and_options(self):
        self.assertEqual(self.complete(""), sorted([*COMMANDS, "--help", "--version"]))
        self.assertEqual(self.complete("re"), ["results", "review"])
        self.assertEqual(self.complete("exec", "--max-c"),
                         ["--max-calls", "--max-context", "--max-cost"])
        self.assertEqual(self.complete("trace", "--ht"), ["--html"])
        self.assertEqual(self.complete("trace", "--max"), [])
        self.assertEqual(self.complete("nothing", "--"), [])

    def test_each_option_of_each_command(self):
        for command in COMMANDS:
            told = subprocess.run([BUILD / "rlmd", command, "--help-all"], check=True, text=True,
                                  capture_output=True).stdout
            options = re.findall(r"(?m)^  (?:-\w, |    )(--[a-z-]+)", told)
            self.assertEqual(self.complete(command, "--"), sorted(options))

    def test_values(self):
        self.write("a file.txt", "")
        self.write("folder/inner.txt", "")
        self.assertEqual(self.complete("review", "--fail-on", "no"), ["none", "note"])
        self.assertEqual(self.complete("review", "--fail-on", "=", "e"), ["error"])
        self.assertEqual(self.complete("review", "--fail-on", "="),
                         ["error", "none", "note", "warning"])
        self.assertEqual(self.complete("exec", "-c", "a"), ["a file.txt"])
        self.assertEqual(self.complete("exec", "--cache", ""), ["folder"])
        self.assertEqual(self.complete("exec", "--model", ""), [])
        self.assertEqual(self.complete("trace", "folder/i"), ["folder/inner.txt"])


class Fish(SystemTest):
    def complete(self, line):
        done = subprocess.run(["fish", "--no-config", "-c", "source $argv[1]; complete -C $argv[2]",
                               BUILD / "share/rlmd.fish", line], text=True, capture_output=True,
                              cwd=self.dir, timeout=patience.hung(),
                              env=self.environment(HOME=str(self.dir), TMPDIR=str(self.dir),
                                                   XDG_RUNTIME_DIR=str(self.dir)))
        self.assertEqual(done.stderr, "")
        return [row.split("\t")[0] for row in done.stdout.splitlines()]

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_it(self):
        self.write("folder/inner.txt", "")
        self.assertEqual(sorted(self.complete("rlmd ")), COMMANDS)
        self.assertEqual(self.complete("rlmd exec --max-co"), ["--max-context", "--max-cost"])
        self.assertEqual(self.complete("rlmd trace --max-co"), [])
        self.assertEqual(self.complete("rlmd review --fail-on n"), ["none", "note"])
        self.assertEqual(self.complete("rlmd exec --cache f"), ["folder/"])


class Zsh(SystemTest):
    def complete(self, line):
        done = subprocess.run(["zsh", "-f", "-c", ZSH, "zsh", BUILD / "share", self.dir, line],
                              text=True, capture_output=True, cwd=self.dir, errors="replace",
                              timeout=patience.hung(), env=self.environment(HOME=str(self.dir)))
        return done.stdout

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_it(self):
        for line, word in (("rlmd rev", "review"), ("rlmd exec --max-cos", "--max-cost"),
                           ("rlmd review --fail-on=warn", "--fail-on=warning")):
            self.assertIn(word, self.complete(line))


if __name__ == "__main__":
    unittest.main()

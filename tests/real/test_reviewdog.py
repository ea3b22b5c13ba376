"""The report of --rdjson beside reviewdog itself, from tools/real-servers."""

import json
import pathlib
import subprocess
import unittest

import servers
from harness import turn

PROGRAM = pathlib.Path(servers.PLACE, "reviewdog")
CODE = "int main(int argc, char **argv)\n{\n\tchar name[8];\n\tstrcpy(name, argv[1]);\n}\n"


def setUpModule():
    servers.wanted()
    if not PROGRAM.exists():
        raise unittest.SkipTest("reviewdog is not installed: tools/real-servers builds it with Go")


class Reviewdog(servers.SystemTest):
    def git(self, *words):
        subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@localhost", *words],
                       cwd=self.dir / "tree", check=True, stdout=subprocess.DEVNULL)

    def test_it_takes_the_report(self):
        """It shows the findings in lines of the change, with their suggestions, and no others."""
        self.write("tree/src/main.c", CODE)
        self.git("init", "-q")
        self.git("add", ".")
        self.git("commit", "-qm", "x")
        self.write("tree/src/main.c", CODE.replace("char name[8]", "char name[9]"))
        found = [{"rule": "overflow", "severity": "error", "confidence": 0.9, "message": message,
                  "path": "src/main.c", "quote": quote, "line": 1, "patch": patch}
                 for message, quote, patch in (
                     ("Is small.", "char name[9];", "--- a/src/main.c\n+++ b/src/main.c\n"
                      "@@ -3 +3 @@\n-\tchar name[9];\n+\tchar name[4096];\n"),
                     ("Elsewhere.", "int main(int argc, char **argv)", None))]
        answer = turn("FINAL(%s)" % json.dumps({"findings": found}))
        outcome = self.rlmd("review", "-q", "-p", "replay", "--replay", self.script(answer),
                            "--quick", "--rdjson", "r.json", "tree")
        self.assertEqual(outcome.status, 3, outcome.err)
        for reporter, wanted in (("local", ["Is small."]), ("sarif", ["Is small."])):
            done = subprocess.run(
                [PROGRAM, "-f=rdjson", f"-reporter={reporter}", "-diff=git diff", "-filter-mode=added"],
                cwd=self.dir / "tree", input=self.read("r.json"), text=True, capture_output=True,
                timeout=servers.patience.hung())
            self.assertEqual(done.returncode, 0, done.stderr)
            for message in ("Is small.", "Elsewhere."):
                self.assertEqual(message in done.stdout, message in wanted, done.stdout)
            self.assertIn("char name[4096];", done.stdout)

    def read(self, name):
        return (self.dir / name).read_text(encoding="utf-8")


if __name__ == "__main__":
    unittest.main()

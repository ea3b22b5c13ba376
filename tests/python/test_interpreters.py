"""The package in the interpreters from 3.9 on that this machine has, and its syntax for all."""

import ast
import os
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import test_client  # noqa: E402

SOURCE = test_client.ROOT / "python/src"
VERSIONS = range(9, 16)
PROGRAM = r'''
import asyncio, dataclasses, rlmd
def model(messages, asked):
    first = "Turn 1 of" in messages[-1]["content"]
    return {"text": "```python\nx = town(len(context))\n```" if first else "FINAL_VAR(x)"}
def town(number: int) -> str:
    "A town."
    return f"town {number}"
r = rlmd.RLM(model, tools=[town])
assert r.completion("?", "abc") == "town 3"
assert asyncio.run(r.acompletion("?", "abcd")) == "town 4"
assert r.map(["?", "?"], "ab") == ["town 2", "town 2"]
assert [event.type for event in r.stream("?", "abc")][-1] == "end"
with rlmd.Session("xyz", provider=lambda messages, asked: "blue") as session:
    assert session.run("print(len(context), llm_query('?'))").stdout == "3 blue\n"
print("well")
'''


def others():
    """Those on the PATH that run, by their versions, but for our own."""
    for minor in VERSIONS:
        name = f"python3.{minor}"
        try:
            said = subprocess.run([name, "-c", "print(1)"], capture_output=True, timeout=60)
        except OSError:
            continue
        if said.stdout == b"1\n" and minor != sys.version_info[1]:
            yield name


class Interpreters(test_client.PythonTest):
    def test_each(self):
        found = list(others())
        for name in found:
            with self.subTest(name):
                done = subprocess.run([name, "-c", PROGRAM], capture_output=True, text=True,
                                      env={**os.environ, "PYTHONPATH": str(SOURCE)})
                self.assertEqual((done.stdout, done.returncode), ("well\n", 0), done.stderr)
        if not found:
            self.skipTest("no other python3 from 3.9 on is on the PATH")

    def test_ours(self):
        done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": str(SOURCE)})
        self.assertEqual((done.stdout, done.returncode), ("well\n", 0), done.stderr)

    def test_the_syntax_of_3_9(self):
        for path in sorted(SOURCE.rglob("*.py")):
            with self.subTest(path.name):
                ast.parse(path.read_text(), path.name, feature_version=(3, 9))


SUB = """
import sys
sys.path.insert(0, %r)
import rlmd
try:
    with rlmd.Session() as session:
        print("printed", session.run("print(1 + 1)").stdout, end="")
except rlmd.ServerError as error:
    print(error)
rlmd.close_all()
"""


class SubInterpreters(test_client.PythonTest):
    def test_each_kind(self):
        """One that may start programs works, and ends; an isolated one says that it may not."""
        code = ("import _xxsubinterpreters as them\nfor isolated in (False, True):\n"
                f"    them.run_string(them.create(isolated=isolated), {SUB % str(SOURCE)!r})\n")
        done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True)
        if "_xxsubinterpreters" in done.stderr or "'isolated'" in done.stderr:
            self.skipTest("this Python has its sub-interpreters elsewhere")
        self.assertEqual(done.returncode, 0, done.stderr)
        first, second = done.stdout.splitlines()
        self.assertEqual(first, "printed 2")
        self.assertRegex(second, "cannot be started here: .*subinterpreters.*unix:PATH")


if __name__ == "__main__":
    unittest.main()

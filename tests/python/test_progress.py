"""The progress of a task: a tree of runs in a terminal, and in a notebook."""

import io
import os
import pathlib
import pty
import re
import subprocess
import sys
import types
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import test_client  # noqa: E402
import rlmd  # noqa: E402
from rlmd import _progress  # noqa: E402

PROGRAM = r'''
import rlmd
def model(messages, asked):
    if asked["depth"]:
        return {"text": "FINAL(deep)"}
    if asked["kind"] == "subcall":
        return {"text": "blue", "usage": {"inputTokens": 1, "outputTokens": 1, "cost": 0.25}}
    first = "Turn 1 of" in messages[-1]["content"]
    return {"text": "```python\nx = llm_query('?') + rlm_query('The part\\x1b[2J\\nbelow', 'text')\n```"
            if first else "FINAL_VAR(x)"}
print(rlmd.RLM(model, progress=True).completion("What is it, größe 🙂?", "text"))
'''


class Shown(test_client.PythonTest):
    def in_terminal(self):
        """The program's output, and all that a terminal at standard error gets."""
        ours, its = pty.openpty()
        self.addCleanup(os.close, ours)
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=its,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(test_client.ROOT / "python/src"), "COLUMNS": "100",
                 "PYTHONIOENCODING": "utf-8"})
        os.close(its)
        seen = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # EIO: the other end is closed
                break
            if not part:
                break
            seen += part
        said = process.stdout.read().decode()
        process.stdout.close()
        self.assertEqual(process.wait(), 0, seen)
        return said, seen.decode()

    def test_a_terminal(self):
        said, seen = self.in_terminal()
        self.assertEqual(said, "bluedeep\n")
        last = re.split("\x1b\\[J", seen)[-1].splitlines()
        self.assertRegex(last[0], r"^✓ What is it, größe 🙂\?  turn 2, 1 call, \$0\.2500, \d+ s$")
        self.assertRegex(last[1], r"^  ✓ The part \[2J below  turn 1$")
        self.assertEqual(len(last), 2)
        self.assertNotIn("\x1b[2J", seen)  # what a model writes moves no cursor

    def test_without_a_terminal(self):
        with mock.patch.object(sys, "stderr", io.StringIO()) as errors:
            answer = rlmd.RLM(test_client.answers("FINAL(well)"), progress=True).completion("?")
        self.assertEqual((answer, errors.getvalue()), ("well", ""))

    def test_a_notebook(self):
        shown = []

        class ZMQInteractiveShell:
            pass

        class Handle:
            def update(self, picture):
                shown.append(picture)

        def display(picture, display_id):
            shown.append(picture)
            return Handle()

        inner = types.ModuleType("IPython.display")
        inner.HTML, inner.display = str, display
        outer = types.ModuleType("IPython")
        outer.get_ipython, outer.display = ZMQInteractiveShell, inner
        with mock.patch.dict(sys.modules, {"IPython": outer, "IPython.display": inner}):
            rlmd.RLM(test_client.answers("FINAL(well)"), progress=True).completion("a <b>task</b>?")
        self.assertIn("✓ a &lt;b&gt;task&lt;/b&gt;?  turn 1", shown[-1])

    def test_many_runs(self):
        picture = _progress.Picture()
        for number in range(40):
            picture.hear({"event": "run", "run": str(number), "depth": min(number, 1), "task": "t"})
            if number % 2:
                picture.hear({"event": "end", "run": str(number), "error": None})
        lines = picture.lines()
        self.assertEqual(len(lines), _progress.LINES + 1)
        self.assertIn("and 28 more runs", lines[-1])
        self.assertFalse(any("✓" in line for line in lines))


if __name__ == "__main__":
    unittest.main()

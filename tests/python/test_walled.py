"""Code as other libraries have it run: a namespace of its own, functions that change, an end."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import test_client  # noqa: E402
import rlmd  # noqa: E402
from rlmd._walled import Walled  # noqa: E402


class WalledTest(test_client.PythonTest):
    def setUp(self):
        super().setUp()
        self.functions = {"llm_query": lambda prompt: prompt.upper()}
        self.one = Walled(self.functions, ["done"])
        self.addCleanup(self.one.close)

    def test_no_name_is_reserved(self):
        block = self.one.run("context = llm_query(prompt='é') + llm_query('b')\nprint(context, x)\nx", {"x": [1]})
        self.assertEqual((block.stdout, block.value, block.error), ("ÉB [1]\n", [1], None))
        self.assertEqual(self.one.run("FINAL = 7\nFINAL").value, 7)
        self.assertEqual(self.one.run("context + str(FINAL)").value, "ÉB7")
        self.assertEqual(self.one.run("{1}").value, "{1}")
        self.assertIsNone(self.one.run("").value)

    def test_functions_change(self):
        self.functions["more"] = lambda n, by=1: n + by
        self.assertEqual(self.one.run("more(1) + more(1, by=2) + more(n=1, by=3)").value, 9)
        self.functions["more"] = lambda n: 0
        self.assertEqual(self.one.run("more(1)").value, 0)
        block = self.one.run("more(m=1)")
        self.assertEqual(block.error["type"], "RuntimeError")
        self.assertIn("TypeError", block.error["message"])

    def test_the_end(self):
        block = self.one.run("print(1)\ndone(7, {1}, b=None)\nprint(2)")
        self.assertEqual((block.stdout, block.final_args, block.final_kwargs), ("1\n", [7, "{1}"], {"b": None}))
        block = self.one.run("try: done(8)\nexcept Exception: pass")
        self.assertEqual(block.final_args, [8])

    def test_errors(self):
        block = self.one.run("def f():\n    return 1/0\nf()")
        self.assertEqual((block.error["type"], block.final_args), ("ZeroDivisionError", None))
        self.assertIn('File "<code>", line 2', block.error["traceback"])
        self.assertNotIn("run_block", block.error["traceback"])
        self.assertEqual(self.one.run("1/").error["type"], "SyntaxError")
        self.assertEqual(self.one.run("while True: pass", timeout=0.05).error["type"], "KeyboardInterrupt")
        self.assertEqual(self.one.run("1 + 1").value, 2)
        with self.assertRaises((TypeError, ValueError)):
            self.one.run("1", {"x": object()})
        with self.assertRaises(rlmd.WorkerError):
            self.one.run("import os; os._exit(1)")


if __name__ == "__main__":
    unittest.main()

"""Things that a block may do to its REPL, and that the run goes on after it. Real workers throughout."""

import unittest

import patience
from harness import SystemTest, block, query, turn


class Repl(SystemTest):
    def outputs(self, *blocks, **more):
        return [(e["stdout"], e["error"]) for e in self.blocks(*blocks, **more)[0]]

    def test_namespace_persists(self):
        """ENG-8."""
        out = self.outputs("import math\ndef f(x): return math.floor(x)\ny = 3.7", "f(y)")
        self.assertEqual(out, [("", None), ("3\n", None)])

    def test_last_expression_is_echoed(self):
        """ENG-9: as a Python REPL does: repr, None not shown, `_` set."""
        out = self.outputs("'a' + 'b'", "None", "x = 1\nx", "_ + 1", "for i in range(2): i")
        self.assertEqual([o for o, _ in out], ["'ab'\n", "", "1\n", "2\n", ""])

    def test_stdout_before_an_exception_is_kept(self):
        out, error = self.outputs("print('before')\nx = 5\nraise ValueError('why')")[0]
        self.assertEqual(out, "before\n")
        self.assertIn("ValueError: why", error)

    def test_variables_before_an_exception_are_kept(self):
        self.assertEqual(self.outputs("x = 5\n1/0", "x")[1], ("5\n", None))

    def test_traceback_has_the_blocks_lines(self):
        """ENG-9: own line numbers and source lines, none of ours; also of earlier blocks."""
        error = self.outputs("def f():\n    return 1/0", "a = 1\n\nf()")[1][1]
        self.assertIn("line 3, in <module>\n    f()", error)
        self.assertIn("line 2, in f\n    return 1/0", error)
        self.assertTrue(error.rstrip().endswith("ZeroDivisionError: division by zero"))
        self.assertNotIn("repl.py", error)

    def test_syntax_error(self):
        error = self.outputs("x = = 1")[0][1]
        self.assertIn("x = = 1", error)
        self.assertIn("SyntaxError", error)

    def test_exits_end_the_block_only(self):
        for code in ("import sys; sys.exit()", "sys.exit(3)", "exit()", "raise SystemExit('bye')"):
            with self.subTest(code=code):
                out = self.outputs("import sys\nx = 1", code, "x")
                self.assertEqual(out[2], ("1\n", None))

    def test_os_exit_kills_the_worker_and_the_model_is_told(self):
        """A killed worker is replaced; what was lost is said; the run goes on."""
        entries = [
            turn(block("x = 1")),
            turn(block("import os; os._exit(3)") + "\n" + block("print('never')")),
            turn(block("'x' in globals(), len(context)")),
            turn("FINAL(ok)"),
        ]
        outcome = self.replay(entries, "--json", context="abc")
        executions = outcome.executions()
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertIn("exit status 3", executions[1]["error"])
        self.assertEqual(executions[2]["stdout"], "(False, 3)\n")
        told = outcome.result["trace"]["iterations"][2]["prompt"]["content"]
        self.assertIn("variables", told)
        self.assertIn("lost", told)

    def test_input(self):
        self.assertIn("EOFError", self.outputs("input('?')")[0][1])

    def test_deep_recursion(self):
        out = self.outputs("def f(n): return f(n + 1)\nf(0)", "'alive'")
        self.assertIn("RecursionError", out[0][1])
        self.assertEqual(out[1], ("'alive'\n", None))

    def test_recursion_that_overflows_the_c_stack(self):
        out = self.outputs(
            "import sys\nsys.setrecursionlimit(10**9)\nx = []\n"
            "for i in range(10**6): x = [x]\nprint(repr(x)[:1])",
            "'alive'",
        )
        self.assertTrue(out[0][1])
        self.assertEqual(out[1], ("'alive'\n", None))

    def test_memory_error(self):
        """G8: a MemoryError where possible, and the namespace survives."""
        out = self.outputs(
            "x = 1", "b = bytearray(10**10)", "x", arguments=["--worker-memory", "256M"]
        )
        self.assertIn("MemoryError", out[1][1])
        self.assertEqual(out[2], ("1\n", None))

    def test_overwritten_names_are_restored(self):
        """Names of ours come back before the next block; the user's stay as they are."""
        out = self.outputs(
            "del llm_query, context\nFINAL = None\nx = 1",
            "print(llm_query('q'), context, FINAL is None, x)",
            context="abc",
            entries=[query("a")],
        )
        self.assertEqual(out[1], ("a abc False 1\n", None))

    def test_replaced_stdout(self):
        for code in (
            "import sys; sys.stdout = None",
            "import sys; sys.stdout.close()",
            "import io, sys; sys.stdout = io.StringIO()",
            "import sys; del sys.stdout",
        ):
            with self.subTest(code=code):
                self.assertEqual(self.outputs(code, "print('here')")[1], ("here\n", None))

    def test_odd_values(self):
        out = self.outputs(
            "'\\ud800'",
            "print('\\udcff')",
            "float('nan')",
            "{3, 1}",
            "10**5000",
            "10**200",
            "b'\\xff'",
        )
        self.assertEqual([o for o, _ in out[:4]], ["'\\ud800'\n", "\\udcff\n", "nan\n", "{1, 3}\n"])
        self.assertIn("ValueError", out[4][1] or "ValueError")  # 3.8 has no limit on digits
        self.assertEqual(out[5][0], "1" + "0" * 200 + "\n")
        self.assertEqual(out[6][0], "b'\\xff'\n")

    def test_evil_repr(self):
        evil = "class E:\n    def __repr__(self): %s\nE()"
        out = self.outputs(
            evil % "raise ValueError('evil')",
            evil % "return 5",
            evil % "import os; raise SystemExit",
            "'alive'",
        )
        self.assertIn("evil", out[0][1])
        self.assertIn("TypeError", out[1][1])
        self.assertEqual(out[3], ("'alive'\n", None))

    def test_output_is_cut_to_head_and_tail(self):
        """LIB-13: with a note of how much was left out."""
        out = self.outputs(
            "print('H' * 600 + 'M' * 10000 + 'T' * 600)", arguments=["--max-output", "1000"]
        )[0][0]
        self.assertLess(len(out), 1200)
        self.assertTrue(out.startswith("H" * 400))
        self.assertTrue(out.rstrip().endswith("T" * 400))
        self.assertRegex(out, r"\d[\d,]* characters omitted")

    def test_a_flood_of_output_costs_no_memory(self):
        out = self.outputs(
            "for i in range(200000): print('x' * 1000)",
            arguments=["--worker-memory", "128M", "--max-output", "1000"],
        )
        self.assertIsNone(out[0][1])

    def test_any_final_variable(self):
        """LIB-14: str as it is, JSON-able values as JSON, else repr."""
        for code, answer in (
            ("'a\\nb'", "a\nb"),
            ("{'a': [1, None]}", '{"a": [1, null]}'),
            ("{1, 2}", "{1, 2}"),
            ("''", ""),
        ):
            with self.subTest(code=code):
                outcome = self.replay([turn(block("v = " + code) + "\nFINAL_VAR(v)")])
                self.assertEqual((outcome.status, outcome.out), (0, answer + "\n"))

    def test_helpers(self):
        """ENG-21, LIB-16."""
        out = self.outputs(
            "[len(c) for c in chunk_text('x' * 25, 10, 5)]",
            "chunk_text('x', 5, 5)",
            "search_context('N.', 2)",
            "count_matches('a')",
            "extract_json('x {\"a\": 1} y')",
            "[s['header'] for s in extract_sections('^# .*$')]",
            "SHOW_VARS()",
            context="# A\naNb\n# B\nc",
        )
        self.assertIn("ValueError", out[1][1])
        self.assertIn("'match': 'Nb'", out[2][0])
        self.assertIn("'start': 5", out[2][0])
        self.assertEqual(out[4][0], "{'a': 1}\n")
        self.assertEqual(out[5][0], "['# A', '# B']\n")
        self.assertEqual([e for i, (_, e) in enumerate(out) if i != 1], [None] * 6)

    def test_aliases(self):
        out = self.outputs(
            "print(llm_query_batched(['p']), llm_batch(['p']), batch_llm_query([]),"
            " batch_rlm_query([]), rlm_query_batched([]))",
            entries=[query("a")],
        )
        self.assertEqual(out[0], ("['a'] ['a'] [] [] []\n", None))


class Clock(SystemTest):
    """LIB-12: first an interrupt, then SIGKILL; LIB-3: waiting for calls does not count."""

    def setUp(self):
        super().setUp()
        self.limit = 1000 * patience.seconds(0.7)

    def timed(self, code, *more, **options):
        return self.blocks(
            "x = 1", code, "'x' in globals()",
            arguments=["--block-timeout", f"{self.limit:.0f}ms"], **options
        )

    def test_what_can_be_interrupted_keeps_its_variables(self):
        cases = {
            "loop": "while True: pass",
            "sleep": "import time; time.sleep(3600)",
            "arithmetic": "10 ** 10 ** 10",
            "ignoring": "import signal as s\ns.signal(s.SIGINT, s.SIG_IGN)\nwhile True: pass",
            "regex": "import re; re.match('(a+)+$', 'a' * 40 + 'b')",
            "wait": "import threading; threading.Event().wait()",
        }
        for name, code in cases.items():
            with self.subTest(name):
                executions, outcome = self.timed(code)
                self.assertIn("KeyboardInterrupt", executions[1]["error"])
                self.assertEqual(executions[2]["stdout"], "True\n")
                told = outcome.result["trace"]["iterations"][2]["prompt"]["content"]
                self.assertIn("interrupted", told)

    def test_what_cannot_be_interrupted_is_killed(self):
        cases = {
            "stubborn": "import time\nwhile True:\n  try: time.sleep(0.01)\n  except: pass",
            "in C": "sum(range(10 ** 12))",
            "deaf": "import ctypes\nctypes.CDLL(None).signal(2, 1)\nwhile True: pass",
        }
        for name, code in cases.items():
            with self.subTest(name):
                executions, outcome = self.timed(code)
                self.assertTrue(executions[1]["error"])
                self.assertEqual(executions[2]["stdout"], "False\n")

    def test_waiting_for_a_call_does_not_count(self):
        slow = {"match": {"kind": "llm_query"}, "response": {"text": "late", "delay": int(2 * self.limit)}}
        executions, _ = self.timed("llm_query('q')", entries=[slow])
        self.assertEqual((executions[1]["stdout"], executions[1]["error"]), ("'late'\n", None))
        self.assertLess(executions[1]["duration"], self.limit)

    def test_max_time_ends_a_run_that_would_go_on(self):
        """The whole run ends within its time: blocks that don't end, models that don't answer."""
        stuck = {"match": {"kind": "turn", "turn": 1}, "response": {"text": "late", "delay": 3600000}}
        for entries in (
            [turn(block("import time; time.sleep(3600)"))],
            [turn(block("1"), turn=0), stuck],
        ):
            with self.subTest(entries=entries[0]["response"]["text"]):
                outcome = self.replay(
                    entries + [query("in time", kind="forced")],
                    *["--json", "--max-time", patience.duration(6), "--block-timeout", "10h"],
                )
                self.assertEqual(outcome.result["output"], "in time", outcome.err)
                self.assertEqual(outcome.result["stopReason"], "max_time")


if __name__ == "__main__":
    unittest.main()

"""Blocks as models write them: worker/blocks.py, block_tree.py, usual_names.py, reserved.py."""

import unittest

from supervisor import Worker


class Blocks(unittest.TestCase):
    def setUp(self):
        self.worker = Worker(context=b"the input", more=[("history", b"of Rome")])
        self.addCleanup(self.worker.__exit__)

    def run_block(self, code, stdout="", notes="", error=None):
        """Runs a block and compares; `error` is part of its error."""
        done = self.worker.run(code)
        self.assertEqual(done["stdout"], stdout, done)
        if notes:
            self.assertRegex(done["stderr"], notes)
        else:
            self.assertEqual(done["stderr"], "")
        if error is None:
            self.assertIsNone(done["error"], done["error"])
        else:
            self.assertIn(error, done["error"] or "")
        return done


class AsWritten(Blocks):
    def test_a_tag_in_the_first_line(self):
        self.run_block("python\nprint(1)", "1\n")
        self.run_block("repl\nprint(2)", "2\n")
        self.run_block("python\n1/0", error='line 2, in <module>')
        self.run_block("python", error="NameError")
        self.run_block("python = [3]")
        self.run_block("python\npython.append(4)\npython", "[3, 4]\n")

    def test_a_dialogue_shows_each_value(self):
        self.run_block(
            ">>> x = 5\n>>> x + 1\n6\n>>> for i in 'ab':\n...     print(i)\n...\na\nb\n>>> x * 2\n10",
            "6\na\nb\n10\n", r"^\[note\] 4 lines without a prompt .* taken for output",
        )
        self.run_block("_", "10\n")

    def test_a_dialogue_keeps_its_lines(self):
        done = self.run_block(">>> x = 5\n>>> # why\n\n>>> x / 0\n", error="line 4, in <module>\n")
        self.assertIn("    x / 0\n", done["error"])
        self.assertNotIn(">>>", done["error"])

    def test_prompts_in_a_text_stay(self):
        self.run_block("x = '''\n>>> y\n'''\nx", "'\\n>>> y\\n'\n")
        self.run_block("x = 1\n>>> x", error="Hint: write the code alone")

    def test_fences_around_the_code(self):
        self.run_block("```python\nx = 7\nx\n```", "7\n")
        self.run_block("x = '''\n```\n'''\nx", "'\\n```\\n'\n")
        self.run_block("x = 1\n```\ny = 2\n", error="line 2 is a fence")

    def test_signs_that_only_look_like_pythons(self):
        for code, shown, note in (
            ("x\u00a0=\u00a02\nx", "2", "U+00A0"),
            ("print\uff08'a\uff0cb'\uff0c 1\uff09", "a\uff0cb 1", "U+FF08, U+FF09, U+FF0C"),
            ("[n for n in range(5) if n &gt; 2 and n &lt; 4]", "[3]", "`&gt;` and the like"),
            ("'&gt;'", "'&gt;'", ""),
            ("'a\u00a0b'", "'a\\xa0b'", ""),
        ):
            with self.subTest(code):
                done = self.worker.run(code)
                self.assertEqual((done["error"], done["stdout"]), (None, shown + "\n"))
                self.assertIn(note, done["stderr"])
                self.assertEqual(bool(note), bool(done["stderr"]))

    def test_commands_of_a_notebook(self):
        self.run_block("!pip install pandas\nprint('ran')", "ran\n",
                       r"^\[note\] line 1, '!pip install pandas', was left out: nothing can be inst")
        self.run_block("if True:\n    !ls\nprint(2)", "2\n", "there is no shell")
        self.run_block("%%time\n%time y = 5\ny", "5\n")
        self.run_block("y = 6\nz = !ls", error="there is no shell")
        self.run_block("%%bash\necho hi", error="no other language")
        self.run_block("y, '''\n!ls\n%cd x\n'''", "(5, '\\n!ls\\n%cd x\\n')\n")

    def test_return_outside_of_a_function_ends_the_block(self):
        note = r"^\[note\] `return` outside of a function ended this block\n$"
        self.run_block("for i in range(9):\n    if i == 2:\n        return i\n    print(i)",
                       "0\n1\n2\n", note)
        self.run_block("x = 1\nreturn\nx = 2", "", note)
        self.run_block("try:\n    return x\nexcept Exception:\n    x = 3\nfinally:\n    print('f')",
                       "f\n1\n", note)
        self.run_block("def f():\n    return 3\nclass C:\n    f = lambda self: f()\nreturn C().f()",
                       "3\n", note)
        self.run_block("if x > 5:\n    return\nx", "1\n")

    def test_return_that_would_be_caught_is_refused(self):
        self.run_block("x = 1\ntry:\n    return x\nexcept:\n    x = 2", error="Hint: a block is no ")
        self.run_block("class C:\n    return", error="Hint: a block is no function")
        self.run_block("'x' in globals()", "False\n")

    def test_errors_of_syntax_teach(self):
        self.run_block("context = '''\nthe input", error="is in `context` already")
        self.run_block("print \u201chi\u201d", error="typographic quotes")
        self.run_block("print 'x'", error="Did you mean print(")
        self.run_block("x = = 1", error="invalid syntax\n")


class UsualNames(Blocks):
    def test_a_module_without_its_import(self):
        self.run_block("json.dumps({1: 2}), re.sub('a', 'b', 'a')", "('{\"1\": 2}', 'b')\n",
                       r"^\[note\] imported for you: import json; import re\n$")
        self.run_block("json.dumps(3)", "'3'\n")
        self.run_block("def f():\n    return math.floor(2.5)\nf()", "2\n", "import math")

    def test_common_names(self):
        self.run_block("Counter('aab')['a'], defaultdict(int)[0]", "(2, 0)\n",
                       "from collections import Counter; from collections import defaultdict")
        self.run_block("def f(x: Optional[str]) -> List[str]: return [x]\nf(1)", "[1]\n", "typing")
        self.run_block("concurrent.futures.ThreadPoolExecutor is ThreadPoolExecutor", "True\n",
                       "import concurrent.futures; from concurrent.futures import")

    def test_two_meanings_are_told_by_their_use(self):
        self.run_block("datetime.now().year > 2000", "True\n", "from datetime import datetime")
        self.run_block("del datetime")
        self.run_block("datetime.datetime.now().year > 2000", "True\n", "import datetime\n")
        self.run_block("del datetime")
        self.run_block("datetime.datetime, datetime.now()", error="NameError")

    def test_a_name_of_the_users_is_the_users(self):
        for code, shown in (
            ("json = 5\njson", "5\n"),
            ("def f(json): return json\nf(6)", "6\n"),
            ("for math in [7]: print(math)", "7\n"),
            ("from string import digits as re\nre[:2]", "'01'\n"),
            ("class Counter: n = 8\nCounter.n", "8\n"),
            ("[time for time in [9]]", "[9]\n"),
            ("x = [9]\nx.copy()", "[9]\n"),
            ("try: 1/0\nexcept Exception as csv: print(10)", "10\n"),
        ):
            with self.subTest(code):
                with Worker() as self.worker:
                    self.run_block(code, shown)

    def test_what_is_not_clear_stays_an_error(self):
        for code in ("string.upper()", "random", "product([1], [2])", "frobnicate()", "queue + 1",
                     "time()", "np.array([1])"):
            with self.subTest(code):
                self.run_block(code, error="NameError")


class Reserved(Blocks):
    def test_an_assignment_that_is_undone_is_said(self):
        self.run_block("context = 'abc'\nlen(context)", "3\n",
                       r"^\[note\] `context` is the input and is all there again in the next "
                       r"block: .* is dropped. Use another name for yours\n$")
        self.run_block("context", "'the input'\n")
        self.run_block("def llm_query(p):\n    return 'stub'\nllm_query(1)", "'stub'\n",
                       r"^\[note\] `llm_query` is a function of this session")
        self.run_block("llm_query('a')", "'<a>'\n")
        self.run_block("for history in 'ab': pass", "", "`history` is the input")
        self.run_block("class LLMError(Exception): pass", "", "`LLMError` is a name of this session")
        self.run_block("del chunk_text", "", "`chunk_text` .* you deleted it; it is there again")

    def test_once_a_name(self):
        self.run_block("context = 1", "", "`context`")
        self.run_block("context = 2")
        self.run_block("history = context = 3", "", "`history`")

    def test_several_in_one_note(self):
        self.run_block("FINAL = llm_query = 1", "", "`llm_query`, `FINAL` are functions of this")
        done = self.run_block("globals().clear()", "", "and [0-9]+ more")
        self.assertLess(len(done["stderr"].splitlines()), 4)

    def test_what_makes_no_difference_is_not_said(self):
        for code in ("context = context", "context = 'the ' + 'input'", "context = str(context)",
                     "llm_query = llm_query", "def f():\n    context = 5\nf()",
                     "x = [context for context in 'ab']", "answer = 5", "mine = context\ndel mine"):
            with self.subTest(code):
                self.run_block(code)

    def test_an_object_of_the_users_is_not_asked(self):
        self.run_block("class E(str):\n    def __eq__(self, other): 1/0\n    __hash__ = str.__hash__\n"
                       "context = FINAL = E('the input')", "", "`FINAL`.*\n.*`context`|`context`")


if __name__ == "__main__":
    unittest.main()

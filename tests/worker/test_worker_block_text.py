"""worker/block_text.py: a block as models write it, and the Python that it means."""

import ast
import os
import random
import sys
import unittest
from pathlib import Path

from supervisor import ROOT

WORKER = Path(ROOT, "worker")

sys.path.insert(0, os.path.join(ROOT, "worker"))

import block_text  # noqa: E402


def error_of(text):
    try:
        compile(text, "<block>", "exec")
    except SyntaxError as error:
        return error
    raise AssertionError(f"{text!r} is Python")


class Tags(unittest.TestCase):
    def test_a_tag_in_the_first_line_is_left_out(self):
        for tag in ("python", "Python", "python3", "python3.11", "py", "repl", "python-repl",
                    "ipython", "tool_code", "code", "  python "):
            with self.subTest(tag):
                text = block_text.without_tag(f"{tag}\nx = 1", lambda _name: False)
                self.assertEqual(text, "\nx = 1")

    def test_what_is_no_tag_stays(self):
        for text in ("python", "python\n", "python = 1\nx", "python()\nx", "pythons\nx",
                     "x\npython", "", "\npython\nx", "json\nx", "return\nx"):
            with self.subTest(text):
                self.assertEqual(block_text.without_tag(text, lambda _name: False), text)

    def test_a_variable_of_that_name_is_meant(self):
        self.assertEqual(block_text.without_tag("code\nx", {"code"}.__contains__), "code\nx")


class Prompts(unittest.TestCase):
    def test_the_code_is_taken_and_outputs_are_not(self):
        text = ">>> x = 5\n>>> x\n5\n>>> for i in x:\n...     i\n...\n0\n\n>>> y"
        code, outputs = block_text.without_prompts(text)
        self.assertEqual(code, "x = 5\nx\n\nfor i in x:\n    i\n\n\n\ny")
        self.assertEqual(outputs, 2)
        self.assertEqual(code.count("\n"), text.count("\n"))

    def test_comments_and_line_ends(self):
        code, outputs = block_text.without_prompts("# first\r\n>>> x\r\n# then\r\n>>>y")
        self.assertEqual((code, outputs), ("# first\nx\n# then\ny", 0))

    def test_an_ellipsis_in_an_output_is_none_of_the_code(self):
        self.assertEqual(block_text.without_prompts(">>> x\n[1,\n... 2]")[0], "x\n\n")

    def test_code_before_the_first_prompt_is_not_dropped(self):
        for text in ("x = 1\n>>> x", "def f():\n    '''\n    >>> f()\n    '''", "", "x >> y", "...",
                     "# >>> x"):
            with self.subTest(text):
                self.assertIsNone(block_text.without_prompts(text))


class Fences(unittest.TestCase):
    def test_around_the_code(self):
        for text, code in (("```python\nx\n```", "\nx\n"), ("x\n```", "x\n"),
                           ("\n~~~\nx\n\n", "\n\nx\n\n"), ("```", "")):
            with self.subTest(text):
                self.assertEqual(block_text.without_fences(text), code)

    def test_within_it(self):
        for text in ("x\n```\ny", "x = '''\n```\n'''", "", "\n", "x = '```'", "``` x y"):
            with self.subTest(text):
                self.assertIsNone(block_text.without_fences(text))


class Signs(unittest.TestCase):
    def test_what_looks_like_pythons_signs(self):
        for text, plain in (
            ("x\u00a0=\u00a01", "x = 1"),
            ("for x in y:\n\u3000\u3000\u3000\u3000pass", "for x in y:\n    pass"),
            ("print\u200b(x\u2060)\ufeff", "print(x)"),
            ("print\uff08x\uff0cy\uff09", "print(x,y)"),
            ("if x\uff1a\n  y \uff1d \uff11", "if x:\n  y = 1"),
            ("x \u2212 1 \u2013 2 \u2264 3", "x - 1 - 2 <= 3"),
            ("f('\uff08', \"\u00a0\")\uff0c 1  # \uff0c", "f('\uff08', \"\u00a0\"), 1  # \uff0c"),
            ("'\\'\uff0c'\uff0c\"\"\"\n\uff0c'\n\"\"\"", "'\\'\uff0c',\"\"\"\n\uff0c'\n\"\"\""),
        ):
            with self.subTest(text):
                found, note = block_text.with_plain_signs(text)
                self.assertEqual(found, plain)
                self.assertIn("U+", note)
                self.assertEqual(found.count("\n"), text.count("\n"))

    def test_texts_stay(self):
        for text in ("x = 1", "x = 'a\uff0cb'", "# \u00a0", "gr\u00fc\u00dfe = 1",
                     "x = \"\"\"\u00a0\"\"\"", "\u540d = '\u3001'", "print(\u201cx\u201d)"):
            with self.subTest(text):
                self.assertIsNone(block_text.with_plain_signs(text))

    def test_what_was_escaped_for_html(self):
        for text, plain in (
            ("if x &gt; 1 and y &lt; 2: pass", "if x > 1 and y < 2: pass"),
            ("print(&quot;a&quot;, &#39;b&#39;)", "print(\"a\", 'b')"),
            ("re.findall('(?P&lt;x&gt;a)', s)[0] &amp; 1", "re.findall('(?P<x>a)', s)[0] & 1"),
        ):
            self.assertEqual(block_text.without_entities(text), plain)
        for text in ("x = '&gt;'", "s.replace(\"&amp;\", '&')", "x &gt", "# a &lt; b", "x & gt; y",
                     "\"\"\"\n&gt;\n\"\"\"", "html.unescape('&lt;')"):
            self.assertIsNone(block_text.without_entities(text), text)


class Commands(unittest.TestCase):
    def test_a_line_is_left_out_and_said(self):
        for line, said in (("!pip install pandas", "nothing can be installed"),
                           ("%pip install -q x", "nothing can be installed"),
                           ("!python3 -m pip install x", "nothing can be installed"),
                           ("!ls -l data", "no shell"), ("!!ls", "no shell"),
                           ("%matplotlib inline", "notebook"), ("%load_ext autoreload", "notebook"),
                           ("%%capture", "notebook")):
            with self.subTest(line):
                text, note = block_text.without_command(f"x = 1\n    {line}\ny", 2)
                self.assertEqual(text, "x = 1\n    pass\ny")
                self.assertIn("line 2, ", note)
                self.assertIn(said, note)

    def test_what_is_timed_is_run(self):
        for line, code in (("%time x = f()", "x = f()"), ("%timeit -n 10 -r 3 f(x)", "f(x)"),
                           ("%%time", "pass"), ("%%timeit -n 3", "pass"), ("%time", "pass")):
            with self.subTest(line):
                self.assertEqual(block_text.without_command(line, 1), (code, None))

    def test_what_more_hangs_on_is_not_left_out(self):
        """Another language, an assigned output, a remainder of a number."""
        for line in ("%%bash", "%%writefile x.py", "%%html", "files = !ls", "% 3", "%rest", "x % y",
                     "!", "! = 5", "x != 5", "", "%run other.py"):
            with self.subTest(line):
                self.assertIsNone(block_text.without_command(line, 1))
        for number in (0, 2, -1):
            self.assertIsNone(block_text.without_command("!ls", number))


class Advice(unittest.TestCase):
    def test_an_error_says_what_to_do(self):
        for text, said in (
            ("x = 1\ny = '''cut", "triple quotes that begins in line 2"),
            ("print(\u201chi\u201d)", "typographic quotes"),
            ("x = 1\n```\ny = 2", "line 2 is a fence"),
            ("x = !ls", "no shell"),
            ("%%bash\nls", "no other language"),
            ("if 1:\n\tx = 1\n        y = 2", "spaces only"),
            ("x = 1\n>>> x", "without the prompts"),
            ("def f():\n    await g()", "async def"),
        ):
            with self.subTest(text):
                self.assertIn(said, block_text.advice(text, error_of(text)))

    def test_what_python_says_well_is_left_to_it(self):
        for text in ("x = = 1", "print 'x'", "f(x for x in y, 1)", "if x\n    y", "x = '\u201d",
                     "1 +", "a!b"):
            with self.subTest(text):
                said = block_text.advice(text, error_of(text))
                self.assertNotIn("notebook", said or "")
                if "\u201d" not in text:
                    self.assertIsNone(said)


class Parts(unittest.TestCase):
    """A block in two parts, where both compile, is the block: nothing of it is lost or shown."""

    def compare(self, text):
        """Whether it was taken apart, and then into what the parser has."""
        parts = block_text.parts_of(text)
        if parts is None:
            return False
        before, last, is_value = parts
        self.assertEqual(before + last, text)
        try:
            first, second = ast.parse(before).body, ast.parse(last).body
            compile(last, "last", "eval" if is_value else "exec")
        except (SyntaxError, ValueError):
            return False
        whole = ast.parse(text).body
        self.assertEqual(list(map(ast.dump, first + second)), list(map(ast.dump, whole)), text)
        self.assertEqual(len(second), 1, text)
        self.assertEqual(isinstance(second[0], ast.Expr), is_value, text)
        return True

    def test_how_blocks_end(self):
        for text in ("x = 1", "x", "print(x)\n\n", "x = 1\nx", "x += 1", "x[0] = y == 1", "x == 1",
                     "f(\n  1,\n)", "for a in b:\n    print(a)\nelse:\n    c\n", "x  # y\n# z\n",
                     "try:\n    a\nexcept B:\n    c\nfinally:\n    d", "if a:\n  b\nelif c:\n  d", "[\n  1\n]",
                     "x = (\n  1\n)", "'a' 'b'", "a = '''\nb\n'''\na", "import a\nimport b", "a if b else c",
                     "def f():\n    return 1\nf()", "x = {\n'a': 1,\n}\nx['a']", "x, y = 1, 2", "not x", "-x",
                     "'a = b',", "x['a = b']", "x['a', 0] = 1"):
            with self.subTest(text):
                self.assertTrue(self.compare(text))

    def test_what_takes_a_parser(self):
        for text in ("", "# a", "x = 1; x", "x\r\ny", "x: int = 5", "lambda x=3: x", "@a\ndef f(): pass",
                     "a = '''\nb\n'''", "f(a,\nb)", "x = '''\nfor a\n  b'''", "  x", "return x", "x = 1 \\\n+ 2",
                     "with a: pass\nx = ", "x = 'a\n", "*x", "[a\nfor a in b]",
                     "f(\n1)"):
            with self.subTest(text):
                taken = self.compare(text)
                self.assertEqual(taken, text == "lambda x=3: x")

    def test_pieces_of_real_code(self):
        """Any lines of our own modules: most end in the midst of something."""
        dice = random.Random(3)
        taken = 0
        for path in sorted(WORKER.glob("*.py")):
            lines = path.read_text().splitlines(keepends=True)
            for _ in range(60):
                start = dice.randrange(len(lines))
                text = "".join(lines[start:start + dice.randint(1, 40)])
                taken += self.compare(block_text.dedent(text))
        self.assertGreater(taken, 200)


if __name__ == "__main__":
    unittest.main()

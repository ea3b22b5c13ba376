"""outline(): sources in the styles that are in use, in outlines/NAME.txt, and what is shown.

Behind what is defined stands a mark, `DEF kind name`, or several: an outline is those, and no more.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import unittest

import patience
from test_worker_code_base import CodeBaseTest

TREE = pathlib.Path(__file__).resolve().parents[2]
STYLES = pathlib.Path(__file__).parent / "outlines"
MARK = re.compile(r"\bDEF (?!:)(.*?)(?: *\*/)?$")
# Of lines that go on, so that a mark would belong to them.
UNMARKED = {"gnu.c": [(5, "macro", "A"), (12, "function", "libx_run")],
            "raw.go": [(3, "constant", "pattern")]}

WITHOUT = {
    "comment.c": "/* int f(void) { } */\n",
    "declares.h": "int f(void);\nextern struct x *g(int);\n",
    "nothing.py": "print('def f(): pass')\n",
    "empty.js": "",
    "none.rb": "puts 'def f'\n",
}
NOT_UNDERSTOOD = {
    "unended.c": "BEGIN_SOMETHING {\nwhatever\n",
    "macros.cc": 'TEST_CASE("only") {\n}\n',
    "unended.js": "describe('all', () => {\n",
    "odd.go": "\tfunc f() {}\n",
}


def marked(path, text):
    found = list(UNMARKED.get(path, []))
    for number, line in enumerate(text.split("\n"), 1):
        mark = MARK.search(line)
        if mark:
            found += [(number, *each.split(" ", 1)) for each in mark.group(1).split("; ")]
    return sorted(found)


class Styles(CodeBaseTest):
    files = {path.stem: path.read_text() for path in sorted(STYLES.iterdir())}

    def test_styles(self):
        for path, text in self.files.items():
            with self.subTest(path):
                found = self.value(f"[tuple(each) for each in outline({path!r})]")
                wanted = marked(path, text)
                self.assertTrue(wanted)
                self.assertEqual(sorted(found), wanted)
                self.assertEqual([each[0] for each in found], sorted(each[0] for each in found))

    def test_every_language_has_a_style(self):
        from outlines import KNOWN
        from languages import language_of

        styles = {language_of(path) for path in self.files} | {"C++"}
        self.assertEqual(set(KNOWN) - styles, {"Make", "Markdown", "Shell"})


class Certain(CodeBaseTest):
    files = {**WITHOUT, **NOT_UNDERSTOOD, "late.c": "x {\n" * 3000 + "int f(void)\n{\n}\n"}

    def test_nothing_is_defined(self):
        for path in WITHOUT:
            self.assertEqual(self.value(f"outline({path!r})"), [], path)

    def test_what_is_not_understood_says_so(self):
        for path in NOT_UNDERSTOOD:
            with self.subTest(path):
                self.assert_raises(f"outline({path!r})",
                                   rf"ValueError: .*{path} cannot be outlined: .*read_lines")

    def test_nested_deep(self):
        """Whatever braces do, there is an answer."""
        self.assertIsNone(self.worker.run("try:\n    outline('late.c')\n"
                                          "except ValueError:\n    pass")["error"])


class Long(CodeBaseTest):
    """Lines of what looks like the beginning of something cost no more than others do."""

    files = {name: (piece * (60_000 // len(piece)) + "\n") for name, piece in {
        "a.c": "int f(", "b.c": "/*", "c.c": "'", "d.c": "struct s {", "e.cc": "template<",
        "f.h": "a::", "g.js": "`${", "h.js": "x = /", "i.js": "f(x){", "j.ts": "a: (b) => ",
        "k.rs": "'a", "l.rb": "%w(", "m.rb": "<<A", "n.php": "<?php <<<A", "o.java": "@A(",
        "p.cc": "A() : b{", "q.c": "#if x\n{", "r.ts": "class A<", "s.go": "type (\n",
        "t.cs": "x => ", "u.rb": '"#{x}', "v.c": "struct ", "w.js": "a.b=", "x.c": "{",
    }.items()}

    def test_long(self):
        for path in self.files:
            with self.subTest(path):
                self.assertIsNone(self.worker.run(
                    f"try:\n    outline({path!r})\nexcept ValueError:\n    pass")["error"])


@unittest.skipUnless(shutil.which("ctags"), "Universal Ctags is the judge")
class Judged(unittest.TestCase):
    """This tree itself, by tools/outline-score, which is told of others by hand."""

    def test_this_tree(self):
        done = subprocess.run(
            [sys.executable, TREE / "tools/outline-score", "--hold", "97", "1",
             TREE / "src", TREE / "include", TREE / "worker", TREE / "tests/async"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=patience.hung())
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, r"(?m)^C  .*\n(.*\n)*Python  ")


if __name__ == "__main__":
    unittest.main()

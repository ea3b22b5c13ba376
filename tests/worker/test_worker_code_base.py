"""Files by path and line: against grep, git and what stands in the files."""

import ast
import json
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import unittest

from supervisor import ROOT, Worker, index_of

sys.path.insert(0, os.path.join(ROOT, "worker"))

FILES = {
    "README.md": "# Hello\nbody",
    "src/net/tcp.c": "int f(void)\n{\n\treturn 1; /* foo */\n}\n",
    "src/net/udp.c": "x foo\r\nfoo bar\x0cfoo\u2028foo\n\nlast foo",
    "src/main.py": "import os\n\ndef main():\n    pass\n",
    "src/empty": "",
    "docs/ä.md": "über\nzwei\n",
    "docs/ä/ö/deep.TXT": "\n\n\nFoo",
}


def put_together(files):
    """As the loader does: the text, and the (path, first character, characters) of each."""
    text, entries = "", []
    for path, content in files.items():
        if text and not text.endswith("\n"):
            text += "\n"
        text += f"===== {path} =====\n"
        entries.append((path, len(text), len(content)))
        text += content
    return text, entries


class CodeBaseTest(unittest.TestCase):
    files, changes = FILES, ""

    def setUp(self):
        text, entries = put_together(self.files)
        self.worker = Worker(context=text.encode(), indexes=[index_of(entries, self.changes)],
                             max_output=10_000_000)
        self.addCleanup(self.worker.__exit__)

    def value(self, code):
        done = self.worker.run(f"print(ascii(({code})))")
        self.assertIsNone(done["error"], done["error"])
        return ast.literal_eval(done["stdout"])

    def assert_raises(self, code, pattern):
        error = self.worker.run(code)["error"]
        self.assertRegex(error or "", f"(?m)^{pattern}")
        for ours in ("code_base.py", "source.py", "NoSuchFile"):
            self.assertNotIn(ours, error)


class Lines(CodeBaseTest):
    def grep(self, arguments):
        return self.value(f"[tuple(each) for each in grep({arguments})]")

    def test_every_line_of_every_file(self):
        """Ended by a line feed alone; what is read by its number is what was found."""
        found = self.grep("''")
        for path, text in FILES.items():
            lines = text.split("\n")
            if not lines[-1]:
                lines.pop()
            self.assertEqual([each for each in found if each[0] == path],
                             [(path, number, line) for number, line in enumerate(lines, 1)])
            for number, line in enumerate(lines, 1):
                shown = self.value(f"read_lines({path!r}, {number}, {number})")
                self.assertEqual(shown.removesuffix("\n"), line)
            self.assertEqual(self.value(f"read_lines({path!r}, 1, {len(lines)})") if lines
                             else "", text)

    def test_grep(self):
        self.assertEqual(self.grep("'foo'"), [
            ("src/net/tcp.c", 3, "\treturn 1; /* foo */"),
            ("src/net/udp.c", 1, "x foo\r"),
            ("src/net/udp.c", 2, "foo bar\x0cfoo\u2028foo"),
            ("src/net/udp.c", 4, "last foo"),
        ])
        self.assertEqual(self.grep("'FOO$', ignore_case=True"),
                         [("src/net/udp.c", 2, "foo bar\x0cfoo\u2028foo"),
                          ("src/net/udp.c", 4, "last foo"), ("docs/ä/ö/deep.TXT", 4, "Foo")])
        self.assertEqual(self.grep("r'^\\w+ \\w+', 'src/net/*'"),
                         [("src/net/tcp.c", 1, "int f(void)"), ("src/net/udp.c", 1, "x foo\r"),
                          ("src/net/udp.c", 2, "foo bar\x0cfoo\u2028foo"),
                          ("src/net/udp.c", 4, "last foo")])
        self.assertEqual(self.grep("'zwei', ['docs/', 'src/']"), [("docs/ä.md", 2, "zwei")])
        self.assertEqual(self.value("grep('zwei')[0].path, grep('zwei')[0].line, "
                                    "grep('zwei')[0].text"), ("docs/ä.md", 2, "zwei"))
        self.assertEqual(self.grep("'nowhere'"), [])
        self.assertEqual(self.grep("'foo\\nbar'"), [])
        self.assertEqual(self.grep("'===='"), [])  # no header is part of a file

    def test_read_lines(self):
        self.assertEqual(self.value("read_lines('src/net/udp.c', 2, 3)"),
                         "foo bar\x0cfoo\u2028foo\n\n")
        self.assertEqual(self.value("read_lines('src/net/udp.c', 4, 99)"), "last foo")
        self.assertEqual(self.value("read_lines('./README.md')"), FILES["README.md"])
        self.assertEqual(self.value("read_lines(path='src/empty')"), "")
        self.assert_raises("read_lines('README.md', 3)", "ValueError: .*has 2 lines, and none is 3")
        self.assert_raises("read_lines('docs/ä.md', 3)", "ValueError: .*has 2 lines")
        self.assert_raises("read_lines('README.md', 2, 1)", "ValueError: .*is before")
        self.assert_raises("read_lines('README.md', 0)", "ValueError: .*at least 1")

    def test_errors_name_what_is_near(self):
        for code, pattern in (
            ("read_lines('udp.c')", "KeyError: there is no file 'udp.c'; near it: 'src/net/udp.c'"),
            ("context.files['src/net/upd.c']", "KeyError: .*'src/net/udp.c'"),
            ("context.files['/home/me/src/main.py']", "KeyError: .*near it: 'src/main.py'"),
            ("context.files[3]", "KeyError: there is no file 3"),
            ("outline('Readme.MD')", "KeyError: .*'README.md'"),
            ("tree('nett')", "ValueError: .*no folder 'nett'"),
            ("tree('net')", "ValueError: .*near it: 'src/net/'"),
            ("context.subset('src/nex/')", "ValueError: .*near it: .*'src/net/'"),
            ("context.subset()", r"ValueError: .*context.subset\(\"src/\"\)|ValueError: subset"),
            ("context.subset(3)", "TypeError"),
            ("grep('(')", r"re\.(error|PatternError): "),
            ("grep(3)", "TypeError: grep\\(\\): pattern must be a str"),
            ("grep('a', ctx='text')", "TypeError: .*context.subset"),
            ("outline('src/empty')", "ValueError: .*Markdown, .*Python, .*Rust"),
            ("changes()", "ValueError: .*nothing was compared"),
        ):
            with self.subTest(code):
                self.assert_raises(code, pattern)
        self.assertEqual(self.value("context.files.get('x', 5), 'x' in context.files"), (5, False))

    def test_names_are_restored(self):
        note = self.worker.run("grep = 1\ndel tree")["stderr"]
        self.assertIn("`grep` is a function of this session", note)
        self.assertIn("`tree`", note)
        self.assertEqual(len(self.grep("'zwei'")), 1)


class Trees(CodeBaseTest):
    def test_tree(self):
        shown = self.value("tree()")
        self.assertRegex(shown, r"^all: 7 files, \d+ B, about \d+ tokens\. .*C \d+ %")
        self.assertIn("to read first: README.md, src/main.py\n", shown)
        self.assertIn("\nsrc/  4 files, ", shown)
        self.assertIn("\n  net/  2 files, ", shown)
        self.assertNotIn("tcp.c", shown)
        self.assertIn("\n    tcp.c  ", self.value("tree(depth=3)"))
        self.assertIn("\n  ä/ö/  1 file, 6 B", shown)  # a folder with nothing but a folder
        self.assertRegex(self.value("tree('src/net/')"), r"^src/net/: 2 files.*\ntcp.c  .*\nudp.c ")
        self.assertRegex(self.value("tree('src/main.py')"), "^src/main.py  .*Python")


class Parts(CodeBaseTest):
    def test_subset(self):
        """A context of its own: whole paths, the same helpers, and a part of it again."""
        self.worker.run("part = context.subset('src/net', '**/*.md')")
        chosen = [path for path in FILES if path.startswith("src/net/") or path.endswith(".md")]
        self.assertEqual(self.value("dict(part.files)"), {path: FILES[path] for path in chosen})
        self.assertEqual(self.value("list(part.files)"), chosen)
        self.assertEqual(self.value("str(part)"),
                         put_together({path: FILES[path] for path in chosen})[0])
        self.assertEqual(self.value("isinstance(part, str), 'src/main.py' in part.files"),
                         (True, False))
        self.assertEqual(self.value("[each.line for each in grep('foo', ctx=part)]"), [3, 1, 2, 4])
        self.assertEqual(self.value("find_files('**', ctx=part.subset('docs/'))"), ["docs/ä.md"])
        self.assertEqual(self.value("read_lines('docs/ä.md', 2, 2, ctx=part)"), "zwei\n")
        self.worker.run("two = context.subset(['src/main.py', 'README.md'])")
        self.assertEqual(self.value("two.files['README.md']"), FILES["README.md"])
        self.assertEqual(self.value("context.subset('**') == context"), True)
        self.assert_raises("part.files['src/main.py']", "KeyError: there is no file")
        self.assert_raises("part.subset('src/main.py')", "ValueError: ")


class Compared(CodeBaseTest):
    changes = json.dumps([{"path": "ä", "status": "deleted", "hunks": []}])

    def test_changes(self):
        """Anew each time: what code does to it is not there the next time."""
        self.worker.run("changes().clear()")
        self.assertEqual(self.value("changes()"),
                         [{"path": "ä", "status": "deleted", "hunks": []}])


class WithoutFiles(unittest.TestCase):
    def test_what_serves_instead_is_told(self):
        with Worker() as worker:
            for code in ("tree()", "grep('x')", "find_files('*')", "read_lines('a')", "changes()"):
                self.assertRegex(worker.run(code)["error"],
                                 r"ValueError: \w+\(\): no input was made of files.*search_context")
        text, entries = put_together({"a": "1\n"})
        with Worker(context=b"c", more=[("repo", text.encode())],
                    indexes=[b"", index_of(entries)]) as worker:
            self.assertEqual(worker.run("find_files('*'), tree(ctx=repo)[:11]")["stdout"],
                             "(['a'], 'all: 1 file')\n")


def real_tree(most):
    """Files of this machine's Python, as text, and where they are."""
    base = pathlib.Path(sysconfig.get_path("stdlib"))
    paths = sorted(path for path in base.glob("[a-l]*/**/*") if path.is_file()
                   and path.suffix in (".py", ".txt", ".c", ".h", "")
                   and "__pycache__" not in path.parts)
    files = {}
    for path in paths:
        data = path.read_bytes()
        if len(files) < most and b"\0" not in data and len(data) < 200_000:
            files[str(path.relative_to(base))] = data
    return base, files


@unittest.skipUnless(shutil.which("grep") and shutil.which("git"), "grep and git are the judges")
class Judged(unittest.TestCase):
    """The same answers as grep -n and git ls-files give."""

    @classmethod
    def setUpClass(cls):
        _base, files = real_tree(300)
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="rlmd-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        for odd in ("top.py", "a/b.py", "a/b/c.py", "a/.hidden", "a-b/[x].py", "a/b/d/e.txt",
                    "a*b"):
            files.setdefault(odd, b"one\ntwo\r\nthree")
        for path, data in files.items():
            (cls.dir / path).parent.mkdir(parents=True, exist_ok=True)
            (cls.dir / path).write_bytes(data)
        text = {path: data.decode("utf-8", "surrogateescape") for path, data in files.items()}
        whole, entries = put_together(dict(sorted(text.items())))
        cls.worker = Worker(context=whole.encode("utf-8", "surrogateescape"),
                            indexes=[index_of(entries)], max_output=100_000_000)
        cls.addClassCleanup(cls.worker.__exit__)
        cls.names = sorted(files)

    def value(self, code):
        done = self.worker.run(f"print(ascii(({code})))")
        self.assertIsNone(done["error"], done["error"])
        return ast.literal_eval(done["stdout"])

    def told(self, *command, statuses=(0,)):
        done = subprocess.run(command, cwd=self.dir, stdout=subprocess.PIPE, timeout=600,
                              env={"PATH": os.environ["PATH"], "LC_ALL": "C",
                                   "HOME": str(self.dir), "GIT_CONFIG_NOSYSTEM": "1"})
        self.assertIn(done.returncode, statuses)
        return done.stdout

    def test_grep(self):
        for pattern, option, ignore_case in (
            ("import", "-F", False), ("import os", "-F", True), ("self.", "-F", False),
            ("^def ", "-E", False), (r"^$", "-E", False), (r"return$", "-E", False),
            (r"[^a-z]{3}:$", "-P", False), (r"class\s+\w+", "-P", False),
            (r"(?<=def )main", "-P", False), (r"raise\s*(?!\w)", "-P", False),
            (r"\W$", "-P", False), (r"\bError\b", "-P", True), ("three", "-F", False),
            (r"a.*z", "-E", False),
        ):
            with self.subTest(pattern):
                options = ["-n", "-H", "-Z", "-a", option] + ["-i"] * ignore_case
                out = self.told("grep", *options, "-e", pattern, "--", *self.names,
                                statuses=(0, 1))
                wanted = []
                for line in out.split(b"\n")[:-1]:
                    path, rest = line.split(b"\0", 1)
                    number, text = rest.split(b":", 1)
                    wanted.append((path.decode(), int(number),
                                   text.decode("utf-8", "surrogateescape")))
                code = f"re.escape({pattern!r})" if option == "-F" else repr(pattern)
                self.worker.run("import re")
                found = self.value(f"[tuple(each) for each in grep({code}, ignore_case="
                                   f"{ignore_case}) if each.text.isascii()]")
                wanted = [each for each in wanted if each[2].isascii()]
                self.assertEqual(found, wanted)
                self.assertTrue(wanted, "the pattern shows nothing")

    def test_find_files(self):
        self.told("git", "init", "-q", ".")
        self.told("git", "-c", "core.excludesFile=", "add", "-A", "-f")
        for glob in ("*", "*.py", "**/*.py", "a/*", "a/**", "**/b/*.py", "a/**/*.py", "email/*.py",
                     "**/__init__.py", "[a-e]*/*.py", "[!a-e]*/*.py", "?.py", "**/?*.txt", "a/b",
                     "a/b/", "json", "**/json/**", r"a\*b", "a-b/[[]x].py", "no*where"):
            with self.subTest(glob):
                out = self.told("git", "ls-files", "-z", "--", f":(glob){glob}")
                wanted = sorted(each.decode() for each in out.split(b"\0")[:-1])
                self.assertEqual(sorted(self.value(f"find_files({glob!r})")), wanted)

    def test_outline_of_python(self):
        """Each definition stands on its line, by its name."""
        found = self.value("{path: [tuple(each) for each in outline(path)] "
                           "for path in find_files('email/*.py')}")
        self.assertGreater(len(found), 3)
        for path, definitions in found.items():
            lines = (self.dir / path).read_text().split("\n")
            for line, kind, name in definitions:
                word = {"class": "class ", "constant": ""}.get(kind, "def ")
                self.assertIn(word + name.rpartition(".")[2], lines[line - 1])
            seen = {line for line, _kind, _name in definitions}
            for number, line in enumerate(lines, 1):
                if line.startswith(("def ", "class ", "async def ")):
                    self.assertIn(number, seen, path)


SOURCES = {
    "a.c": ('#define MAX(a) 1\nstruct point {\n\tint x;\n};\n/* int no(void)\n{ */\nint f(int);\n'
            'static int *g(int a,\n\t      int b)\n{\n\tif (a)\n\t\treturn f(b);\n}\n'
            'enum e { A };\n'
            'typedef int number;\nvoid h(int a,\n       int b);\n',
            [(1, "macro", "MAX"), (2, "struct", "point"), (8, "function", "g"), (14, "enum", "e"),
             (15, "typedef", "number")]),
    "a.cc": ('namespace n {\ntemplate <class T> class Box : public B {\n  int size() const {\n'
             '    return call(1);\n  }\n};\nint Box<int>::more(int a) {\n}\n}\n',
             [(1, "namespace", "n"), (2, "class", "Box"), (3, "function", "size"),
              (7, "function", "Box<int>::more")]),
    "a.go": ('package p\n\ntype T struct {\n}\n\nfunc (t *T) Run(a int) error {\n}\n'
             'func main() {\n}\n',
             [(1, "package", "p"), (3, "struct", "T"), (6, "method", "Run"),
              (8, "function", "main")]),
    "a.rs": ('pub struct S<T>(T);\nimpl<T> Show for S<T> {\n    pub async fn go(&self) {}\n}\n'
             '// fn no() {}\nmacro_rules! m { () => {} }\n',
             [(1, "struct", "S"), (2, "impl", "Show for S<T>"), (3, "function", "go"),
              (6, "macro", "m")]),
    "a.js": ('export class A extends B {\n  async run(x) {\n    if (x) {\n    }\n  }\n}\n'
             'const f = (a) => a\nfunction g() {}\n',
             [(1, "class", "A"), (2, "method", "run"), (7, "function", "f"), (8, "function", "g")]),
    "a.ts": ('export interface I {\n}\ntype T = string\nexport default function go(): void {\n}\n',
             [(1, "interface", "I"), (3, "type", "T"), (4, "function", "go")]),
    "A.java": ('package a.b;\npublic final class A {\n    private int size(int x) throws E {\n'
               '        return size(x);\n    }\n    public A() {\n    }\n}\n',
               [(1, "package", "a.b"), (2, "class", "A"), (3, "method", "size"),
                (6, "method", "A")]),
    "a.rb": ('module M\n  class A < B\n    def self.go?(x)\n    end\n  end\nend\n',
             [(1, "module", "M"), (2, "class", "A"), (3, "method", "self.go?")]),
    "a.sh": ('# f() {\nfunction f {\n}\ng() {\n}\n', [(2, "function", "f"), (4, "function", "g")]),
    "a.md": ('Title\n=====\n```\n# no\n```\n## Two ##\n- item\n---\n',
             [(1, "h1", "Title"), (6, "h2", "Two")]),
    "broken.py": ('def f(:\n    pass\nclass A:\n', [(1, "function", "f"), (3, "class", "A")]),
    "Makefile": ('CC = cc\nall: a.o\n\tcc -o all\n', [(1, "variable", "CC"), (2, "target", "all")]),
}


class Outlines(CodeBaseTest):
    files = {path: text for path, (text, _found) in SOURCES.items()}

    def test_languages(self):
        for path, (_text, wanted) in SOURCES.items():
            with self.subTest(path):
                self.assertEqual(self.value(f"[tuple(each) for each in outline({path!r})]"), wanted)

    def test_what_is_known_is_told(self):
        told = self.worker.run("help(outline)")["stdout"]
        for language in ("Python", "Markdown", "Rust", "TypeScript", "Shell"):
            self.assertIn(language, told)


class Many(unittest.TestCase):
    """A tree fits into so many characters, whatever it is of."""

    def test_size_of_the_tree(self):
        from file_tree import tree_text

        for paths in (
            [f"f{n}.py" for n in range(50)],
            [f"src/d{n % 5}/f{n}.c" for n in range(50)],
            [f"p{n % 200}/m{n // 2000}/f{n}.py" for n in range(50_000)],
            [f"f{n}.py" for n in range(50_000)],
            ["/".join("abcdefgh"[:n % 8]) + f"/x{n}.js" for n in range(50_000)],
            [f"d{n}/{'n' * 250}" for n in range(5_000)],
        ):
            text = tree_text(paths, [1000] * len(paths), 250, "", 2)
            self.assertLess(len(text), 4200, paths[:1])
            self.assertIn(f"{len(paths):,} files", text)
            if len(paths) == 50:
                self.assertGreaterEqual(text.count("\n"), 5)

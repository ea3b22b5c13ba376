"""Inputs of the program: contexts of every kind and size, arguments, interpreters."""

import ctypes
import hashlib
import json
import os
import random
import resource
import shutil
import socket
import subprocess
import sys
import unittest
from pathlib import Path

import patience
from harness import RLMD, GuardedTest, block, turn
from kernel import LANDLOCK, UNSHARE, without

SANITIZED = b"__asan_init" in Path(RLMD).read_bytes()
GIB = 1 << 30
PR_CAPBSET_DROP = 24
CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 1, 2


def without_privilege():
    """For a child: root then reads only what its modes allow, as anybody else."""
    libc = ctypes.CDLL(None)
    for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)


def each(sources):
    """The options that give them."""
    return [word for source in sources for word in ("-c", source)]


class InputTest(GuardedTest):
    def ask(self, expression, *arguments, **more):
        """The value of an expression in a block, and what standard error says."""
        imports = "import hashlib, json"
        outcome = self.replay([turn(block(imports, f"FINAL({expression})"))], *arguments, **more)
        self.assertEqual(outcome.status, 0, outcome.err)
        return outcome.out[:-1], outcome.err

    def refused(self, status, words, *arguments, **more):
        outcome = self.replay([turn("FINAL(x)")], *arguments, **more)
        self.assertEqual((outcome.status, outcome.out), (status, ""), outcome.err)
        self.assertIn("rlmd: error: ", outcome.err)
        self.assertIn(words, outcome.err)


class Files(InputTest):
    def test_what_may_not_be_read(self):
        """A file, a directory, and a task file: named, with the reason; exit 8."""
        path = Path(self.write("secret", "x"))
        path.chmod(0)
        (self.dir / "closed").mkdir(mode=0)
        self.addCleanup((self.dir / "closed").chmod, 0o700)
        for source in ("secret", "closed", "name=secret", "closed/below"):
            with self.subTest(source):
                words = f"{source.split('=')[-1]}: Permission denied"
                self.refused(8, words, "-c", source, preexec_fn=without_privilege)

    def test_what_is_no_file(self):
        """A FIFO that nobody writes to, a socket, a link to itself: nothing hangs; exit 8."""
        os.mkfifo(self.dir / "fifo")
        os.symlink("loop", self.dir / "loop")
        os.symlink("nowhere", self.dir / "dangling")
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(self.dir / "socket"))
        for source, words in (
            ("fifo", "fifo: it is no regular file"), ("socket", "socket: it is no regular file"),
            ("loop", "loop: Too many levels"), ("dangling", "dangling: No such file"),
        ):
            with self.subTest(source):
                self.refused(8, words, "-c", source)
        self.refused(2, "names no file", "-c", "x=")
        self.refused(2, "is empty", "-c", "")

    def test_a_directory(self):
        """Text is taken, in order; the rest is skipped, counted by kind and named, escaped."""
        tree = self.dir / "tree"
        for name, content in (
            ("b.txt", b"two"), ("a/z.txt", b"one\n"), ("a/empty", b""), ("binary", b"a\0b"),
            (".hidden", b"h\n"), ("a/bad\n\x1b[31m", b"x\xff\n"), (".git/config", b"no\n"),
        ):
            self.write(tree / name, content)
        (tree / "unreadable").touch(mode=0)
        os.mkfifo(tree / "fifo")
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(tree / "a" / "socket"))
        for link, target in (
            ("out", "/etc/passwd"), ("dangling", "nowhere"), ("loop", "loop"), ("up", ".."),
            ("inside", "b.txt"), ("a/root", "../.."),
        ):
            os.symlink(target, tree / link)
        told, err = self.ask(
            "json.dumps([context, dict(context.files), list(context.files)])", "-c", "tree",
            preexec_fn=without_privilege)
        text, files, order = json.loads(told)
        self.assertEqual(order, [".hidden", "a/bad\\n\\x1b[31m", "a/empty", "a/z.txt", "b.txt"])
        self.assertEqual(files, dict(zip(order, ["h\n", "x\udcff\n", "", "one\n", "two"])))
        self.assertEqual(text, "".join(f"===== {path} =====\n{files[path]}" for path in order))
        for words in (
            "skipped 1 binary file: binary",
            "skipped 2 sockets, devices or FIFOs: a/socket, fifo",
            "skipped 6 symbolic links: a/root, dangling, inside, loop, out, ...",
            "skipped 1 entry that cannot be read: unreadable",
            "context: 1 byte is not UTF-8, in a/bad\\n\\x1b[31m; ",
        ):
            self.assertIn(words, err)
        self.assertNotIn("\x1b", err)

    def test_a_directory_with_nothing_in_it(self):
        """Nothing to work on is no context; exit 8, and why."""
        (self.dir / "empty" / "below").mkdir(parents=True)
        self.refused(8, "there is no text file in the directory empty\n", "-c", "empty")
        self.write("f", "x")
        self.refused(8, "there is no text file in the directory empty\n", "-c", "f", "-c", "empty")
        self.write("empty/below/binary", b"\0")
        self.refused(8, "empty; empty: skipped 1 binary file: below/binary", "-c", "empty")
        self.write("empty/below/void", "")
        self.assertEqual(self.ask("[*context.files.items()]", "-c", "empty")[0], "[('below/void', '')]")

    def test_several_contexts(self):
        """Those without a name are one, with `files`; each named one has a variable of its own."""
        self.write("one", "1")
        self.write("two", "2\n")
        self.write("tree/three", "3\n")
        told, _ = self.ask(
            "[context, dict(context.files), given, again, type(again).__name__]",
            "-c", "one", "-c", "again=one", "-c", "given=-", "-c", "two", "-c", "tree",
            input=b"piped")
        files = {"one": "1", "two": "2\n", "tree/three": "3\n"}
        text = "===== one =====\n1\n===== two =====\n2\n===== tree/three =====\n3\n"
        self.assertEqual(told, repr([text, files, "piped", "1", "str"]))
        self.assertEqual(self.ask("[context, big]", "-c", "big=one")[0], "['', '1']")

    def test_names(self):
        """LIB-11: what cannot be a variable, or would hide one of ours, is refused; exit 2."""
        self.write("f", "x")
        for sources, words in (
            (["class=f"], "'class': a keyword of Python"),
            (["print=f"], "'print': a builtin of Python, which the code needs; choose another name"),
            (["len=-"], "'len': a builtin"),
            (["ValueError=f"], "'ValueError': a builtin"),
            (["budget=f"], "'budget': a function of the worker"),
            (["FINAL=f"], "a function of the worker"),
            (["__x=f"], "cannot be named"),
            (["a=f", "a=f"], "two contexts are named 'a'"),
            (["f", "context=f"], "two contexts are named 'context'"),
            (["-", "a=-"], "only once"),
            ([f"n{i}=f" for i in range(49)], "there may be 48"),
        ):
            with self.subTest(sources[0]):
                self.refused(2, words, *each(sources), input=b"")
        most = each(f"n{i}=f" for i in range(48))
        self.assertEqual(self.ask("n0 + n47", *most)[0], "xx")
        for name in ("query", "history", "data", "Print", "_", "match"):  # these hide nothing
            self.assertEqual(self.ask(f"{name} + str(len({name}))", "-c", f"{name}=f")[0], "x1")
        self.write("a b=c", "odd")
        self.assertEqual(self.ask("context", "-c", "a b=c")[0], "odd")


class Empty(InputTest):
    def test_standard_input_is_told(self):
        """A command before the pipe that failed must not look like a task without a context."""
        script = [turn(block("FINAL(repr(context))"))]
        for arguments, words in (([], "standard input is empty: the task is asked without a context"),
                                 (["-c", "-"], "standard input is empty, and so is the context"),
                                 (["-c", "log=-"], "standard input is empty, and so is the context")):
            outcome = self.replay(script if len(arguments) < 2 or arguments[1] == "-" else
                                  [turn(block("FINAL(repr(log))"))], *arguments, input=b"")
            self.assertEqual((outcome.status, outcome.out), (0, "''\n"), outcome.err)
            self.assertIn(words, outcome.err)
        outcome = self.replay(script)
        self.assertNotIn("standard input", outcome.err)


class Bytes(InputTest):
    CONTENTS = {
        "empty": b"",
        "nul": b"\0",
        "nuls": b"a\0b\0" * 9000,
        "line_ends": b"a\r\nb\rc\n\r\n\x85\xe2\x80\xa8",
        "quotes": b"'''\"\"\"\\\\n\\x00 {x} %s $x `x` \x1b[0m",
        "mark": b"\xef\xbb\xbfx",
        "wide": "é€𝄞👩‍👩‍👧\U0010ffff\ufffe".encode(),
        "latin": "naïve".encode("latin-1"),
        "every": bytes(range(256)) * 40,
        "overlong": b"\xc0\x80\xe0\x80\x80\xf0\x80\x80\x80\xf8\x88\x80\x80\x80",
        "surrogates": b"\xed\xa0\x80\xed\xb0\x80",
        "beyond": b"\xf4\x90\x80\x80\xff\xfe",
        "cut": b"x\xf0\x9f\x91",
        "random": random.Random(9).randbytes(3000000),
    }

    def test_every_byte_arrives(self):
        """LIB-9, LIB-8: the bytes that Python sees are the file's, by their hash; lengths agree."""
        sources = [f"{name}={self.write(name, data)}" for name, data in self.CONTENTS.items()]
        fact = "[hashlib.sha256(v.encode('utf-8', 'surrogateescape')).hexdigest(), len(v)]"
        names = list(self.CONTENTS)
        expression = f"json.dumps({{n: {fact} for n, v in zip({names}, [{', '.join(names)}])}})"
        code = block("import hashlib, json", f"FINAL({expression})")
        outcome = self.replay([turn(code)], "--json", *each(sources))
        self.assertEqual(outcome.status, 0, outcome.err)
        told = {context["name"]: context for context in outcome.result["trace"]["contexts"]}
        for name, (digest, length) in json.loads(outcome.result["output"]).items():
            with self.subTest(name):
                content, context = self.CONTENTS[name], told[name]
                text = content.decode("utf-8", "surrogateescape")
                invalid = sum("\udc80" <= character <= "\udcff" for character in text)
                self.assertEqual(digest, hashlib.sha256(content).hexdigest())
                self.assertEqual((length, context["length"]), (len(text), len(text)))
                self.assertEqual(context["bytes"], len(content))
                self.assertEqual(context["invalidBytes"], invalid)
                self.assertEqual(f" {name}: {invalid:d} byte" in outcome.err, invalid > 0)

    def test_through_a_pipe(self):
        for name in ("nuls", "every", "random"):
            with self.subTest(name):
                content = self.CONTENTS[name]
                seen = "context.encode('utf-8', 'surrogateescape')"
                told, _ = self.ask(f"hashlib.sha256({seen}).hexdigest()", input=content)
                self.assertEqual(told, hashlib.sha256(content).hexdigest())

    def test_a_task_of_any_bytes(self):
        """Bytes that are no UTF-8 are replaced, so that the model and the trace get text."""
        outcome = self.replay([turn("FINAL(x)")], "--json", task="what is \udcff\x01 here?")
        self.assertEqual(outcome.result["trace"]["task"], "what is \ufffd\x01 here?")


class Measures(InputTest):
    # The text, and its tokens by o200k_base and cl100k_base.
    SAMPLES = {
        "english": (
            "All human beings are born free and equal in dignity and rights. They are endowed "
            "with reason and conscience and should act towards one another in a spirit of "
            "brotherhood. Everyone is entitled to all the rights and freedoms set forth in this "
            "Declaration, without distinction of any kind, such as race, colour, sex, language, "
            "religion, political or other opinion, national or social origin, property, birth "
            "or other status.",
            83, 83),
        "code": (
            "static int parse_header(const char *line, struct header *ret)\n{\n"
            "\tconst char *colon = strchr(line, ':');\n\n"
            "\tif (!colon || colon == line)\n\t\treturn -EINVAL;\n"
            "\tfor (size_t i = 0; i < MAX_HEADERS; i++) {\n"
            "\t\tif (ret->entries[i].name == NULL) {\n"
            "\t\t\tret->entries[i].name = strndup(line, colon - line);\n"
            "\t\t\treturn (int)i;\n\t\t}\n\t}\n\treturn -ENOSPC;\n}\n",
            103, 103),
        "chinese": (
            "人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心,并应以兄弟关系的精神相对待。人人有资格享有本宣言所载的一切权利和自由,"
            "不分种族、肤色、性别、语言、宗教、政治或其他见解、国籍或社会出身、财产、出生或其他身分等任何区别。",
            95, 127),
        "japanese": (
            "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。人間は、理性と良心とを授けられており、"
            "互いに同胞の精神をもって行動しなければならない。",
            72, 93),
        "korean": (
            "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. 인간은 천부적으로 이성과 양심을 부여받았으며 서로 형제애의 "
            "정신으로 행동하여야 한다.",
            51, 85),
    }
    TYPES = {
        "json": ['{"a": [1, 2]}', ' [\n1]\n', '[' + '{"a": 1},' * 200000 + '0]'],
        "code": ["import os\n", "# a\ndef f():\n", "text\nfrom a import b\n", "class A {\n"],
        "markdown": ["# Title\n\ntext\n", "text\n- one\n- two\n"],
        "plain": ["", "text\n", "{not json}", "#hashtag\n", "[1", "important\n"],
    }

    def contexts(self, contents):
        sources = [f"{name}={self.write(name, content)}" for name, content in contents.items()]
        outcome = self.replay([turn("FINAL(x)")], "--json", *each(sources))
        return {context["name"]: context for context in outcome.result["trace"]["contexts"]}

    def test_tokens(self):
        """LIB-8: the estimate is within a factor of 1.5, for English, source code and CJK alike."""
        told = self.contexts({name: text for name, (text, *_) in self.SAMPLES.items()})
        for name, (text, *counts) in self.SAMPLES.items():
            with self.subTest(name):
                self.assertEqual(told[name]["length"], len(text))
                for count in counts:
                    self.assertGreaterEqual(told[name]["tokenEstimate"] * 1.5, count)
                    self.assertLessEqual(told[name]["tokenEstimate"], count * 1.5)

    def test_types(self):
        """LIB-8: markdown, code, json or plain."""
        contents = {
            f"{kind}{i}": text for kind, texts in self.TYPES.items() for i, text in enumerate(texts)
        }
        told = {name: context["contentType"] for name, context in self.contexts(contents).items()}
        self.assertEqual(told, {name: name[:-1] for name in contents})


def available_memory():
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10


class Large(InputTest):
    def sparse(self, size):
        """A file of zeros that takes no room."""
        with open(self.dir / "big", "wb") as file:
            file.truncate(size)
        return self.dir / "big"

    def test_a_context_of_a_gigabyte(self):
        """It is there whole, in its place, in time. (200 MB where memory is short.)"""
        size = GIB if available_memory() >= 6 * GIB else 200 << 20
        marks = {0: b"first", size // 2: b"middle", size - 4: b"last"}
        with open(self.sparse(size), "r+b") as file:
            for place, mark in marks.items():
                file.seek(place)
                file.write(mark)
        watch = patience.Stopwatch()
        places = "[context.find(mark) for mark in ('first', 'middle', 'last')]"
        told, _ = self.ask(f"[len(context), context.count('\\0'), *{places}]", "-c", "big")
        self.assertLess(watch.took(), 40)
        self.assertEqual(told, str([size, size - 15, *marks]))

    def test_larger_than_any_variable(self):
        self.sparse(5 * GIB)
        self.refused(8, "big is larger than the 4 GiB", "-c", "big")

    def test_a_context_does_not_count_as_the_workers_memory(self):
        """G8: it always fits; what does not is copies of it, a MemoryError that is told."""
        outcome = self.replay(
            [
                turn(block("print(len(context))", "[context + str(i) for i in range(4)]"), turn=0),
                turn("FINAL(x)", turn=1),
            ],
            "--json", "--worker-memory", "64M", "-c", self.sparse(200 << 20),
        )
        (execution,) = outcome.executions()
        self.assertEqual(execution["stdout"], f"{200 << 20}\n")
        self.assertIn("MemoryError", outcome.result["trace"]["iterations"][1]["prompt"]["content"])

    @unittest.skipIf(SANITIZED, "the sanitizer needs all of the address space")
    def test_no_room_for_the_context(self):
        """Where not even the context fits, it is to blame; exit 8. It has four times its bytes, for
        Python gives all characters as many as the widest needs."""
        limit = 300 << 20  # of address space, for the program and each process that it starts
        with open(self.sparse(90 << 20), "r+b") as file:
            file.write("🙂".encode())
        self.refused(
            8, "no room for the input (a higher worker-memory gives more): the inputs could not be loaded: "
            "MemoryError", "-c", "big",
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))


class SmallMemory(InputTest):
    """In a cgroup that has little of it."""

    LIMIT = 300 << 20

    def setUp(self):
        super().setUp()
        self.join = self.cgroup_of_memory(self.LIMIT)

    def fill(self, size):
        with open(self.dir / "big", "w", encoding="utf-8") as file:
            for _ in range(size >> 20):
                file.write("." * (1 << 20))
            file.write("🙂")

    @unittest.skipIf(SANITIZED, "the sanitizer needs more memory")
    def test_wide_characters_take_no_more_than_their_bytes(self):
        self.fill(120 << 20)
        looks = "[len(context), context.count('.'), context[-1] > '\\uffff']"
        told, _ = self.ask(looks, "-c", "big", preexec_fn=self.join)
        self.assertEqual(told, str([(120 << 20) + 1, 120 << 20, True]))

    def test_more_than_fits_is_told(self):
        self.fill(250 << 20)
        words = ("big: the input is larger than the 204 MiB that fit into memory: this machine, or "
                 "the cgroup that it runs in (memory.max), has 300 MiB. Allow more, or take less")
        self.refused(8, words, "-c", "big", preexec_fn=self.join)


class Arguments(InputTest):
    def test_settings_out_of_range(self):
        """Each is refused before anything starts, by its name; exit 2."""
        for option, value in (
            ("--max-time", "0"), ("--max-time", "soon"), ("--max-cost", "-1"),
            ("--max-tokens", "0"), ("--max-tokens", "9" * 30), ("--max-depth", "17"),
            ("--max-iterations", "0"), ("--worker-memory", "1K"), ("--block-timeout", "1 hour"),
            ("--max-parallel", "0"), ("--require", "L9"), ("--color", "blue"),
            ("--max-output", "x"), ("--model", "caf\udce9"), ("--subcall-model", "\udcff"),
        ):
            with self.subTest(option):
                self.refused(2, option, option, value)

    def test_scripts_of_answers(self):
        """--replay: a directory that is missing, empty or wrong is bad input."""
        for name, content, words in (
            ("missing", None, "missing"), ("empty", {}, "no *.json"),
            ("cut", {"answers.json": "["}, "not JSON"),
            ("wrong", {"answers.json": '[{"match": {}}]'}, "entry 1"),
        ):
            with self.subTest(name):
                for file, text in (content or {}).items():
                    self.write(f"{name}/{file}", text)
                if content == {}:
                    (self.dir / name).mkdir()
                outcome = self.rlmd("exec", "-p", "replay", "--replay", name, "the task")
                self.assertEqual((outcome.status, outcome.out), (8, ""), outcome.err)
                self.assertIn(words, outcome.err)

    def test_isolation_that_cannot_be_given(self):
        """G1 to G10 are all or nothing: fewer layers than asked for, no run (7)."""
        poor = without(*LANDLOCK, UNSHARE)
        for level, status in (("L1", 0), ("L2", 7), ("L3", 7), ("L4", 7)):
            with self.subTest(level):
                outcome = self.replay([turn("FINAL(x)")], "--require", level, preexec_fn=poor)
                self.assertEqual(outcome.status, status, outcome.err)
                self.assertEqual(f"less than the {level} that is required" in outcome.err, status == 7)


class Interpreters(InputTest):
    def fake(self, code):
        """A program for this machine that is no Python."""
        headers = "#include <signal.h>\n#include <unistd.h>\n"
        main = "int main(int argc, char **argv) { const char *template = argv[argc - 1];"
        source = self.write("fake.c", f"{headers}{main} (void)template; {code} }}\n")
        subprocess.run([shutil.which("cc") or "gcc", "-o", self.dir / "fake", source], check=True)
        return self.dir / "fake"

    def test_behind_a_shim(self):
        """A python3 that is a shell script is asked for whom it stands."""
        shim = self.write("python3", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        os.chmod(shim, 0o755)
        self.assertEqual(self.ask("2 + 3", "--python", shim)[0], "5")
        path = f"{self.dir}:{os.environ['PATH']}"
        self.assertEqual(self.ask("2 + 3", env=self.environment(PATH=path))[0], "5")

    def test_none(self):
        """Named, and how to name another; exit 2."""
        script = self.write("script", "#!/bin/sh\nexit 3\n")
        text = self.write("text", "no program")
        os.chmod(script, 0o755)
        os.chmod(text, 0o755)
        for python, words in (
            ("/nowhere/python3", "no Python at /nowhere/python3"),
            ("no-such-python", "no-such-python"),
            (self.dir, "no Python at"),
            (script, "does not say which Python"),
            (text, "not a program for this machine"),
            ("/bin/true", "/bin/true ended at its start (status 0)"),
        ):
            with self.subTest(python):
                self.refused(2, words, "--python", python)

    def test_too_old(self):
        """The version of a Python before 3.8 is told; exit 2."""
        words = json.dumps(json.dumps({"error": "Python 3.7.1 is too old", "kind": "usage"}))
        fake = self.fake(f"return write(3, {words}, sizeof {words} - 1) < 0;")
        self.refused(2, "Python 3.7.1 is too old", "--python", fake)
        old = next(filter(None, map(shutil.which, ("python3.7", "python3.6"))), None)
        if old and not subprocess.run([old, "-c", ""], stderr=subprocess.DEVNULL).returncode:
            self.refused(2, "is too old: 3.8 or later", "--python", old)

    def test_killed_at_its_start(self):
        """That is no fault of the command line: it gets a second try, and then exit 7 with the cause.
        (tests/sandbox/test_retries.c has those that are slow.)"""
        once = self.dir / "once"
        fake = self.fake(f"""
            if (symlink("tried", "{once}")) {{
                char *const argv[] = {{"{sys.executable}", "-I", "-S", "-B", "-X", "utf8", (char *)template, 0}};
                execv(*argv, argv);
            }}
            kill(getpid(), 9);""")
        self.assertEqual(self.ask("2 + 3", "--python", fake)[0], "5")
        dying = self.fake("kill(getpid(), 9);")
        self.refused(7, "ended at its start (signal 9)", "--python", dying)
        shim = self.write("shim", "#!/bin/sh\nkill -9 $$\n")
        os.chmod(shim, 0o755)
        self.refused(7, "was killed before it said which Python it is for", "--python", shim)

    def test_preloaded_modules(self):
        """One of a virtual environment is there when it is named; a bad one is told by its name."""
        command = [sys.executable, "-m", "venv", "--without-pip", self.dir / "venv"]
        subprocess.run(command, check=True)
        thread = "threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()"
        (packages,) = (self.dir / "venv" / "lib").glob("python3*/site-packages")
        for name, content in (
            ("mine/__init__.py", "import os\nforked = []\nos.register_at_fork(before=lambda: "
             "forked.append('before'), after_in_child=lambda: forked.append('child'))"),
            ("mine/late.py", "value = 5"),
            ("raises.py", "raise ValueError('oops')"),
            ("exits.py", "raise SystemExit(3)"),
            ("dies.py", "import os; os._exit(3)"),
            ("threads.py", f"import threading, time\n{thread}"),
        ):
            self.write(packages / name, content)
        python = ["--python", self.dir / "venv" / "bin" / "python"]
        told, _ = self.ask("__import__('mine.late').late.value", *python, "--preload", "mine")
        self.assertEqual(told, "5")
        told, _ = self.ask("__import__('mine').forked", *python, "--preload", "mine")
        self.assertEqual(told, "['before', 'child']")  # what it wants done after a fork
        executions, _ = self.blocks("import mine", arguments=python)
        self.assertIn("ModuleNotFoundError: No module named 'mine'", executions[0]["error"])
        for name, status, words in (
            ("missing", 2, "cannot preload missing: ModuleNotFoundError"),
            ("raises", 2, "cannot preload raises: ValueError: oops"),
            ("exits", 2, "cannot preload exits: SystemExit"),
            ("threads", 2, "started threads"),
            ("dies", 7, "(status 3)"),
        ):
            with self.subTest(name):
                self.refused(status, words, *python, "--preload", name)


if __name__ == "__main__":
    unittest.main()

"""A str whose characters are decoded where they are touched is the str that decoding makes."""

import random
import signal
import unittest

from supervisor import Gone, Worker, index_of

PART = 2 << 20    # bytes that are decoded at once
WINDOW = 12 << 20  # and that are kept
LINE = "2026-11-22 10:00:01 GET /index 200 ok, all is well here\n"
FORMS = {"latin-1": "é", "ucs-2": "€", "ucs-4": "🙂"}
WIDTH = {"latin-1": 1, "ucs-2": 2, "ucs-4": 4}
STRANGE = ("é", "ß", "e\u0301", "\u05d0\u05b8", "日本", "🙂", "👩\u200d👩\u200d👧", "\x00", "\r\n", "\u2028",
           "\ufeff", "\uffff", "\U0010ffff", "\u200f", "한글", "ไทย")
BROKEN = (b"\xff", b"\xe2\x82", b"\xed\xa0\x80", b"\xf0\x9f\x99", b"\xc0\xaf", b"\x80", b"\xf5")
LOOKS = """
import hashlib, json, re
def look(text, places):
    sizes = [len(text), hash(text), text.isascii(), len(text.encode("utf-8", "surrogateescape"))]
    found = [text[at:at + 50] for at in places] + [text[-1], text[-70000:][:9], text[::9973]]
    counts = [text.count("\\n"), text.rfind("GET"), text.find("no such"), text.index("well", 999)]
    lines = text.splitlines()
    matches = [match.span() for match in re.finditer(r"[^\\x00-\\x7f]+", text)]
    forms = [text.upper() == text.swapcase().swapcase().upper(), max(text), min(text)]
    rest = [len(lines), lines[-1], len(matches), matches[-1], text.translate({10: None})[-9:]]
    shown = repr((sizes, found, counts, forms, rest))
    return hashlib.sha256(shown.encode("utf-8", "surrogatepass")).hexdigest()
"""


def mixed(size, seed):
    """Bytes of lines with characters of every width, and what is none."""
    choice = random.Random(seed)
    pieces, length = [], 0
    while length < size:
        piece = LINE.encode() * choice.randrange(1, 40)
        piece += choice.choice(STRANGE).encode() * choice.randrange(1, 5)
        if not choice.randrange(3):
            piece += choice.choice(BROKEN)
        pieces.append(piece)
        length += len(piece)
    return b"".join(pieces)


class Same(unittest.TestCase):
    def assert_same(self, data, form):
        """Each look at it, from the first one on and in whatever order."""
        count = len(data.decode("utf-8", "surrogateescape"))
        places = [random.Random(count).randrange(count) for _ in range(300)]
        with Worker(context=data, forms=[form, "utf-8"], more=[("decoded", data)]) as worker:
            self.assertIsNone(worker.started["error"])
            done = worker.run(f"places = {places}\nprint([context[p:p + 9] == decoded[p:p + 9] "
                              f"for p in places].count(False), type(context) is str)")
            self.assertEqual((done["stdout"], done["error"]), ("0 True\n", None))
            done = worker.run(LOOKS + "print(look(context, places) == look(decoded, places), "
                              "context == decoded, context.isspace())")
            self.assertEqual((done["stdout"], done["error"]), ("True True False\n", None))

    def test_texts_of_every_width(self):
        """One character that is wide, at the beginning, in the midst and at the end."""
        for form, character in FORMS.items():
            for at in (0, 1500, 3000):
                text = LINE * at + character + LINE * (3000 - at)
                with self.subTest(form, at=at):
                    self.assert_same(text.encode(), form)

    def test_ends_of_parts(self):
        """The character that ends a str is the first one of a part, or the last one."""
        for form, character in FORMS.items():
            whole = PART // WIDTH[form]
            for count in (whole - 1, whole, whole + 1, 2 * whole - 1, 2 * whole):
                text = (LINE * (count // len(LINE) + 1))[:count - 1] + character
                with self.subTest(form, count=count):
                    self.assert_same(text.encode(), form)

    def test_all_alphabets_and_what_is_not_utf8(self):
        for seed in range(3):
            with self.subTest(seed):
                self.assert_same(mixed(1 << 20, seed) + "🙂".encode(), "ucs-4")

    def test_more_than_is_kept(self):
        self.assert_same(mixed(3 * WINDOW, 7) + "🙂".encode(), "ucs-4")

    def test_dense_text(self):
        self.assert_same(("日本語のテキスト、" * 300 + LINE).encode() * 200, "ucs-2")


class Trees(unittest.TestCase):
    """Files of a text with wide characters are decoded one by one."""

    PATTERNS = ("GET", "get /INDEX", "^2026", "ok, all$", "here$", "\\bwell\\b", "[^\\x00-\\x7f]",
                "日本|🙂", "e\u0301", "ß", "SS", "\\udcff", "\\s\\s", "(?<=\\n)2026", "^$", "no such")

    def setUp(self):
        text, entries = "", []
        for number in range(60):
            path = f"d{number % 7}/f{number}.log"
            part = mixed(3000, number).decode("utf-8", "surrogateescape")
            part = LINE * 50 if number % 3 else part
            text += "" if not text or text.endswith("\n") else "\n"
            text += f"===== {path} =====\n"
            entries.append((path, len(text), len(part)))
            text += part
        data = (text + "🙂").encode("utf-8", "surrogateescape")
        index = index_of(entries, text=text)
        self.worker = Worker(context=data, forms=["ucs-4", "utf-8"], more=[("decoded", data)],
                             indexes=[index, index])
        self.addCleanup(self.worker.__exit__)

    def assert_all(self, code):
        done = self.worker.run(code)
        self.assertEqual((done["stdout"], done["error"]), ("True\n", None))

    def test_their_texts(self):
        self.assert_all("list(context.files.items()) == list(decoded.files.items())")
        self.assert_all("[read_lines(p, 2, 3) for p in context.files] == "
                        "[read_lines(p, 2, 3, ctx=decoded) for p in context.files]")
        self.assert_all("part = context.subset('d3/')\n"
                        "part == decoded.subset('d3/') and dict(part.files) == "
                        "{p: t for p, t in decoded.files.items() if p.startswith('d3/')}")

    def test_grep_finds_what_re_finds_in_each_line(self):
        for pattern in self.PATTERNS:
            for ignore in (False, True):
                with self.subTest(pattern, ignore=ignore):
                    self.assert_all(
                        "import re\n"
                        f"pattern, ignore = {pattern!r}, {ignore}\n"
                        "search = re.compile(pattern, re.M | (re.I if ignore else 0)).search\n"
                        "def lines(text): return text.removesuffix('\\n').split('\\n')\n"
                        "wanted = [(path, n, line) for path, text in decoded.files.items()\n"
                        "          for n, line in enumerate(lines(text), 1) if search(line)]\n"
                        "found = [tuple(line) for line in grep(pattern, ignore_case=ignore)]\n"
                        "found == wanted == [tuple(line) for line in\n"
                        "                    grep(pattern, ignore_case=ignore, ctx=decoded)]")


class Memory(unittest.TestCase):
    def test_looks_at_all_of_it_take_little(self):
        data = ("🙂" + LINE * 600_000).encode()
        with Worker(context=data, forms=["ucs-4"]) as worker:
            def own():
                with open(f"/proc/{worker.process.pid}/status", encoding="utf-8") as file:
                    return next(int(line.split()[1]) << 10 for line in file
                                if line.startswith("RssAnon"))

            worker.run("len(context)")
            before = own()
            done = worker.run("import re\nprint(context.count('GET'), context.rfind('🙂'), "
                              "sum(1 for _ in re.finditer('well', context)))")
            self.assertEqual(done["stdout"], "600000 0 600000\n")
            self.assertLess(own() - before, 2 * WINDOW)

    def test_looks_where_memory_is_used_up(self):
        data = ("🙂" + LINE * 100_000).encode()
        with Worker(context=data, forms=["ucs-4"]) as worker:
            done = worker.run(
                "import resource\n"
                "resource.setrlimit(resource.RLIMIT_DATA, (400 << 20, 400 << 20))\n"
                "many = []\n"
                "size = 1 << 24\n"
                "while size > 64:\n"
                "    try: many.append(bytearray(size))\n"
                "    except MemoryError: size //= 2\n"
                "found = context.count('GET'), len(many) > 20\n"
                "many.clear()\n"
                "found")
            self.assertEqual((done["stdout"], done["error"]), ("(100000, True)\n", None))


class Threads(unittest.TestCase):
    def test_threads_look_at_once(self):
        data = mixed(2 * WINDOW, 3) + "🙂".encode()
        with Worker(context=data, forms=["ucs-4", "utf-8"], more=[("decoded", data)]) as worker:
            done = worker.run(
                "import random, sys\nfrom concurrent.futures import ThreadPoolExecutor\n"
                "sys.setswitchinterval(1e-5)\n"
                "def look(seed):\n"
                "    choice = random.Random(seed)\n"
                "    places = [choice.randrange(len(context)) for _ in range(300)]\n"
                "    return all(context[p:p + 30000] == decoded[p:p + 30000] for p in places)\n"
                "with ThreadPoolExecutor(8) as pool: print(all(pool.map(look, range(16))))")
            self.assertEqual((done["stdout"], done["error"]), ("True\n", None))


class Faults(unittest.TestCase):
    """Other faults end the worker, and code cannot take the handler away."""

    def setUp(self):
        self.worker = Worker(context=("🙂" + LINE * 50_000).encode(), forms=["ucs-4"])
        self.addCleanup(self.worker.__exit__)

    def assert_ends(self, code):
        with self.assertRaises(Gone):
            self.worker.run(code)
        self.assertEqual(self.worker.process.wait(), -signal.SIGSEGV)

    def test_nowhere(self):
        self.assert_ends("import ctypes\nctypes.string_at(8)")

    def test_a_write(self):
        self.assert_ends("import ctypes\ncontext[5]\nctypes.memset(id(context) + 5000, 88, 1)")

    def test_a_handler_of_codes(self):
        done = self.worker.run(
            "import signal\n"
            "signal.signal(signal.SIGSEGV, lambda *_: print('caught'))\n"
            "context.count('GET')")
        self.assertEqual((done["stdout"], done["error"]), ("50000\n", None))

    def test_faulthandler(self):
        done = self.worker.run(
            "import faulthandler, os\n"
            "try: faulthandler.enable(os.open(os.devnull, os.O_WRONLY))\n"
            "except OSError: pass\n"
            "context.count('GET')")
        self.assertEqual(done["stdout"], "50000\n")


if __name__ == "__main__":
    unittest.main()

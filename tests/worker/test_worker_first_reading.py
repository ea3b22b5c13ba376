"""first_reading(): how files are cut, which places of a change are shown, what may be spent."""

import contextlib
import io
import json
import os
import random
import sys
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.environ["RLMD_BUILD_ROOT"], "worker"))
import first_reading  # noqa: E402
from first_reading import FirstReading, Part, Purse, changed, parts_of, pieces, place  # noqa: E402


def joined(text, size):
    return "\n".join(piece for piece, _line in pieces(text, size))


class Pieces(unittest.TestCase):
    def test_they_are_the_text(self):
        for text in ("", "\n", "a", "a\nb\n", "\n\n\n" * 99, "é\r\n🙂\f\v\u2028x\n" * 500,
                     "\n".join("x" * (i % 90) for i in range(3000))):
            for size in (100, 1000, 20000):
                self.assertEqual(joined(text, size), text)
                lines = text.split("\n")
                for piece, line in pieces(text, size):
                    self.assertEqual(piece.split("\n")[0], lines[line - 1])
                    self.assertLessEqual(len(piece), size)

    def test_a_line_that_is_longer(self):
        found = list(pieces("a\n" + "x" * 5000 + "\nb", 1000))
        self.assertEqual(found, [("a", 1), *[("x" * 1000, 2)] * 5, ("b", 3)])

    def test_what_is_put_in_moves_few_cuts(self):
        generator = random.Random(7)
        lines = [f"line {generator.random()}" for _ in range(5000)]
        for _ in range(20):
            more = list(lines)
            more.insert(generator.randrange(5000), f"fresh {generator.random()}")
            old = {piece for piece, _line in pieces("\n".join(lines), 5000)}
            new = {piece for piece, _line in pieces("\n".join(more), 5000)}
            self.assertLessEqual(len(new - old), 5)
            self.assertGreater(len(new), 15)


class Changes(unittest.TestCase):
    TEXT = "".join(f"line {number}\n" for number in range(1, 1001))

    def test_hunks_near_each_other_are_one_part(self):
        hunks = [{"start": a, "end": b, "text": f"@{a}\n"} for a, b in
                 ((10, 12), (60, 61), (500, 502), (1000, 1000))]
        parts = changed("f", hunks, self.TEXT, 20000, 40)
        self.assertEqual([part.change for part in parts], ["@10\n@60\n", "@500\n", "@1000\n"])
        self.assertEqual([part.line for part in parts], [1, 460, 960])
        self.assertTrue(parts[1].text.startswith("line 460\n"))
        self.assertTrue(parts[1].text.endswith("line 542"))

    def test_a_file_that_is_new_is_read_whole(self):
        hunk = {"start": 1, "end": 1000, "text": "+..."}
        for status, change in (("added", ""), ("untracked", ""), ("modified", "+...")):
            parts = parts_of("f", {"status": status, "hunks": [hunk]}, self.TEXT, 20000, 40)
            self.assertEqual([part.change for part in parts], [change])


    def test_a_rename_is_nothing_to_read(self):
        renamed = {"start": 1, "end": 1, "text": "rename from a\nrename to f\n"}
        mode = {"start": 1, "end": 1, "text": "old mode 100644\nnew mode 100755\n"}
        hunk = {"start": 500, "end": 500, "text": "@500\n"}
        self.assertEqual(changed("f", [renamed, mode], self.TEXT, 20000, 40), [])
        parts = changed("f", [renamed, mode, hunk], self.TEXT, 20000, 40)
        self.assertEqual([part.change for part in parts], ["@500\n"])


class Model:
    """Answers what it is asked while there are answers, each of which takes one token."""

    def __init__(self, *answers):
        self.answers, self.tokens, self.asked = list(answers), 2 * len(answers), 0

    def budget(self):
        return {"cost": None, "tokens": self.tokens - self.asked, "time_ms": None}

    def batch_llm_query(self, prompts):
        some, self.answers = self.answers[:len(prompts)], self.answers[len(prompts):]
        self.asked += len(some)
        return some


class TooLong(str):
    kind = first_reading.TOO_LONG

    def __bool__(self):
        return False


class Files:
    def __init__(self, **files):
        self.files = files

    def _files(self, _who, _paths):
        return self.files

    def changes(self):
        raise ValueError("nothing was compared")


class Texts:
    def extract_json(self, answer):
        return json.loads(answer)


class Unread(unittest.TestCase):
    LONG = "int f(int);\n" * 500  # four parts, of 1,000 to 2,000 characters each

    def unread(self, answers, **files):
        reading = FirstReading(Model(*answers), Files(**files), Texts())
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            _findings, unread = reading.first_reading("", size=2000)
        return unread, printed.getvalue()

    def setUp(self):
        few = mock.patch.multiple(first_reading, FIRST=2, MOST=2, REPLY=-2000 // 3,
                                  SHORTEST=100)
        few.start()
        self.addCleanup(few.stop)

    def test_a_file_that_is_read(self):
        parts = len(parts_of("f", {}, self.LONG, 2000, 40))
        self.assertGreater(parts, 3)
        for files in ({"a": "x"}, {"a": self.LONG}, {"a": "x", "b": "", "c": " \n"}):
            self.assertEqual(self.unread(["[]"] * (parts + 2), **files)[0], [])

    def test_a_file_that_is_not_read_wholly_is_named(self):
        """Money for two of its parts, or for none of the halves of one that was too long."""
        unread, printed = self.unread(["[]"] * 2, a=self.LONG, b="x")
        self.assertEqual(unread, ["a", "b"])
        self.assertIn(f"Not read, or not wholly: a, b ({first_reading.OVER})", printed)
        unread, _ = self.unread([TooLong(), "[]"], a="x\n" * 900, b="x")
        self.assertEqual(unread, ["a"])


class Places(unittest.TestCase):
    PART = Part("a.c", "one\n\ttwo;\n\tthree;\nfour\n", 10)

    def test_the_line_of_a_quote(self):
        for quote, line in (("\ttwo;", 11), ("two;\n\tthree;\n", 11), ("  four  ", 13)):
            found = place(self.PART, {"quote": quote, "path": "x", "line": 3})
            self.assertEqual((found["path"], found["line"]), ("a.c", line))

    def test_a_line_that_was_removed(self):
        """It is not there: the finding is about the line behind it, or before where that is all."""
        part = Part("a.c", "int f()\n{\n\tdo_it();\n}\n", 10,
                    "@@ -10,5 +10,4 @@\n int f()\n {\n-\tif (!checked())\n-\t\treturn;\n \tdo_it();\n }\n")
        for quote in ("if (!checked())", "\tif (!checked())\n\t\treturn;"):
            found = place(part, {"quote": quote})
            self.assertEqual((found["quote"], found["line"]), ("do_it();", 12))
        part = Part("a.c", "int f()\n{\n}", 1, "@@ -1,4 +1,3 @@\n int f()\n {\n-\tfree(p);\n }\n")
        found = place(part, {"quote": "free(p);"})
        self.assertEqual((found["quote"], found["line"]), ("int f()", 1))
        self.assertIsNone(place(part, {"quote": "malloc(p);"}))

    def test_none(self):
        for quote in ("five", "", "  ", None, 7, ["two;"]):
            self.assertIsNone(place(self.PART, {"quote": quote}))


class Spending(unittest.TestCase):
    def purse(self, **left):
        self.left = {"cost": None, "tokens": None, "time_ms": 10**12, **left}
        return Purse(lambda: dict(self.left), 20000)

    def test_few_before_a_cost_is_known(self):
        self.assertEqual(self.purse().room(), first_reading.FIRST)
        self.assertEqual(self.purse(tokens=40000).room(), 2)
        self.assertEqual(self.purse(tokens=1000).room(), 0)

    def test_half_of_each_is_left(self):
        purse = self.purse(cost=1.0, tokens=10**9)
        self.left["cost"] -= 0.1
        purse.count(16)
        self.assertEqual(purse.room(), first_reading.MOST)
        self.left["cost"] -= 0.35
        purse.count(56)
        self.assertIn(purse.room(), (7, 8))
        self.left["cost"] -= 0.1
        self.assertEqual(purse.room(), 0)
        self.left = {"cost": 1.0, "tokens": 10**9, "time_ms": 10**12 // 3}
        self.assertEqual(purse.room(), 0)

    def test_what_costs_nothing(self):
        purse = self.purse(cost=0.0)
        purse.count(16)
        self.assertEqual(purse.room(), first_reading.MOST)


if __name__ == "__main__":
    unittest.main()

"""worker/search.py finds what `re` finds, whatever the text and the pattern."""

import os
import random
import re
import string
import sys
import unittest

sys.path.insert(0, os.path.join(os.environ["RLMD_BUILD_ROOT"], "worker"))

import search  # noqa: E402

ODD = "\u212a\u017f\u0130\u0131\u00df\ufb05\u1e9e\u03a3\u03c2\u00b5\u00e9\ud800\udfff\U0001f600"


def of_re(pattern, text):
    if isinstance(pattern, str):
        pattern = re.compile(pattern, re.I | re.M)
    return [match.span() for match in pattern.finditer(text)]


class SearchTest(unittest.TestCase):
    def check(self, pattern, text):
        self.assertEqual(list(search.spans(pattern, text)), of_re(pattern, text), (pattern, text))

    def pieces_of(self, size):
        before, search.PIECE = search.PIECE, size
        self.addCleanup(setattr, search, "PIECE", before)


class Same(SearchTest):
    def test_every_character(self):
        """Each letter matches those of all Unicode that `re` lets it match, and no others."""
        text = "".join(map(chr, range(sys.maxunicode + 1)))
        for letter in string.ascii_letters:
            self.assertTrue(search.needed(search.compiled(letter)).whole)
            self.check(letter, text)

    def test_random_texts(self):
        """Plain words in texts that are made of nearly the same; at the ends of pieces, too."""
        self.pieces_of(7)
        made = random.Random(1)
        for _ in range(4000):
            letters = made.choice(("ab", "isk", "a?", "ab" + ODD, "ISKisk?\n-" + ODD))
            word = "".join(made.choice("abiskISK?-") for _ in range(made.randint(1, 9)))
            parts = [word, word.upper(), word[:-1], *letters]
            text = "".join(made.choice(parts) for _ in range(made.randint(0, 12)))
            self.check(re.escape(word), text)

    def test_matches_do_not_overlap(self):
        self.pieces_of(4)
        for count in range(20):
            self.check("aAa", "AaA" * count)
            self.check("ab", "abAB" * count)

    def test_around_the_ends_of_pieces(self):
        for shift in range(8):
            text = "x" * (search.PIECE - shift) + "Needle" + "\u212a" * (shift % 2)
            self.check("needle", text + text)

    def test_other_patterns(self):
        for pattern in (
            r"\berror\b", "^a", "a|b", "[ab]", "a.", "a?", "", "\u00e9", "\u212a", r"\d", "(?s)a.b",
            r"a\nb", "a\nb", re.compile("A"), re.compile("a", re.S), "-",
        ):
            for text in ("A b error Errors a\nb\nab \u00c9K k", "", "\n"):
                self.check(pattern, text)
        self.assertRaises(re.error, search.spans, "?*", "a")


class Patterns:
    """Makes random ones, over few characters, so that they match often, and soon fail."""

    PIECES = ("need", "Need", "le", "kis", "a", "\\n", " ", r"\s", r"\s+", r"\s*", r"\S+", r"\w+", ".",
              ".*", "[a-n]", "[^e]", "[^e]*", r"[^\n]+", r"[\s,]+", "^", "$", r"\b", r"\B", r"\W", r"\d*",
              r"\Z", r"\A", "\u00e9", "\u212a", r"\.")
    REPEATS = "", "", "", "?", "??", "{2}", "{0,2}", "{0}"

    def __init__(self, seed):
        self.made = random.Random(seed)

    def sequence(self, depth):
        return "".join(self.element(depth) for _ in range(self.made.randint(1, 4)))

    def element(self, depth):
        if depth and self.made.random() < 0.35:
            kind = self.made.choice(("(", "(?:", "(?:", "(?=", "(?!", "(?i:", "(?s:"))
            inner = self.sequence(depth - 1)
            if self.made.random() < 0.3:
                inner += "|" + self.sequence(depth - 1)
            return f"{kind}{inner})" + ("" if kind in ("(?=", "(?!") else
                                        self.made.choice(self.REPEATS))
        return self.made.choice(self.PIECES)

    def expression(self):
        flags = self.made.choice((search.FLAGS, search.FLAGS, re.M, 0, re.S | re.I, re.A | re.I,
                                  re.M | re.X))
        while True:
            try:
                return re.compile(self.sequence(2), flags)
            except re.error:
                pass

    def text(self):
        parts = ("need", "NEED", "needle\n", "kis", "\u212aIS", "a", " ", "\n", "\n \n", "\t", "e", ".",
                 "\u00e9", "\U0001f600", "needkis\n\n  le")
        return "".join(self.made.choice(parts) for _ in range(self.made.randint(0, 25)))


class Any(SearchTest):
    """Patterns of all kinds, short literals looked for first as well."""

    def setUp(self):
        self.pieces_of(7)
        before, search.LEAST = search.LEAST, 1
        self.addCleanup(setattr, search, "LEAST", before)

    def test_matches(self):
        patterns = Patterns(1)
        for _ in range(2500):
            expression = patterns.expression()
            for _ in range(4):
                self.check(expression, patterns.text())

    def test_lines(self):
        """Each line alone, whatever stands before and behind."""
        patterns = Patterns(2)
        for _ in range(2500):
            expression, text = patterns.expression(), patterns.text()
            lines = text.split("\n")
            if not lines[-1]:
                del lines[-1]
            right = [(number, line) for number, line in enumerate(lines, 1)
                     if expression.search(line)]
            around = f"need kis\n{text}", f"{text}\nneed kis"[len(text):]
            whole = around[0] + around[1]
            first = len("need kis\n")
            found = list(search.line_finder(expression)(whole, first, first + len(text)))
            self.assertEqual(found, right, (expression, text))


class Needs(unittest.TestCase):
    def need(self, pattern):
        return tuple(search.needed(search.compiled(pattern)))[:3]

    def test_literals(self):
        for pattern, literal in (
            ("error", "error"), ("User Name", "User Name"), (r"a\.b", "a.b"), (r"\x41", "A"),
            ("a-b_c#d", "a-b_c#d"), (r"\-a", "-a"), ("1-2", "1-2"),
            (re.escape("a b.c(d)"), "a b.c(d)"), ("a\\\\b", "a\\b"),
        ):
            self.assertEqual(self.need(pattern), (literal, True, 0))
        for pattern in ("", "a|b", "[ab]", "a*", "\u00e9", b"a", "(?-i:a)"):
            self.assertEqual(self.need(pattern)[:2], ("", False))

    def test_what_a_match_contains(self):
        for pattern, literal, lines in (
            (r"\bstatic\s+(const\s+)?struct\s+file_operations\b", "file_operations", 3),
            ("^(class|def) ma(in)+", " ma", 0), ("a(needle)+?b", "needle", 0), ("ab(?:c|d)efg.*h", "efg", 0),
            (r"x{2}yz\n", "yz\n", 1), ("needle(?=s)", "needle", search.ANY),
            (r"[^\n]*needle[^,]", "needle", 1), ("needle[^,]*", "needle", search.ANY),
            (r"(?s)needle.", "needle", 1), (r"needle\Z", "needle", search.ANY),
            (r"needle\S+", "needle", 0), (r"(\s+needle){2}", "needle", 2),
        ):
            self.assertEqual(self.need(pattern), (literal, False, lines))

    def test_what_re_looks_for_itself(self):
        for pattern, first in (("abc.", True), ("ab.cdef", False), (".abc", False)):
            self.assertIs(search.needed(re.compile(pattern)).first, first)
            self.assertFalse(search.needed(search.compiled(pattern)).first)


if __name__ == "__main__":
    unittest.main()

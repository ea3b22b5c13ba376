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
            self.assertIsNotNone(search.literal_of(letter))
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


class Literals(unittest.TestCase):
    def test_what_is_one(self):
        for pattern, literal in (
            ("error", "error"), ("User Name", "User Name"), (r"a\.b", "a.b"),
            ("a-b_c#d", "a-b_c#d"),
            (re.escape("a b.c(d)\n"), "a b.c(d)\n"), ("a\\\\b", "a\\b"), (r"\-a", "-a"),
        ):
            self.assertEqual(search.literal_of(pattern), literal)
        for pattern in ("", "1-2", "a.b", r"a\d", r"\x41", "a{2}", "a\\", "\u00e9a", b"a",
                        re.compile("a"), "a|b", "[a]", "(a)", "^a", "a$", "a*"):
            self.assertIsNone(search.literal_of(pattern))


if __name__ == "__main__":
    unittest.main()

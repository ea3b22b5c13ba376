"""A finding is known again: over real files, as models say the same in other words."""

import json
import os
import pathlib
import re
import unittest

import test_review
from test_review import answer

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = [
    "src/base/json.c", "src/base/text.c", "src/base/digest.c", "src/base/file.c",
    "src/prompt/prompt.c", "src/lister/changes.c", "src/lister/walk.c", "src/lister/refs.c",
    "src/source/loader.c", "src/review/patch.c", "src/review/ruleset.c", "src/cli/review.c",
    "src/cli/option.c", "worker/blocks.py", "worker/search.py", "worker/output.py",
    "worker/globs.py", "worker/repl.py",
]
COUNT, PAIRS = 72, 500
RULES = {"leak": ["memory-leak", "taste"], "race": ["data-race", "deadlock"],
         "unchecked-result": ["ignored-error", "swallowed-error"],
         "off-by-one": ["off by one error", "wrong-result"]}


def says(line):
    return len(re.findall(r"\w", line)) > 1


class KnownTest(test_review.ReviewTest):
    def setUp(self):
        super().setUp()
        self.files = {name: (ROOT / name).read_text().splitlines() for name in FILES}
        places = [(name, len(lines) * (k + 1) // 5) for name, lines in self.files.items()
                  for k in range(4)]
        self.places = [(name, *self.quotable(name, at, n % 3 + 1))
                       for n, (name, at) in enumerate(places)]
        self.assertEqual(len(self.places), COUNT)
        self.run_on(self.files, self.findings(self.places), "--sarif", "old.sarif")

    def quotable(self, name, at, size):
        """So many lines from there on, the first and last of which say something."""
        lines = self.files[name]
        while not (says(lines[at]) and says(lines[at + size - 1])):
            at += 1
        return at, at + size

    def findings(self, places, files=None, rename=str, rule=str):
        names = list(RULES)
        return [test_review.finding(path=rename(name), line=start + 1, confidence=0.5,
                                    rule=rule(names[n % len(names)]), message="Finding %d." % n,
                                    quote="\n".join((files or self.files)[name][start:end]))
                for n, (name, start, end) in enumerate(places)]

    def run_on(self, files, findings, *arguments, end="\n", rename=str):
        test_review.subprocess.run(["rm", "-rf", str(self.dir / "tree")], check=True)
        for name, lines in files.items():
            self.write("tree/" + rename(name), (end.join(lines) + end).encode())
        outcome = self.review(*findings, arguments=["--fail-on", "none", *arguments])
        self.assertEqual(outcome.status, 0, outcome.err)

    def known(self, files, findings, **more):
        """How many of how many are."""
        self.run_on(files, findings, "--baseline", "old.sarif", "--sarif", "new.sarif", **more)
        results = json.loads(self.report("new.sarif"))["runs"][0]["results"]
        states = [each["baselineState"] for each in results]
        return states.count("unchanged"), len(states), results

    def assert_known(self, files, findings, **more):
        known, count, results = self.known(files, findings, **more)
        self.assertGreaterEqual(known, 68)
        self.assertEqual(count, COUNT)
        return results

    @staticmethod
    def wider(place, n):
        name, start, end = place
        return (name, start - n % 2, end + 1 - n % 2)

    @staticmethod
    def narrower(place, n):
        name, start, end = place
        return (name, start + n % 2, end - 1 + n % 2) if end - start > 1 else place

    def test_moves(self):
        files, shift = {}, {}
        for name, lines in self.files.items():
            half = len(lines) // 2
            files[name] = ["// new"] * 37 + lines[half:] + lines[:half]
            shift[name] = half, len(lines) - half
        moved = []
        for name, start, end in self.places:
            half, rest = shift[name]
            by = 37 - half if start >= half else 37 + rest
            moved.append((name, start + by, end + by))
        self.assert_known(files, self.findings(moved, files))

    def test_edits_around(self):
        """Where a line nearby is new."""
        files, moved = {name: list(lines) for name, lines in self.files.items()}, []
        for name, start, end in reversed(self.places):
            files[name].insert(start - 1, "new = line();")
        for n, (name, start, end) in enumerate(self.places):
            by = n % 4 + 1
            moved.append((name, start + by, end + by))
        self.assert_known(files, self.findings(moved, files))

    def test_tabs(self):
        files = {name: [line.replace("\t", "    ") for line in lines]
                 for name, lines in self.files.items()}
        self.assert_known(files, self.findings(self.places, files))

    def test_line_ends(self):
        self.assert_known(self.files, self.findings(self.places), end="\r\n")

    def test_renames(self):
        def rename(name):
            return "new/" + name.replace("/", "_")
        self.assert_known(self.files, self.findings(self.places, rename=rename), rename=rename)

    def test_wider_quotes(self):
        wider = [self.wider(place, n) for n, place in enumerate(self.places)]
        self.assert_known(self.files, self.findings(wider))

    def test_narrower_quotes(self):
        narrower = [self.narrower(place, n) for n, place in enumerate(self.places)]
        self.assert_known(self.files, self.findings(narrower))

    def test_rules_by_other_names(self):
        """The alert that a service has stays: its rule and fingerprint are those that it had."""
        old = json.loads(self.report("old.sarif"))["runs"][0]["results"]
        for k in range(2):
            results = self.assert_known(self.files, self.findings(
                self.places, rule=lambda name, k=k: RULES[name][k]))
            for member in ("ruleId", "partialFingerprints"):
                self.assertEqual([each[member] for each in old], [each[member] for each in results])

    def test_rules_in_capitals(self):
        self.assert_known(self.files, self.findings(
            self.places, rule=lambda name: name.upper().replace("-", "_")))

    def test_all_at_once(self):
        wider = [self.wider(place, n) for n, place in enumerate(self.places)]
        findings = self.findings(wider, rename="x/".__add__, rule=lambda name: "taste")
        self.assert_known(self.files, findings, rename="x/".__add__, end="\r\n")

    def test_others_are_not(self):
        """Beside each finding, as near as may be, and with the rule that it has."""
        taken = {(name, line) for name, start, end in self.places for line in range(start, end)}
        pairs = 0
        for distance in (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 20):
            others = []
            for name, start, end in self.places:
                lines = self.files[name]
                at = start - distance if distance % 2 else end - 1 + distance
                if 0 <= at < len(lines) and (name, at) not in taken and says(lines[at]):
                    others.append((name, at, at + 1))
            known, count, results = self.known(self.files, self.findings(others))
            self.assertEqual([each["locations"][0] for each in results
                              if each["baselineState"] == "unchanged"], [])
            pairs += count
            self.assertGreater(count, 20)
        self.assertGreaterEqual(pairs, PAIRS)

    def test_lines_that_stand_elsewhere_too(self):
        """The same text in another place of its file is another finding."""
        others = []
        for name, start, end in self.places:
            for at, line in enumerate(self.files[name]):
                if abs(at - start) > 2 and line.strip() == self.files[name][start].strip():
                    others.append((name, at, at + 1))
        self.assertGreater(len(others), 5)
        self.assertEqual(self.known(self.files, self.findings(others))[0], 0)


if __name__ == "__main__":
    unittest.main()

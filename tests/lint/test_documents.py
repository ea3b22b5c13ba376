"""The documents: their links lead somewhere, the options in their commands exist, and the README
ends before its reader does."""

import re
import unittest

import tree

LINK = re.compile(r"!?\[[^\]\n]*\]\(([^)\s]+)\)")
README_LINES = 120


def documents():
    return [*tree.ROOT.glob("*.md"), *tree.files(".md", under=("docs", "examples"))]


def anchor(heading):
    """As services make one of a heading."""
    return re.sub(r"[^\w -]", "", heading.strip().lower()).replace(" ", "-")


class DocumentsTest(unittest.TestCase):
    def test_links_lead_somewhere(self):
        found = 0
        for path in documents():
            for target in LINK.findall(tree.read(path)):
                if re.match(r"[a-z]+:", target):
                    continue
                found += 1
                with self.subTest(document=tree.name(path), target=target):
                    file, _, place = target.partition("#")
                    there = (path.parent / file).resolve() if file else path
                    self.assertTrue(there.exists())
                    if place:
                        headings = re.findall(r"(?m)^#+ (.*)$", tree.read(there))
                        self.assertIn(place, map(anchor, headings))
        self.assertGreater(found, 50)

    def test_commands_have_options_that_exist(self):
        known = {tree.unquoted(row[6]) for row in tree.rows("src/cli/options.def", "OPTION")}
        found = 0
        for name in ("README.md", "docs/batch.md", "docs/ci.md", "docs/plans.md", "docs/trace.md"):
            blocks = re.findall(r"(?m)^(?:    .*\n)+", tree.read(name))
            for line in "".join(blocks).replace("\\\n", " ").splitlines():
                command = re.search(r"(?:^|[\s$|])(?:build/)?rlmd (?:exec|plan|review|batch|work|trace|doctor"
                                    r"|results|status|merge)\b([^|#]*)", line)
                for option in re.findall(r"(?<![\w-])--([a-z][a-z-]+)", command[1] if command else ""):
                    found += 1
                    with self.subTest(document=name, option=option):
                        self.assertIn(option, known | {"version", "help"})
        self.assertGreater(found, 10)

    def test_a_busy_engineer_finishes_the_readme(self):
        lines = tree.read("README.md").splitlines()
        self.assertLess(len(lines), README_LINES)
        for line in lines:
            for cell in line.split("|") if line.startswith("|") else ():
                self.assertLess(len(cell), 150, cell)


if __name__ == "__main__":
    unittest.main()

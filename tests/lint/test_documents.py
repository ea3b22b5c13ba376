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
        """In code of documents and manual pages, and between backquotes: each is one of its command's."""
        words = {row[2]: row[1] for row in tree.rows("src/cli/commands.def", "COMMAND")}
        known = {word: {"version"} for word in words.values()}
        for _, *row in tree.rows("src/cli/options.def", "OPTION"):
            commands = words if row[3] == "ALL" else row[3].split(" | ")
            for command in commands:
                known[words[command]].add(tree.unquoted(row[5]))
        pattern = re.compile(rf"(?:^|[\s$|`])(?:build/)?rlmd ({'|'.join(known)})\b([^|#`\n]*)", re.MULTILINE)
        found = 0
        for path in [*documents(), *(tree.ROOT / "docs" / "man").iterdir()]:
            text = tree.read(path).replace("\\\n", " ")
            code = re.findall(r"(?ms)^```.*?^```|^(?:    .*\n)+|`[^`\n]+`", text)
            for command, rest in pattern.findall("\n".join(code)):
                for option in re.findall(r"(?<![\w-])--([a-z][a-z-]+)", rest):
                    found += 1
                    with self.subTest(document=tree.name(path), command=command, option=option):
                        self.assertIn(option, known[command])
        self.assertGreater(found, 80)

    def test_cells_end_before_their_reader_does(self):
        for path in documents():
            for line in tree.read(path).splitlines():
                for cell in line.split(" | ") if line.startswith("|") else ():
                    with self.subTest(document=tree.name(path), cell=cell[:60]):
                        self.assertLess(len(cell), 600)

    def test_a_busy_engineer_finishes_the_readme(self):
        lines = tree.read("README.md").splitlines()
        self.assertLess(len(lines), README_LINES)
        for line in lines:
            for cell in line.split("|") if line.startswith("|") else ():
                self.assertLess(len(cell), 150, cell)


if __name__ == "__main__":
    unittest.main()

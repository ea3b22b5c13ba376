"""The documents as a site: all pages are there, their links lead somewhere, and nothing is loaded
from elsewhere."""

import html.parser
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parents[2]
SCDOC = shutil.which("scdoc")


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.loaded = set(), set(), set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.ids |= {attributes.get("id"), attributes.get("name")}
        if tag == "a" and attributes.get("href"):
            self.links.add(attributes["href"])
        elif tag == "link" and attributes.get("rel") != "canonical":
            self.loaded.add(attributes["href"])
        elif attributes.get("src"):
            self.loaded.add(attributes["src"])


class Site(unittest.TestCase):
    def setUp(self):
        if not (shutil.which("mkdocs") and shutil.which("mandoc") and SCDOC):
            self.skipTest("mkdocs, mandoc or scdoc is not installed")
        room = tempfile.TemporaryDirectory(prefix="rlmd-test-")
        self.addCleanup(room.cleanup)
        self.site = Path(room.name)
        done = subprocess.run([ROOT / "tools/site", self.site], text=True,
                              capture_output=True, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.pages = {path: Page(path) for path in self.site.rglob("*.html")}

    def test_the_site(self):
        there = {path.relative_to(self.site).as_posix() for path in self.pages}
        for path in (*ROOT.glob("docs/**/*.md"), *ROOT.glob("docs/man/*.scd")):
            self.assertIn(f"{path.relative_to(ROOT).with_suffix('')}.html", there)
        manual = (self.site / "docs/man/rlmd.1.html").read_text("utf-8")
        self.assertIn('<a href="rlmd-exec.1.html"><b>rlmd-exec</b>(1)</a>', manual)
        links = 0
        for path, page in self.pages.items():
            for address in page.links | page.loaded:
                with self.subTest(page=path.relative_to(self.site).as_posix(), address=address):
                    if re.match("[a-z]+:", address):
                        self.assertNotIn(address, page.loaded)
                        continue
                    links += 1
                    file, _, place = address.partition("#")
                    file = unquote(file).partition("?")[0]
                    target = (path.parent / file).resolve() if file else path
                    if file.startswith("/"):
                        target = self.site / file.lstrip("/")
                    target = target / "index.html" if target.is_dir() else target
                    self.assertTrue(target.is_file())
                    if place and target in self.pages:
                        self.assertIn(unquote(place), self.pages[target].ids)
        self.assertGreater(links, 1000)


if __name__ == "__main__":
    unittest.main()

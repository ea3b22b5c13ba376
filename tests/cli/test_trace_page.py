"""`rlmd trace --html`: a trace as a page, and that page in a browser."""

import base64
import hashlib
import html.parser
import json
import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "system"))
import browser  # noqa: E402
import patience  # noqa: E402
from harness import GuardedTest, block, query, turn  # noqa: E402

HOSTILE = ("</script><script>document.title='caught'</script><img src=x onerror=\"document.title="
           "'caught'\"><!--<script> ]]> <a href=\"javascript:1\">\u2028 \U0001f600 &lt;b&gt;")
SMALL = [
    turn(block("print('first words')", "print(llm_query('a question'))"), 0, depth=0),
    turn(block("print(rlm_query('a part'))", "1/0"), 1, depth=0),
    turn("FINAL(42 hosts)", 2, depth=0),
    turn("FINAL(six of them)", depth=1),
    query("an answer"),
]


class Parsed(html.parser.HTMLParser):
    """The page as a browser would read it, without one."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.scripts, self.styles, self.policy, self.open = [], [], [], "", None
        self.refreshes = False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append(tag)
        self.open = (tag, attributes)
        if attributes.get("http-equiv") == "Content-Security-Policy":
            self.policy = attributes["content"]
        self.refreshes |= attributes.get("http-equiv") == "refresh"

    def handle_endtag(self, tag):
        self.open = None

    def handle_data(self, data):
        if self.open and self.open[0] == "script":
            self.scripts.append((self.open[1], data))
        elif self.open and self.open[0] == "style":
            self.styles.append(data)

    @property
    def events(self):
        return json.loads(next(data for attributes, data in self.scripts
                               if attributes.get("id") == "trace"))


class PageTest(GuardedTest):
    def setUp(self):
        super().setUp()
        self.trace, self.page = self.dir / "trace", self.dir / "page.html"

    def run_job(self, entries=SMALL, task="the task", **more):
        outcome = self.rlmd("exec", "-p", "replay", "--replay", self.script(*entries),
                            "--trace", self.trace, "--", task, **more)
        self.assertEqual(outcome.status, 0, outcome.err)

    def make_page(self, *arguments):
        shown = self.rlmd("trace", self.trace, "--html", self.page, *arguments)
        self.assertEqual((shown.status, shown.out), (0, ""), shown.err)
        return Parsed(self.page.read_text("utf-8"))

    def told(self):
        return [json.loads(line) for line in self.trace.read_text("utf-8").split("\n")[:-1]]


class Made(PageTest):
    def test_it_is_one_file_that_may_load_nothing(self):
        self.run_job()
        page = self.make_page()
        self.assertNotRegex(self.page.read_text("utf-8"), r"https?://")
        self.assertFalse({"link", "img", "iframe", "object", "base"} & set(page.tags))
        allowed = set(re.findall(r"'sha256-([^']+)'", page.policy))
        self.assertIn("default-src 'none'", page.policy)
        self.assertNotIn("unsafe", page.policy)
        (script,) = [data for attributes, data in page.scripts if "id" not in attributes]
        for part in (script, *page.styles):
            digest = base64.b64encode(hashlib.sha256(part.encode("utf-8")).digest()).decode()
            self.assertIn(digest, allowed)
        self.assertEqual(len(allowed), 2)
        self.assertFalse(page.refreshes)

    def test_the_events_are_in_it(self):
        self.run_job()
        told = self.told()
        self.assertIn("trace", told[-1])
        del told[-1]["trace"]  # the tree says what the events say
        self.assertEqual(self.make_page().events, told)

    def test_no_text_is_markup(self):
        entries = [turn(block(f"print({HOSTILE!r})"), 0), turn(f"FINAL({HOSTILE})", 1)]
        self.run_job(entries, task=HOSTILE)
        page = self.make_page()
        told = self.told()
        del told[-1]["trace"]
        self.assertEqual(page.events, told)
        self.assertEqual(page.tags.count("script"), 2)
        self.assertNotIn("img", page.tags)

    def test_of_several_runs_the_last(self):
        self.run_job(task="one")
        first = len(self.told())
        self.run_job(task="two")
        told = self.told()[first:]
        del told[-1]["trace"]
        self.assertEqual(self.make_page().events, told)

    def test_a_run_that_was_killed(self):
        self.run_job()
        whole = self.trace.read_bytes()
        events = self.told()
        self.trace.write_bytes(b"".join(whole.splitlines(keepends=True)[:3]) + b'{"event":"co')
        self.assertEqual(self.make_page().events, events[:3])

    def test_what_is_no_trace_leaves_the_page(self):
        self.page.write_text("mine")
        for content, status in ((b"no trace\n", 8), (b"", 8), (b"{}\n{}\n[]\n1\n", 8)):
            self.trace.write_bytes(content)
            shown = self.rlmd("trace", self.trace, "--html", self.page)
            self.assertEqual(shown.status, status, content)
            self.assertIn(str(self.trace), shown.err)
            self.assertEqual(self.page.read_text("utf-8"), "mine")
        for wrong in (["--json"], ["--text"], ["--follow", "--json"]):
            shown = self.rlmd("trace", self.trace, "--html", self.page, *wrong)
            self.assertEqual(shown.status, 2, wrong)
        shown = self.rlmd("trace", self.dir / "nothing", "--html", self.page)
        self.assertEqual(shown.status, 8)

    def test_from_standard_input(self):
        self.run_job()
        shown = self.rlmd("trace", "-", "--html", self.page, input=self.trace.read_bytes())
        self.assertEqual(shown.status, 0, shown.err)
        self.assertEqual(Parsed(self.page.read_text("utf-8")).events[0]["task"], "the task")


@unittest.skipUnless(browser.PROGRAM, "there is no chromium")
class Shown(PageTest):
    """In a browser, with keys and clicks."""

    def open(self, fragment="", **size):
        self.browser.open(self.page, fragment, **size)
        self.assertEqual(self.browser.complaints(), ["asked for " + self.page.as_uri()])

    def selected(self):
        return self.browser.run("document.querySelector('[aria-selected=true]').id")

    def shown(self, selector):
        return self.browser.run(
            f"[...document.querySelectorAll({json.dumps(selector)})].map(it => it.innerText)")

    def setUp(self):
        super().setUp()
        opened = browser.browser()
        self.browser = opened.__enter__()
        self.addCleanup(opened.__exit__, None, None, None)

    def test_runs_turns_and_calls(self):
        self.run_job()
        told = self.told()
        root, part = (e["run"] for e in told if e["event"] == "run")
        self.make_page()
        self.open()
        self.assertEqual(self.browser.run("document.title"), "the task - rlmd")
        (problem,) = self.shown("#problems li")
        self.assertEqual(problem, "ZeroDivisionError: division by zero")
        self.browser.run("document.getElementById('open').click()")
        ids = self.browser.run("[...document.querySelectorAll('#tree > *')].map(it => it.id)")
        for wanted in (f"run-{root}", f"{root}.turn1", f"{root}.call1", f"{root}.turn2",
                       f"{root}.turn3", f"run-{part}", f"{part}.turn1"):
            self.assertIn(wanted, ids)

    def test_a_link_leads_to_a_call(self):
        self.run_job()
        root = self.told()[0]["run"]
        self.make_page()
        self.open(f"#{root}.call1")
        self.assertEqual(self.selected(), f"{root}.call1")
        detail = self.browser.run("document.getElementById('detail').innerText")
        for words in ("a question", "an answer"):
            self.assertIn(words, detail)

    def test_search_and_filter(self):
        self.run_job()
        root = self.told()[0]["run"]
        self.make_page()
        self.open()
        self.browser.run("document.body.focus()")
        self.browser.key("/")
        self.browser.call("Input.insertText", text="FIRST words")
        patience.wait_until(lambda: self.browser.run("document.getElementById('count').textContent"),
                            "the search")
        ids = self.browser.run("[...document.querySelectorAll('#tree > *')].map(it => it.id)")
        self.assertIn(f"{root}.turn1", ids)
        self.assertNotIn(f"{root}.turn3", ids)
        self.browser.run("document.getElementById('search').value = '';"
                         "document.getElementById('search').dispatchEvent(new Event('input'));"
                         "const f = document.getElementById('filter'); f.value = 'call';"
                         "f.dispatchEvent(new Event('change'))")
        patience.wait_until(lambda: f"{root}.call1" in self.browser.run(
            "[...document.querySelectorAll('#tree > *')].map(it => it.id)"), "the filter")

    def test_keys(self):
        self.run_job()
        root = self.told()[0]["run"]
        self.make_page()
        self.open()

        self.browser.key("ArrowDown")
        self.assertEqual(self.selected(), f"{root}.turn1")
        self.browser.key("ArrowRight")
        self.browser.key("ArrowRight")
        self.assertEqual(self.selected(), f"{root}.call1")
        self.browser.key("ArrowLeft")
        self.assertEqual(self.selected(), f"{root}.turn1")
        self.browser.key("e")
        self.assertEqual(self.selected(), f"{root}.turn2")
        before = self.browser.run("document.documentElement.dataset.theme")
        self.browser.key("t")
        self.assertEqual({before, self.browser.run("document.documentElement.dataset.theme")},
                         {"light", "dark"})

    def test_nothing_hostile_becomes_more_than_text(self):
        entries = [turn(block(f"print({HOSTILE!r})", f"print(llm_query({HOSTILE!r}))"), 0),
                   turn(f"FINAL({HOSTILE})", 1), query(HOSTILE)]
        self.run_job(entries, task=HOSTILE)
        self.make_page()
        self.open()
        self.browser.run("document.getElementById('open').click()")
        for row in self.browser.run("[...document.querySelectorAll('.row')].map(it => it.id)"):
            self.browser.run(f"location.hash = {json.dumps('#' + row)}")
            patience.wait_until(lambda: self.selected() == row, row)
            found = self.browser.run(
                "document.querySelectorAll('img, iframe, b, a[href^=javascript]').length")
            self.assertEqual(found, 0)
        self.assertIn("onerror", self.browser.run("document.body.innerText"))
        self.assertNotEqual(self.browser.run("document.title"), "caught")
        self.assertEqual(len(self.browser.complaints()), 1)

    def test_on_a_phone(self):
        self.run_job()
        self.make_page()
        self.open(width=390, height=800)
        self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), 390)
        visible = "getComputedStyle(document.getElementById('detail')).display"
        self.assertEqual(self.browser.run(visible), "none")
        self.browser.run("document.querySelectorAll('.row')[1].click()")
        self.assertEqual(self.browser.run(visible), "block")
        self.browser.run("document.getElementById('back').click()")
        self.assertEqual(self.browser.run(visible), "none")

    def test_ten_thousand_calls(self):
        """All of them can be reached, and found."""
        self.run_job()
        first, response, call, *_ = self.told()
        self.assertEqual(call["event"], "llm_call")
        with self.trace.open("w", encoding="utf-8") as file:
            for event in (first, response):
                file.write(json.dumps(event) + "\n")
            for index in range(10000):
                more = dict(call, index=index, prompt=f"number {index}. " + "words " * 60,
                            seq=index + 2, ms=index + 50)
                file.write(json.dumps(more) + "\n")
        self.make_page()
        self.open(f"#{first['run']}.call9999")
        self.assertEqual(self.browser.run("document.querySelectorAll('.row').length"), 10002)
        self.assertIn("number 9998.", self.browser.run("document.getElementById('detail').innerText"))


if __name__ == "__main__":
    unittest.main()

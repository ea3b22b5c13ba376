"""rlmd review: each file is read by itself, before the root of the review begins."""

import hashlib
import json
import re
import subprocess
import unittest

from model import Reply
from providers import ProviderTest, code

FILES = 31
QUESTION = "^You review one file"
CHECK = "^A reviewer reported the finding"


def answer(*findings):
    return Reply(text=json.dumps({"findings": findings}), usage=(100, 20))


def finding(path, quote, **more):
    return {"rule": "buffer-overflow", "severity": "error", "confidence": 0.9, "path": path,
            "message": "Copies without a bound.", "quote": quote, "line": 1, "patch": None, **more}


def path_of(request):
    return re.search(r"\nThe file ([^,:\n]+)", request.last_user).group(1)


def read(request):
    """As a model that finds each strcpy(), and knows no path."""
    quotes = re.findall(r"strcpy\(.*\);", request.last_user.split("\nThe file ")[1])
    return answer(*(finding("?", quote) for quote in quotes))


def wordy(request):
    """As a root whose words follow from what it was told: it says the checksum of that."""
    told = hashlib.sha256(request.last_user.encode()).hexdigest()
    if len(request.messages) < 5:
        return code(f"print('{told}', len(findings), unread)")
    return code(f"# {told}", "import json", "FINAL(json.dumps({'findings': findings}))")


class FirstReading(ProviderTest):
    def setUp(self):
        super().setUp()
        self.server = self.serve("openai")
        self.question, self.root = read, wordy
        self.check = lambda request: Reply(text='{"holds": true, "why": "x"}')
        self.server.script(CHECK, lambda request: self.check(request))
        self.server.script(QUESTION, lambda request: self.question(request))
        self.server.script(None, lambda request: self.root(request))

    def tree(self, count=FILES, **changed):
        for number in range(count):
            self.write(f"tree/src/f{number}.c", f"int f{number}(void)\n{{\n\treturn {number};\n}}\n")
        for name, text in changed.items():
            self.write(f"tree/src/{name}.c", text)

    def review(self, *arguments, status=3):
        """(the result, the requests of this review)"""
        before = len(self.server.requests)
        outcome = self.rlmd("review", "-p", "openai", "-m", "m", "--json",
                            *self.prices(m=(1000000, 2000000)), *arguments, self.dir / "tree",
                            env=self.environment(**self.server.environment()))
        self.assertEqual(outcome.status, status, outcome.err)
        return outcome, self.server.requests[before:]

    def questions(self, requests, pattern=QUESTION):
        return [each for each in requests if re.search(pattern, each.last_user)]

    def test_each_file_is_asked_about_and_the_root_decides(self):
        self.tree(4, f1="void f(char *a, char *b)\n{\n\tstrcpy(a, b);\n}\n")
        outcome, requests = self.review()
        asked = self.questions(requests)
        self.assertEqual(sorted(map(path_of, asked)), [f"src/f{i}.c" for i in range(4)])
        self.assertEqual(requests[:4], asked)  # before the root
        (found,) = outcome.result["review"]["findings"]
        self.assertEqual((found["path"], found["line"], found["rule"]),
                         ("src/f1.c", 3, "buffer-overflow"))
        root = requests[4].last_user
        self.assertIn("src/f1.c:3: error buffer-overflow (0.9): Copies without a bound.", root)
        self.assertNotIn(QUESTION[1:], json.dumps(requests[4].messages))

    def test_the_second_run_pays_for_what_changed(self):
        self.tree(f3="void f(char *a, char *b)\n{\n\tstrcpy(a, b);\n}\n")
        cache = "--cache", self.dir / "cache"
        _, first = self.review(*cache)
        self.assertEqual(len(self.questions(first)), FILES)
        self.tree(f3="\n\nvoid f(char *a, char *b)\n{\n\tstrcpy(a, b);\n}\n")
        outcome, second = self.review(*cache)
        self.assertEqual([path_of(each) for each in self.questions(second)], ["src/f3.c"])
        self.assertLessEqual(len(second), 1 + len(first) / 10)
        self.assertEqual([each["line"] for each in outcome.result["review"]["findings"]], [5])

    def test_a_long_file_of_which_a_line_changed(self):
        """It is cut where its own lines say: most of its pieces are as they were."""
        lines = [f"int v{number} = {number * number};" for number in range(20000)]
        self.tree(0, long="\n".join(lines) + "\n")
        cache = "--cache", self.dir / "cache"
        _, first = self.review(*cache, status=0)
        pieces = len(self.questions(first))
        self.assertGreater(pieces, 20)
        lines.insert(9000, "int fresh;")
        self.tree(0, long="\n".join(lines) + "\n")
        _, second = self.review(*cache, status=0)
        self.assertLessEqual(len(self.questions(second)), 3)
        shown = "".join(each.last_user.split("\nThe file src/long.c:\n")[1]
                        for each in self.questions(first))
        self.assertEqual(sorted(re.findall(r"int v\d+", shown)),
                         sorted(f"int v{number}" for number in range(20000)))

    def test_quick_asks_about_none(self):
        self.tree(4)
        self.root = lambda request: Reply(text='FINAL({"findings": []})')
        _, requests = self.review("--quick", status=0)
        self.assertEqual(len(requests), 1)
        self.assertNotIn("findings` has", requests[0].last_user)

    def test_deep_has_each_finding_checked(self):
        self.tree(3, f1="void f(char *a, char *b)\n{\n\tstrcpy(a, b);\n\tstrcpy(b, \"x\");\n}\n")
        self.check = lambda request: Reply(
            text=json.dumps({"holds": '"quote": "strcpy(b' not in request.last_user, "why": "x"}))
        outcome, requests = self.review("--deep")
        self.assertEqual(len(self.questions(requests, CHECK)), 2)
        (found,) = outcome.result["review"]["findings"]
        self.assertEqual(found["quote"], "strcpy(a, b);")

    def test_one_or_the_other(self):
        self.tree(1)
        outcome, requests = self.review("--deep", "--quick", status=2)
        self.assertIn("--deep and --quick", outcome.err)
        self.assertEqual(requests, [])

    def changed_tree(self):
        old = [f"int v{number};" for number in range(2000)]
        self.tree(0, long="\n".join(old) + "\n", other="int other;\n", gone="int gone;\n")
        for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "one"]):
            subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@localhost", *words],
                           cwd=self.dir / "tree", check=True)
        old[50] = "\tstrcpy(a, v50);"
        old[1500] = "\tstrcpy(a, v1500);"
        self.tree(0, long="\n".join(old) + "\n", fresh="strcpy(a, b);\n")
        (self.dir / "tree/src/gone.c").unlink()

    def test_of_a_change_each_place_is_asked_about(self):
        self.changed_tree()
        outcome, requests = self.review("--diff", "HEAD", "--untracked")
        asked = self.questions(requests)
        self.assertEqual(sorted(map(path_of, asked)), ["src/fresh.c", "src/long.c", "src/long.c"])
        places = [each.last_user for each in asked if path_of(each) == "src/long.c"]
        for number, words in zip((50, 1500), places):
            self.assertIn(f"-int v{number};\n+\tstrcpy(a, v{number});", words)
            self.assertIn(f"\nint v{number + 40};\n", words)
            self.assertNotIn(f"\nint v{number + 60};\n", words)
        self.assertEqual([(each["path"], each["line"])
                          for each in outcome.result["review"]["findings"]],
                         [("src/fresh.c", 1), ("src/long.c", 51), ("src/long.c", 1501)])

    def test_a_check_that_was_removed(self):
        """The finding is where it was missed, and fails the gate for changed lines."""
        self.tree(0, f="int f(char *a)\n{\n\tif (!a)\n\t\treturn 0;\n\treturn *a;\n}\n")
        for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"]):
            subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@localhost", *words],
                           cwd=self.dir / "tree", check=True)
        self.tree(0, f="int f(char *a)\n{\n\treturn *a;\n}\n")
        for quote in ("if (!a)\n\t\treturn 0;", "return *a;"):
            self.question = lambda request, quote=quote: answer(finding("?", quote))
            outcome, _ = self.review("--diff", "HEAD", "--only-changed-lines")
            (found,) = outcome.result["review"]["findings"]
            self.assertEqual((found["line"], found["quote"]), (3, "return *a;"))

    def test_deep_shows_more_around_a_change(self):
        self.changed_tree()
        _, requests = self.review("--diff", "HEAD", "--deep")
        places = [each.last_user for each in self.questions(requests)
                  if path_of(each) == "src/long.c"]
        self.assertIn("\nint v440;\n", places[0])

    def test_half_of_the_budget_is_the_root_s(self):
        self.tree(FILES)
        self.question = lambda request: Reply(text='{"findings": []}', usage=(3000, 100))
        outcome, requests = self.review("--max-tokens", "90000", status=0)
        asked = len(self.questions(requests))
        self.assertTrue(5 <= asked < FILES, asked)
        self.assertLessEqual(asked * 3100, 45000)
        self.assertIn("Not read, or not wholly: src/", requests[-2].last_user)
        self.assertIn("half of the budget", requests[-2].last_user)
        self.assertEqual(outcome.result["review"]["findings"], [])

    def test_answers_that_are_none(self):
        """The review goes on, and its root is told what was not read."""
        self.tree(3, f1="strcpy(a, b);\n")
        replies = {"src/f0.c": Reply(text="I like it."), "src/f1.c": None,
                   "src/f2.c": Reply(error="bad_request")}
        self.question = lambda request: replies[path_of(request)] or read(request)
        outcome, requests = self.review()
        self.assertEqual(len(outcome.result["review"]["findings"]), 1)
        told = requests[-2].last_user
        self.assertIn("Not read, or not wholly: src/f0.c, src/f2.c", told)
        self.assertIn("no list of findings", told)

    def test_a_quote_that_stands_nowhere_is_no_finding(self):
        self.tree(1)
        self.question = lambda request: answer(finding("src/f0.c", "gets(x);"),
                                               finding("src/f0.c", 7), "odd")
        outcome, _ = self.review(status=0)
        self.assertEqual(outcome.result["review"]["findings"], [])

    def test_findings_outlive_the_root(self):
        """Each file was read and is paid for: a root without an answer takes nothing away."""
        self.tree(3, f1="void f(char *a, char *b)\n{\n\tstrcpy(a, b);\n}\n",
                  f2="int straße; // 日本語 🙂\nstrcpy(ä, b);\n")
        self.root = lambda request: Reply(text="I have looked at it.")
        outcome, _ = self.review("--max-iterations", "2", "--sarif", self.dir / "s.sarif")
        self.assertTrue(outcome.result["success"])
        self.assertEqual([(each["path"], each["line"])
                          for each in outcome.result["review"]["findings"]],
                         [("src/f1.c", 3), ("src/f2.c", 2)])
        self.assertRegex(" ".join(outcome.result["warnings"]),
                         "the files one by one .0 not, or not wholly, read.")
        report = json.loads((self.dir / "s.sarif").read_text())
        self.assertEqual(len(report["runs"][0]["results"]), 2)

    def test_findings_outlive_a_root_that_is_refused(self):
        self.tree(2, f1="strcpy(a, b);\n")
        self.root = lambda request: Reply(error="auth")
        outcome, _ = self.review()
        self.assertEqual(len(outcome.result["review"]["findings"]), 1)

    def test_a_root_without_an_answer_and_without_findings_fails(self):
        self.tree(2)
        self.root = lambda request: Reply(text="I have looked at it.")
        outcome, _ = self.review("--max-iterations", "2", status=9)
        self.assertFalse(outcome.result["success"])

    def test_findings_are_kept_of_the_first_reading_alone(self):
        """The code of the model cannot add to them later, whatever it was told."""
        self.tree(2, f1="strcpy(a, b);\n")
        self.root = lambda request: code(
            "keep_findings(findings=[dict(findings[0], rule='leak', quote='int f0(void)',",
            "    path='src/f0.c', line=1)], unread=0)")
        outcome, _ = self.review("--max-iterations", "2")
        self.assertEqual([each["path"] for each in outcome.result["review"]["findings"]],
                         ["src/f1.c"])

    def test_what_is_kept_is_no_call(self):
        """It takes none of the calls that were allowed, and no word of it reaches a model."""
        self.tree(2, f1="strcpy(a, b);\n")
        outcome, requests = self.review("--max-calls", "4", "--trace", self.dir / "t.jsonl")
        self.assertEqual(len(requests), 4)
        self.assertNotIn("keep_findings", json.dumps([each.messages for each in requests]))
        self.assertNotIn('"function"', (self.dir / "t.jsonl").read_text())

    def test_a_window_that_is_smaller_than_a_piece(self):
        """A part that is too long for the model is asked about in halves."""
        self.tree(0, f="\n".join(f"int v{number};" for number in range(1500)) + "\nstrcpy(a, b);\n")
        self.question = lambda request: (
            Reply(error="context_overflow")
            if len(request.last_user.split("\nThe file ")[1]) > 9000 else read(request))
        outcome, requests = self.review()
        self.assertGreater(len(self.questions(requests)), 3)
        self.assertEqual([each["line"] for each in outcome.result["review"]["findings"]], [1501])

    def test_other_alphabets_and_odd_files(self):
        self.tree(0, leer="", einzeile="x" * 50000, **{"straße": "// 日本語 🙂\r\nstrcpy(ä, b);\r\n"})
        outcome, requests = self.review()
        self.assertEqual({path_of(each) for each in self.questions(requests)},
                         {"src/einzeile.c", "src/straße.c"})
        (found,) = outcome.result["review"]["findings"]
        self.assertEqual((found["path"], found["line"]), ("src/straße.c", 2))

    def test_a_dry_run_shows_it(self):
        self.tree(3)
        outcome, requests = self.review("--dry-run", status=0)
        self.assertEqual(requests, [])
        self.assertIn("first_reading(**reading)", outcome.out)


if __name__ == "__main__":
    unittest.main()

"""examples/ci/comment.py: findings as comments on a pull request, beside a server that plays
GitHub's API."""

import http.server
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import unittest

import patience
from harness import SystemTest, turn

SCRIPT = pathlib.Path(os.environ["RLMD_SOURCE_ROOT"]) / "examples/ci/comment.py"
TOKEN = "ghs_" + "T" * 36
OURS = "github-actions[bot]"
BEFORE = "".join(f"int v{number};\n" for number in range(1, 101))
AFTER = BEFORE.replace("int v50;\n", "\tstrcpy(name, argv[1]);\n")
PATCH = """\
--- a/src/main.c
+++ b/src/main.c
@@ -50,1 +50,1 @@
-\tstrcpy(name, argv[1]);
+\tcopy(name, "```", argv[1]);
"""


def finding(quote="strcpy(name, argv[1]);", **more):
    return {"rule": "overflow", "severity": "error", "confidence": 0.9, "patch": None, "line": 1,
            "message": "Copies without a bound.", "path": "src/main.c", "quote": quote, **more}


class GitHub(http.server.ThreadingHTTPServer):
    """Pull request 7: its files, review comments and other comments, pages of `page`."""

    daemon_threads = True

    def __init__(self, patch):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = [{"filename": "src/main.c", "patch": patch}, {"filename": "big.bin"}]
        self.comments, self.notes, self.writes = [], [], []
        self.refusal = None  # (method, path, status, headers) once
        self.login = OURS
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def close(self):
        self.shutdown()
        self.server_close()

    def add(self, kept, body, login=None, **more):
        kept.append({"id": len(self.comments) + len(self.notes) + 1, "body": body,
                     "user": {"login": login or self.login}, **more})

    def bodies(self):
        return [comment["body"] for comment in self.comments]


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def answer(self, status, body=None, **headers):
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {**headers, "Content-Length": len(data)}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(data)

    def refused(self):
        hub, refusal = self.server, self.server.refusal
        if self.headers["Authorization"] != f"Bearer {TOKEN}":
            self.answer(401)
        elif refusal and self.command == refusal[0] and re.search(refusal[1], self.path):
            hub.refusal = refusal[4] if len(refusal) > 4 else None
            self.answer(refusal[2], **refusal[3])
        else:
            return False
        return True

    def do_GET(self):
        if self.refused():
            return
        kept = {"/repos/o/r/pulls/7/files": self.server.files,
                "/repos/o/r/pulls/7/comments": self.server.comments,
                "/repos/o/r/issues/7/comments": self.server.notes}[self.path.split("?")[0]]
        query = dict(re.findall(r"(\w+)=(\d+)", self.path))
        size, page = int(query["per_page"]), int(query["page"])
        self.answer(200, kept[size * (page - 1):size * page])

    def is_shown(self, comment):
        """Lines 47 to 53 are in the diff."""
        lines = range(comment.get("start_line", comment["line"]), comment["line"] + 1)
        return comment["path"] == "src/main.c" and all(47 <= line <= 53 for line in lines)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.refused():
            return
        hub = self.server
        hub.writes.append((self.path, body))
        if self.path.endswith("/reviews"):
            some = body["comments"]
        elif self.path.endswith("/pulls/7/comments"):
            some = [body]
        else:
            hub.add(hub.notes, body["body"])
            return self.answer(201, {})
        if not all(map(self.is_shown, some)):
            return self.answer(422, {"message": "Validation Failed"})
        for comment in some:
            hub.add(hub.comments, comment["body"], line=comment["line"])
        return self.answer(200, {})

    def do_PATCH(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.refused():
            return
        kept = self.server.notes if "/issues/" in self.path else self.server.comments
        (comment,) = [each for each in kept if each["id"] == int(self.path.split("/")[-1])]
        comment["body"] = body["body"]
        self.server.writes.append((self.path, body))
        self.answer(200, {})


class Comments(SystemTest):
    def setUp(self):
        super().setUp()
        self.write("tree/src/main.c", BEFORE)
        for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
            self.git(*words)
        self.write("tree/src/main.c", AFTER)
        self.hub = GitHub(self.git("diff").partition("@@")[1] + self.git("diff").partition("@@")[2])
        self.addCleanup(self.hub.close)

    def git(self, *words):
        return subprocess.run(
            ["git", "-c", "user.name=x", "-c", "user.email=x@localhost", *words],
            cwd=self.dir / "tree", check=True, text=True, capture_output=True,
            env=self.environment()).stdout

    def comment(self, *findings, **environment):
        """Reviews with these findings, and comments; what the script printed."""
        answer = "FINAL(%s)" % json.dumps({"findings": findings})
        outcome = self.rlmd("review", "-q", "-p", "replay", "--replay", self.script(turn(answer)),
                            "--quick", "--sarif", "s.sarif", "tree")
        self.assertIn(outcome.status, (0, 3), outcome.err)
        event = {"pull_request": {"number": 7, "head": {"sha": "f" * 40}}}
        port = self.hub.server_address[1]
        done = subprocess.run(
            [sys.executable, "-I", SCRIPT, "s.sarif"], cwd=self.dir, text=True,
            capture_output=True, timeout=patience.hung(), stdin=subprocess.DEVNULL,
            env=self.environment(**{
                "GITHUB_TOKEN": TOKEN, "GITHUB_REPOSITORY": "o/r",
                "GITHUB_API_URL": f"http://127.0.0.1:{port}", "no_proxy": "127.0.0.1",
                "GITHUB_EVENT_PATH": self.write("event.json", json.dumps(event)), **environment}))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertNotIn(TOKEN, done.stdout)
        return done.stdout

    def test_a_finding_in_a_line_that_is_shown(self):
        self.assertEqual(self.comment(finding(patch=PATCH)), "")
        ((path, review),) = self.hub.writes
        self.assertEqual((path, review["commit_id"], review["event"]),
                         ("/repos/o/r/pulls/7/reviews", "f" * 40, "COMMENT"))
        (comment,) = review["comments"]
        self.assertEqual((comment["path"], comment["line"], comment["side"]),
                         ("src/main.c", 50, "RIGHT"))
        self.assertIn("**error: buffer-overflow**", comment["body"])
        self.assertIn('\n````suggestion\n\tcopy(name, "```", argv[1]);\n````\n', comment["body"])

    def test_the_second_time(self):
        """Nothing is written twice; other words for the same finding are written over the old."""
        self.comment(finding(), finding("int v5;", rule="race"))
        self.assertEqual((len(self.hub.comments), len(self.hub.notes)), (1, 1))
        self.hub.writes.clear()
        self.comment(finding(), finding("int v5;", rule="race"))
        self.assertEqual(self.hub.writes, [])
        self.comment(finding(message="Has no bound."), finding("int v5;", rule="race"))
        self.assertEqual((len(self.hub.comments), len(self.hub.writes)), (1, 1))
        self.assertIn("Has no bound.", self.hub.bodies()[0])

    def test_a_finding_that_is_gone_and_comes_back(self):
        self.comment(finding())
        first = self.hub.bodies()
        self.comment()
        self.assertIn("is gone", self.hub.bodies()[0])
        self.comment()
        self.assertEqual(self.hub.bodies()[0].count("is gone"), 1)
        self.comment(finding())
        self.assertEqual(self.hub.bodies(), first)
        self.assertEqual(self.hub.notes, [])

    def test_findings_in_other_lines(self):
        self.comment(finding(), finding("int v5;", rule="race"), finding("int v99;", rule="leak"))
        (note,) = self.hub.notes
        self.assertIn("3 errors", note["body"])
        for words in ("line 5:", "line 99:", "main&#46;<!-- -->c"):
            self.assertIn(words, note["body"])
        self.assertNotIn("line 50:", note["body"])
        self.comment(finding())
        self.assertIn("1 errors", self.hub.notes[0]["body"])
        self.assertNotIn("line 5:", self.hub.notes[0]["body"])

    def test_marks_of_strangers(self):
        """They hide no finding, and their comments are left alone."""
        self.comment(finding())
        body = self.hub.bodies()[0]
        self.hub.comments.clear()
        self.hub.add(self.hub.comments, body, login="stranger")
        self.hub.add(self.hub.notes, "<!-- rlmd summary -->", login="stranger")
        self.comment(finding(), finding("int v5;", rule="race"))
        self.assertEqual([each["user"]["login"] for each in self.hub.comments], ["stranger", OURS])
        self.assertEqual(self.hub.notes[0]["body"], "<!-- rlmd summary -->")
        self.comment()
        self.assertEqual(self.hub.bodies()[0], body)

    def test_an_account_of_ones_own(self):
        self.hub.login = "reviewer"
        for _ in range(2):
            self.comment(finding(), REVIEW_COMMENT_AUTHOR="reviewer")
        self.assertEqual(len(self.hub.comments), 1)

    def test_many_pages(self):
        for number in range(250):
            self.hub.add(self.hub.comments, f"words {number}", login="somebody")
        for _ in range(2):
            self.comment(finding())
        self.assertEqual(len(self.hub.comments), 251)

    def test_words_of_a_model_do_nothing(self):
        told = "@someone see #12 --> <b>x</b> ![i](http://a.example/x) ```\n# head\n<!-- rlmd summary -->"
        self.comment(finding(message=told), finding("int v5;", message=told, rule="race"))
        for body in (self.hub.bodies()[0], self.hub.notes[0]["body"]):
            for words in ("@someone", "#12", "<b>", "](", "http:", "```\n#", "\n# head"):
                self.assertNotIn(words, body)
            self.assertIn("someone", body)
        self.assertEqual(self.hub.bodies()[0].count("<!-- rlmd"), 1)

    def test_one_that_github_refuses_costs_no_other(self):
        self.hub.refusal = ("POST", "reviews$", 422, {}, ("POST", "comments$", 422, {}))
        out = self.comment(finding(), finding("int v51;", rule="race"))
        self.assertEqual(len(self.hub.comments), 1)
        self.assertRegex(out, r"^::warning::GitHub refused 1 ")

    def test_what_goes_wrong_is_a_warning(self):
        for status, words in ((403, "pull-requests: write"), (404, "pull-requests: write"),
                              (500, "HTTP status 500"), (302, "HTTP status 302")):
            self.hub.refusal = ("GET", "files", status, {"Location": "http://127.0.0.1:9/x"})
            out = self.comment(finding())
            self.assertRegex(out, r"^::warning::there are no comments on this pull request: ")
            self.assertIn(words, out)
        for name, value in (("GITHUB_API_URL", "http://127.0.0.1:9"), ("GITHUB_TOKEN", "x"),
                            ("GITHUB_EVENT_PATH", "/nowhere"),
                            ("GITHUB_EVENT_PATH", self.write("push.json", "{}"))):
            self.assertRegex(self.comment(finding(), **{name: value}), "^::warning::")
        self.assertEqual(self.hub.comments, [])

    def test_a_limit_is_waited_for_once(self):
        self.hub.refusal = ("GET", "files", 429, {"Retry-After": "0"})
        self.assertEqual(self.comment(finding()), "")
        self.assertEqual(len(self.hub.comments), 1)
        self.hub.refusal = ("GET", "files", 429, {"Retry-After": "9999"})
        self.assertIn("HTTP status 429", self.comment(finding()))


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""comment.py FILE.sarif - the findings of one review as comments on its pull request.

A finding in a line that the pull request shows is a review comment there, with its fix as a
suggestion; the others stand in one comment of the pull request. Each has the fingerprint of its
finding in a mark that nobody sees: the next review finds its comments again, writes none twice,
and says in those whose finding is gone that it is. Only comments of the account itself count: a
mark that somebody else wrote means nothing.

From the environment: GITHUB_TOKEN (pull-requests: write), GITHUB_REPOSITORY, GITHUB_EVENT_PATH,
GITHUB_API_URL, and REVIEW_COMMENT_AUTHOR, the account that the token is of (default:
github-actions[bot]). Whatever goes wrong is a warning: the review itself has its own status.
"""

import json
import os
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

MARK = re.compile(r"<!-- rlmd ([0-9a-f]{16,64}|summary) -->")
GONE = "_This finding is gone, in the newest review._\n\n"
PAGE, PAGES = 100, 30
AT_ONCE = 30  # comments of one request
MESSAGE_MAX, SUMMARY_MAX = 8000, 60000  # characters; GitHub takes 65,536
WAIT_MAX = 60  # seconds that a limit of GitHub's is waited for


class Failed(Exception):
    def __init__(self, status, words):
        super().__init__(words)
        self.status = status


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """The token is for the one address."""

    def redirect_request(self, *_):
        return None


class GitHub:
    def __init__(self, environment):
        event = json.loads(open(environment["GITHUB_EVENT_PATH"], encoding="utf-8").read())
        request = event["pull_request"]
        self.head = request["head"]["sha"]
        self.number = int(request["number"])
        self.author = environment.get("REVIEW_COMMENT_AUTHOR") or "github-actions[bot]"
        self._base = (f"{environment.get('GITHUB_API_URL') or 'https://api.github.com'}"
                      f"/repos/{environment['GITHUB_REPOSITORY']}")
        self._token = environment["GITHUB_TOKEN"]
        self._opener = urllib.request.build_opener(NoRedirect)

    def ask(self, method, path, body=None, again=True):
        request = urllib.request.Request(
            self._base + path, method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self._token}", "User-Agent": "rlmd",
                     "Accept": "application/vnd.github+json",
                     "X-GitHub-Api-Version": "2022-11-28", "Content-Type": "application/json"})
        try:
            with self._opener.open(request, timeout=60) as reply:
                return json.loads(reply.read() or b"null")
        except urllib.error.HTTPError as error:
            wait = error.headers.get("Retry-After", "")
            if again and error.code in (403, 429) and wait.isdigit() and int(wait) <= WAIT_MAX:
                time.sleep(int(wait))
                return self.ask(method, path, body, again=False)
            raise Failed(error.code, f"{method} {path.split('?')[0]}: HTTP status {error.code}")
        except (OSError, ValueError) as error:
            raise Failed(0, f"{method} {path.split('?')[0]}: {error}")

    def all(self, path):
        found = []
        for page in range(1, PAGES + 1):
            some = self.ask("GET", f"{path}?per_page={PAGE}&page={page}")
            found += some
            if len(some) < PAGE:
                break
        return found

    def own(self, path):
        """{mark: the account's newest comment with it}"""
        marked = {}
        for comment in self.all(path):
            mark = MARK.search(comment.get("body") or "")
            if mark and (comment.get("user") or {}).get("login") == self.author:
                marked[mark[1]] = comment
        return marked


def shown_lines(patch):
    """Of a file's diff: {line of the new file: number of its hunk}, added or around."""
    lines, hunk, at = {}, 0, 0
    for row in patch.split("\n"):
        begin = re.match(r"@@ -\d+(?:,\d+)? \+(\d+)", row)
        if begin:
            hunk, at = hunk + 1, int(begin[1])
        elif row[:1] in ("+", " "):
            lines[at] = hunk
            at += 1
    return lines


def quoted(text):
    """Markup, names and links of nobody's: entities, and comments that keep words apart."""
    return re.sub(r"[^\w /-]", lambda sign: f"&#{ord(sign[0])};<!-- -->", text)


class Finding:
    def __init__(self, result):
        place = result["locations"][0]["physicalLocation"]
        region = place["region"]
        self.path = urllib.parse.unquote(place["artifactLocation"]["uri"])
        self.first, self.last = region["startLine"], region["endLine"]
        self.mark = result["partialFingerprints"]["rlmdFinding/v2"]
        self.known = result.get("baselineState") == "unchanged"
        self.head = f"**{result['level']}: {quoted(result['ruleId'])}**"
        self.message = result["message"].get("markdown", "")
        if len(self.message) > MESSAGE_MAX:
            self.message = self.message[:MESSAGE_MAX].rpartition(" ")[0] + " ..."
        self.suggestion = self._suggestion(result)

    def _suggestion(self, result):
        """(first line, last line, text) where the fix replaces whole lines of this file once."""
        changes = [change for fix in result.get("fixes", []) for change in fix["artifactChanges"]]
        edits = [edit for change in changes for edit in change["replacements"]]
        if len(changes) != 1 or len(edits) != 1:
            return None
        region = edits[0]["deletedRegion"]
        uri = urllib.parse.unquote(changes[0]["artifactLocation"]["uri"])
        if uri != self.path or region["endColumn"] != 1 or region["endLine"] <= region["startLine"]:
            return None
        text = edits[0]["insertedContent"]["text"]
        return region["startLine"], region["endLine"] - 1, text

    def body(self, suggestion=True):
        words = f"{self.head}\n\n{self.message}\n"
        if suggestion and self.suggestion:
            text = self.suggestion[2]
            longest = max(map(len, re.findall("`+", text)), default=0)
            fence = "`" * max(3, longest + 1)
            end = "\n" if text and not text.endswith("\n") else ""
            words += f"\n{fence}suggestion\n{text}{end}{fence}\n"
        return f"{words}\n<!-- rlmd {self.mark} -->"

    def comment(self, shown):
        """As GitHub takes it; None where the pull request does not show these lines."""
        lines = shown.get(self.path, {})
        ranges = [(self.first, self.last), (self.first, self.first)]
        if self.suggestion:
            ranges.insert(0, self.suggestion[:2])
        for number, (first, last) in enumerate(ranges):
            hunks = {lines.get(line) for line in range(first, last + 1)}
            if len(hunks) != 1 or None in hunks:
                continue
            where = {"path": self.path, "line": last, "side": "RIGHT",
                     "body": self.body(bool(self.suggestion) and number == 0)}
            if first < last:
                where.update(start_line=first, start_side="RIGHT")
            return where
        return None


def write_new(github, comments):
    """Some at once, as one review, which is one mail; where one of them is refused, by themselves.
    Returns how many were refused."""
    refused = 0
    for begin in range(0, len(comments), AT_ONCE):
        some = comments[begin:begin + AT_ONCE]
        try:
            github.ask("POST", f"/pulls/{github.number}/reviews",
                       {"commit_id": github.head, "event": "COMMENT", "comments": some})
            continue
        except Failed as failed:
            if failed.status != 422:
                raise
        for comment in some:
            try:
                github.ask("POST", f"/pulls/{github.number}/comments",
                           {"commit_id": github.head, **comment})
            except Failed as failed:
                if failed.status != 422:
                    raise
                refused += 1
    return refused


def write_again(github, path, comment, body):
    if comment["body"] != body:
        github.ask("PATCH", f"{path}/{comment['id']}", {"body": body})


def summary(findings, elsewhere):
    counts = [sum(finding.head.startswith(f"**{level}:") for finding in findings)
              for level in ("error", "warning", "note")]
    words = "rlmd: {} errors, {} warnings and {} notes that are new.\n".format(*counts)
    if elsewhere:
        words += "\nIn lines that this pull request does not show:\n\n"
    for number, finding in enumerate(elsewhere):
        row = f"- {quoted(finding.path)}, line {finding.first}: {finding.head} {finding.message}\n"
        if len(words) + len(row) > SUMMARY_MAX:
            words += f"- and {len(elsewhere) - number} more\n"
            break
        words += row.replace("<br>\n", " ")
    return words + "\n<!-- rlmd summary -->"


def comment_all(github, findings):
    path = f"/pulls/{github.number}"
    shown = {file["filename"]: shown_lines(file.get("patch") or "")
             for file in github.all(f"{path}/files")}
    old = github.own(f"{path}/comments")
    fresh, elsewhere = [], []
    for finding in findings:
        comment = finding.comment(shown)
        if finding.mark in old:
            body = comment["body"] if comment else finding.body(suggestion=False)
            write_again(github, "/pulls/comments", old[finding.mark], body)
        elif comment:
            fresh.append(comment)
        else:
            elsewhere.append(finding)
    refused = write_new(github, fresh)
    for mark in old.keys() - {finding.mark for finding in findings}:
        if not old[mark]["body"].startswith(GONE):
            write_again(github, "/pulls/comments", old[mark], GONE + old[mark]["body"])
    before = github.own(f"/issues/{github.number}/comments").get("summary")
    if before:
        write_again(github, "/issues/comments", before, summary(findings, elsewhere))
    elif elsewhere:
        github.ask("POST", f"/issues/{github.number}/comments",
                   {"body": summary(findings, elsewhere)})
    return refused


def main(path):
    try:
        with open(path, encoding="utf-8") as file:
            results = json.load(file)["runs"][0]["results"]
        findings = [finding for finding in map(Finding, results) if not finding.known]
        refused = comment_all(GitHub(os.environ), findings)
        if refused:
            print(f"::warning::GitHub refused {refused} of the comments on this pull request")
    except Failed as failed:
        hint = (": the job needs `permissions: pull-requests: write`, and a fork's has it not"
                if failed.status in (401, 403, 404) else "")
        print(f"::warning::there are no comments on this pull request: {failed}{hint}")
    except (OSError, KeyError, TypeError, ValueError) as error:
        print(f"::warning::there are no comments on this pull request: {error!r}")


if __name__ == "__main__":
    main(sys.argv[1])

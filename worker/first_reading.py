"""The first reading of a review: a model is asked about each file, or about what changed in it.

The question's words are the same each time and a file is cut where its own lines say, so that a
cache answers for all that is as it was.
"""

import itertools
import json
import re
import zlib
from typing import NamedTuple

from languages import language_of

PROSE = frozenset(("gettext", "HTML", "JSON", "Markdown", "plain text", "reStructuredText", "XML"))
FIRST, MOST = 16, 64  # questions at a time: while their cost is unknown, and later
REPLY = 1000  # tokens of a question's rules and its answer, while nothing is known
SHARE = 2  # at most this part of what is left is spent
SHORTEST = 2000  # characters of a part that is not cut again
TOO_LONG = "context_overflow"
OVER = "half of the budget was spent, or all questions failed"
HANDED = 16  # findings at a time: as JSON they are less than a call's arguments may have
FINDINGS_SHOWN, PATHS_SHOWN, MESSAGE_SHOWN = 60, 20, 200


class Part(NamedTuple):
    path: str
    text: str  # what is asked about
    line: int  # its first, from 1
    change: str = ""  # the diff of it; "": all of it is to be judged
    finding: dict = None  # which is to be checked


class FirstReading:
    def __init__(self, queries, code_base, texts):
        self._queries, self._code_base, self._texts = queries, code_base, texts

    def first_reading(self, question, check="", size=20000, around=40, keep=None):
        """Asks a model of each file by itself, of what changed where a comparison was made.

        question: the words before each file. check: those before each finding, which a second
        answer may then refute; "": none does. size: characters of a file in one question, about.
        around: lines before and behind a change. keep: is called with findings=[...] until all
        are told, and then with unread=, how
        many paths those are.

        At most half of what is left of the budget is spent. Returns two lists: the findings, dicts
        with a "path", a "quote" that stands in it and its "line"; and the paths that were not, or
        not wholly, read. Prints both.
        """
        code_base = self._code_base
        files = code_base._files("first_reading", None)
        try:
            changes = {change["path"]: change for change in code_base.changes() if change["hunks"]}
        except ValueError:
            changes = dict.fromkeys(sorted(files, key=lambda path: language_of(path) in PROSE))
        purse, log = Purse(self._queries.budget, size), Log(changes)

        def parts():
            for path, change in changes.items():
                of_path = parts_of(path, change, files[path], size, around)
                yield from of_path[:-1]
                log.take_whole(path)
                yield from of_path[-1:]

        findings = []
        for part, answer in self._ask(parts(), lambda part: question + words_of(part), purse, log):
            found = self._findings(part, answer)
            if found is None:
                log.fail(part.path, "an answer that has no list of findings")
            else:
                findings += [(part, finding) for finding in found]
        if check:
            findings = self._checked(findings, check, purse, log)
        findings = [finding for _part, finding in findings]
        unread = log.unread()
        if keep:
            hand_over(keep, findings, unread)
        log.tell(findings, unread)
        return findings, unread

    def _ask(self, parts, words, purse, log):
        """Yields (part, answer); those that got none, or are not asked, stay unread."""
        parts, again = iter(parts), []
        while True:
            some = list(itertools.islice(itertools.chain(again, parts), purse.room()))
            if not some:
                break
            again, failed = [], 0
            for part, answer in zip(some, self._queries.batch_llm_query(list(map(words, some)))):
                if answer:
                    log.asked += 1
                    yield part, str(answer)
                elif answer.kind == TOO_LONG and len(part.text) > SHORTEST:
                    again += halves(part)
                else:
                    log.fail(part.path, str(answer)[:MESSAGE_SHOWN])
                    failed += 1
            purse.count(len(some))
            if failed == len(some):
                break  # the next ones would fail as these did
        for part in again:
            log.fail(part.path, OVER)

    def _findings(self, part, answer):
        """None: it is no answer."""
        found = self._texts.extract_json(answer)
        if isinstance(found, dict):
            found = found.get("findings")
        if not isinstance(found, list):
            return None
        placed = (place(part, finding) for finding in found if isinstance(finding, dict))
        return [finding for finding in placed if finding]

    def _checked(self, findings, check, purse, log):
        """Without those that the check of each refutes."""
        purse.begin()
        asked = [part._replace(finding=finding) for part, finding in findings]
        refuted = []
        for part, answer in self._ask(asked, lambda part: check + words_of(part), purse, log):
            verdict = self._texts.extract_json(answer)
            if isinstance(verdict, dict) and verdict.get("holds") is False:
                refuted.append(part.finding)
        log.refuted = len(refuted)
        return [each for each in findings if not any(each[1] is one for one in refuted)]


class Purse:
    """How many questions may be asked at once, such that half of the budget is left."""

    def __init__(self, budget, size):
        self._budget, self._tokens = budget, size // 3 + REPLY
        self.begin()

    def begin(self):
        self._before, self._asked = self._budget(), 0

    def count(self, asked):
        self._asked += asked

    def room(self):
        left, rooms = self._budget(), [MOST if self._asked else FIRST]
        for name in ("cost", "tokens", "time_ms"):
            before = self._before[name]
            if before is None:
                continue
            used = before - left[name]
            each = used / self._asked if self._asked else self._tokens * (name == "tokens")
            if each > 0:
                rooms.append(int((before / SHARE - used) / each))
        return max(0, min(rooms))


class Log:
    """Which files were read, and why others were not."""

    def __init__(self, paths):
        self.asked = self.refuted = 0
        self._waiting, self._failed, self._reasons = dict.fromkeys(paths), {}, {}

    def take_whole(self, path):
        """All parts of the file are asked about; one that fails is told later."""
        self._waiting.pop(path, None)

    def fail(self, path, reason):
        self._waiting.pop(path, None)
        self._failed[path] = self._reasons[reason] = None

    def unread(self):
        if self._waiting:
            self._reasons[OVER] = None
        return [*self._failed, *self._waiting]

    def tell(self, findings, unread):
        print(f"{self.asked} questions about single files were answered; "
              f"{len(findings)} findings are left, {self.refuted} were refuted:")
        for finding in findings[:FINDINGS_SHOWN]:
            print(f"- {finding['path']}:{finding['line']}: {finding.get('severity')} "
                  f"{finding.get('rule')} ({finding.get('confidence')}): "
                  f"{str(finding.get('message'))[:MESSAGE_SHOWN]}")
        if len(findings) > FINDINGS_SHOWN:
            print(f"and {len(findings) - FINDINGS_SHOWN} more")
        if unread:
            more = f" and {len(unread) - PATHS_SHOWN} more" if len(unread) > PATHS_SHOWN else ""
            print(f"Not read, or not wholly: {', '.join(unread[:PATHS_SHOWN])}{more} "
                  f"({'; '.join(self._reasons)})")


def hand_over(keep, findings, unread):
    for at in range(0, len(findings), HANDED):
        try:
            keep(findings=findings[at:at + HANDED])
        except ValueError:  # a path that is no UTF-8: the root's answer could not have it, either
            pass
    keep(unread=len(unread))


def words_of(part):
    """The finding, the change and the text, as far as there are any."""
    words = ""
    if part.finding:
        words += f"\nThe finding:\n{json.dumps(part.finding, ensure_ascii=False)}\n"
    if part.change:
        words += f"\nThe change of {part.path}:\n{part.change}"
    return f"{words}\nThe file {part.path}{', around the change' * bool(part.change)}:\n{part.text}"


def parts_of(path, change, text, size, around):
    if not change or change["status"] in ("added", "untracked"):
        return [Part(path, piece, line) for piece, line in pieces(text, size) if piece.strip()]
    return changed(path, change["hunks"], text, size, around)


def halves(part):
    return [part._replace(text=piece, line=part.line + line - 1)
            for piece, line in pieces(part.text, len(part.text) // 2)]


def changed(path, hunks, text, size, around):
    """A part for each place that changed, hunks near each other together."""
    lines, parts = text.split("\n"), []
    for group in groups(hunks, 2 * around):
        first = max(0, group[0]["start"] - 1 - around)
        shown = "\n".join(lines[first:group[-1]["end"] + around])
        diff = "".join(hunk["text"] for hunk in group)[:size]
        parts += [Part(path, piece, first + line, diff) for piece, line in pieces(shown, size)]
    return parts


def groups(hunks, near):
    """Lists of hunks that stand near each other, without those that only rename or change modes."""
    group = []
    for hunk in hunks:
        if hunk["text"].startswith(("rename from ", "old mode ")):
            continue
        if group and hunk["start"] - group[-1]["end"] > near:
            yield group
            group = []
        group.append(hunk)
    if group:
        yield group


def pieces(text, size):
    """(text, its first line) of pieces of whole lines. Each ends, between half of the size and
    all of it, behind the line with the least checksum: what is put in moves one cut or two. A
    longer line is several pieces."""
    lines, at = text.split("\n"), 0
    while at < len(lines):
        end = cut_of(lines, at, size)
        piece = "\n".join(lines[at:end])
        for begin in range(0, max(len(piece), 1), size):
            yield piece[begin:begin + size], at + 1
        at = end


def cut_of(lines, at, size):
    length, best, cut = 0, None, at + 1
    for number in range(at, len(lines)):
        length += len(lines[number]) + 1
        if length > size + 1:
            return cut
        if length > size // 2:
            mark = zlib.crc32(lines[number].encode("utf-8", "surrogatepass"))
            if best is None or mark < best:
                best, cut = mark, number + 1
    return len(lines)


def place(part, finding):
    """The finding with its path and line; None where its quote is not in the text."""
    quote = finding.get("quote")
    if not isinstance(quote, str) or not quote.strip():
        return None
    at = part.text.find(quote.strip("\n"))
    if at < 0:
        at = part.text.find(quote.strip())
    if at < 0:
        return place_of_removed(part, finding, quote.strip().split("\n")[0].strip())
    return {**finding, "path": part.path, "line": part.line + part.text.count("\n", 0, at)}


def place_of_removed(part, finding, first):
    """Of a quote that begins with a line that was removed: the line that stands behind it now, or,
    where none has words, before it."""
    lines = part.text.split("\n")
    for text, line in removed(part.change):
        at = line - part.line
        if text != first or not 0 <= at <= len(lines):
            continue
        for number in [*range(at, len(lines)), *range(min(at, len(lines)) - 1, -1, -1)]:
            if any(map(str.isalnum, lines[number])):
                return {**finding, "path": part.path, "line": part.line + number,
                        "quote": lines[number].strip()}
    return None


def removed(change):
    """(text, the line of the new file that stands behind it) of each removed line of a diff."""
    line = 0
    for row in change.split("\n"):
        head = re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))?", row)
        if head:
            line = int(head[1]) + (head[2] == "0")
        elif row.startswith("-"):
            yield row[1:].strip(), line
        elif row.startswith(("+", " ")):
            line += 1

"""Where a regular expression is in a text: what `re` finds, but faster.

`re` tries most patterns at each character, and compares letters one by one where they match in any
case. Nearly every pattern has some characters that a match must contain: they are looked for first,
and the pattern only around them. Letters in any case are found as bytes, in lower case, in pieces
of the text in which every character is one byte.
"""

import re
from typing import NamedTuple

from arguments import plain

try:
    from re import _parser as parser
except ImportError:  # before Python 3.11
    import sre_parse as parser

FLAGS = re.IGNORECASE | re.MULTILINE
PIECE = 1 << 18  # characters that are looked at together
LEAST = 3        # characters that are worth looking for first
REPEATS = 8      # of what may hold a line feed: more of them are taken for any number

# Letters that are not ASCII and match one that is: the Kelvin sign, long s, dotted and dotless i.
ODD = {
    letter: tuple(odd for odd in "\u212a\u017f\u0130\u0131" if re.match(letter, odd, FLAGS))
    for letter in "iks"
}
LINE_FEED = ord("\n")
SPACES = frozenset(map(ord, " \t\n\r\f\v"))
WITH_LINE_FEED = parser.CATEGORY_SPACE, parser.CATEGORY_NOT_DIGIT, parser.CATEGORY_NOT_WORD
AT_LINES = parser.AT_BEGINNING, parser.AT_END, parser.AT_BOUNDARY, parser.AT_NON_BOUNDARY
WARNED = re.compile(r"\[\[|--|&&|~~|\|\|")  # of these in a set the parser warns, each time


class Need(NamedTuple):
    """The parts that each match of a pattern has."""

    literal: str  # "" where nothing is known
    whole: bool   # the literal is all of the pattern
    lines: float  # line feeds that it may hold, those of blank lines not counted; ANY
    first: bool   # it begins with a literal, which `re` looks for as fast


ANY = float("inf")  # so many, or the match depends on what is around it


def compiled(pattern):
    return pattern if isinstance(pattern, re.Pattern) else re.compile(pattern, FLAGS)


def spans(pattern, text):
    """(start, end) of each match of a pattern in `text`, in order."""
    expression = compiled(pattern)
    need = needed(expression)
    seek = seeker(need.literal, expression.flags)
    if need.whole:
        return places(seek, len(need.literal), text)
    if len(need.literal) < LEAST or need.lines == ANY or need.first:
        return (match.span() for match in expression.finditer(text))
    return (match.span() for start, end in windows(seek, need.lines, text)
            for match in expression.finditer(text, start, end))


def places(seek, size, text):
    at = seek(text, 0, len(text))
    while at >= 0:
        yield at, at + size
        at = seek(text, at + size, len(text))


def windows(seek, lines, text):
    """(start, end) of what is around each place: `lines` lines before and behind, blank ones apart.

    They do not overlap.
    """
    start, end = 0, -1
    at = seek(text, 0, len(text))
    while at >= 0:
        first, last = line_start(text, at), line_end(text, at)
        after = max(last, at + 1)
        for _ in range(lines):
            first, last = earlier(text, first), later(text, last)
        if first > end:
            if end >= 0:
                yield start, end
            start = first
        end = max(last, end)
        at = seek(text, after, len(text))
    if end >= 0:
        yield start, end


def line_start(text, at):
    return text.rfind("\n", 0, at) + 1


def line_end(text, at):
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def earlier(text, start):
    """The start of the line that is before, and not blank."""
    while start:
        end, start = start, line_start(text, start - 1)
        if not text[start:end].isspace():
            break
    return start


def later(text, end):
    """The end of the next line that is not blank."""
    while end < len(text):
        start, end = end, line_end(text, end + 1)
        if not text[start:end].isspace():
            break
    return end


def line_finder(expression):
    """find(text, first, end) gives (number, line) of each line between in which there is a match.

    The pattern sees each line alone. Numbers count from 1.
    """
    search, need = expression.search, needed(expression)
    if "\n" in need.literal:
        return lambda _text, _first, _end: iter(())
    if need.whole or len(need.literal) >= LEAST and not (need.first and need.lines < ANY):
        seek = seeker(need.literal, expression.flags)
    elif need.lines == ANY:
        return lambda text, first, end: by_line(search, text, first, end)
    else:
        def seek(text, at, end):
            match = search(text, at, end)
            return match.start() if match else -1

    def find(text, first, end):
        number, counted, at = 1, first, first
        while at < end:
            at = seek(text, at, end)
            if at < 0 or at == end and text[end - 1] == "\n":
                return
            start = max(text.rfind("\n", first, at) + 1, first)
            stop = text.find("\n", at, end)
            stop = end if stop < 0 else stop
            line = text[start:stop]
            if need.whole or search(line):
                number += text.count("\n", counted, start)
                counted = start
                yield number, line
            at = stop + 1

    return find


def by_line(search, text, first, end):
    number = 0
    while first < end:
        number += 1
        stop = text.find("\n", first, end)
        stop = end if stop < 0 else stop
        line = text[first:stop]
        if search(line):
            yield number, line
        first = stop + 1


# -- parts of a match --


def needed(expression):
    """The Need of a compiled pattern."""
    pattern, flags = expression.pattern, expression.flags
    if not isinstance(pattern, str) or "[" in pattern and WARNED.search(pattern):
        return Need("", False, ANY, False)
    tree = parser.parse(plain(pattern), flags)
    runs = Runs(flags)
    lines = runs.sequence(tree, flags)
    literal = max(runs.found, key=len)
    leading = next((at for at, (kind, _value) in enumerate(tree) if kind is not parser.LITERAL),
                   len(tree))
    return Need(literal, 0 < leading == len(literal) == len(tree), lines,
                leading >= LEAST and not runs.case)


class Runs:
    """The literals that a match contains."""

    def __init__(self, flags):
        self.case = flags & re.IGNORECASE
        self.found = [""]

    def part(self):
        if self.found[-1]:
            self.found.append("")

    def letter(self, number, flags):
        character = chr(number)
        if flags & re.IGNORECASE != self.case or self.case and not character.isascii():
            self.part()
        else:
            self.found[-1] += character

    def sequence(self, tree, flags):
        """Takes the literals of a sequence. Gives the line feeds that its match may hold."""
        return sum(self.element(kind, value, flags) for kind, value in tree)

    def element(self, kind, value, flags):
        if kind is parser.LITERAL:
            self.letter(value, flags)
            return int(value == LINE_FEED)
        if kind is parser.AT:
            return ANY if value not in AT_LINES or not flags & re.MULTILINE else 0
        if kind is parser.SUBPATTERN:
            _group, more, less, tree = value
            return self.sequence(tree, (flags | more) & ~less)
        self.part()
        if kind is parser.MAX_REPEAT or kind is parser.MIN_REPEAT:
            return self.repeat(*value, flags)
        if kind is parser.BRANCH:
            return max(Runs(flags).sequence(tree, flags) for tree in value[1])
        if kind is parser.IN:
            return int(takes_line_feed(value))
        if kind is parser.ANY:
            return int(bool(flags & re.DOTALL))
        if kind is parser.NOT_LITERAL:
            return int(value != LINE_FEED)
        return ANY  # looks around, repeats a group, or gives nothing back

    def repeat(self, least, most, tree, flags):
        lines = (self if least else Runs(flags)).sequence(tree, flags)
        self.part()
        if lines and not (len(tree) == 1 and is_space(*tree[0])):
            lines = lines * most if 0 < most <= REPEATS else ANY
        return lines


def takes_line_feed(members):
    """Whether a set of characters has the line feed."""
    has = any(
        kind is parser.LITERAL and value == LINE_FEED
        or kind is parser.RANGE and value[0] <= LINE_FEED <= value[1]
        or kind is parser.CATEGORY and value in WITH_LINE_FEED
        for kind, value in members
    )
    return has != (members[0][0] is parser.NEGATE)


def is_space(kind, value):
    """Whether an element matches space alone: however often, it crosses no line but blank ones."""
    if kind is parser.IN:
        return all(is_space(*member) for member in value)
    return (kind is parser.LITERAL and value in SPACES
            or kind is parser.CATEGORY and value is parser.CATEGORY_SPACE)


# -- literals --


def seeker(literal, flags):
    """seek(text, at, end): the first place of the literal between, or -1."""
    if not flags & re.IGNORECASE or literal.lower() == literal.upper():
        return lambda text, at, end: text.find(literal, at, end)
    small = literal.lower()
    expression = re.compile(re.escape(literal), flags & (re.IGNORECASE | re.ASCII))
    odd = [each for letter, those in ODD.items() if letter in small for each in those]
    size, held, seen, find = len(literal), -1, None, None

    def seek(text, at, end):
        nonlocal held, seen, find
        while at < end:
            start = at - at % PIECE
            if start != held or text is not seen:
                piece = text[start:start + PIECE + size - 1]
                if not piece.isascii() and any(each in piece for each in odd):
                    find = finder_of_expression(expression, piece)
                else:
                    find = finder_of_bytes(small, piece)
                held, seen = start, text
            found = find(at - start)
            if found >= 0:
                return start + found if start + found + size <= end else -1
            at = start + PIECE
        return -1

    return seek


def finder_of_expression(expression, piece):
    def find(at):
        match = expression.search(piece, at)
        return match.start() if match else -1

    return find


def finder_of_bytes(literal, piece):
    """A character beyond ASCII becomes a question mark, so that each character keeps its place."""
    data, wanted = piece.encode("ascii", "replace").lower(), literal.encode()
    if "?" not in literal or piece.isascii():
        return lambda at: data.find(wanted, at)

    def find(at):
        at = data.find(wanted, at)
        while at >= 0 and not piece[at:at + len(wanted)].isascii():
            at = data.find(wanted, at + 1)
        return at

    return find

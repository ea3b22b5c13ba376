"""Where a regular expression is in a text, letters in any case: what `re` finds, but faster.

`re` looks at each character by itself where letters match in any case. Most patterns
that are searched for are plain words: those are found as bytes, in lower case, in pieces of
the text in which every character is one byte.
"""

import re

from arguments import plain

FLAGS = re.IGNORECASE | re.MULTILINE
PIECE = 1 << 18  # characters that are looked at together
OPERATORS = frozenset(".^$*+?{}[]|()\\")

# Letters that are not ASCII and match one that is: the Kelvin sign, long s, dotted and dotless i.
ODD = {
    letter: tuple(odd for odd in "\u212a\u017f\u0130\u0131" if re.match(letter, odd, FLAGS))
    for letter in "iks"
}


def compiled(pattern):
    return pattern if isinstance(pattern, re.Pattern) else re.compile(pattern, FLAGS)


def spans(pattern, text):
    """(start, end) of each match of a pattern in `text`, in order."""
    expression = compiled(pattern)
    literal = literal_of(pattern)
    if literal is None:
        return (match.span() for match in expression.finditer(text))
    return find_literal(literal.lower(), expression, text)


def literal_of(pattern):
    """The text that the pattern stands for, where it is plain ASCII with a letter; else None."""
    if not isinstance(pattern, str):
        return None
    pattern = plain(pattern)
    if not pattern.isascii():
        return None
    characters, rest = [], iter(pattern)
    for character in rest:
        if character == "\\":
            character = next(rest, "a")
            if character.isalnum():
                return None
        elif character in OPERATORS:
            return None
        characters.append(character)
    literal = "".join(characters)
    return literal if literal.lower() != literal.upper() else None


def find_literal(literal, expression, text):
    odd = [each for letter, those in ODD.items() if letter in literal for each in those]
    size, free = len(literal), 0  # where the next match may start
    for start in range(0, len(text), PIECE):
        piece = text[start:start + PIECE + size - 1]
        if not piece.isascii() and any(each in piece for each in odd):
            find = finder_of_expression(expression, piece)
        else:
            find = finder_of_bytes(literal, piece)
        at = find(max(0, free - start))
        while at >= 0:
            free = start + at + size
            yield start + at, free
            at = find(at + size)


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

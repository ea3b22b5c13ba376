"""The branches of #if in C: of those that open braces of their own, the first is taken."""

from bisect import bisect_left

from blanking import BRACE, blank
from patterns import Pattern

WORD = Pattern(r"#[ \t]*(\w+)")
NEVER = Pattern(r"#[ \t]*if[ \t]+(?:0|false)\b(?![ \t]*[|&<>=!+*/?-])")
DEFINED = Pattern(r"#[ \t]*define[ \t]+(\w+)")


class Group:
    """One #if with what belongs to it: where its branches begin."""

    def __init__(self, start, never):
        self.starts, self.never = [start], never


def taken(code, directives):
    """The code without the branches that are not."""
    places = [match.start() for match in BRACE.finditer(code)]
    depths = [1 if code[place] == "{" else -1 for place in places]
    left_out, open_groups = [], []
    for place, text in directives:
        match = WORD.match(text)
        word = match.group(1) if match else ""
        if word.startswith("if"):
            open_groups.append(Group(place, bool(NEVER.match(text))))
        elif open_groups and word.startswith("el"):
            open_groups[-1].starts.append(place)
        elif open_groups and word == "endif":
            for span in unbalanced(places, depths, open_groups.pop(), place):
                first, end = (bisect_left(places, each) for each in span)
                depths[first:end] = [0] * (end - first)  # in a branch around it, they are not
                left_out.append(span)
    return without(code, left_out)


def unbalanced(places, depths, group, end):
    """Those to be left out: what is never compiled, and all but the first where braces differ."""
    spans = list(zip(group.starts, group.starts[1:] + [end]))
    left_out = [spans.pop(0)] if group.never else []
    if len(spans) > 1 and any(
            sum(depths[bisect_left(places, start):bisect_left(places, stop)])
            for start, stop in spans):
        left_out += spans[1:]
    return left_out


def without(code, spans):
    pieces, place = [], 0
    for start, end in sorted(spans):
        if end > place:
            start = max(start, place)
            pieces += [code[place:start], blank(code[start:end])]
            place = end
    return "".join(pieces) + code[place:]


def macros(directives):
    """(place of the name, name) of each #define."""
    for place, text in directives:
        match = DEFINED.match(text)
        if match:
            yield place + match.start(1), match.group(1)

"""Globs over paths, as git has them: `*` and `?` do not cross a slash, `**` does."""

import re

PART = re.compile(r"(\*\*/)|(\*+)|(\?)|(\[[!^]?\]?[^\]]*\])|\\(.)|(.)", re.DOTALL)
CHOICE = re.compile(r"\{([^{}]*,[^{}]*)\}")
CHOICES_MAX = 1000  # globs that one with braces may stand for
SPECIAL = "*?[{"


def matcher(glob):
    """match(path) for a glob, a folder or a path; a folder stands for all below it."""
    glob = glob[2:] if glob.startswith("./") else glob
    if not any(each in glob for each in SPECIAL):
        folder = glob if not glob or glob.endswith("/") else glob + "/"
        return lambda path: path == glob or path.startswith(folder)
    return re.compile("|".join(map(expression, choices(glob))), re.DOTALL).fullmatch


def choices(glob):
    """The globs that one with {this,that} stands for."""
    found, result = [glob], []
    while found:
        each = found.pop()
        match = CHOICE.search(each)
        if match is None:
            result.append(each)
            continue
        parts = match.group(1).split(",")
        if len(found) + len(result) + len(parts) > CHOICES_MAX:
            raise ValueError(f"the glob {glob!r} stands for more than {CHOICES_MAX}")
        found += [each[:match.start()] + part + each[match.end():] for part in parts]
    return result


def expression(glob):
    """The regular expression of one without braces."""
    if glob.endswith("/"):
        glob += "**"
    result, position = [], 0
    while position < len(glob):
        match = PART.match(glob, position)
        begins = position == 0 or glob[position - 1] == "/"
        folders, stars, one, some, quoted, plain = match.groups()
        if folders and begins:
            result.append("(?:[^/]+/)*")
        elif folders:
            result.append(".*/")
        elif stars:
            result.append(".*" if len(stars) > 1 else "[^/]*")
        elif one:
            result.append("[^/]")
        elif some:
            result.append(character_set(some))
        else:
            result.append(re.escape(quoted or plain))
        position = match.end()
    return "".join(result)


def character_set(some):
    """`[a-z]`, `[!a-z]`; a slash is in none."""
    inner = some[1:-1]
    negated = inner[:1] in ("!", "^")
    inner = inner[negated:].replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
    inner = re.sub(r"([&~|])", r"\\\1", inner)
    inner = inner[:1].replace("^", "\\^") + inner[1:]
    return f"(?!/)[{'^' if negated else ''}{inner}]"

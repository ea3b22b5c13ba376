"""tests/lint/tree.py - the source tree, as the lint tests see it."""
import os
import re
from pathlib import Path

ROOT = Path(os.environ.get("RLMD_SOURCE_ROOT", Path(__file__).parents[2]))
BUILD = Path(os.environ.get("RLMD_BUILD_ROOT", ROOT / "build"))
DIRECTORIES = (".ci", "bench", "examples", "include", "seccomp", "src", "tests", "tools", "worker")


def files(*suffixes, under=DIRECTORIES):
    """Our own files with one of the suffixes ("" means none at all), sorted."""
    found = []
    for directory in under:
        for place, names, leaves in os.walk(ROOT / directory):
            names[:] = [name for name in names if name not in ("__pycache__", "corpus")]
            found += [Path(place, leaf) for leaf in leaves if Path(leaf).suffix in suffixes]
    return sorted(found)


def name(path):
    return str(path.relative_to(ROOT))


def read(path):
    """The text of a file given as a Path or by its name in the tree."""
    return (ROOT / path).read_text(encoding="utf-8")


def shebang(path):
    with open(path, "rb") as file:
        return file.readline().decode(errors="replace").strip()


def scripts(interpreter):
    """Executable scripts without a suffix, by the interpreter in their first line."""
    return [path for path in files("") if re.search(rf"\b{interpreter}$", shebang(path))]


def without_comments(source):
    """C source with comments and the contents of strings blanked; lines stay where they are."""
    def blank(match):
        text = match.group()
        if text.startswith("/"):
            return re.sub(r"[^\n]", " ", text)
        return text[0] + " " * (len(text) - 2) + text[-1]

    pattern = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    return re.sub(pattern, blank, source, flags=re.DOTALL)


def functions(source):
    """Each function of a C file in our layout: its name, first line, number of lines, body."""
    lines = source.split("\n")
    start = None
    for number, line in enumerate(lines):
        if line == "{":
            start = number
        elif line == "}" and start is not None:
            head = start - 1
            while head > 0 and lines[head - 1].strip() and lines[head - 1][-1] not in ";}/":
                head -= 1
            signature = " ".join(lines[head:start])
            called = re.search(r"(\w+)\s*\(", signature)
            body = "\n".join(lines[start : number + 1])
            yield called.group(1) if called else "?", start, number - start + 1, body
            start = None


def arguments(source, start):
    """The arguments of a C macro call whose `(` stands at `start`, strings and parentheses kept."""
    found, depth, piece = [], 0, ""
    for token in re.findall(r'"(?:\\.|[^"\\])*"|.', source[start:], flags=re.DOTALL):
        if token in (",", ")") and depth == 1:
            found.append(piece.strip())
            piece = ""
        elif token != "(" or depth > 0:
            piece += token
        depth += (token == "(") - (token == ")")
        if depth == 0:
            return found
    raise ValueError("a call without its closing parenthesis")


def rows(table, *macros):
    """The rows MACRO(a, b, ...) of a .def table in order, as [MACRO, a, b, ...]."""
    source = re.sub(r"/\*.*?\*/", "", read(table), flags=re.DOTALL)
    found = []
    for match in re.finditer(rf"^\s*({'|'.join(macros)})(?=\()", source, flags=re.MULTILINE):
        found.append([match.group(1), *arguments(source, match.end())])
    return found


def unquoted(argument):
    """The value of a C string literal, adjacent pieces joined; None for NULL."""
    if argument == "NULL":
        return None
    pieces = re.findall(r'"((?:\\.|[^"\\])*)"', argument)
    return "".join(pieces).replace('\\"', '"').replace("\\\\", "\\")

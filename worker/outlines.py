"""The definitions in a source file, line by line.

Python is parsed. Of other languages the code alone is looked at (blanking.py): C, C++, Java and C#
scope by scope (declared.py), JavaScript and TypeScript by words and brackets (scripts.py), the
others by what their lines look like (line_rules.py).
"""

import ast
import re
from bisect import bisect_right
from typing import NamedTuple

from blanking import code_of
from declared import declared
from languages import language_of
from line_rules import markdown, matched
from scripts import scripts


class Definition(NamedTuple):
    line: int
    kind: str
    name: str


class NotOutlined(ValueError):
    """The language is known, and the file is written in a way that is not understood."""

    def __init__(self, language, text):
        super().__init__(text)
        self.language = language


DECLARED = frozenset(["C", "C++", "Java", "C#"])
SCRIPTS = frozenset(["JavaScript", "TypeScript", "Vue"])
LINED = ("Go", "Kotlin", "Lua", "Make", "Objective-C", "PHP", "Perl", "Protocol Buffers", "Ruby",
         "Rust", "SQL", "Shell", "Swift")
KNOWN = tuple(sorted({*LINED, *DECLARED, *SCRIPTS, "Python", "Markdown"}))
# Code that defines something has one of these, be it recognised or not.
BODY = r"\)\s*\{|\b(?:struct|class|union|interface)\s+\w+[^;(){}=]*\{"
WORDS = r"\b(?:class|def|fn|fun|func|function|interface|module|struct|sub|trait)[ \t]+\w"
DEFINES = dict.fromkeys(DECLARED, BODY)
HEADERS = (".h", ".H")  # of C, or of C++
# C++ has one of these, and C has none.
CPP = (r"^[ \t]*(?:class[ \t]+\w+[^;()\n]*(?:[{:]|$)|namespace\b[^;\n]*(?:\{|$)|template[ \t]*<|"
       r"(?:public|private|protected)[ \t]*:|using[ \t]+\w)|\w::~?\w")


def outline_of(path, text):
    """(language, Definitions in the order of their lines); (None, []) of a language not known."""
    language = language_of(path)
    if language not in KNOWN:
        return None, []
    if language == "Python":
        found = python(text)
        if found is not None:
            return language, found
    if language == "Markdown":
        return language, [Definition(*each) for each in markdown(text)]
    code, directives = code_of(text, language)
    if language == "C" and path.endswith(HEADERS) and re.search(CPP, code, re.M):
        language = "C++"
    try:
        found = placed(text, definitions(code, text, language, directives))
    except RecursionError:
        raise NotOutlined(language, f"it is {language}, nested too deep") from None
    if not found and (re.search(DEFINES.get(language, WORDS), code)
                      or language != "Shell" and code.count("{") != code.count("}")):
        raise NotOutlined(language, f"no definition was recognised in it, as {language}")
    return language, found


def definitions(code, text, language, directives):
    """(place, kind, name) of each."""
    if language in DECLARED:
        return declared(code, language, directives)
    if language in SCRIPTS:
        return scripts(code, text, language != "JavaScript")
    return matched(code, language)


def placed(text, found):
    """By the lines in which the places are."""
    starts = [0] + [match.end() for match in re.finditer("\n", text)]
    return [Definition(bisect_right(starts, place), kind, name)
            for place, kind, name in sorted(set(found))]


KINDS = {ast.ClassDef: "class", ast.FunctionDef: "function", ast.AsyncFunctionDef: "function"}
INNER = ("body", "handlers", "orelse", "finalbody", "cases")  # where statements stand in others


def python(text):
    """By its syntax tree; None: it is not valid."""
    try:
        tree = ast.parse(text.encode("utf-8", "replace"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found = []
    try:
        walk(tree, "", found)
    except RecursionError:
        return None
    return sorted(found, key=lambda each: each.line)


def walk(node, prefix, found, in_class=False):
    """Of `prefix` are the names of what stands in it."""
    for child in [each for name in INNER for each in getattr(node, name, ())]:
        kind = KINDS.get(type(child))
        if kind is not None:
            if kind == "function" and in_class:
                kind = "method"
            found.append(Definition(child.lineno, kind, prefix + child.name))
            walk(child, f"{prefix}{child.name}.", found, kind == "class")
        elif not prefix and isinstance(child, ast.Assign):
            found += [
                Definition(child.lineno, "constant", target.id) for target in child.targets
                if isinstance(target, ast.Name) and target.id.isupper()
            ]
        else:
            walk(child, prefix, found, in_class)

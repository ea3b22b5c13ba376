"""The definitions in a source file, line by line.

Python is parsed. Of other languages the lines are matched with a few patterns each, outside of
comments as far as that is seen: what is written in an unusual way may be missed.
"""

import ast
import re
from typing import NamedTuple

from languages import language_of

LINE_MAX = 500   # characters of a line that are looked at
HEAD_LINES = 20  # of a function, before its body


class Definition(NamedTuple):
    line: int
    kind: str
    name: str


WORD = r"[A-Za-z_$][\w$]*"
EXPORT = r"(?:export\s+)?(?:default\s+)?(?:declare\s+)?"
# Words that look like a call's or a definition's name, and are statements.
STATEMENTS = frozenset(
    "if for while switch return else do catch sizeof new delete throw case using defined function "
    "synchronized elif unless until with and or not when await yield typeof assert foreach try in "
    "is as let const var static_assert alignas decltype __attribute__ super this lock".split()
)


def rows(*pairs):
    return tuple((kind, re.compile(pattern)) for kind, pattern in pairs)


C = rows(
    ("macro", r"\s*#\s*define\s+(\w+)"),
    ("struct", r"(?:typedef\s+)?(?:static\s+|const\s+)*struct\s+(\w+)[^;=()]*(?:\{|$)"),
    ("union", r"(?:typedef\s+)?(?:static\s+|const\s+)*union\s+(\w+)[^;=()]*(?:\{|$)"),
    ("enum", r"(?:typedef\s+)?enum\s+(\w+)[^;=()]*(?:\{|$)"),
    ("typedef", r"typedef\s[^{]*?\(\s*\*\s*(\w+)\s*\)\s*\("),
    ("typedef", r"typedef\s[^(){]*?(\w+)\s*(?:\[[^\]]*\]\s*)*;"),
    ("typedef", r"\}\s*(?:__attribute__\s*\(\(.*?\)\)\s*)?(\w+)\s*;"),
    ("function", r"(?!typedef|return|else|extern\s+\"C\"|#)"
                 r"[A-Za-z_][\w\s*&,<>:\[\]()\"]*?[\s*&](\w+)\s*\([^;]*$"),
    ("function", r"(?!\w*\s*\()(?:[A-Za-z_][\w\s*]*[\s*])(\w+)\s*\([^;{]*\)\s*\{.*\}\s*$"),
)
CPP = rows(
    ("macro", r"\s*#\s*define\s+(\w+)"),
    ("namespace", r"\s*(?:inline\s+)?namespace\s+([\w:]+)\s*(?:\{|$)"),
    ("class", r"\s*(?:template\s*<.*>\s*)?class\s+(?:\w+_API\s+|\[\[.*?\]\]\s*)?(\w+)"
              r"[^;()=]*(?:\{|$)"),
    ("struct", r"\s*(?:template\s*<.*>\s*)?(?:typedef\s+)?struct\s+(\w+)"
               r"[^;()=]*(?:\{|$)"),
    ("enum", r"\s*(?:typedef\s+)?enum\s+(?:class\s+|struct\s+)?(\w+)[^;()=]*(?:\{|$)"),
    ("union", r"\s*union\s+(\w+)[^;()=]*(?:\{|$)"),
    ("alias", r"\s*using\s+(\w+)\s*="),
    ("concept", r"\s*concept\s+(\w+)\s*="),
    ("function", r"\s*(?=\S)(?!return\b|else\b|throw\b|new\b|delete\b|case\b|using\b|#)"
                 r"(?:[A-Za-z_][\w\s*&,<>:\[\]]*?[\s*&])?"
                 r"((?:\w+(?:<[^>]*>)?::)*(?:~?\w+|operator\s*[^\s\w(]+))\s*\([^;=]*\)"
                 r"[\w\s&]*(?:->\s*[\w:<>&*\s]+)?(?::[^:;].*)?(?:\{.*)?$"),
    ("function", r"(?!return|else|throw|using|typedef|#)[A-Za-z_][\w\s*&,<>:\[\]]*?[\s*&]"
                 r"((?:\w+(?:<[^>]*>)?::)*~?\w+)\s*\([^;)]*$"),
)
RULES = {
    "C": C,
    "C++": CPP,
    "Objective-C": C + rows(
        ("class", r"@(?:interface|implementation)\s+(\w+)"),
        ("protocol", r"@protocol\s+(\w+)[^;]*$"),
        ("method", r"[-+]\s*\([^)]*\)\s*(\w+)"),
    ),
    "Go": rows(
        ("method", r"func\s*\(\s*[^)]*\)\s*(\w+)"),
        ("function", r"func\s+(\w+)"),
        ("struct", r"type\s+(\w+)(?:\[.*\])?\s+struct\b"),
        ("interface", r"type\s+(\w+)(?:\[.*\])?\s+interface\b"),
        ("type", r"type\s+(\w+)"),
        ("constant", r"const\s+(\w+)"),
        ("variable", r"var\s+(\w+)"),
        ("package", r"package\s+(\w+)"),
    ),
    "Rust": rows(
        ("function", r"\s*(?:pub(?:\([^)]*\))?\s+)?(?:default\s+)?(?:const\s+)?(?:async\s+)?"
                     r"(?:unsafe\s+)?(?:extern\s+(?:\"[^\"]*\"\s+)?)?fn\s+(\w+)"),
        ("struct", r"\s*(?:pub(?:\([^)]*\))?\s+)?struct\s+(\w+)"),
        ("enum", r"\s*(?:pub(?:\([^)]*\))?\s+)?enum\s+(\w+)"),
        ("union", r"\s*(?:pub(?:\([^)]*\))?\s+)?union\s+(\w+)\s*[<{]"),
        ("trait", r"\s*(?:pub(?:\([^)]*\))?\s+)?(?:unsafe\s+)?(?:auto\s+)?trait\s+(\w+)"),
        ("impl", r"\s*(?:unsafe\s+)?impl\b(?:\s*<(?:[^<>]|<[^<>]*>)*>)?\s+([^{]*[^{\s])"),
        ("type", r"\s*(?:pub(?:\([^)]*\))?\s+)?type\s+(\w+)"),
        ("module", r"\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)"),
        ("constant", r"\s*(?:pub(?:\([^)]*\))?\s+)?(?:const|static)\s+(?:mut\s+)?(\w+)\s*:"),
        ("macro", r"\s*(?:pub\s+)?macro_rules!\s*(\w+)"),
    ),
    "JavaScript": rows(
        ("class", rf"\s*{EXPORT}(?:abstract\s+)?class\s+({WORD})"),
        ("interface", rf"\s*{EXPORT}interface\s+({WORD})"),
        ("type", rf"\s*(?:export\s+)?(?:declare\s+)?type\s+({WORD})\b[^=]*="),
        ("enum", rf"\s*(?:export\s+)?(?:declare\s+)?(?:const\s+)?enum\s+({WORD})"),
        ("namespace", rf"\s*(?:export\s+)?(?:declare\s+)?(?:namespace|module)\s+({WORD})\s*\{{"),
        ("function", rf"\s*{EXPORT}(?:async\s+)?function\s*\*?\s*({WORD})"),
        ("function", rf"\s*(?:export\s+)?(?:const|let|var)\s+({WORD})\s*(?::[^=]+)?=\s*"
                     rf"(?:async\s+)?(?:function\b|\([^()]*\)\s*(?::[^=]+)?=>|{WORD}\s*=>|"
                     r"\([^)]*$)"),
        ("constant", rf"export\s+(?:const|let|var)\s+({WORD})"),
        ("method", r"\s+(?:(?:public|private|protected|static|async|override|readonly|get|set|"
                   rf"abstract)\s+)*\*?(#?{WORD})\s*(?:<[^()]*>)?\([^;]*\)\s*(?::[^;=]+)?"
                   r"\{\s*.*$"),
    ),
    "Java": rows(
        ("package", r"\s*package\s+([\w.]+)\s*;"),
        ("class", r"\s*(?:(?:public|protected|private|static|final|abstract|sealed|non-sealed|"
                  r"strictfp)\s+)*class\s+(\w+)"),
        ("interface", r"\s*(?:(?:public|protected|private|static|sealed)\s+)*@?interface\s+(\w+)"),
        ("enum", r"\s*(?:(?:public|protected|private|static)\s+)*enum\s+(\w+)"),
        ("record", r"\s*(?:(?:public|protected|private|static|final)\s+)*record\s+(\w+)\s*[<(]"),
        ("method", r"\s+(?=\S)(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|protected|private|static|"
                   r"final|abstract|synchronized|native|default)\s+)*(?:<[^>]+>\s+)?"
                   r"(?!return\b|new\b|throw\b|else\b)[\w.<>\[\],?\s]+\s(\w+)\s*\([^;]*\)"
                   r"\s*(?:throws\s+[\w.,\s]+)?(?:\{.*|;)?$"),
        ("method", r"\s+(?:public|protected|private)\s+(\w+)\s*\("),
    ),
    "Kotlin": rows(
        ("class", r"\s*(?:\w+\s+)*class\s+(\w+)"),
        ("interface", r"\s*(?:\w+\s+)*interface\s+(\w+)"),
        ("object", r"\s*(?:\w+\s+)*object\s+(\w+)"),
        ("function", r"\s*(?:\w+\s+)*fun\s+(?:<[^>]*>\s*)?(?:[\w<>?]+\.)?(\w+)\s*\("),
    ),
    "C#": rows(
        ("namespace", r"\s*namespace\s+([\w.]+)"),
        ("class", r"\s*(?:\w+\s+)*class\s+(\w+)"),
        ("struct", r"\s*(?:\w+\s+)*struct\s+(\w+)"),
        ("interface", r"\s*(?:\w+\s+)*interface\s+(\w+)"),
        ("enum", r"\s*(?:\w+\s+)*enum\s+(\w+)"),
        ("record", r"\s*(?:\w+\s+)*record\s+(\w+)"),
        ("method", r"\s+(?:(?:public|private|protected|internal|static|virtual|override|abstract|"
                   r"sealed|async|extern|unsafe|partial)\s+)+[\w.<>\[\],?]+\s+(\w+)\s*"
                   r"(?:<[^>]*>)?\([^;]*\)?\s*(?:\{.*|=>.*)?$"),
    ),
    "Swift": rows(
        ("class", r"\s*(?:\w+\s+)*class\s+(?!func\b|var\b)(\w+)"),
        ("struct", r"\s*(?:\w+\s+)*struct\s+(\w+)"),
        ("enum", r"\s*(?:\w+\s+)*enum\s+(\w+)"),
        ("protocol", r"\s*(?:\w+\s+)*protocol\s+(\w+)"),
        ("extension", r"\s*(?:\w+\s+)*extension\s+([\w.]+)"),
        ("function", r"\s*(?:@?\w+\s+)*func\s+(\w+)"),
    ),
    "Ruby": rows(
        ("class", r"\s*class\s+(?!<<)([\w:]+)"),
        ("module", r"\s*module\s+([\w:]+)"),
        ("method", r"\s*(?:(?:private|protected|public|private_class_method)\s+)?"
                   r"def\s+((?:self\.|\w+\.)?[\w]+[?!=]?|[^\s\w(;]+)"),
        ("constant", r"\s*([A-Z][A-Z0-9_]+)\s*=(?!=)"),
    ),
    "PHP": rows(
        ("namespace", r"\s*namespace\s+([\w\\]+)"),
        ("class", r"\s*(?:(?:abstract|final|readonly)\s+)*class\s+(\w+)"),
        ("interface", r"\s*interface\s+(\w+)"),
        ("trait", r"\s*trait\s+(\w+)"),
        ("enum", r"\s*enum\s+(\w+)"),
        ("function", r"\s*(?:(?:public|protected|private|static|abstract|final)\s+)*"
                     r"function\s+&?(\w+)"),
    ),
    "Perl": rows(("package", r"\s*package\s+([\w:]+)"), ("function", r"\s*sub\s+([\w:]+)")),
    "Lua": rows(("function", r"\s*(?:local\s+)?function\s+([\w.:]+)"),
                ("function", r"\s*(?:local\s+)?([\w.]+)\s*=\s*function\b")),
    "Shell": rows(
        ("function", r"\s*function\s+([\w:.-]+)\s*(?:\(\s*\))?\s*(?:\{|$|\()"),
        ("function", r"\s*([A-Za-z_][\w:.-]*)\s*\(\s*\)\s*(?:\{.*|\(.*|#.*)?$"),
        ("alias", r"\s*alias\s+([\w.-]+)="),
    ),
    "SQL": rows(
        ("table", r"(?i)\s*create\s+(?:or\s+replace\s+)?(?:temp(?:orary)?\s+)?table\s+"
                  r"(?:if\s+not\s+exists\s+)?([\w.\"`]+)"),
        ("view", r"(?i)\s*create\s+(?:or\s+replace\s+)?(?:materialized\s+)?view\s+"
                 r"(?:if\s+not\s+exists\s+)?([\w.\"`]+)"),
        ("function", r"(?i)\s*create\s+(?:or\s+replace\s+)?(?:function|procedure)\s+([\w.\"`]+)"),
        ("index", r"(?i)\s*create\s+(?:unique\s+)?index\s+(?:if\s+not\s+exists\s+)?"
                  r"([\w.\"`]+)"),
        ("trigger", r"(?i)\s*create\s+(?:or\s+replace\s+)?trigger\s+([\w.\"`]+)"),
    ),
    "Make": rows(("variable", r"([A-Za-z_][\w.]*)\s*(?::|\?|\+|!)?=(?!=)"),
                 ("target", r"([A-Za-z0-9_./%$(){}-][^:=#\s]*)\s*:(?!=)")),
    "Protocol Buffers": rows(
        ("message", r"\s*message\s+(\w+)"), ("enum", r"\s*enum\s+(\w+)"),
        ("service", r"\s*service\s+(\w+)"), ("rpc", r"\s*rpc\s+(\w+)"),
    ),
}
RULES["TypeScript"] = RULES["Vue"] = RULES["JavaScript"]
DECLARED = frozenset(["C", "C++", "Objective-C"])  # where a declaration looks like a definition
HASHED = frozenset(["Ruby", "Shell", "Perl", "Make"])  # whose comments are `#`
SLASHED = frozenset(RULES) - HASHED - {"Lua", "SQL"}   # `//` and `/* */`
KNOWN = tuple(sorted({*RULES, "Python", "Markdown"}))


def outline_of(path, text):
    """A list of Definitions in the order of their lines; None: the language is not known."""
    language = language_of(path)
    if language == "Python":
        return python(text)
    if language == "Markdown":
        return markdown(text)
    if language in RULES:
        return matched(text, RULES[language], language)
    return None


# -- Python --

KINDS = {ast.ClassDef: "class", ast.FunctionDef: "function", ast.AsyncFunctionDef: "function"}


def python(text):
    """By its syntax tree; of what is not valid by its lines."""
    try:
        tree = ast.parse(text.encode("utf-8", "replace"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return matched(text, PYTHON_LINES, None)
    found = []
    walk(tree, "", found)
    return sorted(found, key=lambda each: each.line)


def walk(node, prefix, found):
    for child in getattr(node, "body", []) + getattr(node, "orelse", []) + [
        each for handler in getattr(node, "handlers", []) for each in handler.body
    ] + getattr(node, "finalbody", []):
        kind = KINDS.get(type(child))
        if kind is None:
            if isinstance(child, (ast.If, ast.Try, ast.With)):
                walk(child, prefix, found)
            elif not prefix and isinstance(child, ast.Assign):
                found += [
                    Definition(child.lineno, "constant", target.id) for target in child.targets
                    if isinstance(target, ast.Name) and target.id.isupper()
                ]
            continue
        if kind == "function" and prefix:
            kind = "method"
        found.append(Definition(child.lineno, kind, prefix + child.name))
        if kind == "class":
            walk(child, f"{prefix}{child.name}.", found)


PYTHON_LINES = rows(("class", r"\s*class\s+(\w+)"), ("function", r"\s*(?:async\s+)?def\s+(\w+)"))


# -- others --


def markdown(text):
    found, fence, before = [], None, ""
    for number, line in enumerate(text.split("\n"), 1):
        line = line[:LINE_MAX].rstrip()
        mark = re.match(r" {0,3}(```+|~~~+)", line)
        if mark and fence is None:
            fence = mark.group(1)
        elif mark and mark.group(1).startswith(fence) and not line.strip(" `~"):
            fence = None
        elif fence is None:
            head = re.match(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$", line)
            if head:
                found.append(Definition(number, f"h{len(head.group(1))}", head.group(2) or ""))
            elif before.strip() and re.fullmatch(r" {0,3}(=+|-{2,})", line) and not (
                re.match(r" {0,3}(?:[-*+>|]|#|\d+[.)])", before)
            ):
                kind = "h1" if "=" in line else "h2"
                found.append(Definition(number - 1, kind, before.strip()))
        before = line if fence is None else ""
    return found


def matched(text, rules, language):
    lines, found, inside = text.split("\n"), [], False
    for number, line in enumerate(lines, 1):
        line = line[:LINE_MAX].rstrip()
        if language in SLASHED:
            line, inside = without_comments(line, inside)
        if not line or line.isspace():
            continue
        for kind, pattern in rules:
            match = pattern.match(line)
            if match and match.group(1) not in STATEMENTS:
                if kind != "function" or language not in DECLARED or has_body(lines, number - 1):
                    found.append(Definition(number, kind, match.group(1)))
                break
    return found


def has_body(lines, place):
    """Whether what begins at that line is a definition: a brace comes before a semicolon."""
    for line in lines[place:place + HEAD_LINES]:
        end = re.search(r"[;{]", line[:LINE_MAX])
        if end:
            return end.group() == "{"
    return False


COMMENT = re.compile(r"""//|/\*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])'""")


def without_comments(line, inside):
    """(the line without them, whether it ends inside one)."""
    kept, position = "", 0
    while True:
        if inside:
            end = line.find("*/", position)
            if end < 0:
                return kept, True
            position, inside = end + 2, False
        match = COMMENT.search(line, position)
        while match and match.group() not in ("//", "/*"):
            match = COMMENT.search(line, match.end())
        if not match:
            return kept + line[position:], False
        kept += line[position:match.start()]
        if match.group() == "//":
            return kept.rstrip(), False
        position, inside = match.end(), True

"""Definitions by what the lines of the code alone look like, for languages that tell them so.

Of each language the first of its patterns that matches a line says what it is.
"""

import re

from blanking import BRACE, blank
from patterns import Pattern

LINE_MAX = 500  # characters of a line that are looked at
STATEMENTS = frozenset("if for while until case elif switch return".split())
LIKE_STATEMENTS = ("Objective-C", "Shell")  # where those look like functions


def rows(*pairs):
    """(kind, Pattern) of each pair."""
    return [(kind, Pattern(pattern)) for kind, pattern in pairs]


RULES = {
    "Objective-C": rows(
        ("class", r"@(?:interface|implementation)\s+(\w+)"),
        ("protocol", r"@protocol\s+(\w+)[^;]*$"),
        ("method", r"[-+]\s*\([^)]*\)\s*(\w+)"),
        ("struct", r"(?:typedef\s+)?struct\s+(\w+)\s*\{"),
        ("enum", r"(?:typedef\s+)?(?:enum|NS_ENUM|NS_OPTIONS)\s*(?:\(\s*\w+,)?\s*(\w+)\s*[){:]"),
        ("typedef", r"typedef\s[^(){}]*?(\w+)\s*;"),
        ("function", r"(?!else|return|typedef)[A-Za-z_][\w \t*]*[ \t*](\w+)\s*\([^;]*$"),
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
    "Kotlin": rows(
        ("class", r"\s*(?:\w+\s+)*class\s+(\w+)"),
        ("interface", r"\s*(?:\w+\s+)*interface\s+(\w+)"),
        ("object", r"\s*(?:\w+\s+)*object\s+(\w+)"),
        ("function", r"\s*(?:\w+\s+)*fun\s+(?:<[^>]*>\s*)?(?:[\w<>?]+\.)?(\w+)\s*\("),
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
                   r"def\s+((?:\w+\.)?(?:\w+[?!=]?|[^\s\w(;]+))"),
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
RULES["Python"] = rows(("class", r"\s*class\s+(\w+)"), ("function", r"\s*(?:async\s+)?def\s+(\w+)"))


def matched(code, language):
    """(place, kind, name) of each definition, in the order of their places."""
    if language == "Rust":
        code = without_macros(code)
    found, place = [], 0
    patterns = [(kind, pattern.match) for kind, pattern in RULES[language]]
    for line in code.split("\n"):
        if line and not line.isspace():
            for kind, match in patterns:
                seen = match(line[:LINE_MAX].rstrip())
                if seen:
                    if language not in LIKE_STATEMENTS or seen.group(1) not in STATEMENTS:
                        found.append((place + seen.start(1), kind, seen.group(1)))
                    break
        place += len(line) + 1
    return found + grouped(code) if language == "Go" else found


GROUP = Pattern(r"^type\s*\([ \t]*\n", re.M)
GROUPED = Pattern(r"^\t(\w+)(?:\[.*\])?\s+(struct|interface)?", re.M)


def grouped(code):
    """Of Go: the types in type ( ... )."""
    found = []
    for group in GROUP.finditer(code):
        end = code.find("\n)", group.end() - 1)
        if end < 0:
            break
        found += [(match.start(1), match.group(2) or "type", match.group(1))
                  for match in GROUPED.finditer(code, group.end(), end)]
    return found


MACRO = Pattern(r"\bmacro_rules!\s*\w+\s*\{")


def without_macros(code):
    """Of Rust: what the rules of a macro write is defined where it is used."""
    pieces, place = [], 0
    for match in MACRO.finditer(code):
        if match.start() < place:
            continue
        depth, end = 0, len(code)
        for each in BRACE.finditer(code, match.end() - 1):
            depth += 1 if each.group() == "{" else -1
            if not depth:
                end = each.start()
                break
        pieces += [code[place:match.end()], blank(code[match.end():end])]
        place = end
    return "".join(pieces) + code[place:]


def markdown(text):
    """(line, kind, name) of each heading."""
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
                found.append((number, f"h{len(head.group(1))}", head.group(2) or ""))
            elif before.strip() and re.fullmatch(r" {0,3}(=+|-{2,})", line) and not (
                re.match(r" {0,3}(?:[-*+>|]|#|\d+[.)])", before)
            ):
                kind = "h1" if "=" in line else "h2"
                found.append((number - 1, kind, before.strip()))
        before = line if fence is None else ""
    return found

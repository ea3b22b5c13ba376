"""Code alone: a text of the same length, in which comments and what strings hold are spaces.

Line feeds stay, and so do the quotes: a place in it is the same place in the file. Braces, and
words that begin a definition, then are what they seem to be.
"""

import re

from patterns import Pattern

SLASHES = r"//[^\n]*|/\*[\s\S]*?(?:\*/|\Z)"
DOUBLE = r'"[^"\\\n]*(?:\\[\s\S][^"\\\n]*)*"'
SINGLE = r"'[^'\\\n]*(?:\\[\s\S][^'\\\n]*)*'"
LONG_DOUBLE = r'"[^"\\]*(?:\\[\s\S][^"\\]*)*"'  # over lines, too
LONG_SINGLE = r"'[^'\\]*(?:\\[\s\S][^'\\]*)*'"
TRIPLE = r'"""[\s\S]*?(?:"""|\Z)'
# No number in C++ has its digits parted by a quote of a character.
CHARACTER = r"'(?<![0-9]')(?<![0-9][a-fA-F]')[^'\\\n]*(?:\\.[^'\\\n]*)*'"
DIRECTIVE = r"#(?:[^\n\\/\"']+|\\\r?\n|\\|/\*[\s\S]*?(?:\*/|\Z)|//[^\n]*|/|" + DOUBLE + r"|[\"'])*"

INSERTED_RUBY = r"\{[^{}]{0,300}(?:\{[^{}]{0,300}\}[^{}]{0,300}){0,9}\}"
RUBY_DOUBLE = (r'"(?:[^"\\#]|\\[\s\S]|#' + INSERTED_RUBY + "|#(?!" + INSERTED_RUBY + r'))*"')

# Each family of languages has other parts that are no code. Each alternative begins with a letter
# of its own: the search for the next then is fast.
SOURCES = {
    "C": SLASHES + "|" + DOUBLE + "|" + CHARACTER + "|" + DIRECTIVE,
    "Java": SLASHES + "|" + TRIPLE + "|" + DOUBLE + "|" + SINGLE,
    "C#": SLASHES + r'|@\$?"(?:[^"]|"")*"|\$@"(?:[^"]|"")*"|' + TRIPLE + "|" + DOUBLE + "|" + SINGLE
          + r"|#[^\n]*",
    "Go": SLASHES + r"|`[^`]*(?:`|\Z)|" + DOUBLE + "|" + SINGLE,
    "Rust": r"//[^\n]*|/\*|" + LONG_DOUBLE + r"|'(?:\\(?:u\{[^}]*\}|x..|.)|[^\\'\n])'",
    "JavaScript": SLASHES + "|" + DOUBLE + "|" + SINGLE + "|[`/]",
    "PHP": r"//(?:(?!\?>)[^\n])*|#(?!\[)(?:(?!\?>)[^\n])*|/\*[\s\S]*?(?:\*/|\Z)|"
           + LONG_DOUBLE + "|" + LONG_SINGLE + r"|<<<[ \t]*[\"']?(?P<here>\w+)[\"']?\r?\n|\?>",
    "Python": r"#[^\n]*|" + TRIPLE + r"|'''[\s\S]*?(?:'''|\Z)|" + DOUBLE + "|" + SINGLE,
    "Ruby": r"#[^\n]*|" + LONG_SINGLE + "|" + RUBY_DOUBLE + "|"
            r"=begin\b[\s\S]*?(?:\n=end\b|\Z)|<<[~-]?[\"'`]?(?P<here>[A-Za-z_]\w*)[\"'`]?|"
            r"%[qQwWiIr]?(?P<open>[(\[{<|!/])|__END__\r?\n[\s\S]*|/",
}
PATTERNS = {family: Pattern(source, re.M) for family, source in SOURCES.items()}
FAMILIES = {
    **dict.fromkeys(("C", "C++", "Objective-C"), "C"),
    **dict.fromkeys(("Java", "Kotlin", "Swift", "Protocol Buffers"), "Java"),
    **dict.fromkeys(("JavaScript", "TypeScript", "Vue"), "JavaScript"),
    **{name: name for name in ("C#", "Go", "Rust", "PHP", "Python", "Ruby")},
}
BRACE = Pattern(r"[{}]")
NOT_FEED = Pattern(r"[^\n]")
RAW_RUST = Pattern(r'\bb?r(#*)$|\bc?r(#*)$')
RAW_CPP = Pattern(r'(?:\b(?:u8|[uUL])?R)$')
RAW_CPP_MARK = Pattern(r'"([^()\\\s]{0,16})\(')
NESTED = Pattern(r"/\*|\*/")
# Behind these a slash begins a regular expression, and divides nothing.
BEFORE_EXPRESSION = frozenset("return typeof case in of delete void instanceof new throw do else "
                              "yield await and or not when if unless while until then".split())
EXPRESSION = Pattern(r"/(?![*/])(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*")
LAST_WORD = Pattern(r"[\w$]+$")
TEMPLATE = Pattern(r"[^`\\$]*(?:(?:\\[\s\S]|\$(?!\{))[^`\\$]*)*")
INSERTED = Pattern(r"[{}`]|" + SLASHES + "|" + DOUBLE + "|" + SINGLE)
CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}


def blank(text):
    """As many spaces; lines end where they did."""
    return " " * len(text) if "\n" not in text else NOT_FEED.sub(" ", text)


def quoted(text):
    """A string of which the quotes are left; all of the one that matters: extern "C"."""
    if text == '"C"' or text == '"C++"':
        return text
    return text[0] + blank(text[1:-1]) + text[-1] if len(text) > 1 else text


class Blanker:
    """One file. `directives` are (place, text) of each line of the preprocessor of C.

    `unended` are beginnings of strings to which no end was found: it is looked for once.
    """

    def __init__(self, text, language):
        self.text, self.language, self.family = text, language, FAMILIES[language]
        self.directives, self.pieces, self.done, self.unended = [], [], 0, set()
        self.search = PATTERNS[self.family].search

    def code(self):
        see = getattr(self, "see_" + self.family.lower(), self.usual)
        text, search = self.text, self.search
        match = search(text, self.markup(0) if self.family == "PHP" else 0)
        while match:
            match = search(text, see(match, match.group(), match.start(), match.end()))
        self.pieces.append(text[self.done:])
        return "".join(self.pieces)

    def put(self, start, end, instead):
        self.pieces.append(self.text[self.done:start])
        self.pieces.append(instead)
        self.done = end

    def until(self, start, end):
        """All of it is no code. Returns where it ends."""
        self.put(start, end, blank(self.text[start:end]))
        return end

    def usual(self, _match, found, start, end):
        """Blanks what was found. Returns where the search goes on."""
        self.put(start, end, quoted(found) if found[0] in "\"'`" else blank(found))
        return end

    # -- the languages that need more than a pattern --

    def see_c(self, match, found, start, end):
        text = self.text
        if found[0] == "#":
            line = text.rfind("\n", 0, start) + 1
            if not text[line:start].strip():
                self.directives.append((start, found))
                return self.until(start, end)
            return start + 1
        if found[0] == '"' and RAW_CPP.search(text, max(start - 4, 0), start):
            mark = RAW_CPP_MARK.match(text, start)
            if mark:
                close = text.find(")" + mark.group(1) + '"', mark.end())
                end = len(text) if close < 0 else close + len(mark.group(1)) + 2
                return self.until(start, end)
        return self.usual(match, found, start, end)

    def see_rust(self, match, found, start, end):
        text = self.text
        if found == "/*":
            depth = 1
            for each in NESTED.finditer(text, end):
                depth += 1 if each.group() == "/*" else -1
                if not depth:
                    return self.until(start, each.end())
            return self.until(start, len(text))
        if found[0] == '"':
            raw = RAW_RUST.search(text, max(start - 20, 0), start)
            if raw:
                mark = '"' + (raw.group(1) or raw.group(2) or "")
                close = text.find(mark, start + 1)
                return self.until(start, len(text) if close < 0 else close + len(mark))
        return self.usual(match, found, start, end)

    def see_javascript(self, match, found, start, end):
        if found == "`":
            return self.template(start)
        if found == "/":
            return self.expression(start, end)
        return self.usual(match, found, start, end)

    def expression(self, start, end):
        """A regular expression, or a division."""
        text, before = self.text, start - 1
        while before >= 0 and text[before] in " \t\r\n":
            before -= 1
        last = text[before] if before >= 0 else "("
        if last.isalnum() or last in "_$":
            word = LAST_WORD.search(text, max(before - 20, 0), before + 1)
            begins = word is not None and word.group() in BEFORE_EXPRESSION
        elif last == "}":
            begins = "\n" in text[before:start]
        else:
            begins = last not in ")]\"'`."
        match = EXPRESSION.match(text, start) if begins else None
        return self.until(start, match.end()) if match else end

    def template(self, start):
        """A template literal of JavaScript with what is inserted; the inserted is no code here."""
        text, depth, place = self.text, [], start + 1
        while True:
            if not depth or depth[-1] < 0:  # in the letters of a template
                place = TEMPLATE.match(text, place).end()
                if place >= len(text):
                    return self.until(start, len(text))
                if text[place] == "`":
                    place += 1
                    if not depth:
                        break
                    depth.pop()
                else:
                    place += 2
                    depth.append(1)
                continue
            match = INSERTED.search(text, place)
            if not match:
                return self.until(start, len(text))
            place, found = match.end(), match.group()
            if found == "`":
                depth.append(-1)
            elif found in "{}":
                depth[-1] += 1 if found == "{" else -1
                if not depth[-1]:
                    depth.pop()
        self.put(start, place, quoted(text[start:place]))
        return place

    def markup(self, start):
        """Code of PHP stands in <?php ... ?>: gives where it goes on."""
        text = self.text
        opening = text.find("<?", start)
        while opening >= 0 and text.startswith("<?xml", opening):
            opening = text.find("<?", opening + 2)
        if opening < 0:
            return self.until(start, len(text))
        opening += 5 if text[opening:opening + 5].lower() == "<?php" else 2
        return self.until(start, opening)

    def see_php(self, match, found, start, end):
        if found == "?>":
            return self.markup(start)
        if match.group("here"):
            close = re.compile(r"^[ \t]*" + match.group("here") + r"\b", re.M).search(
                self.text, end)
            return self.until(start, close.end() if close else len(self.text))
        return self.usual(match, found, start, end)

    def see_ruby(self, match, found, start, end):
        text = self.text
        if found == "/":
            return self.expression(start, end)
        if found[0] == "#" and text[start - 1:start] in ("?", "$"):
            return end if text[start - 1:start] == "?" else start + 1
        if found[0] in "\"'" and text[start - 1:start] in ("?", "$"):
            return start + 1
        if found[0] == "=" and text[start - 1:start] not in ("", "\n"):
            return start + 1
        if match.group("here"):
            before = text[start - 1:start]
            if before.isalnum() or before in ")]}" or found[2] not in "~-\"'`" and not (
                    found[2].isupper() and before in " (,="):
                return start + 2
            feed = text.find("\n", end)
            if match.group("here") in self.unended or feed < 0:
                return end
            close = re.compile(r"^[ \t]*" + match.group("here") + r"[ \t]*\r?$", re.M).search(
                text, end)
            if not close:
                self.unended.add(match.group("here"))
                return end
            if "class" in text[text.rfind("\n", 0, start) + 1:start]:
                return end
            return self.until(feed, close.end())
        if match.group("open"):
            return self.percent(match, found, start, end)
        return self.usual(match, found, start, end)

    def percent(self, match, found, start, end):
        """%w(...) and its like, with pairs in it."""
        text, opening = self.text, match.group("open")
        before = text[start - 1:start]
        if len(found) == 2 and (before.isalnum() or before in ")]}_"
                                or before == " " and text[start - 2:start - 1] not in
                                ("(", ",", "=", "[", "{")):
            return end - 1  # the rest of a division
        closing, depth = CLOSING.get(opening, opening), 1
        if opening in self.unended:
            return end
        either = re.compile(r"\\[\s\S]|[" + re.escape(opening + closing) + "]")
        for each in either.finditer(text, end):
            letter = each.group()
            if letter == closing:
                depth -= 1
                if not depth:
                    return self.until(start, each.end())
            elif letter == opening:
                depth += 1
        self.unended.add(opening)
        return end


SCRIPT = Pattern(r"<script\b[^>]*>([\s\S]*?)(?:</script>|\Z)", re.I)


def script_of(text):
    """A page of Vue: the code in it, where it stands."""
    pieces, place = [], 0
    for match in SCRIPT.finditer(text):
        pieces += [blank(text[place:match.start(1)]), match.group(1)]
        place = match.end(1)
    return "".join(pieces) + blank(text[place:])


def code_of(text, language):
    """(the code alone, the directives of C); the text as it is, of a language without a pattern."""
    if language == "Vue":
        text = script_of(text)
    if language not in FAMILIES:
        return text, []
    blanker = Blanker(text, language)
    return blanker.code(), blanker.directives

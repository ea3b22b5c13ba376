"""Definitions in JavaScript and TypeScript: words that begin one, and methods in bodies of types.

Functions stand anywhere, also in others, and are often named by what they are assigned to.
"""

from bisect import bisect_left

from patterns import Pattern

NAME = r"[A-Za-z_$][\w$]*"
BRACKET = Pattern(r"[(){}\[\]]")
OPENING = {")": "(", "}": "{", "]": "["}
# Each of these begins a definition. A method is a name before parentheses that a brace follows.
BEGIN = Pattern(
    rf"(?<![\w$.#])(?:(?P<type>class|interface|enum|namespace|module|type)[ \t]+(?P<named>[\w$.]+)"
    rf"|function\b[ \t\n]*\*?[ \t\n]*(?P<function>{NAME})?[ \t\n]*(?=[(<])"
    rf"|(?P<value>#?{NAME})[ \t]*(?P<sign>[=:?!])(?![=>])"
    rf"|(?P<method>#?{NAME}|\[[\w.$]+\])[ \t]*\??[ \t]*(?=[(<]))"
    rf"|\.(?P<member>{NAME})[ \t]*=(?![=>])"
    r"|(?P<quoted>\"[ ]+\"|'[ ]+')[ \t]*:[ \t]*(?=(?:async\b[ \t]*)?(?:function\b|\())")
FUNCTION = Pattern(r"\s*(?:\(\s*(?=(?:async\s+)?function\b))?(?:async\b\s*)?(?:function\b"
                   rf"|(?P<arrow>[(<])|(?P<one>{NAME})\s*=>)")
NO_NAME = frozenset(
    "if for while switch return else do catch new delete throw case function try in of typeof void "
    "await yield with super import instanceof extends async require let const var default "
    "class interface enum".split())
SPACES = Pattern(r"\s*")
HEAD = Pattern(r"[{};()<>=]")
ANGLE = Pattern(r"[<>;{}]|=>")
LEVELS = 20      # of braces in braces that are looked at for what they are
HEAD_MAX = 2000  # characters between the name of a type and its brace


class Script:
    """One file. `found` are (place, kind, name)."""

    def __init__(self, code, text, typed):
        self.code, self.text, self.typed, self.found = code, text, typed, []
        self.pairs, self.around = self.pair()
        self.bodies = {}  # where the brace of a type's body is: its kind

    def pair(self):
        """(where each bracket is closed, the bracket around each)."""
        pairs, around, opened, self.starts = {}, {}, [], []
        for match in BRACKET.finditer(self.code):
            sign, place = match.group(), match.start()
            if sign in OPENING:
                for index in range(len(opened) - 1, max(len(opened) - 4, -1), -1):
                    if opened[index][0] == OPENING[sign]:
                        pairs[opened[index][1]] = place
                        del opened[index:]
                        break
            else:
                around[place] = opened[-1][1] if opened else -1
                opened.append((sign, place))
                self.starts.append(place)
        return pairs, around

    def definitions(self):
        for match in BEGIN.finditer(self.code):
            group = match.lastgroup
            if group == "named":
                self.type(match)
            elif group == "function":
                self.add(match.start("function"), "function", match.group("function"))
            elif group in ("sign", "member"):
                self.assigned(match)
            elif group == "quoted":
                self.quoted(match)
            elif group == "method":
                self.method(match)
        return self.found

    def type(self, match):
        kind, name = match.group("type"), match.group("named")
        code, end = self.code, match.end()
        if name in ("extends", "implements"):
            return
        if kind == "type":
            before = code[max(match.start() - 40, 0):match.start()].rpartition("\n")[2]
            if before.strip() not in ("", "export", "declare", "export declare", "{", "};", ";"):
                return
            behind = SPACES.match(code, end).end()
            if code[behind:behind + 1] not in ("=", "<"):
                return
        else:
            brace = self.body(end)
            if brace < 0:
                return
            self.bodies[brace] = kind
        self.add(match.start("named"), kind, name)

    def body(self, place):
        """Where the brace of a type is whose head goes on there; below 0: nowhere."""
        code, angles = self.code, 0
        for match in HEAD.finditer(code, place, place + HEAD_MAX):
            sign = match.group()
            if sign == "<":
                angles += 1
            elif sign == ">" and code[match.start() - 1] != "=":
                angles -= 1
            elif angles <= 0:
                if sign == "{":
                    return match.start()
                if sign in ";}=":
                    return -1
        return -1

    def assigned(self, match):
        """A name with a function or a class as its value."""
        code, member = self.code, match.group("member")
        name = member or match.group("value")
        start = match.start("member" if member else "value")
        place = match.end()
        if not member and match.group("sign") != "=":
            place = self.behind_type(match, place)
            if place is None:
                return
        value = FUNCTION.match(code, place)
        if value is None or name in NO_NAME:
            if member and name != "constructor" and PROTOTYPE.search(
                    code, max(start - 11, 0), start) and NAMED_VALUE.match(code, place):
                self.add(start, "method", name)
            return
        if self.typed and self.is_of_type(match):
            return
        if value.group("arrow"):
            opening = value.start("arrow")
            if code[opening] == "<":
                opening = self.behind_angles(opening)
                if code[opening:opening + 1] != "(":
                    return
            if not self.arrow(opening):
                return
        self.add(start, "function", name)

    def quoted(self, match):
        """A key of an object with a function as its value: 'a': function() {}."""
        start, end = match.span("quoted")
        value = FUNCTION.match(self.code, match.end())
        if value.group("arrow") and not self.arrow(value.start("arrow")):
            return
        if self.is_literal(self.enclosing(start)):
            self.add(start, "function", self.text[start + 1:end - 1])

    def behind_type(self, match, place):
        """Where a value begins behind `name: ` or `name: type = `; None: there is none."""
        code, before = self.code, self.before(match.start())
        if match.group("sign") == ":" and before >= 0 and code[before] in "{,":
            if self.is_literal(self.enclosing(match.start())):
                return place
        if not self.typed or before >= 0 and code[before] in "(,?":
            return None
        end = TYPE_AND_VALUE.match(code, place, place + HEAD_MAX)
        return end.end() if end else None

    def is_of_type(self, match):
        """Whether the name is a type's, of what is assigned to: a: Name = ..., a: b.Name = ..."""
        if match.group("member"):
            start = max(match.start() - HEAD_MAX, 0)
            start = max(self.code.rfind(sign, start, match.start()) for sign in "\n;{},=(")
            return ":" in self.code[start:match.start()] or self.code[start:start + 2] == "=>"
        if match.group("sign") != "=":
            return False
        before = self.before(match.start())
        return before >= 0 and self.code[before] in ":|&>"

    def before(self, place):
        """Where the last letter before it is that is no space."""
        place -= 1
        while place >= 0 and self.code[place] in " \t\r\n":
            place -= 1
        return place

    def enclosing(self, place):
        """Where the bracket is that is open there; below 0: none is."""
        index = bisect_left(self.starts, place) - 1
        while index >= 0:
            start = self.starts[index]
            if self.pairs.get(start, place) >= place:
                return start
            start = self.around[start]  # the closed one is in what may be open
            while start >= 0 and self.pairs.get(start, place) < place:
                start = self.around[start]
            return start
        return -1

    def is_literal(self, brace):
        """Whether it begins an object, and no type of one and no block."""
        for _level in range(LEVELS):
            if brace < 0 or self.code[brace] != "{" or brace in self.bodies:
                return False
            if not self.typed:
                return True
            before = self.before(brace)
            sign = self.code[before] if before >= 0 else ";"
            if sign == ":":
                brace = self.enclosing(brace)
                continue
            if sign == "=":
                return not TYPE_ALIAS.search(self.code, max(before - 200, 0), before + 1)
            return sign in "(,[?" or self.code[before - 1:before + 1] in ("&&", "||") or (
                self.code[before - 5:before + 1] in ("return", "efault"))
        return False

    def behind_angles(self, place):
        code, depth = self.code, 0
        for match in ANGLE.finditer(code, place, place + HEAD_MAX):
            sign = match.group()
            if sign == "<":
                depth += 1
            elif sign == ">":
                depth -= 1
                if not depth:
                    return SPACES.match(code, match.end()).end()
            elif sign == ";":
                break
        return len(code)

    def arrow(self, opening):
        """Whether parentheses are the parameters of an arrow function."""
        end = self.pairs.get(opening)
        return end is not None and ARROW.match(self.code, end + 1, end + HEAD_MAX) is not None

    def method(self, match):
        name, code = match.group("method"), self.code
        opening = match.end()
        if code[opening] == "<":
            opening = self.behind_angles(opening)
            if code[opening:opening + 1] != "(":
                return
        end = self.pairs.get(opening)
        if end is None:
            return
        kind = self.bodies.get(self.around.get(opening, -1))
        before = self.before(match.start())
        last = code[before] if before >= 0 else ";"
        worded = BEFORE_METHOD.search(code, max(before - 12, 0), before + 1)
        if kind in ("class", "interface"):
            if last not in "{};,*" and not worded and not (
                    "\n" in code[before:match.start()] and (last.isalnum() or last in ")]\"'>_$")):
                return
            if self.typed and TYPED_END.match(code, end + 1) or BRACE_NEXT.match(code, end + 1):
                self.add(match.start("method"), "method", name)
        elif kind is None and name not in NO_NAME and (last in "{,*" or worded):
            if SAME_LINE_BRACE.match(code, end + 1, end + HEAD_MAX):
                self.add(match.start("method"), "method", name)

    def add(self, place, kind, name):
        self.found.append((place, kind, name))


TYPE_AND_VALUE = Pattern(r"[^=;\n]*(?:=>[^=;\n]*)*=(?![=>])")
TYPE_ALIAS = Pattern(r"\btype\s+[\w$]+(?:<[^=;]*>)?\s*=$")
ARROW = Pattern(r"\s*(?::[^=;{}]*(?:\{[^{}]*\}[^=;{}]*)?)?=>")
BEFORE_METHOD = Pattern(r"\b(?:public|private|protected|static|async|override|readonly|get|set|"
                        r"abstract|declare)$")
BRACE_NEXT = Pattern(r"\s*\{")
NAMED_VALUE = Pattern(rf"[ \t]*(?!undefined\b|null\b|true\b|false\b|new\b){NAME}")
PROTOTYPE = Pattern(r"\bprototype\.$")
SAME_LINE_BRACE = Pattern(r"[ \t]*(?::[^;{}()=]*)?\{")
TYPED_END = Pattern(r"\s*(?:[;:{,}]|$)")


def scripts(code, text, typed):
    """(place, kind, name) of each definition, in the order of their places."""
    return Script(code, text, typed).definitions()

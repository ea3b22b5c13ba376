"""Definitions in C, C++, Java and C#: what stands before a brace or a semicolon, scope by scope.

The body of a function is passed over: what it defines is its own.
"""

from bisect import bisect_left

from blanking import BRACE
from branches import macros, taken
from patterns import Pattern

BOUND = Pattern(r"[{};()]")
LINE_END = Pattern(r"\n\}")
ROUND = Pattern(r"[()]")
TOKEN = Pattern(r"[A-Za-z_$][\w$]*|::|->|\d[\w.']*|\"[^\"]*\"|@[ \t]*interface\b|@[\w.]+|[^\s\w]")
# A type, or another name of one, in the body of a function of C and C++.
LOCAL = Pattern(r"\b(?:typedef\s+)?(?:struct|class|union|enum)\b[^;(){}=]{0,300}\{|"
                r"\btypedef\b[^;{}]{0,500};|\busing\s+\w+\s*=[^;{}]{0,500};")
ROUND_MAX = 40_000  # characters between two parentheses

TYPES_C = frozenset(("struct", "union", "enum", "class", "namespace"))
TYPES_JAVA = frozenset(("class", "interface", "enum", "record", "@interface"))
TYPES_CS = frozenset(("class", "interface", "enum", "record", "struct", "namespace"))
# Words before parentheses that are no name of a function.
NO_NAME_JAVA = frozenset("if for while switch return else do catch new throw synchronized try "
                         "super this".split())
NO_NAME_CS = frozenset("if for while switch return else do catch new throw try using lock foreach "
                       "fixed checked unchecked where base this typeof sizeof when".split())
NO_NAME_CPP = frozenset(
    "if for while switch return else do catch sizeof new delete throw case using defined try "
    "decltype alignas static_assert _Static_assert __attribute__ __attribute __declspec "
    "__asm__ asm __asm noexcept typeof __typeof__ requires alignof int char void long short "
    "unsigned signed float double bool const volatile auto static inline extern _Alignas "
    "__extension__ template and or not __pragma _Pragma explicit struct union enum class".split())
NO_NAME_C = NO_NAME_CPP - frozenset("catch new delete throw using try decltype noexcept requires "
                                    "explicit template and or not class".split())
WITH_GROUP = frozenset("__attribute__ __attribute __declspec __asm__ asm __asm alignas _Alignas "
                       "noexcept throw decltype typeof __typeof__ requires explicit __pragma "
                       "_Pragma".split())
ACCESS = frozenset("public private protected signals slots Q_SIGNALS Q_SLOTS".split())
QUALIFIERS = frozenset("static extern inline const volatile __inline __inline__ register auto "
                       "virtual friend constexpr explicit".split())
OPEN, CLOSE = {"(": ")", "[": "]"}, {")", "]"}


class Item:
    """A part of a head: a word, a sign, or what two parentheses hold ("()"), or <...> ("<>")."""

    __slots__ = ("text", "place", "inner")

    def __init__(self, text, place, inner=None):
        self.text, self.place, self.inner = text, place, inner

    def is_word(self):
        return self.text[0].isalpha() or self.text[0] in "_$"


def items_of(head, place, angles):
    """The parts of a head, outside of parentheses."""
    tokens = [(match.group(), place + match.start()) for match in TOKEN.finditer(head)]
    found, index = [], 0
    while index < len(tokens):
        text, at = tokens[index]
        if text in OPEN:
            end = closing(tokens, index)
            if text == "(" or not found:
                found.append(Item(text + OPEN[text], at, tokens[index + 1:end]))
            elif text == "[" and tokens[index + 1:index + 2] and tokens[index + 1][0] == "[":
                pass  # [[an attribute]]
            else:
                found.append(Item("[]", at, tokens[index + 1:end]))
            index = end + 1
            continue
        if text == "<" and angles and found and found[-1].text != "operator":
            end = angle_end(tokens, index) if found[-1].is_word() else None
            if end is not None:
                if found[-1].text == "template":
                    found.pop()
                else:
                    found.append(Item("<>", at, tokens[index + 1:end]))
                index = end + 1
                continue
        found.append(Item(text, at))
        index += 1
    return found


def closing(tokens, index):
    depth = 0
    for place in range(index, len(tokens)):
        text = tokens[place][0]
        if text in OPEN:
            depth += 1
        elif text in CLOSE:
            depth -= 1
            if not depth:
                return place
    return len(tokens)


def angle_end(tokens, index):
    """Where <...> ends; None: it is a comparison, or a sign of an operator."""
    depth, place = 0, index
    while place < len(tokens):
        text = tokens[place][0]
        if text == "<":
            depth += 1
        elif text == ">":
            depth -= 1
            if not depth:
                return place
        elif text in OPEN:
            place = closing(tokens, place)
        elif text == ";":
            return None
        place += 1
    return None


class Scope:
    __slots__ = ("end", "kind", "name", "typedef", "constants")

    def __init__(self, end, kind, name, typedef=False):
        self.end, self.kind, self.name, self.typedef = end, kind, name, typedef
        self.constants = kind == "enum"  # come before the first semicolon


VALUE = Scope(0, "value", "")  # no scope: what is assigned


class Declared:
    """One file. `found` are (place, kind, name)."""

    def __init__(self, code, language, directives):
        self.code = taken(code, directives) if directives else code
        self.found = [(place, "macro", name) for place, name in macros(directives)]
        self.language = language
        self.in_c = language in ("C", "C++")
        self.types = {"Java": TYPES_JAVA, "C#": TYPES_CS}.get(language, TYPES_C)
        self.no_name = {"Java": NO_NAME_JAVA, "C#": NO_NAME_CS,
                        "C": NO_NAME_C}.get(language, NO_NAME_CPP)
        self.angles = language != "C"
        self.pairs = self.pair()

    def pair(self):
        """Where braces and parentheses end; a brace that does not: where a line begins with one."""
        pairs, opened = {}, []
        for match in BRACE.finditer(self.code):
            if match.group() == "{":
                opened.append(match.start())
            elif opened:
                pairs[opened.pop()] = match.start()
        ends = [match.end() - 1 for match in LINE_END.finditer(self.code)] if opened else []
        for place in opened:
            index = bisect_left(ends, place)
            pairs[place] = ends[index] if index < len(ends) else len(self.code)
        opened = []
        for match in ROUND.finditer(self.code):
            if match.group() == "(":
                opened.append(match.start())
            elif opened:
                pairs[opened.pop()] = match.start()
        return pairs

    def definitions(self):
        self.walk(0, len(self.code), [])
        return self.found

    def walk(self, place, until, scopes):
        """Over the heads from there on; `scopes` are those around, the innermost last."""
        code, start, tail, valued = self.code, place, False, False
        while True:
            match = BOUND.search(code, place, until)
            if not match:
                break
            at, sign = match.start(), match.group()
            place = at + 1
            if sign == "(":
                end = self.pairs.get(at, at)
                place = end + 1 if end - at < ROUND_MAX else place
            elif sign == ";":
                if not valued and not self.ended(start, at, scopes, tail):
                    continue
                start, tail, valued = place, False, False
            elif sign == "{" and valued:
                place = self.pairs[at] + 1
            elif sign == "{":
                place, scope = self.opened(start, at, scopes)
                if place < 0:  # the head goes on
                    place, valued = -place, scope is VALUE
                    continue
                if scope is not None:
                    scopes.append(scope)
                start, tail, valued = place, False, False
            elif sign == "}":
                scope = None
                while scopes and scopes[-1].end <= at:
                    scope = scopes.pop()
                start, valued = place, False
                tail = scope is not None and scope.typedef

    def head(self, start, end):
        """The parts, without attributes and templates, and what an = assigns."""
        items = items_of(self.code[start:end], start, self.angles)
        kept, index = [], 0
        while index < len(items):
            item = items[index]
            text = item.text
            if text in WITH_GROUP and items[index + 1:index + 2] and (
                    items[index + 1].text == "()"):
                if text in ("decltype", "typeof", "__typeof__"):
                    kept.append(Item("auto", item.place))
                index += 2
                continue
            if text[0] == "@" and self.language == "Java" and "interface" not in text:
                index += 2 if items[index + 1:index + 2] and items[index + 1].text == "()" else 1
                continue
            if text == "[]" and (not kept or kept[-1].text in "{};"):
                index += 1
                continue
            if text == ":" and kept and self.in_c and kept[-1].text in ACCESS:
                kept.clear()
            else:
                kept.append(item)
            index += 1
        return kept

    # -- at a brace --

    def opened(self, start, at, scopes):
        """(where to go on, the scope that it opens); below 0: the same head goes on there."""
        end = self.pairs[at]
        items = self.head(start, at)
        behind = end + 1
        if not items:
            return behind, None
        if items[0].text == "extern" and len(items) == 2 and items[1].text[0] == '"':
            return at + 1, Scope(end, "block", "")
        if place_of(items, "=") is not None:
            self.concept(items)
            self.arrow(items)
            return -behind, VALUE
        key = self.type_word(items)
        if key is not None:
            return self.type_opened(items, key, at, end)
        index = self.name_place(items)
        if not self.in_c and scopes and scopes[-1].constants:
            return behind, None
        if index is None:
            return self.nameless(items, at, end, scopes)
        if self.in_c and self.continued(items, index):
            return -behind, None
        self.add_function(items, index)
        if self.in_c:
            self.local_types(at, end)
        return behind, None

    def local_types(self, start, end):
        """Those that the body of a function defines for itself."""
        done = start
        for match in LOCAL.finditer(self.code, start, end):
            if match.start() < done:
                continue
            brace = match.end() - 1
            if self.code[brace] == ";":
                self.ended(match.start(), brace, [], False)
                continue
            _place, scope = self.opened(match.start(), brace, [])
            if scope is not None:
                done = self.code.find(";", scope.end) + 1 if scope.typedef else scope.end + 1
                self.walk(brace + 1, max(done, scope.end + 1), [scope])

    def nameless(self, items, at, end, scopes):
        if self.language == "Java" and scopes and scopes[-1].kind == "record" and (
                items[-1].text == scopes[-1].name):
            self.add(items[-1].place, "method", items[-1].text)
        if self.in_c and len(items) == 1 and items[0].text.isupper():
            return end + 1, None
        if self.in_c and items[-1].text == "()":  # the body of what a macro makes: TEST("name") {}
            self.local_types(at, end)
            return end + 1, None
        # A value in braces (int x{1};) goes on; a block (static {...}) is at its end.
        return (-(end + 1), None) if self.in_c else (end + 1, None)

    def type_word(self, items):
        """Where the word is that says what type this is; None: it is none."""
        found = None
        for index, item in enumerate(items):
            text = item.text
            if text.replace(" ", "") in self.types:
                if text == "record" and not (items[index + 1:] and items[index + 1].is_word()):
                    continue
                found = index
                if not self.in_c:
                    break
            elif text == ":" and found is not None:
                break
            elif text in (";", "operator", "where") or text == "()" and not self.in_c and (
                    found is None):
                return None
            elif text == "()" and found is not None and self.in_c:
                # Behind a name these are parameters, if they are not of a macro of attributes.
                before = items[index - 1]
                if not (before.is_word() and before.text.isupper() and index + 1 < len(items)):
                    return None
        return found

    def type_opened(self, items, key, at, end):
        kind = items[key].text.replace(" ", "").lstrip("@")
        if key and items[key - 1].text == "enum":  # enum class
            kind = "enum"
        names, index = [], key + 1
        while index < len(items):
            item = items[index]
            if item.text in (":", "final", "extends", "implements", "where", "permits"):
                if item.text != "final" or names:
                    break
            elif item.text in ("struct", "class") and kind in ("enum", "record"):
                pass
            elif item.is_word():
                if names and items[index - 1].text == "::":
                    names[-1] = Item(names[-1].text + "::" + item.text, item.place)
                elif names and items[index - 1].text == "." and kind == "namespace":
                    names[-1] = Item(names[-1].text + "." + item.text, names[-1].place)
                else:
                    names.append(item)
            index += 1
        typedef = any(each.text == "typedef" for each in items[:key])
        name = ""
        if names:
            good = names
            if self.in_c and len(names) > 1:
                good = [each for each in names if not each.text.isupper()] or names
            chosen = good[-1] if self.in_c else names[0]
            name = chosen.text
            self.add(chosen.place, kind, name)
        inside = end if kind == "enum" and self.in_c else at + 1
        return inside, Scope(end, kind, name, typedef)

    def name_place(self, items):
        """Which of the parts is the name of a function; None: there is none."""
        candidates = []
        for index in range(len(items) - 1):
            item, behind = items[index], items[index + 1].text
            if item.text == "operator":
                return index
            if item.text == behind == "()" and index and len(item.inner) == 1 and (
                    item.inner[0][0].isidentifier()) and not (
                        candidates and (len(candidates) > 1 or items[candidates[0]].text.isupper()
                                        or candidates[0] == 0)):
                return index  # (name)(...)
            if behind == "<>" and index + 2 < len(items) and items[index + 2].text == "()" or (
                    behind == "()"):
                if items[index].is_word() and items[index].text not in self.no_name:
                    if not self.in_c or takes_parameters(items[index + 1 + (behind == "<>")]):
                        candidates.append(index)
                elif items[index].text not in WITH_GROUP and behind == "()" and (
                        pointer_name(items[index + 1])):
                    if index + 2 < len(items) and items[index + 2].text == "()":
                        return index + 1
            if items[index].text == ":" and candidates:
                break
        if not candidates:
            return None
        if not self.in_c:
            return candidates[0]
        return next((index for index in candidates[:-1] if not self.is_macro(items, index)),
                    candidates[-1])

    @staticmethod
    def is_macro(items, index):
        """Whether what looks like a function stands for a type or an attribute."""
        before = [each for each in items[:index] if each.text not in QUALIFIERS]
        behind = items[index + 2] if index + 2 < len(items) else None
        if items[index].text.isupper() and behind is not None:
            return True
        return not before and behind is not None and behind.is_word() and (
            behind.text not in ("const", "noexcept", "override", "final", "volatile", "try"))

    def continued(self, items, index):
        """Whether a brace is a value of those that a constructor begins with: A() : b{1} {}."""
        if self.language != "C++" or items[index].text == "operator":
            return False
        colon = next((place for place in range(index + 1, len(items))
                      if items[place].text == ":"), None)
        return colon is not None and (items[-1].is_word() or items[-1].text == "<>")

    def add_function(self, items, index):
        item = items[index]
        if item.text == "()":
            name, place = pointer_name(item) or item.inner[0]
            self.add(place, "function", name)
            return
        name, place = item.text, item.place
        if name == "operator":
            signs = []
            for each in items[index + 1:]:
                if each.text == "()" and (signs or each is not items[index + 1] or
                                          items[index + 2:index + 3] and
                                          items[index + 2].text != "()"):
                    break
                signs.append(each.text)
            name = "operator" + (" " if signs and signs[0][0].isalpha() else "") + "".join(signs)
        before = index - 1
        if before >= 0 and items[before].text == "~":
            name, before = "~" + name, before - 1
        while before > 0 and items[before].text == "::":
            part = before - 1
            if items[part].text == "<>" and part > 0:
                inner = "".join(text for text, _place in items[part].inner)
                name, part = f"<{inner}>::{name}", part - 1
                name = items[part].text + name
            elif items[part].is_word():
                name = items[part].text + "::" + name
            else:
                break
            before = part - 1
        self.add(place, "function" if self.in_c else "method", name)

    def concept(self, items):
        for index, item in enumerate(items[:-1]):
            if item.text == "concept":
                self.add(items[index + 1].place, "concept", items[index + 1].text)

    # -- at a semicolon --

    def ended(self, start, at, scopes, tail):
        """Of what a semicolon ends. False: the head of an old function goes on."""
        code = self.code
        if tail:
            self.typedef_names(self.head(start, at), 0)
            return True
        if self.in_c:
            head = code[start:at]
            if "typedef" in head:
                items = self.head(start, at)
                key = place_of(items, "typedef")
                if key is not None:
                    self.typedef_names(items, key + 1)
            elif self.language == "C++" and ("using" in head or "concept" in head):
                items = self.head(start, at)
                if items and items[0].text == "using" and place_of(items, "=") == 2:
                    self.add(items[1].place, "alias", items[1].text)
                self.concept(items)
            elif self.language == "C" and not scopes and ")" in head:
                return not self.old_parameters(self.head(start, at))
            return True
        if not scopes or scopes[-1].kind == "namespace":
            items = self.head(start, at)
            if len(items) > 1 and items[0].text in ("package", "namespace"):
                self.add(items[1].place, items[0].text,
                         "".join(each.text for each in items[1:]))
            else:
                self.type_ended(items, at)
            return True
        if scopes[-1].constants:
            scopes[-1].constants = False
            return True
        if "(" in code[start:at]:
            items = self.head(start, at)
            if not self.arrow(items) and place_of(items, "=") is None:
                index = self.name_place(items)
                if not self.type_ended(items, at) and index is not None:
                    self.add_function(items, index)
        return True

    def type_ended(self, items, at):
        """Whether these are the head of a type without a body."""
        key = self.type_word(items)
        if key is not None:
            self.type_opened(items, key, at, at)
        return key is not None

    def arrow(self, items):
        """Of C#: a method that is no more than a value: int Size() => size;"""
        equal = place_of(items, "=")
        if self.language != "C#" or equal is None or items[equal + 1:] and (
                items[equal + 1].text != ">"):
            return False
        index = self.name_place(items[:equal])
        if index is not None:
            self.add_function(items, index)
        return True

    def old_parameters(self, items):
        """Whether an old function declares its parameters here: f(a, b) int a; char *b; {}."""
        for index, item in enumerate(items):
            if item.text == "()":
                if not item.inner or not index or not items[index - 1].is_word():
                    return False
                words = [text for text, _place in item.inner]
                names = set(words[::2])
                if set(words[1::2]) - {","} or not all(map(str.isidentifier, names)):
                    return False
                behind = items[index + 1:]
                last = [each.text for each in behind if each.is_word()][-1:]
                return len(behind) > 1 and bool(last) and last[0] in names
        return False

    def typedef_names(self, items, begin):
        """Each name before a comma, and at the end."""
        name = place = None
        index = begin
        while index < len(items):
            item, behind = items[index], items[index + 1:index + 2]
            if item.text == ",":
                self.add_typedef(place, name)
                name = None
            elif item.is_word():
                name, place = item.text, item.place
            elif item.text == "()":
                if behind and behind[0].text == "()":  # (*name)(...), (name)(...)
                    words = [each for each in item.inner if each[0].isidentifier()]
                    if words:
                        pointed = pointer_name(item) or words[-1]
                        name, place = pointed[0], pointed[1]
                    index += 1
                elif not behind or not behind[0].is_word() and behind[0].text not in "*,":
                    break
            index += 1
        self.add_typedef(place, name)

    def add_typedef(self, place, name):
        if name and name not in self.no_name:
            self.add(place, "typedef", name)

    def add(self, place, kind, name):
        self.found.append((place, kind, name))


def place_of(items, text):
    """Where that part is, outside of an operator's name."""
    for index, item in enumerate(items):
        if item.text == "operator":
            return None
        if item.text == text:
            return index
    return None


def pointer_name(item):
    """(name, place) in (*name), (CALLED *name) and (*name(...)); None."""
    starred = False
    for text, place in item.inner:
        if text in "*^&":
            starred = True
        elif text in "()[],":
            break
        elif starred and text.isidentifier() and text not in QUALIFIERS:
            return text, place
    return None


def takes_parameters(item):
    """Whether these parentheses may hold parameters: letters in quotes and bare numbers do not."""
    texts = [text for text, _place in item.inner]
    if any(text[0] == '"' for text in texts):
        return "=" in texts
    return not texts or any(text[0].isalpha() or text[0] in "_$." for text in texts)


def declared(code, language, directives):
    """(place, kind, name) of each definition, in no order."""
    return Declared(code, language, directives).definitions()

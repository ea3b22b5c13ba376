"""A block's text as models write it, made into the Python that it means.

Every function takes text and gives text of as many lines, so the lines of a
traceback stay those that the model wrote. A note says what was left out.
"""

import html
import re
import textwrap

# A fence's tag that was written into the block.
TAG = re.compile(r"(?:python|py|ipython)[\d.]*|python-repl|pycon|repl|tool_code|code", re.I)
PROMPT = re.compile(r"[ \t]*>>>(?: |$)?(.*)")
CONTINUED = re.compile(r"[ \t]*\.\.\.(?: |$)(.*)")
FENCE = re.compile(r"(?:```+|~~~+)[ \t]*[\w.+-]*")  # of a line without the spaces around it
COMMAND = re.compile(r"([ \t]*)(?:!+|%{1,2})([A-Za-z_]\w*)\b[ \t]*(.*)")
SHELL = re.compile(r"(?:[\w, \t]+=[ \t]*)?![ \t]*[\w./~$]")  # likewise
TYPOGRAPHIC = "\uff02\uff07\u201c\u201d\u201e\u2018\u2019\u201a\u00ab\u00bb\u2033\u2032"

# Strings and comments, in which every sign stands for itself.
QUOTED = re.compile(
    r"""(?s)('{3}|"{3})(?:\\.|(?!\1).)*(?:\1|\Z)|(['"])(?:\\.|(?!\2)[^\\\n])*\2?|\#[^\n]*"""
)
ENTITY = re.compile(r"&(?:[gl]t|amp|quot|apos|#39|#x27);")
# Signs that look like Python's, as typography, input methods and copied pages have them.
SIGNS = {
    **dict.fromkeys([0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000], " "),
    **dict.fromkeys([0xAD, 0x200B, 0x200C, 0x200D, 0x200E, 0x200F, 0x2060, 0xFEFF], ""),
    # Not full-width quotes: what stands between them is text.
    **{wide: chr(wide - 0xFEE0) for wide in range(0xFF01, 0xFF5F) if wide not in (0xFF02, 0xFF07)},
    **dict.fromkeys([0x2010, 0x2011, 0x2012, 0x2013, 0x2212], "-"),
    0x3001: ",", 0x3002: ".", 0x3010: "[", 0x3011: "]", 0x2264: "<=", 0x2265: ">=", 0x2260: "!=",
    0xD7: "*", 0xF7: "/", 0x2217: "*",
}

# Of a line that is not indented: it goes on with the statement before it, ...
GOES_ON = re.compile(r"[)\]}#]|(?:else|elif|except|finally)\b")
# ... or begins one that has no value.
NO_VALUE = re.compile(r"(?:for|while|if|with|def|class|try|import|from|del|pass|raise|assert)\b"
                      r"|(?!lambda\b)(?:[\w., ]|\[(?:[\w., ]|'[^'\\]*'|\"[^\"\\]*\")*\])+"
                      r"(?:[-+*/%&|^@]|//|>>|<<|\*\*)?=(?!=)")

TIMERS = frozenset(("time", "timeit"))  # their line is a statement
# Of a notebook, and nothing is lost without them.
SETTINGS = frozenset("""
    alias autoreload capture cd conda config debug env history load_ext ls lsmagic mamba
    matplotlib mkdir pdb pip precision prun pwd pylab reload_ext reset rehashx set_env
    store uv who who_ls whos xdel xmode
    """.split())
INSTALLERS = re.compile(r"[ \t]*[!%]+[ \t]*(?:python[\d.]* -m )?(?:pip|conda|mamba|uv|apt)\b")
NOTES_MAX = 10
SHOWN_MAX = 60  # characters of a line in a note


def lines_of(text):
    """As the parser counts them."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def dedent(text):
    """A block that is indented as a whole, as in a list of a model's answer, moves left."""
    if text and not text[0].isspace():
        return text
    first = next((line for line in text.splitlines() if line.strip()), "")
    return textwrap.dedent(text) if first[:1] in (" ", "\t") else text


def parts_of(text):
    """(all before its last statement, that statement, whether it may be a value), or None.

    A look at the lines, which strings and brackets can deceive: it is so if both parts compile
    by themselves. None where it takes a parser.
    """
    if "\r" in text or ";" in text:
        return None
    end = len(text)
    while end >= 0:
        start = text.rfind("\n", 0, end) + 1
        line = text[start:end]
        if line.strip() and not line[0].isspace() and not GOES_ON.match(line):
            return text[:start], text[start:], not NO_VALUE.match(line)
        end = start - 1
    return None


def without_tag(text, exists):
    """Without a first line that is a fence's tag; exists(name): where a variable is meant."""
    first, newline, rest = text.partition("\n")
    word = first.strip()
    if not newline or not rest.strip() or not TAG.fullmatch(word) or exists(word):
        return text
    return newline + rest


def without_entities(text):
    """A text that was escaped for HTML, as it was before; None where it was not, by its code."""
    if ENTITY.search(text) and ENTITY.search(QUOTED.sub("", text)):
        return html.unescape(text)
    return None


def with_plain_signs(text):
    """(text, note) with Python's signs for others that look like them, outside of strings.

    None if there are no such signs.
    """
    if text.isascii():
        return None
    pieces, place = [], 0
    for quoted in QUOTED.finditer(text):
        pieces += (text[place:quoted.start()], True), (quoted.group(), False)
        place = quoted.end()
    pieces.append((text[place:], True))
    code = {ord(sign) for piece, is_code in pieces if is_code for sign in piece}
    signs = sorted(code & SIGNS.keys())
    if not signs:
        return None
    plain = "".join(piece.translate(SIGNS) if is_code else piece for piece, is_code in pieces)
    shown = ", ".join(f"U+{sign:04X}" for sign in signs)
    return plain, f"signs that are not Python's were read as those that they look like: {shown}"


def without_prompts(text):
    """Of a dialogue with >>> its code, and how many lines of output it left out; or None.

    It is one only where nothing but comments stands before the first prompt:
    else what has no prompt may be code.
    """
    lines = lines_of(text)
    first = next((line for line in lines if line.strip() and line.lstrip()[0] != "#"), "")
    if not PROMPT.match(first):
        return None
    code, outputs, open_ = [], 0, False
    for line in lines:
        found = PROMPT.match(line) or open_ and CONTINUED.match(line)
        open_ = bool(found)
        if found:
            code.append(found.group(1))
        else:
            code.append(line.strip() if line.lstrip()[:1] == "#" else "")
            outputs += bool(line.strip()) and line.lstrip()[0] != "#"
    return "\n".join(code), outputs


def without_fences(text):
    """Without a fence as its first or last line; None if there is none."""
    lines = lines_of(text)
    full = [number for number, line in enumerate(lines) if line.strip()]
    ends = {full[0], full[-1]} if full else ()
    found = [number for number in ends if FENCE.fullmatch(lines[number].strip())]
    for number in found:
        lines[number] = ""
    return "\n".join(lines) if found else None


def without_command(text, number):
    """(text, note) without the command of a notebook in this line; None if it is none.

    None too where more hangs on it than the line: the output that it would
    give is assigned, or all the cell would be another language.
    """
    lines = lines_of(text)
    line = lines[number - 1] if 0 < number <= len(lines) else ""
    found = COMMAND.fullmatch(line)
    if not found:
        return None
    indent, name, rest = found.groups()
    magic = line.lstrip()[0] == "%"
    if magic and name in TIMERS:
        rest = re.sub(r"^(?:-\w+(?: \d+)? )+", "", rest)
        cell = line.lstrip().startswith("%%")
        lines[number - 1] = indent + (rest if rest and not cell else "pass")
        return "\n".join(lines), None
    if magic and name not in SETTINGS:
        return None
    lines[number - 1] = indent + "pass"
    shown = line.strip()
    shown = shown if len(shown) <= SHOWN_MAX else shown[:SHOWN_MAX] + "..."
    return "\n".join(lines), f"line {number}, {shown!r}, was left out: {reason(line)}"


def reason(line):
    if INSTALLERS.match(line):
        return "nothing can be installed here; import what there is"
    if line.lstrip()[:1] == "%":
        return "this is a plain Python session without notebook commands"
    return "there is no shell and there are no files here; what you were given is in `context`"


def advice(text, error):
    """Advice on an error of syntax, one sentence; None where its own words say it."""
    lines, message = lines_of(text), str(error.msg or "")
    number = error.lineno or 0
    line = lines[number - 1] if 0 < number <= len(lines) else ""
    if isinstance(error, TabError):
        return "tabs and spaces are mixed: indent with spaces only, four a level"
    if "triple-quoted" in message:
        # Before 3.10 the line is that of the end.
        where = f" that begins in line {number}" if "unterminated" in message else ""
        return (f"the text in triple quotes{where} has no end: the block was cut, or it holds "
                "triple quotes itself. Do not paste long texts: what you were given is in "
                "`context` already")
    if PROMPT.match(line):
        return "write the code alone, without the prompts >>> and without outputs"
    if FENCE.fullmatch(line.strip()):
        return (f"line {number} is a fence: a block holds code only, and another one begins in "
                "fences of its own")
    found = COMMAND.fullmatch(line)
    if SHELL.match(line.strip()) or found and line.lstrip()[0] in "!%":
        what = "no other language" if line.lstrip().startswith("%%") else reason(line)
        return f"line {number} is a command of a notebook, not Python: {what}"
    if any(quote in line for quote in TYPOGRAPHIC):
        return f"line {number} has typographic quotes: write \" or '"
    if "was never closed" in message or "EOF" in message:
        return "the block ends before this is complete: it was cut; write it again, shorter"
    if "'return' outside function" in message:
        return "a block is no function: FINAL() gives an answer, `if` and `else` leave code out"
    if re.search(r"(?:'await'|asynchronous).*outside|outside async", message):
        return ("make the function `async def`, or leave `await` out: llm_query() and the others "
                "return their answers to plain code too")
    return None

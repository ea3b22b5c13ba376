"""The declarations of the public headers, as these tests read them."""

import os
import pathlib
import re

ROOT = pathlib.Path(os.environ["RLMD_SOURCE_ROOT"])
BUILD = pathlib.Path(os.environ["RLMD_BUILD_ROOT"])
HEADERS = sorted((ROOT / "include/rlmd").glob("*.h"))
LIBRARY = BUILD / "librlmd.so"


def without_comments(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)


def declarations(header):
    """Each declaration of file scope, on one line; directives and the bodies of types left out."""
    text = re.sub(r"^\s*#(?:.*\\\n)*.*$", "", without_comments(header.read_text()), flags=re.MULTILINE)
    text = re.sub(r'extern "C" \{', "", text)
    depth, line = 0, ""
    for character in text:
        depth += (character == "{") - (character == "}" and depth > 0)
        if character == ";" and not depth:
            yield " ".join(line.split())
            line = ""
        elif not depth and character not in "{}":
            line += character


def functions(header):
    """{name: its declaration} of the functions, not of types of functions."""
    found = {}
    for declaration in declarations(header):
        match = re.search(r"\b(rlmd_\w+) ?\(", declaration)
        if match and not declaration.startswith("typedef"):
            found[match.group(1)] = declaration
    return found


def all_functions():
    return {name: declaration for header in HEADERS
            for name, declaration in functions(header).items()}

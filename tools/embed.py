#!/usr/bin/env python3
"""Writes the prompt profiles into a C source: embed.py OUTPUT.c PROFILE/NAME.txt ..."""

import pathlib
import sys


def array(text):
    """The bytes of a text, 16 a line: a string literal may be no longer than 4,095 characters."""
    numbers = [str(byte) for byte in text.encode("utf-8")] + ["0"]
    rows = [", ".join(numbers[i : i + 16]) for i in range(0, len(numbers), 16)]
    return ",\n".join("\t" + row for row in rows)


def main(output, *files):
    profiles = {}
    for path in map(pathlib.Path, files):
        profiles.setdefault(path.parent.name, {})[path.stem] = path.read_text(encoding="utf-8")
    arrays, sets = [], []
    for profile, texts in profiles.items():
        for name, text in texts.items():
            arrays.append("static const char %s_%s[] = {\n%s};\n" % (profile, name, array(text)))
        rows = []
        for name in {**profiles["default"], **texts}:
            origin = "%s_%s" % (profile if name in texts else "default", name)
            rows.append("\t\t[PROMPT_%s] = {%s, sizeof %s - 1},\n" % (name, origin, origin))
        sets.append('\t{"%s", {\n%s\t}},\n' % (profile, "".join(rows)))
    pathlib.Path(output).write_text(
        '#include "prompt/prompt_set.h"\n\n%s\n'
        "extern const struct prompt_set prompt_shipped[];\n"
        "const struct prompt_set prompt_shipped[] = {\n%s\t{0},\n};\n"
        % ("\n".join(arrays), "".join(sets)),
        encoding="utf-8",
    )


main(*sys.argv[1:])

#!/usr/bin/env python3
"""Writes the prompt templates into a C source: embed.py OUTPUT.c FILE.txt ..."""

import pathlib
import sys


def c_string(text):
    lines = text.splitlines(keepends=True) or [""]
    escaped = (
        line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") for line in lines
    )
    return "\n".join('\t\t"%s"' % line for line in escaped)


def main(output, *files):
    rows = []
    for name in sorted(files):
        path = pathlib.Path(name)
        rows.append('\t{"%s",\n%s},\n' % (path.stem, c_string(path.read_text(encoding="utf-8"))))
    pathlib.Path(output).write_text(
        "struct prompt_file {\n\tconst char *name, *text;\n};\n\n"
        "extern const struct prompt_file prompt_files[];\n"
        "const struct prompt_file prompt_files[] = {\n%s\t{0},\n};\n" % "".join(rows),
        encoding="utf-8",
    )


main(*sys.argv[1:])

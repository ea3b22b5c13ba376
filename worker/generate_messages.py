#!/usr/bin/env python3
"""Makes worker/messages.py out of src/wire/messages.def, of bounds.h beside it, and of rlmd/plan.h.

So both ends of the pipe check against one table. Whatever this program does
not understand in the table fails the build.

usage: generate_messages.py messages.def bounds.h plan.h OUTPUT
"""

import re
import sys

STRING = r'"(?:[^"\\]|\\.)*"'
MESSAGE = re.compile(r'MESSAGE\((\w+),\s*"(\w+)",\s*(WORKER|SUPERVISOR),[^"]*,\s*%s\)' % STRING)
FIELD = re.compile(r"FIELD\((\w+),\s*(\w+),\s*(\w+),\s*\w+,\s*%s\)" % STRING)
CONSTANT = re.compile(
    r"^(?:\s+([A-Z_]+) = (\d+)(?: << (\d+))?,"
    r"|#define ([A-Z_]+) \(?INT64_C\((\d+)\)(?: << (\d+)\))?)",
    re.MULTILINE,
)

TYPES = {
    "BOOLEAN", "INTEGER", "INTEGER_NULL", "INTEGERS", "STRING", "STRING_NULL", "STRINGS",
    "STRINGS_NULL", "TEXT", "TEXT_NULL", "TEXTS",
}
CONSTANTS = (
    "FRAME_MAX", "ATTACHMENTS_MAX", "ATTACHMENT_WEIGHT", "ATTACHED_MAX", "TEXT_INLINE_MAX",
    "ANSWER_MAX", "PROMPTS_MAX", "ANSWER_TOKENS_MAX", "TEMPERATURE_MAX", "STRING_MAX",
    "ELEMENTS_MAX", "INTEGER_MAX",
    "ARGUMENTS_MAX", "ARGUMENTS_DEPTH", "ARGUMENTS_VALUES",
)
LIMITS_OF_PLANS = (
    "RLMD_PLAN_ID_MAX", "RLMD_PLAN_PARALLEL_MAX", "RLMD_PLAN_PRIORITY_MAX", "RLMD_PLAN_TIMEOUT_MAX",
)


def read_messages(table):
    """{wire name: (sender, {key: type})}, in the table's order."""
    table = re.sub(r"/\*.*?\*/", "", table, flags=re.DOTALL)
    messages, current, fields = {}, None, None
    for line in filter(None, map(str.strip, table.splitlines())):
        message, field = MESSAGE.fullmatch(line), FIELD.fullmatch(line)
        if message:
            current, wire, sender = message.groups()
            fields = {}
            messages[wire] = (sender.lower(), fields)
        elif field and field.group(1) == current and field.group(3) in TYPES:
            fields[field.group(2)] = field.group(3)
        else:
            sys.exit("generate_messages.py: not understood: " + line)
    return messages


def read_constants(header, names):
    found = {}
    for match in CONSTANT.finditer(header):
        name, value, shift = match.groups()[:3] if match.group(1) else match.groups()[3:]
        found[name] = int(value) << int(shift or 0)
    missing = [name for name in names if name not in found]
    if missing:
        sys.exit("generate_messages.py: not found: " + ", ".join(missing))
    return {name: found[name] for name in names}


def main(table, bounds, plan, output):
    with open(table, encoding="utf-8") as file:
        messages = read_messages(file.read())
    with open(bounds, encoding="utf-8") as file:
        constants = read_constants(file.read(), CONSTANTS)
    with open(plan, encoding="utf-8") as file:
        limits = read_constants(file.read(), LIMITS_OF_PLANS)
    constants.update((name[len("RLMD_"):], value) for name, value in limits.items())
    with open(output, "w", encoding="utf-8") as file:
        file.write('"""Made from messages.def, bounds.h and plan.h: generate_messages.py."""\n\n')
        for name, value in constants.items():
            file.write(f"{name} = {value}\n")
        file.write("\n# wire name: (sender, {key: type})\nMESSAGES = {\n")
        for wire, (sender, fields) in messages.items():
            file.write(f'    "{wire}": ("{sender}", {fields!r}),\n')
        file.write("}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

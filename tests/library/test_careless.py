"""librlmd, as a careless program calls it: nothing is there, or it cannot be."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from public import BUILD, HEADERS, ROOT, all_functions, without_comments

HEAD = """
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#define TRY(...) do { \\
    pid_t child = fork(); int status = -1; \\
    if (!child) { alarm(60); __VA_ARGS__; _exit(0); } \\
    waitpid(child, &status, 0); \\
    if (status) printf("%s: status %x\\n", #__VA_ARGS__, (unsigned)status); \\
    count++; \\
} while (0)
"""

# Plans that no file can describe.
PLANS = """
static int plan_of(struct rlmd_operation operation, int strategy)
{
    struct rlmd_plan_description plan = RLMD_PLAN_DESCRIPTION_INIT;
    operation.size = sizeof operation;
    plan.operations = &operation;
    plan.count = 1;
    plan.strategy = strategy;
    struct rlmd_error err = {0};
    return rlmd_plan_new(&plan, &err) || err.kind != RLMD_ERROR_INPUT;
}

static const char *const nameless[] = {NULL};
#define NO_PLAN(strategy, ...) TRY(_exit(plan_of((struct rlmd_operation){__VA_ARGS__}, strategy)))
"""
NO_PLANS = """
NO_PLAN(12345, .id = NULL);
NO_PLAN(RLMD_PLAN_PARALLEL, .type = (enum rlmd_operation_type)12345);
NO_PLAN(RLMD_PLAN_PARALLEL, .type = (enum rlmd_operation_type)-1);
NO_PLAN(RLMD_PLAN_PARALLEL, .mode = (enum rlmd_operation_mode)12345);
NO_PLAN(RLMD_PLAN_PARALLEL, .input = {NULL, 7});
NO_PLAN(RLMD_PLAN_PARALLEL, .depends_count = 1);
NO_PLAN(RLMD_PLAN_PARALLEL, .depends_on = nameless, .depends_count = 1);
"""


def parameters(declaration, name):
    """Each by itself; those of a function's own parameters stay together."""
    text = declaration[declaration.index(name) + len(name):].strip()
    depth, found = 0, [""]
    for character in text[1:text.rindex(")")]:
        depth += (character == "(") - (character == ")")
        if character == "," and not depth:
            found.append("")
        else:
            found[-1] += character
    return [one.strip() for one in found if one.strip() != "void"]


def structs():
    """{its name: whether it begins with its size} of those that a program can make."""
    text = "".join(without_comments(header.read_text()) for header in HEADERS)
    return {name: first == "size_t size"
            for name, first in re.findall(r"(struct rlmd_\w+) \{\s*([^;]+);", text)}


def value(parameter, number):
    kind = re.match(r"(?:const )?((?:struct|enum) \w+)", parameter)
    if "*" in parameter or re.match(r"\w+_fn\b", parameter):
        return "NULL"
    if kind and kind.group(1).startswith("struct"):
        return f"({kind.group(1)}){{0}}" if number else f"({kind.group(1)}){{NULL, 7}}"
    return f"({kind.group(1)})({number})" if kind else f"{number}"


def calls(name, declaration):
    """Statements that call it with nothing, with absurd numbers, and with structs of nothing."""
    given = parameters(declaration, name)
    for number in ("0", "-1", "12345"):
        yield f"{name}({', '.join(value(one, number) for one in given)})"
    if any(re.match(r"struct rlmd_text\b[^*]*$", one) for one in given):
        texts = [value(one, None if "rlmd_text" in one else "0") for one in given]
        yield f"{name}({', '.join(texts)})"
    for place, parameter in enumerate(given):
        kind = re.match(r"(?:const )?(struct rlmd_\w+) \*(?!\*|const)", parameter)
        if not kind or kind.group(1) not in structs():
            continue
        arguments = [value(one, "0") for one in given]
        arguments[place] = "&it"
        sizes = ("0", "4", "sizeof it", "SIZE_MAX") if structs()[kind.group(1)] else (None,)
        for size in sizes:
            told = f"it.size = {size}; " if size else ""
            zeroed = f"{kind.group(1)} it; memset(&it, 0, sizeof it)"
            yield f"{zeroed}; {told}{name}({', '.join(arguments)})"


class CarelessTest(unittest.TestCase):
    def test_nothing_of_it_ends_the_process(self):
        """Each function, with NULL, absurd numbers, structs without a size or too large."""
        lines = [line for name, declaration in sorted(all_functions().items())
                 for line in calls(name, declaration)]
        self.assertGreater(len(lines), 3 * len(all_functions()))
        text = "".join(f"#include <rlmd/{header.name}>\n" for header in HEADERS) + HEAD + PLANS
        text += "int main(void)\n{\nint count = 0;\n" + "".join(f"TRY({line});\n" for line in lines)
        text += NO_PLANS + 'printf("%d\\n", count);\n}\n'
        sanitized = b"__asan_init" in (BUILD / "librlmd.so").read_bytes()
        with tempfile.TemporaryDirectory() as room:
            program = pathlib.Path(room) / "careless"
            done = subprocess.run(
                [os.environ.get("CC", "cc"), "-w",
                 *(["-fsanitize=address,undefined"] if sanitized else []), f"-I{ROOT / 'include'}", "-x", "c", "-", "-o", program,
                 f"-L{BUILD}", "-lrlmd", f"-Wl,-rpath,{BUILD}", "-Wl,--allow-shlib-undefined"],
                input=text, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            done = subprocess.run([program], capture_output=True, text=True)
        self.assertEqual(done.stdout, f"{len(lines) + 7}\n", done.stderr[-2000:])


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""counts.py BUILD [--update] - instructions of the operations of bench/counts.def; their limits.

Runs BUILD/bench/counts under callgrind, a few seconds. --update writes what was counted into the
table. Exit status: 0 all is within its limits, 1 it is not, 77 where nothing can be compared.
"""
import os
import re
import subprocess
import sys
import tempfile

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "counts.def")
ROW = re.compile(r'(?m)^COUNT\((\w+),( +)(\d+),( +)(\d+), "(.*)"\)$')
BUILD = "x86_64 gcc-12 optimized"  # what the table's figures belong to
TIMES = 100
SKIP = 77

# The C library has its functions in versions for several processors: the same are taken on each.
# And meson's tests have it fill memory that is taken and given back.
ENVIRONMENT = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-ERMS,-FSRM", "MALLOC_PERTURB_": "0"}


class CannotCount(Exception):
    """Why nothing can be compared here."""


def load_table():
    """name -> (instructions, growth in per cent, meaning)."""
    with open(TABLE, encoding="utf-8") as file:
        return {row[1]: (int(row[3]), int(row[5]), row[6]) for row in ROW.finditer(file.read())}


def inclusive(profile):
    """function -> instructions with all that it calls, of those that begin with count_."""
    names, counts, name, after_calls = {}, {}, None, False
    for line in profile:
        found = re.match(r"c?fn=\((\d+)\)(?: (.*))?", line)
        if found:
            if found[2]:
                names[found[1]] = found[2].strip()
            if line.startswith("fn="):
                name = names[found[1]]
        elif name and name.startswith("count_") and re.match(r"[+*\d-]", line):
            counts[name] = counts.get(name, 0) + int(line.split()[-1])
    return counts


def count(build, planted=None):
    """name -> instructions of one operation."""
    program = os.path.join(build, "bench/counts")
    told = subprocess.run([program, "--build"], check=True, stdout=subprocess.PIPE, text=True)
    if told.stdout.strip() != BUILD:
        raise CannotCount(f"the table is of a build by `{BUILD}`, this is {told.stdout.strip()}")
    with tempfile.TemporaryDirectory(prefix="rlmd-counts-") as directory:
        out = os.path.join(directory, "out")
        try:
            subprocess.run(["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={out}",
                            program, str(TIMES), *([planted] if planted else [])],
                           check=True, env={**os.environ, **ENVIRONMENT})
        except FileNotFoundError as error:
            raise CannotCount("valgrind is not installed; `tools/setup --all` does that") from error
        with open(out, encoding="utf-8") as file:
            counts = inclusive(file)
    return {name: counts["count_" + name] // TIMES for name in load_table()}


def complaints(counts, table):
    """Rows out of their limits, a line each."""
    for name, (allowed, growth, meaning) in table.items():
        change = counts[name] * 100 / allowed - 100
        if change > growth:
            yield (f"{name}: {counts[name]} instructions, {allowed} were allowed: {change:+.0f} %, "
                   f"at most {growth} % more may be ({meaning}). If it is worth that, "
                   "`tools/bench --counts --update` allows it")
        elif change < -growth:
            yield (f"{name}: {counts[name]} instructions, {allowed} were allowed: {change:+.0f} %. "
                   "Keep that with `tools/bench --counts --update`")


def update(counts):
    with open(TABLE, encoding="utf-8") as file:
        text = file.read()

    def row(found):
        width = len(found[2]) + len(found[3])
        return f'COUNT({found[1]},{counts[found[1]]:>{width}},{found[4]}{found[5]}, "{found[6]}")'

    with open(TABLE, "w", encoding="utf-8") as file:
        file.write(ROW.sub(row, text))


def main(build, option=None):
    if option not in (None, "--update"):
        sys.exit(__doc__)
    try:
        counts = count(build)
    except CannotCount as why:
        print(f"counts: nothing is compared: {why}", file=sys.stderr)
        return SKIP
    if option:
        update(counts)
    table = load_table()
    for name, (allowed, growth, meaning) in table.items():
        print(f"{name:<14}{counts[name]:>10}{counts[name] / allowed * 100 - 100:>+7.1f} %"
              f"   (at most {growth} %)  {meaning}")
    wrong = list(complaints(counts, table))
    for line in wrong:
        print(f"counts: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

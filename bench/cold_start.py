#!/usr/bin/env python3
"""From nothing to an answer: the program as a shell starts it, beside a python3 of as many imports.

usage: cold_start.py VERDICT RLMD ANSWERS PYTHON WORKER_DIRECTORY SAMPLES

A run of one turn, whose block asks eight questions, over HTTP on loopback, until the program has
ended. The floor is `python3 -I -c` with the modules that workers find loaded. Bytecode has been
kept by a start before, as Python's own has. What a start takes that keeps none is said beside it.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import measure

TARGET = 1.3
WARMING_UP = 3


def imports(worker_directory):
    """The modules, as a program."""
    text = pathlib.Path(worker_directory, "library.py").read_text(encoding="ascii")
    names = re.search(r'^USUAL = """(.*?)"""', text, re.DOTALL | re.MULTILINE).group(1)
    return "import " + ", ".join(names.split())


def timed(command, environment):
    def run():
        subprocess.run(command, env=environment, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, check=True)

    return measure.milliseconds(run)


def main(verdict, program, server, python, worker_directory, samples):
    with tempfile.TemporaryDirectory() as room, \
            subprocess.Popen([server, "0"], stdout=subprocess.PIPE, text=True) as answers:
        try:
            url = f"http://127.0.0.1:{int(answers.stdout.readline())}/v1"
            ours = [program, "exec", "-q", "-p", "openai", "-m", "bench", "--base-url", url,
                    "--python", python, "turns=1"]
            floor = [python, "-I", "-c", imports(worker_directory)]
            environment = {"PATH": os.environ["PATH"], "HOME": room, "OPENAI_API_KEY": "none"}
            kept = {**environment, "XDG_CACHE_HOME": room}
            none = {**environment, "XDG_CACHE_HOME": os.devnull}
            row = measure.Row("3", "exec, one turn", "python3 -I -c, the same imports")
            without = []
            for sample in range(-WARMING_UP, int(samples)):
                figures = timed(ours, kept), timed(floor, environment), timed(ours, none)
                if sample >= 0:
                    row.add(*figures[:2])
                    without.append(figures[2])
            without.sort()
            print(f"without a cache: {without[len(without) // 2]:.1f} ms")
            return row.judge(verdict, at_most=TARGET)
        finally:
            answers.kill()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""bench/in_process.py - runs blocks in this very process, as a REPL without any walls does.

Each line of standard input is one, its line feeds written as \\n: it is compiled and run with its
output caught. Answers how many microseconds that took.
"""
import contextlib
import io
import sys
import time

names = {}
for line in sys.stdin:
    code = line.replace("\\n", "\n")
    start = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        exec(compile(code, "<block>", "exec"), names)
    print((time.perf_counter() - start) * 1e6, flush=True)

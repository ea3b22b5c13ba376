"""bench/forker.py WORKER_DIR LIBRARY - forks at each byte on standard input.

A floor for a worker's start: an interpreter with the template's things loaded, whose children
say one byte and end. `p` forks as Python does (os.fork, os.write), `b` without running any
Python afterwards. Answers `!` from the child, then `.` when it is reaped.
"""
import ctypes
import importlib
import os
import sys


def load(worker_dir, library_path):
    sys.path.insert(0, worker_dir)
    import _rlmd
    import template

    library = template.load_library(worker_dir, _rlmd)
    importlib.import_module("repl")
    bare_fork = ctypes.PyDLL(library_path).bare_fork
    template.settle(library, [])
    return bare_fork


def main():
    bare_fork = load(*sys.argv[1:])
    os.write(1, b".")
    while True:
        how = os.read(0, 1)
        if not how:
            return
        if how == b"b":
            pid = bare_fork(1)
        else:
            pid = os.fork()
            if pid == 0:
                os.write(1, b"!")
                os._exit(0)
        os.waitpid(pid, 0)
        os.write(1, b".")


main()

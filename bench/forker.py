"""bench/forker.py WORKER_DIR [LIBRARY] - forks at each byte on standard input.

A floor for a worker's start: an interpreter with the template's things loaded, whose children
say one byte and end. `p` forks as Python does (os.fork, os.write), `b` without running any
Python afterwards. Answers `!` from the child, then `.` when it is reaped. Without LIBRARY it only
imports the same modules, as a program would that is started for each run.
"""
import contextlib
import ctypes
import importlib
import os
import sys


def load(worker_dir, library_path=None):
    sys.path.insert(0, worker_dir)
    import _rlmd
    import template
    from fork_hooks import ForkHooks
    from library import USUAL

    if library_path is None:
        for name in [*USUAL, "repl"]:
            with contextlib.suppress(ImportError):  # what this Python was built without
                importlib.import_module(name)
        return None
    os.dup2(os.memfd_create("modules", os.MFD_ALLOW_SEALING), template.STORE)
    library, _ = template.open_library(worker_dir, False)
    template.load_extensions(library, _rlmd)
    repl = importlib.import_module("repl")
    bare_fork = ctypes.PyDLL(library_path).bare_fork
    template.settle(library, [], _rlmd)
    for _ in template.load_rest(USUAL, repl, _rlmd, ForkHooks()):
        pass
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

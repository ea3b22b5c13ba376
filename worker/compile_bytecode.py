"""Compiles the worker's modules when rlmd is built or installed.

compile_bytecode.py STAMP MODULE.py ...    in the build tree; touches STAMP
compile_bytecode.py --installed DIRECTORY  where they are installed, below $DESTDIR

The bytecode lies beside each module, where library.py looks for it: for the Python that made it.
For another one, and where a module was changed since, modules are compiled at each start.
"""

import os
import pathlib
import py_compile
import sys


def compile_module(file, path):
    """path: what tracebacks know it by; absolute, as if it were imported."""
    py_compile.compile(file, dfile=str(path), doraise=True)


def main(stamp, *modules):
    if stamp == "--installed":
        directory = pathlib.Path(modules[0])
        root = os.environ.get("DESTDIR", "")
        for file in pathlib.Path(root + str(directory)).glob("*.py"):
            compile_module(file, directory / file.name)
        return
    for module in modules:
        compile_module(module, os.path.abspath(module))
    pathlib.Path(stamp).touch()


if __name__ == "__main__":
    main(*sys.argv[1:])

"""The template: a Python that has loaded all it can, and forks workers on request.

Started by the supervisor (src/sandbox/template.c) with the modules to preload
as arguments and the control socket as descriptor 3; says hello, loads,
walls itself off, says ready, serves (src/sandbox/launch.h). It runs no foreign
code and stays of one thread. What runs in a worker is repl.main().
"""

import os
import sys

CONTROL = 3
OLDEST = (3, 8)


def end(text, kind):
    """Python 2 and the first of 3 must get this far to be told that they are too old."""
    text = "".join(c if " " <= c < "\x7f" and c not in '"\\' else " " for c in text[:1000])
    message = '{"error": "%s", "kind": "%s"}' % (text, kind)
    os.write(CONTROL, message.encode("ascii"))
    os._exit(1)


def describe(error):
    return "%s: %s" % (type(error).__name__, error)


def greet():
    version = ".".join(str(part) for part in sys.version_info[:3])
    if sys.version_info < OLDEST:
        end("Python %s is too old: 3.8 or later is needed" % version, "usage")
    os.write(CONTROL, ('{"hello": "%s"}' % version).encode("ascii"))


def load_native():
    try:
        import _rlmd

        _rlmd.prepare()
    except Exception as error:
        end("the native half of the worker does not load: " + describe(error), "sandbox")
    return _rlmd


def load_library(here, native):
    """The standard library, and our own modules beside this file."""
    import contextlib
    import importlib

    from library import USUAL, Library, useless

    library = Library()
    library.add(here)
    library.add(os.path.dirname(os.__file__), left_out=useless)
    for directory in sys.path:
        if os.path.basename(directory) == "lib-dynload":
            library.add(directory, left_out=useless)
    sys.meta_path.insert(2, library)  # after what is built in and frozen, before the files
    # What this Python was built without, or the machine lacks a library for, is not there.
    # libgcc: what pthread_exit(3) opens when the first thread ends, too late in a worker.
    for path in ["libgcc_s.so.1", *library.extensions()]:
        with contextlib.suppress(OSError):
            native.load(path)
    for name in USUAL:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    return library


def free_names(library, here):
    """Our modules have each other by now; their names are for modules of the user's."""
    for name in library.withdraw(here):
        sys.modules.pop(name, None)


def preload(names, library):
    """The operator's modules, and for later imports the rest of their packages."""
    import importlib

    for name in names:
        try:
            importlib.import_module(name)
        except BaseException as error:
            end("cannot preload %s: %s" % (name, describe(error)), "usage")
        package = name.partition(".")[0]
        for directory in getattr(sys.modules[package], "__path__", []):
            library.add(directory, package + ".")


def check_threads():
    """A fork copies one thread: locks that another one holds would stay locked for ever."""
    try:
        count = len(os.listdir("/proc/self/task"))
    except OSError:
        return
    if count > 1:
        end("a preloaded module has started threads, so it cannot be preloaded", "usage")


def settle(library, finders):
    """Leaves nothing that looks for files, and a heap that forks share for long."""
    import gc
    import threading

    library.close()
    sys.meta_path[3:] = finders
    sys.path[:] = []
    sys.path_hooks[:] = []
    sys.path_importer_cache.clear()
    sys.argv[:] = [""]
    threading.stack_size(1 << 20)
    gc.collect()
    gc.freeze()


def enclose(native, count):
    """From here on there is no file. What stands, and what the kernel refused, goes up."""
    entered, mode, layers, failures = native.enclose()
    refused = ",".join("[%d,%d,%d]" % failure for failure in failures)
    if entered:
        ready = '{"ready":%d,"mode":%d,"layers":%d,"failures":[%s]}'
        message = ready % (count, mode, layers, refused)
    else:
        message = '{"failed":[%s]}' % refused
    os.write(CONTROL, message.encode("ascii"))
    return entered


def main():
    greet()
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path.insert(0, here)
    native = load_native()
    library = load_library(here, native)
    import repl

    sys.path.remove(here)
    free_names(library, here)
    repl.install(library)
    preload(sys.argv[1:], library)
    check_threads()
    finders = repl.prepare(library, sys.argv[1:])
    settle(library, finders)
    worker = native.serve() if enclose(native, len(library)) else None
    if worker is not None:
        repl.main(*worker, native)
    os._exit(0)


if __name__ == "__main__":
    main()

"""The template: a Python that has loaded all it can, and forks workers on request.

Started by the supervisor (src/sandbox/template.c) through start.py, which has
said hello, with the modules to preload as arguments and the control socket as
descriptor 3; loads, walls itself off, says ready, serves (src/sandbox/launch.h).
It runs no foreign code and stays of one thread. A worker runs main() of repl.Session.
"""

import gc
import os
import sys

CONTROL = 3
STORE, ARCHIVE = 6, 7  # descriptors for the library


def end(text, kind):
    text = "".join(c if " " <= c < "\x7f" and c not in '"\\' else " " for c in text[:1000])
    message = '{"error": "%s", "kind": "%s"}' % (text, kind)
    os.write(CONTROL, message.encode("ascii"))
    os._exit(1)


def describe(error):
    return "%s: %s" % (type(error).__name__, error)


def load_native():
    try:
        import _rlmd

        terms = _rlmd.prepare()
        _rlmd.use_huge_pages()
        return _rlmd, terms
    except Exception as error:
        end("the native half of the worker does not load: " + describe(error), "sandbox")


def gather(library, here):
    """The standard library, and our own modules beside this file, from their files."""
    from gather import Gatherer, useless

    gatherer = Gatherer(library)
    gatherer.add(here)
    gatherer.add(os.path.dirname(os.__file__), left_out=useless)
    for directory in sys.path:
        if os.path.basename(directory) == "lib-dynload":
            gatherer.add(directory, left_out=useless)
    return gatherer


def open_library(here, archived):
    """The library, found by imports; and what it was gathered with, where it was."""
    from library import Library

    library = Library(STORE)
    gatherer = None
    if not archived or not library.take_archive(ARCHIVE):
        gatherer = gather(library, here)
    sys.meta_path.insert(2, library)  # after what is built in and frozen, before the files
    return library, gatherer


def load_extensions(library, native):
    import contextlib

    # Modules that this Python was built without, or whose library is missing, are not there.
    # libgcc: what pthread_exit(3) opens when the first thread ends, too late in a worker.
    for path in ["libgcc_s.so.1", *library.extensions()]:
        with contextlib.suppress(OSError):
            native.load(path)


def initialise():
    """Does the work that the walls would refuse: ctypes makes executable memory, OpenSSL reads its
    configuration."""
    import contextlib

    with contextlib.suppress(Exception):
        import ctypes
    with contextlib.suppress(Exception):
        import _ssl

        _ssl._SSLContext(_ssl.PROTOCOL_TLS_CLIENT)


def load_modules(names):
    """One a step."""
    import contextlib
    import importlib

    for name in names:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
        yield name


def load_rest(names, repl, native, hooks):
    """While the first worker is at work already."""
    yield from load_modules(names)
    hooks.end()
    gc.unfreeze()
    native.tidy()  # so that what is moved comes to lie together
    repl.warm_up()
    yield "warm"
    gc.collect()
    share(native)
    while native.merge():
        yield "merged"


def share(native):
    """Has the objects that exist by now shared by forks for long."""
    gc.freeze()
    native.tidy()


def free_names(library, here):
    """Our modules have each other by now; their names are for modules of the user's."""
    for name in library.withdraw(here):
        sys.modules.pop(name, None)


def preload(names, gatherer, here):
    """The operator's modules, and for later imports the rest of their packages.

    A name that begins with a colon is one of our own, for a helper of the supervisor's."""
    import importlib

    for name in names:
        ours = name.startswith(":")
        name = name.lstrip(":")
        if ours:
            sys.path.append(here)
        try:
            importlib.import_module(name)
        except BaseException as error:
            end("cannot preload %s: %s" % (name, describe(error)), "usage")
        if ours:
            sys.path.remove(here)
            continue
        package = name.partition(".")[0]
        for directory in getattr(sys.modules[package], "__path__", []):
            gatherer.add(directory, package + ".")


def check_threads():
    """A fork copies one thread: locks that another one holds would stay locked for ever."""
    try:
        count = len(os.listdir("/proc/self/task"))
    except OSError:
        return
    if count > 1:
        end("a preloaded module has started threads, so it cannot be preloaded", "usage")


def settle(library, finders, native):
    """Leaves nothing that looks for files, and a heap that forks share for long."""
    import threading

    library.close()
    sys.meta_path[3:] = finders
    sys.path[:] = []
    sys.path_hooks[:] = []
    sys.path_importer_cache.clear()
    threading.stack_size(1 << 20)
    gc.enable()
    share(native)


def enclose(native, count):
    """From here on there is no file. The layers that stand, and the refusals of the kernel, are
    reported."""
    maps = "true" if native.can_map() else "false"
    entered, mode, layers, failures = native.enclose()
    refused = ",".join("[%d,%d,%d]" % failure for failure in failures)
    if entered:
        ready = '{"ready":%d,"mode":%d,"layers":%d,"maps":%s,"failures":[%s]}'
        message = ready % (count, mode, layers, maps, refused)
    else:
        message = '{"failed":[%s]}' % refused
    os.write(CONTROL, message.encode("ascii"))
    return entered


def main(here):
    from fork_hooks import ForkHooks

    gc.disable()  # nearly all that is made stays
    names = sys.argv[1:]
    hooks = ForkHooks()
    hooks.gather()
    native, (archived, to_archive) = load_native()
    library, gatherer = open_library(here, archived)
    load_extensions(library, native)
    initialise()
    from library import USUAL

    # Modules that are in the archive need no file: they can wait until the first worker is at work.
    for _ in load_modules(USUAL if gatherer else []):
        pass
    import repl

    repl.install(library, gatherer and gatherer.stamps)
    if gatherer and to_archive:
        gatherer.write_archive()
    elif names:
        from gather import Gatherer

        gatherer = Gatherer(library)
    sys.path.remove(here)
    free_names(library, here)
    preload(names, gatherer, here)
    check_threads()
    finders = repl.prepare(library, names)
    session = repl.Session(CONTROL, CONTROL + 1)
    settle(library, finders, native)
    rest = load_rest(USUAL, repl, native, hooks)
    worker = native.serve(rest) if enclose(native, len(library)) else None
    if worker is not None:
        files, layers = worker
        hooks.run("pid_namespace" in layers)
        session.main(files, layers, native)
    os._exit(0)

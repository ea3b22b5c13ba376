"""Fills a Library with the bytecode of modules, and knows what it was made of.

A .pyc that is this interpreter's and current is taken as it is. For what has none the source is
kept, which is compiled when it is imported; what the template imports is compiled once, where the
library is written into an archive.
"""

import marshal
import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import MAGIC_NUMBER
from stat import S_ISDIR

from library import CODE, EXTENSION, SOURCE, number

# Of no use behind the walls: tests, windows, terminals, files of databases (dbm/sqlite3.py),
# installers.
LEFT_OUT = frozenset("""
    __pycache__ __phello__ ensurepip idlelib idle_test lib2to3 site-packages dist-packages
    test tests tkinter turtledemo turtle.py antigravity.py this.py sqlite3.py
    _curses _curses_panel _dbm _gdbm _tkinter nis ossaudiodev readline
    """.split())
LEFT_OUT_PREFIXES = ("_test", "_xx", "xx", "_ctypes_test", "config-")

HEADER = 16  # bytes of a .pyc before its code
ABSENT = (1 << 64) - 1  # the size of what is not there


def useless(name):
    return name in LEFT_OUT or name.startswith(LEFT_OUT_PREFIXES)


def cache(name):
    return name == "__pycache__"


def read_file(path):
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(fd).st_size
        return os.read(fd, size)
    finally:
        os.close(fd)


def current(bytecode, source_stat):
    """Whether the .pyc is this interpreter's and belongs to the source beside it."""
    if bytecode[:4] != MAGIC_NUMBER or len(bytecode) <= HEADER:
        return False
    flags = int.from_bytes(bytecode[4:8], "little")
    if flags:
        return flags == 1  # by hash, and not to be checked
    return bytecode[8:16] == b"".join(
        (int(value) & 0xFFFFFFFF).to_bytes(4, "little")
        for value in (source_stat.st_mtime, source_stat.st_size)
    )


class Stamps:
    """When what was read had been written: an archive with other ones is out of date."""

    def __init__(self):
        self._stamps = {}  # path -> (nanoseconds, bytes)

    def note(self, path, stat=None):
        """Before it is read, so that what changes meanwhile is noticed the next time."""
        try:
            stat = stat or os.stat(path)
            size = 0 if S_ISDIR(stat.st_mode) else stat.st_size  # its file system's, of a directory
            self._stamps[path] = stat.st_mtime_ns, size
        except OSError:
            self._stamps[path] = 0, ABSENT

    def __bytes__(self):
        """As src/sandbox/archive.c reads it: of each two numbers and a path that ends with NUL."""
        return b"".join(
            number(time) + number(size) + os.fsencode(path) + b"\0"
            for path, (time, size) in self._stamps.items()
        )


class Gatherer:
    def __init__(self, library):
        self._library = library
        self.stamps = Stamps()

    def add(self, directory, prefix="", left_out=cache):
        """Everything below a directory that can be imported from it, as submodules of prefix."""
        self.stamps.note(directory)
        try:
            entries = list(os.scandir(directory))
        except OSError:
            return
        for entry in entries:
            if left_out(entry.name):
                continue
            stem, dot, suffix = entry.name.partition(".")
            if dot and dot + suffix in EXTENSION_SUFFIXES and not left_out(stem):
                self.stamps.note(entry.path)
                self._library.put(prefix + stem, EXTENSION, entry.path, False, b"")
            elif suffix == "py":
                self._add_source(prefix, stem, entry)
            elif not dot and stem.isidentifier() and entry.is_dir():
                self.add(entry.path, prefix + stem + ".", left_out)

    def _add_source(self, prefix, stem, entry):
        package = stem == "__init__"
        if package and not prefix:
            return
        try:
            kind, data = self._code_or_source(entry, stem)
        except OSError:
            return
        name = prefix[:-1] if package else prefix + stem
        self._library.put(name, kind, entry.path, package, data)

    def _code_or_source(self, entry, stem):
        """The bytecode where it is current, else the source."""
        cached = os.path.join(
            os.path.dirname(entry.path), "__pycache__", f"{stem}.{sys.implementation.cache_tag}.pyc"
        )
        stat = entry.stat()
        self.stamps.note(entry.path, stat)
        try:
            bytecode = read_file(cached)
        except OSError:
            bytecode = b""
        if current(bytecode, stat):
            return CODE, memoryview(bytecode)[HEADER:]
        return SOURCE, read_file(entry.path)

    def write_archive(self):
        """Compiles all modules that were imported until now."""
        library = self._library
        for name, (kind, path, package, *_) in list(library.modules.items()):
            if kind == SOURCE and name in sys.modules:
                place = library.store(marshal.dumps(library.get_code(name)))
                library.modules[name] = (CODE, path, package, *place)
        library.write_archive(bytes(self.stamps))

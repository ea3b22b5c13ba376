"""The standard library, held in memory: a worker imports without any file.

Before the walls go up, the bytecode of every pure-Python module is read into a
memory file, which is then mapped: a fork shares it and costs nothing for it,
and a module is unmarshalled when it is first imported. Shared objects cannot be
loaded behind the walls, so all of them are loaded before; to initialise one
is then left to its first import too.
"""

import marshal
import mmap
import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from importlib.util import MAGIC_NUMBER

import _rlmd

# Of no use behind the walls: tests, windows, terminals, files of databases (dbm/sqlite3.py),
# installers.
LEFT_OUT = frozenset("""
    __pycache__ __phello__ ensurepip idlelib idle_test lib2to3 site-packages dist-packages
    test tests tkinter turtledemo turtle.py antigravity.py this.py sqlite3.py
    _curses _curses_panel _dbm _gdbm _tkinter nis ossaudiodev readline
    """.split())
LEFT_OUT_PREFIXES = ("_test", "_xx", "xx", "_ctypes_test", "config-")

# What blocks use most, imported by the template; and what behind the walls could not be
# initialised: ctypes makes executable memory, ssl reads its configuration.
USUAL = """
    abc array ast base64 binascii bisect calendar cmath collections.abc concurrent.futures.thread
    contextlib copy csv ctypes dataclasses datetime decimal difflib enum fractions functools gc
    hashlib heapq html io itertools json keyword linecache locale math numbers operator os pathlib
    pickle pprint queue random re secrets select signal ssl statistics string struct sys textwrap
    threading time tokenize traceback types typing unicodedata urllib.parse uuid warnings weakref
    zlib
    """.split()

CODE, SOURCE, EXTENSION = range(3)
HEADER = 16  # bytes of a .pyc before its code


def useless(name):
    return name in LEFT_OUT or name.startswith(LEFT_OUT_PREFIXES)


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


def code_or_source(entry, stem):
    """The bytecode where it is current, else the source: it is compiled when it is imported."""
    cached = os.path.join(
        os.path.dirname(entry.path), "__pycache__", f"{stem}.{sys.implementation.cache_tag}.pyc"
    )
    try:
        bytecode = read_file(cached)
    except OSError:
        bytecode = b""
    if current(bytecode, entry.stat()):
        return CODE, memoryview(bytecode)[HEADER:]
    return SOURCE, read_file(entry.path)


class Library:
    """A finder for sys.meta_path; each module's loader is the Library itself."""

    def __init__(self):
        self._modules = {}  # name -> (kind, path, is it a package, start, end)
        self._fd = _rlmd.memory_file()
        self._size = 0
        self._map = None  # the whole file, once it is complete
        self.imported = lambda module: None  # is called with each that was executed

    def add(self, directory, prefix="", left_out=lambda name: name == "__pycache__"):
        """Everything below a directory that can be imported from it, as submodules of prefix."""
        try:
            entries = list(os.scandir(directory))
        except OSError:
            return
        for entry in entries:
            if left_out(entry.name):
                continue
            stem, dot, suffix = entry.name.partition(".")
            if dot and dot + suffix in EXTENSION_SUFFIXES and not left_out(stem):
                self._add(prefix + stem, EXTENSION, entry.path, False, b"")
            elif suffix == "py":
                self._add_source(prefix, stem, entry)
            elif not dot and stem.isidentifier() and entry.is_dir():
                self.add(entry.path, prefix + stem + ".", left_out)

    def _add_source(self, prefix, stem, entry):
        package = stem == "__init__"
        if package and not prefix:
            return
        try:
            kind, data = code_or_source(entry, stem)
        except OSError:
            return
        self._add(prefix[:-1] if package else prefix + stem, kind, entry.path, package, data)

    def _add(self, name, kind, path, package, data):
        if name not in self._modules:
            self._modules[name] = (kind, path, package, *self.store(data))

    def withdraw(self, directory):
        """Finds the Python modules of this directory no more; gives their names."""
        names = [
            name for name, (kind, path, *_) in self._modules.items()
            if kind != EXTENSION and os.path.dirname(path) == directory
        ]
        for name in names:
            del self._modules[name]
        return names

    def store(self, data):
        """Keeps bytes of no module; what it gives is for stored()."""
        start, self._size = self._size, self._size + len(data)
        os.pwrite(self._fd, data, start)
        return start, self._size

    def stored(self, place):
        start, end = place
        return self._map[start:end]

    def close(self):
        """Nothing is added any more: seals the file and maps it."""
        _rlmd.seal(self._fd)
        # Private, for a worker must not write into what the others read.
        self._map = memoryview(
            mmap.mmap(self._fd, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
        )
        os.close(self._fd)

    def extensions(self):
        """The paths of all shared objects."""
        return [path for kind, path, _, _, _ in self._modules.values() if kind == EXTENSION]

    def __len__(self):
        return len(self._modules)

    # -- the import system's side --

    def find_spec(self, name, path=None, target=None):
        module = self._modules.get(name)
        if module is None:
            return None
        kind, path, package, _, _ = module
        loader = ExtensionFileLoader(name, path) if kind == EXTENSION else self
        spec = ModuleSpec(name, loader, origin=path, is_package=package)
        spec.has_location = True
        if package:
            spec.submodule_search_locations.append(os.path.dirname(path))
        return spec

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        exec(self.get_code(module.__spec__.name), module.__dict__)
        self.imported(module)

    def get_code(self, name):
        kind, path, _, start, end = self._modules[name]
        if self._map is None:
            data = os.pread(self._fd, end - start, start)
        else:
            data = self._map[start:end]
        if kind == CODE:
            return marshal.loads(data)
        return compile(bytes(data), path, "exec", dont_inherit=True)

    def get_source(self, name):
        return None  # not kept; tracebacks then show the line's number alone

    def is_package(self, name):
        return self._modules[name][2]

    def invalidate_caches(self):
        pass

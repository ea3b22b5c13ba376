"""The standard library, held in memory: a worker imports without any file.

Before the walls go up, the bytecode of every pure-Python module is put into memory, which a fork
shares and pays nothing for; a module is unmarshalled when it is first imported. There are two
pieces of it, addressed as one: the archive, a file out of the user's cache, which has the standard
library and our own modules as gather.py found them once; and the store, a memory file for what is
not in there, or for all of it where there is no archive. Shared objects cannot be loaded behind the
walls, so all of them are loaded before; to initialise one is then left to its first import too.
"""

import marshal
import mmap
import os
import sys
from importlib.machinery import ExtensionFileLoader, ModuleSpec

import _rlmd

# The modules that blocks use most, imported by the template, so that workers need not.
USUAL = """
    abc array ast base64 binascii bisect calendar cmath collections.abc concurrent.futures.thread
    contextlib copy csv ctypes dataclasses datetime decimal difflib enum fractions functools gc
    hashlib heapq html io itertools json keyword linecache locale math numbers operator os pathlib
    pickle pprint queue random re secrets select signal ssl statistics string struct sys textwrap
    threading time tokenize traceback types typing unicodedata urllib.parse uuid warnings weakref
    zlib
    """.split()

CODE, SOURCE, EXTENSION = range(3)

# struct launch_archive of src/sandbox/launch.h: a magic and three numbers of eight bytes each.
MAGIC = b"rlmdlib1"
HEADER = len(MAGIC) + 3 * 8
INTERPRETER = (sys.version, sys.implementation.cache_tag)  # whose bytecode it is


def number(value):
    return value.to_bytes(8, sys.byteorder)


def mapped(fd):
    # Private, for a worker must not write into what the others read.
    return memoryview(mmap.mmap(fd, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ))


class Library:
    """A finder for sys.meta_path; each module's loader is the Library itself."""

    def __init__(self, store):
        """store: the descriptor of an empty memory file, which is ours."""
        self.modules = {}  # name -> (kind, path, is it a package, start, end)
        self.kept = {}  # what others have for themselves in an archive: name -> plain values
        self._archive = b""
        self._fd = store
        self._size = HEADER  # of both
        self._map = None  # of the store, once it is complete
        self.imported = lambda module: None  # is called with each that was executed

    # -- what it is filled with --

    def take_archive(self, fd):
        """Has all that is in there, and says so; an archive of another interpreter has nothing,
        nor has one that was cut short after the supervisor had looked at it."""
        try:
            view = mapped(fd)
            size, index, stamps = (
                int.from_bytes(view[at : at + 8], sys.byteorder)
                for at in range(len(MAGIC), HEADER, 8)
            )
            interpreter, modules, kept = marshal.loads(view[index:stamps])
        except (ValueError, EOFError, TypeError):
            return False
        finally:
            os.close(fd)
        if interpreter != INTERPRETER:
            return False
        self.modules, self.kept = modules, kept
        self._archive, self._size = view[:size], size
        return True

    def write_archive(self, stamps):
        """Makes one of all that was put in until now. stamps: the bytes by which it is known to be
        out of date (src/sandbox/archive.c)."""
        index = marshal.dumps((INTERPRETER, self.modules, self.kept))
        places = self.store(index)[0], *self.store(stamps)
        header = MAGIC + number(places[2]) + number(places[0]) + number(places[1])
        os.pwrite(self._fd, header, 0)

    def put(self, name, kind, path, package, data):
        """A module, unless there is one of this name."""
        if name not in self.modules:
            self.modules[name] = (kind, path, package, *self.store(data))

    def withdraw(self, directory):
        """Finds the Python modules of this directory no more; gives their names."""
        names = [
            name for name, (kind, path, *_) in self.modules.items()
            if kind != EXTENSION and os.path.dirname(path) == directory
        ]
        for name in names:
            del self.modules[name]
        return names

    def store(self, data):
        """Keeps bytes of no module; what it gives is for stored()."""
        start, self._size = self._size, self._size + len(data)
        os.pwrite(self._fd, data, start - len(self._archive))
        return start, self._size

    def stored(self, place):
        start, end = place
        base = len(self._archive)
        if start < base:
            return self._archive[start:end]
        if self._map is None:
            return os.pread(self._fd, end - start, start - base)
        return self._map[start - base : end - base]

    def close(self):
        """Nothing is added any more: seals the store and maps it."""
        _rlmd.seal(self._fd)
        if os.fstat(self._fd).st_size:
            self._map = mapped(self._fd)
        os.close(self._fd)

    def extensions(self):
        """The paths of all shared objects."""
        return [path for kind, path, _, _, _ in self.modules.values() if kind == EXTENSION]

    def __len__(self):
        return len(self.modules)

    # -- the import system's side --

    def find_spec(self, name, path=None, target=None):
        module = self.modules.get(name)
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
        kind, path, _, *place = self.modules[name]
        data = self.stored(place)
        if kind == CODE:
            return marshal.loads(data)
        return compile(bytes(data), path, "exec", dont_inherit=True)

    def get_source(self, name):
        return None  # not kept; tracebacks then show the line's number alone

    def is_package(self, name):
        return self.modules[name][2]

    def invalidate_caches(self):
        pass

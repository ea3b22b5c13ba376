"""The machine's data of time zones, read before the walls go up, for zoneinfo to find.

The bytes go into the library's memory file, so they cost a worker nothing; a name that is a link to
another one is kept as that.
"""

import os
import posixpath

from memory_files import Node

ROOT = "/usr/share/zoneinfo"
LEFT_OUT = frozenset(["posix", "right"])  # the same again, and with leap seconds
MAGIC = b"TZif"
SIZE_MAX = 64 << 10


class Zones:
    """Read-only files for a memory_tree.Tree."""

    def __init__(self, library, root=ROOT):
        self._library = library
        self._root = root
        self._start = 0     # in the library
        self._places = {}   # path -> where from there on, and how long
        self._links = {}    # path -> path
        self._folders = {}  # path -> names
        self._nodes = {}

    def load(self, stamps=None):
        """From the archive, or from the files, of which `stamps` are taken (gather.py)."""
        kept = self._library.kept.get(self._root)
        if kept is None:
            data = bytearray()
            self._load(self._root, data, stamps)
            self._start, _end = self._library.store(data)
            kept = self._start, self._places, self._links, self._folders
            self._library.kept[self._root] = kept
        self._start, self._places, self._links, self._folders = kept

    def _load(self, folder, data, stamps):
        if stamps:
            stamps.note(folder)
        try:
            entries = list(os.scandir(folder))
        except OSError:
            return
        names = []
        for entry in entries:
            name, path = entry.name, entry.path
            if name in LEFT_OUT or "." in name:
                continue
            if entry.is_symlink():
                self._links[path] = posixpath.normpath(posixpath.join(folder, os.readlink(path)))
            elif entry.is_dir():
                self._load(path, data, stamps)
            elif not self._read(path, data, stamps):
                continue
            names.append(name)
        self._folders[folder] = names

    def _read(self, path, data, stamps):
        if stamps:
            stamps.note(path)
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            zone = os.read(fd, SIZE_MAX)
        finally:
            os.close(fd)
        if not zone.startswith(MAGIC):
            return False
        self._places[path] = len(data), len(zone)
        data += zone
        return True

    def __len__(self):
        return len(self._places)

    # Questions of a Tree

    def get(self, path):
        if not path.startswith(self._root):
            return None
        path = self._links.get(path, path)
        node = self._nodes.get(path)
        if node is None and path in self._places:
            first, size = self._places[path]
            first += self._start
            data = bytes(self._library.stored((first, first + size)))
            node = self._nodes[path] = Node(data, given=True)
        elif node is None and path in self._folders:
            node = self._nodes[path] = Node(given=True)
        return node

    def names(self, path):
        return [name for name in self._folders.get(path, ())
                if self.get(posixpath.join(path, name)) is not None]

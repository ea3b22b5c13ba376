"""The names of files in memory, behind functions with the signatures of open() and of those of os.

No call of the kernel is made for a path. Paths are made absolute and normalised by their text:
there are no symbolic links. A directory springs into being with the first file below it, since code
relies on directories of other machines. Beside what code wrote stand *given* files, read-only, that
the template loaded (data of time zones).

Threads meet here without a lock, as an interrupt could leave it locked: each step is one operation
of a dict, and what two threads do to one path at the same moment may come in either order.
"""

import errno
import os
import posixpath
import stat
import time

import _io
from memory_files import NoFile, Node, Null, Raw, check_mode, dress, failure, resize

ENTRIES_MAX = 20000         # files and directories
FIRST_DESCRIPTOR = 1 << 20  # beyond all that the kernel hands out here


class Entry:
    """A result of scandir(): an os.DirEntry of the tree."""

    def __init__(self, name, path, node):
        self.name, self.path, self._node = name, path, node

    def __fspath__(self):
        return self.path

    def __repr__(self):
        return f"<DirEntry {self.name!r}>"

    def inode(self):
        return self._node.number

    def is_dir(self, *, follow_symlinks=True):
        return self._node.data is None

    def is_file(self, *, follow_symlinks=True):
        return self._node.data is not None

    def is_symlink(self):
        return False

    def is_junction(self):
        return False

    def stat(self, *, follow_symlinks=True):
        return self._node.status()


class Entries:
    """An iterator that is a context manager too, as os.scandir() gives one."""

    def __init__(self, entries):
        self._entries = iter(entries)

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._entries)

    def __enter__(self):
        return self

    def __exit__(self, *_about):
        self.close()

    def close(self):
        self._entries = iter(())


class NothingGiven:
    def get(self, _path):
        return None

    def names(self, _path):
        return []


class Tree:
    """All there is.

    absent(path, key) makes the error for what is not there; asked(path, silent) hears that
    something was looked for in vain, by a function that will not raise where `silent`.
    """

    def __init__(self, absent, asked, given=None):
        self._nodes = {"/": Node(), "/tmp": Node()}
        self._names = {"/": {"tmp": None}, "/tmp": {}}  # of each directory, in order
        self._implied = {"/", "/tmp"}  # directories that nobody made
        self._descriptors = {}
        self._gone = set()  # what was there once: that it is not there any more is no surprise
        self._directory = "/"
        self._absent, self._asked = absent, asked
        self._given = given or NothingGiven()

    # Paths

    def _at(self, path):
        """The key of a path, which is a str, bytes or PathLike."""
        text = os.fsdecode(path)
        if "\0" in text:
            raise ValueError("embedded null byte")
        if not text:
            raise failure(errno.ENOENT, path)
        whole = posixpath.normpath(posixpath.join(self._directory, text))
        return whole[1:] if whole.startswith("//") else whole

    def _find(self, path):
        """The node at a path, or at a descriptor of ours."""
        if isinstance(path, int):
            return self._raw(path)._node
        key = self._at(path)
        node = self._nodes.get(key) or self._given.get(key)
        if node is None:
            raise self._absent(path, key)
        return node

    def _missed(self, path, silent):
        if self._at(path) not in self._gone:
            self._asked(path, silent)

    def _need(self, *unsupported):
        if any(value is not None for value in unsupported):
            raise NotImplementedError("directories have no descriptors here")

    def _folder(self, key, path):
        """The directory at a key, made where there is none."""
        node = self._nodes.get(key)
        if node is None:
            self._folder(posixpath.dirname(key), path)
            self._implied.add(key)
            self._put(key, Node(), path)
            self._names[key] = {}
        elif node.data is not None:
            raise failure(errno.ENOTDIR, path)

    def _put(self, key, node, path):
        if self._given.get(key) is not None:
            raise failure(errno.EROFS, path)
        if len(self._nodes) >= ENTRIES_MAX and key not in self._nodes:
            raise OSError(
                errno.ENOSPC, f"there is room for {ENTRIES_MAX} files here: remove some", path
            )
        parent, name = posixpath.split(key)
        self._nodes[key] = node
        self._names[parent][name] = None
        self._nodes[parent].changed = time.time_ns()

    def _take(self, key):
        parent, name = posixpath.split(key)
        self._names[parent].pop(name, None)
        if len(self._gone) < ENTRIES_MAX:
            self._gone.add(key)
        self._nodes.pop(key, None)

    # Opening

    def _open(self, path, reads, writes, appends=False, makes=False, alone=False, empties=False):
        key = self._at(path)
        if key == os.devnull:
            return Null(Node(bytearray()), path, reads, writes)
        node = self._nodes.get(key) or self._given.get(key)
        if node is None:
            if not makes:
                raise self._absent(path, key)
            self._folder(posixpath.dirname(key), path)
            node = Node(bytearray())
            self._put(key, node, path)
        elif makes and alone:
            raise failure(errno.EEXIST, path)
        elif node.data is None:
            raise failure(errno.EISDIR, path)
        elif node.given and (writes or empties):
            raise failure(errno.EROFS, path)
        elif empties:
            resize(node, 0)
        return Raw(node, path, reads, writes, appends)

    def open(self, file, mode="r", buffering=-1, encoding=None, errors=None, newline=None,
             closefd=True, opener=None):
        """open() of Python; a descriptor of the kernel's goes to the real one."""
        kind, updating, text = check_mode(mode, buffering, encoding, errors, newline)
        if opener is not None and not isinstance(file, int):
            flags = {"r": 0, "w": os.O_CREAT | os.O_TRUNC, "a": os.O_CREAT | os.O_APPEND,
                     "x": os.O_CREAT | os.O_EXCL}[kind]
            access = os.O_RDWR if updating else os.O_RDONLY if kind == "r" else os.O_WRONLY
            named, file = file, opener(file, flags | access | os.O_CLOEXEC)
        else:
            named = file
        if isinstance(file, int) and file not in self._descriptors:
            return _io.open(file, mode, buffering, encoding, errors, newline, closefd)
        if isinstance(file, int):
            raw = self._adopt(file, closefd)
            raw.name = named
        else:
            if not closefd:
                raise ValueError("Cannot use closefd=False with file name")
            raw = self._open(
                file, kind == "r" or updating, kind != "r" or updating, kind == "a",
                makes=kind != "r", alone=kind == "x", empties=kind == "w",
            )
        return dress(raw, mode, text, updating, kind, buffering, encoding, errors, newline)

    # Descriptors, which mkstemp() and os.open() give

    def _raw(self, descriptor):
        raw = self._descriptors.get(descriptor)
        if raw is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return raw

    def _adopt(self, descriptor, closes):
        """A second opening that shares node and place by starting where the first one is."""
        first = self._descriptors[descriptor]
        if closes:
            del self._descriptors[descriptor]
            return first
        again = type(first)(first._node, first.name, first._reads, first._writes, first._appends)
        again._place = first._place
        return again

    def os_open(self, path, flags, mode=0o777, *, dir_fd=None):
        self._need(dir_fd)
        access = flags & os.O_ACCMODE
        directory = getattr(os, "O_DIRECTORY", 0)
        if directory and flags & directory:
            self._find(path)
            raise failure(errno.EISDIR, path)
        raw = self._open(
            path, access in (os.O_RDONLY, os.O_RDWR), access in (os.O_WRONLY, os.O_RDWR),
            bool(flags & os.O_APPEND), makes=bool(flags & os.O_CREAT),
            alone=bool(flags & os.O_EXCL), empties=bool(flags & os.O_TRUNC),
        )
        descriptor = max(self._descriptors, default=FIRST_DESCRIPTOR) + 1
        while self._descriptors.setdefault(descriptor, raw) is not raw:
            descriptor += 1
        return descriptor

    def read(self, descriptor, length):
        return bytes(self._raw(descriptor).read(length))

    def write(self, descriptor, data):
        return self._raw(descriptor).write(data)

    def close(self, descriptor):
        self._raw(descriptor)
        del self._descriptors[descriptor]

    def lseek(self, descriptor, position, whence):
        return self._raw(descriptor).seek(position, whence)

    def fstat(self, descriptor):
        return self._raw(descriptor).status()

    def ftruncate(self, descriptor, length):
        self._raw(descriptor).truncate(length)

    def fsync(self, descriptor):
        self._raw(descriptor)

    def wrote(self, path):
        """Whether there is such a file that code wrote."""
        try:
            node = self._nodes.get(self._at(path))
        except (OSError, ValueError):
            return False
        return node is not None and node.data is not None

    def has(self, descriptor):
        return isinstance(descriptor, int) and descriptor in self._descriptors

    # The functions of os for paths, with their signatures

    def stat(self, path, *, dir_fd=None, follow_symlinks=True):
        self._need(dir_fd)
        try:
            return self._find(path).status()
        except NoFile:
            self._missed(path, False)
            raise

    def lstat(self, path, *, dir_fd=None):
        return self.stat(path, dir_fd=dir_fd)

    def access(self, path, mode, *, dir_fd=None, effective_ids=False, follow_symlinks=True):
        try:
            self._find(path)
        except OSError:
            self._missed(path, True)
            return False
        return True

    def _listed(self, path):
        """The key of a directory that is there, and the names in it."""
        key = self._at(path)
        node = self._nodes.get(key) or self._given.get(key)
        if node is not None and node.data is not None:
            raise failure(errno.ENOTDIR, path)
        names = list(self._names.get(key, ()))
        if key == "/" and not self._names["/tmp"] and "/tmp" in self._implied:
            names = [name for name in names if name != "tmp"]
        if node is not None and node.given:
            names = self._given.names(key)
        elif not names and (node is None or key in self._implied):
            self._missed(path, False)
            raise self._absent(path, key)
        return key, names

    def listdir(self, path="."):
        _key, names = self._listed("." if path is None else path)
        return [os.fsencode(name) for name in names] if isinstance(path, bytes) else names

    def scandir(self, path="."):
        path = "." if path is None else path
        key, names = self._listed(path)
        shown = os.fspath(path)
        entries = []
        for name in names:
            below = posixpath.join(key, name)
            node = self._nodes.get(below) or self._given.get(below)
            if node is not None:
                name = os.fsencode(name) if isinstance(shown, bytes) else name
                entries.append(Entry(name, posixpath.join(shown, name), node))
        return Entries(entries)

    def mkdir(self, path, mode=0o777, *, dir_fd=None):
        self._need(dir_fd)
        key = self._at(path)
        if key in self._nodes:
            raise failure(errno.EEXIST, path)
        self._folder(key, path)
        self._implied.discard(key)

    def makedirs(self, name, mode=0o777, exist_ok=False):
        try:
            self.mkdir(name)
        except FileExistsError:
            if not exist_ok or self._find(name).data is not None:
                raise

    def rmdir(self, path, *, dir_fd=None):
        self._need(dir_fd)
        key = self._at(path)
        if self._find(path).data is not None:
            raise failure(errno.ENOTDIR, path)
        if key == "/" or self._names.get(key) != {}:
            raise failure(errno.ENOTEMPTY, path)
        del self._names[key]
        self._implied.discard(key)
        self._take(key)

    def remove(self, path, *, dir_fd=None):
        self._need(dir_fd)
        node = self._find(path)
        if node.given:
            raise failure(errno.EROFS, path)
        if node.data is None:
            raise failure(errno.EISDIR, path)
        self._take(self._at(path))

    def rename(self, src, dst, *, src_dir_fd=None, dst_dir_fd=None):
        self._need(src_dir_fd, dst_dir_fd)
        node, old, new = self._find(src), self._at(src), self._at(dst)
        there = self._nodes.get(new)
        if node.given or self._given.get(new) is not None:
            raise failure(errno.EROFS, src, dst)
        if old == new:
            return
        if node.data is None and (old == "/" or new.startswith(old + "/")):
            raise failure(errno.EINVAL, src, dst)
        if there is not None and node.data is None and there.data is not None:
            raise failure(errno.ENOTDIR, src, dst)
        if there is not None and there.data is None:
            if node.data is not None:
                raise failure(errno.EISDIR, src, dst)
            if self._names[new]:
                raise failure(errno.ENOTEMPTY, src, dst)
        self._folder(posixpath.dirname(new), dst)
        self._move(old, new, dst)

    def _move(self, old, new, path):
        node = self._nodes[old]
        names = self._names.pop(old, None)
        self._take(old)
        self._put(new, node, path)
        if names is not None:
            self._names[new] = names
            self._implied.discard(new)
            for key in [key for key in self._nodes if key.startswith(old + "/")]:
                target = new + key[len(old):]
                self._nodes[target] = self._nodes.pop(key)
                if key in self._names:
                    self._names[target] = self._names.pop(key)

    def link(self, src, dst, *, src_dir_fd=None, dst_dir_fd=None, follow_symlinks=True):
        self._need(src_dir_fd, dst_dir_fd)
        node, new = self._find(src), self._at(dst)
        if new in self._nodes:
            raise failure(errno.EEXIST, src, dst)
        if node.data is None:
            raise failure(errno.EPERM, src, dst)
        self._folder(posixpath.dirname(new), dst)
        self._put(new, node, dst)

    def readlink(self, path, *, dir_fd=None):
        self._need(dir_fd)
        self._find(path)
        raise failure(errno.EINVAL, path)

    def truncate(self, path, length):
        node = self._find(path)
        if node.given or node.data is None:
            raise failure(errno.EISDIR if node.data is None else errno.EROFS, path)
        resize(node, length)

    def chmod(self, path, mode, *, dir_fd=None, follow_symlinks=True):
        node = self._find(path)
        node.mode = stat.S_IFMT(node.mode) | stat.S_IMODE(mode)

    def chown(self, path, uid, gid, *, dir_fd=None, follow_symlinks=True):
        self._find(path)

    def utime(self, path, times=None, *, ns=None, dir_fd=None, follow_symlinks=True):
        node = self._find(path)
        if ns is not None:
            node.changed = int(ns[1])
        else:
            node.changed = time.time_ns() if times is None else int(times[1] * 1e9)

    def listxattr(self, path=None, *, follow_symlinks=True):
        self._find("." if path is None else path)
        return []

    def chdir(self, path):
        if self._find(path).data is not None:
            raise failure(errno.ENOTDIR, path)
        self._directory = self._at(path)

    def getcwd(self):
        return self._directory

    def getcwdb(self):
        return os.fsencode(self._directory)

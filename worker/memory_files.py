"""Files in this process's memory: what code writes it can read again, and nobody else can.

A worker has no files. Its memory files are bytearrays in Python's own heap, under the readers and
writers that open() gives too. They count against the worker's memory, and end with the session.
memory_tree.py has their names.
"""

import errno
import io
import os
import stat
import time

BUFFER = 64 << 10  # bytes that readers and writers gather
MODES = frozenset(["r", "w", "a", "x"])


class NoFile(FileNotFoundError, PermissionError):
    """A file that is not there. The kernel would say PermissionError; code waits for either."""

    def __str__(self):
        return str(self.strerror)


NoFile.__name__ = NoFile.__qualname__ = "PermissionError"
NoFile.__module__ = "builtins"


def failure(number, path, path2=None):
    return OSError(number, os.strerror(number), path, None, path2)


class Node:
    """A file, or, without data, a directory."""

    __slots__ = ("data", "changed", "mode", "number", "given")
    made = 0

    def __init__(self, data=None, given=False):
        Node.made += 1
        self.data = data
        self.changed = time.time_ns()
        self.mode = (0o755 | stat.S_IFDIR) if data is None else (0o644 | stat.S_IFREG)
        self.number = Node.made
        self.given = given

    def status(self):
        size = 0 if self.data is None else len(self.data)
        nanoseconds, seconds = self.changed, self.changed / 1e9
        times = {}
        for kind in ("st_atime", "st_mtime", "st_ctime"):
            times[kind], times[kind + "_ns"] = seconds, nanoseconds
        whole = int(seconds)
        return os.stat_result(
            (self.mode, self.number, 1, 1, os.getuid(), os.getgid(), size, whole, whole, whole),
            times,
        )


class Raw(io.RawIOBase):
    """One opening of a file; the place stands in it, the bytes in the node."""

    def __init__(self, node, name, reads, writes, appends=False):
        super().__init__()
        self.name = name
        self.mode = ("ab" if appends else "rb+" if reads else "wb") if writes else "rb"
        self._node = node
        self._place = 0
        self._reads, self._writes, self._appends = reads, writes, appends
        if appends:
            self._place = len(node.data)

    def readable(self):
        self._checkClosed()
        return self._reads

    def writable(self):
        self._checkClosed()
        return self._writes

    def seekable(self):
        self._checkClosed()
        return True

    def fileno(self):
        raise io.UnsupportedOperation(
            "this file is in memory and has no descriptor (fileno): its methods read and write it"
        )

    def isatty(self):
        return False

    def readinto(self, buffer):
        self._check(self._reads, "not readable")
        with memoryview(buffer).cast("B") as room:
            data = self._node.data[self._place:self._place + len(room)]
            room[:len(data)] = data
        self._place += len(data)
        return len(data)

    def readall(self):
        self._check(self._reads, "not readable")
        data = self._node.data
        data = bytes(data[self._place:] if self._place else data)
        self._place += len(data)
        return data

    def write(self, data):
        self._check(self._writes, "not writable")
        with memoryview(data) as view:
            data = bytes(view)
        held = self._node.data
        try:
            if self._appends:
                held.extend(data)  # one step: another thread may append as well
                self._place = len(held) - len(data)
            else:
                if self._place > len(held):
                    held.extend(bytes(self._place - len(held)))
                held[self._place:self._place + len(data)] = data
        except (MemoryError, OverflowError):
            raise MemoryError(
                f"the memory of this session is used up: {self.name!r} holds {len(held)} bytes. "
                "Files written here are kept in memory; os.remove() those that are not needed"
            ) from None
        self._place += len(data)
        self._node.changed = time.time_ns()
        return len(data)

    def seek(self, offset, whence=os.SEEK_SET):
        self._checkClosed()
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: len(self._node.data)}
        if whence not in start or start[whence] + offset < 0:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        self._place = start[whence] + offset
        return self._place

    def truncate(self, size=None):
        self._check(self._writes, "not writable")
        size = self._place if size is None else size
        resize(self._node, size)
        return size

    def status(self):
        return self._node.status()

    def _check(self, can, otherwise):
        self._checkClosed()
        if not can:
            raise io.UnsupportedOperation(otherwise)


class Null(Raw):
    """/dev/null"""

    def write(self, data):
        with memoryview(data) as view:
            return view.nbytes


def resize(node, size):
    if size < 0:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    if size < len(node.data):
        del node.data[size:]
    else:
        node.data.extend(bytes(size - len(node.data)))
    node.changed = time.time_ns()


def check_mode(mode, buffering, encoding, errors, newline):
    """open()'s own rules; gives the letter of what is to be done, `+`, and whether it is text."""
    if not isinstance(mode, str):
        raise TypeError(f"open() argument 'mode' must be str, not {type(mode).__name__}")
    letters = set(mode)
    if letters - set("rwaxbt+") or len(mode) > len(letters):
        raise ValueError(f"invalid mode: {mode!r}")
    kinds = letters & MODES
    if len(kinds) != 1:
        raise ValueError("must have exactly one of create/read/write/append mode")
    if letters >= {"b", "t"}:
        raise ValueError("can't have text and binary mode at once")
    text = "b" not in letters
    for value, what in ((encoding, "an encoding"), (errors, "an errors"), (newline, "a newline")):
        if not text and value is not None:
            raise ValueError(f"binary mode doesn't take {what} argument")
    if text and buffering == 0:
        raise ValueError("can't have unbuffered text I/O")
    return kinds.pop(), "+" in letters, text


def dress(raw, mode, text, updating, kind, buffering, encoding, errors, newline):
    """The buffers around a raw file that open() gives."""
    if buffering == 0:
        return raw
    size = buffering if buffering > 1 else BUFFER
    if updating:
        buffered = io.BufferedRandom(raw, size)
    elif kind == "r":
        buffered = io.BufferedReader(raw, size)
    else:
        buffered = io.BufferedWriter(raw, size)
    if not text:
        return buffered
    wrapper = io.TextIOWrapper(buffered, encoding, errors, newline, buffering == 1)
    wrapper.mode = mode
    return wrapper

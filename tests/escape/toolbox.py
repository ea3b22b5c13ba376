"""Tools that an attempt has at hand inside the worker. Runs there, at the head of every block.

It is the text of a variable, so it can use nothing but the standard library and `facts`: JSON of
system call numbers, of baits and of what is to be searched for.
"""

import _io
import builtins
import ctypes
import errno
import io
import json
import mmap
import os
import posix
import re
import select
import signal
import socket
import struct
import sys
import threading
import time

FACTS = json.loads(facts)  # noqa: F821 - a variable of the run
NUMBERS = FACTS["numbers"]
READ, WRITE, PAGE = 3, 4, 4096  # the pipes to the supervisor
PRIVATE, SHARED, FIXED, ANONYMOUS, NOREPLACE = 0x02, 0x01, 0x10, 0x20, 0x100000

# The walls are tried, not the session's courtesy (worker/places.py): the real functions back.
builtins.open = io.open = open = _io.open
mmap.mmap = mmap.mmap.__base__
for name in dir(posix):
    if not name.startswith("__") and name != "environ":
        setattr(os, name, getattr(posix, name))

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
libc.malloc.restype = ctypes.c_void_p


class Missing(Exception):
    """This architecture has no such system call."""


def call(name, *arguments):
    """A raw system call by name or number; integers are passed in all 64 bits."""
    number = NUMBERS.get(name, name)
    if isinstance(number, str):
        raise Missing(name)
    passed = [ctypes.c_long(number)]
    for each in arguments:
        if isinstance(each, int):
            each = ctypes.c_ulong(each % (1 << 64))
        passed.append(each)
    result = libc.syscall(*passed)
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def x32(number):
    if "x32" not in NUMBERS:
        raise Missing("x32")
    return NUMBERS["x32"] | number


def outcome_of(action):
    try:
        return f"returned {action()!r}"
    except Missing:
        return None
    except OSError as error:
        return errno.errorcode.get(error.errno, type(error).__name__)
    except Exception as error:
        return type(error).__name__


def each(expected, *cases):
    """Tries all: (label, action) or (label, name of a call, its arguments); tells what went otherwise."""
    surprises, tried = [], 0
    for label, action, *arguments in cases:
        if callable(action):
            got = outcome_of(lambda: action(*arguments))
        else:
            got = outcome_of(lambda: call(action, *arguments))
        tried += got is not None
        if got is not None and got not in expected.split():
            surprises.append(f"{label}: {got}")
    if not tried:
        raise Missing("all")
    print("\n".join(surprises) or "held")


def check(holds, otherwise):
    print("held" if holds else otherwise)


def fill(size, prot=3, flags=PRIVATE | ANONYMOUS):
    """Maps until it is refused, gives everything back, and raises what refused it."""
    pieces = []
    try:
        while True:
            pieces.append(call("mmap", 0, size, prot, flags, -1, 0))
    finally:
        for piece in pieces:
            call("munmap", piece, size)


# Frames


def write_all(data):
    view = memoryview(data)
    while view:
        view = view[os.write(WRITE, view):]


def say(message, *attached):
    """A frame, as bytes or made of an object, with whatever is to follow it; then waits for the kill."""
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    write_all(struct.pack(">I", len(body)) + body + b"".join(attached))


def lie(message, *attached):
    say(message, *attached)
    time.sleep(3600)


def own_block():
    """The number of the block that runs, which its code can know like anybody who sees tracebacks."""
    frame = sys._getframe()
    while frame:
        found = re.fullmatch(r"<block (\d+)>", frame.f_code.co_filename)
        if found:
            return int(found[1])
        frame = frame.f_back
    raise RuntimeError("called outside of a block")


def done(stdout="", **more):
    return {"type": "done", "block": own_block(), "stdout": stdout, "stderr": "", "error": None, "missing": None,
            "final": None, "answer": None, **more}


def query(number, *prompts, **more):
    usual = dict.fromkeys(("model", "system", "max_tokens", "temperature"))
    return {"type": "llm_query", "id": number, "prompts": list(prompts), "turns": [], **usual, **more}


# The own memory


def taken(start, size):
    """Whether anything is mapped there: asked by a mapping that may replace nothing."""
    try:
        call("mmap", start, size, 0, PRIVATE | ANONYMOUS | NOREPLACE, -1, 0)
    except OSError as error:
        if error.errno == errno.ENOMEM:
            return False
        if error.errno == errno.EEXIST:
            return True
        raise
    call("munmap", start, size)
    return False


def mappings(start=1 << 16, end=(1 << 47) - PAGE, most=1 << 24):
    """The pieces of the address space with something in them, of at most `most` bytes."""
    pieces = [(start, end)]
    while pieces:
        start, end = pieces.pop()
        if not taken(start, end - start):
            continue
        if end - start <= most:
            yield start, end
            continue
        middle = (start + end) // 2 // PAGE * PAGE
        pieces += [(middle, end), (start, middle)]


def contents():
    """All memory that can be read, piece by piece, the kernel saying what is readable.

    A write of bytes that are not there fails with EFAULT, or ends before them.
    """
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    for start, end in mappings():
        held, address, size = [], start, 1 << 16
        while address < end:
            try:
                written = call("write", ours.fileno(), address, min(size, end - address))
            except OSError as error:
                if error.errno != errno.EFAULT:
                    raise
                address += PAGE if size == PAGE else 0
                size = PAGE
                continue
            while written:
                held.append(theirs.recv(written))
                address += len(held[-1])
                written -= len(held[-1])
            size = 1 << 16 if address % (1 << 16) == 0 else PAGE
        yield b"".join(held)


def search(*patterns):
    """How often each is found in the whole address space. A pattern like `[a]bc` never finds itself."""
    found, size, rest = dict.fromkeys(patterns, 0), 0, b""
    compiled = [(pattern, re.compile(pattern.encode())) for pattern in patterns]
    for piece in contents():
        size += len(piece)
        piece, rest = rest + piece, piece[-256:]  # what lies across the border of two
        for pattern, matcher in compiled:
            found[pattern] += len(matcher.findall(piece))
    return found, size


def memory_lacks(*secrets):
    """Searches for what must not be there, and for what is known to be, as a check of the search."""
    canary = FACTS["canary"]
    found, size = search(canary, *secrets)
    known = found.pop(canary)
    check(known and size > 8 << 20 and not any(found.values()), f"{known} {size} {found}")

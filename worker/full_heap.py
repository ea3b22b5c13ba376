"""Fills the holes of the template's heap, before workers are forked from it.

What a worker makes would else lie among the template's objects, a few bytes on each of many pages,
and each of these pages would become the worker's own. With nothing free between them what it makes
lies together, on pages that nobody had before: a run of three turns takes 500 page faults in the
place of 650, and an idle worker 1.8 MB in the place of 2.3. What fills the holes is some hundred
kilobytes, shared by all workers.
"""

import sys

# Python's own allocator: pools of objects of one size.
SMALL = 512        # bytes of an object, at most
STEP = 16
POOL = 16 << 10    # bytes; of older versions a multiple
FIRST = 48         # where in a pool its first object lies
SMALL_MOST = 8192  # objects of a size, should it be another allocator

# The C library's, for larger ones: what fits into no hole lies above all others.
LARGE = 64 << 10
LARGE_MOST = 256

EMPTY = sys.getsizeof(b"")
FLOAT = sys.getsizeof(0.5)

_kept = []


def fill():
    fill_large()
    for size in range(STEP, SMALL + 1, STEP):
        fill_small(size)


def fill_large():
    fillers = [bytes(LARGE) for _ in range(4)]
    top = max(map(id, fillers))
    size = LARGE
    while size > SMALL:
        for _ in range(LARGE_MOST):
            fillers.append(bytes(size - EMPTY))
            if id(fillers[-1]) > top:
                top = id(fillers[-1])
                break
        size = size * 7 // 8
    _kept.append(fillers)


def fill_small(size):
    for number in range(SMALL_MOST):
        _kept.append(small(size, number))
        place = id(_kept[-1]) % POOL
        # The third, in a row, of a pool that nothing lay in before.
        if place == FIRST + 2 * size and id(_kept[-2]) % POOL == FIRST + size:
            break


def small(size, number):
    if size > EMPTY:
        return bytes(size - EMPTY)
    return float(number) if size >= FLOAT else object()

"""The inputs of a run: memory files, which become variables.

A small file of UTF-8 is decoded, into memory of this process. A large one is mapped, so that all
workers of a run and of its sub-runs have it in memory, once: an ASCII text becomes a `str` where it
lies, and the characters of another one are decoded where they are touched (demand_paging.h).
"""

import os
import posix

from file_index import FileIndex
from source import SourceText

# The forms of a text that is mapped, and the highest character of each.
HIGHEST = {"ascii": 0x7F, "latin-1": 0xFF, "ucs-2": 0xFFFF, "ucs-4": 0x10FFFF}


def read_inputs(start, fds, native):
    """{name: text}, in order; closes the files.

    native.decode(fd, size, start) and native.map(fd, size, highest, type, start) give the text
    of one, native.view(fd, size) a memoryview. Indexes come behind the inputs.
    """
    inputs = {}
    indexes = iter(fds[len(start["names"]):])
    for place, name in enumerate(start["names"]):
        fd, form, size = fds[place], start["forms"][place], start["sizes"][place]
        first, index = start["starts"][place], start["indexes"][place]
        kind, utf8 = SourceText if index else str, None
        if form in HIGHEST:
            text = native.map(fd, size, HIGHEST[form], kind, first)
            if index and form != "ascii":
                utf8 = native.view(fd, posix.lseek(fd, 0, os.SEEK_END))[first:]
        else:
            text = kind(native.decode(fd, size, first))
        posix.close(fd)
        if index:
            index_fd = next(indexes)
            text.set_index(FileIndex(native.view(index_fd, index)), len(inputs), utf8)
            posix.close(index_fd)
        inputs[name] = text
    inputs.setdefault("context", "")
    return inputs

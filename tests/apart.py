"""tests/apart.py - a test process apart from whatever else the machine does meanwhile.

What a test finds in its namespaces of mounts and of System V objects is then its own doing. Only
root can have them to himself: nobody else can mount anything, so there is nothing to be found, and
his objects are told by their owner.
"""

import ctypes
import os

CLONE_NEWNS, CLONE_NEWIPC = 0x00020000, 0x08000000
MS_REC, MS_PRIVATE = 0x4000, 1 << 18

# Other tests start servers of PostgreSQL as the same user. Each has a segment of System V, which
# holds a header of this many bytes (PGShmemHeader) and nothing else.
POSTGRES_SEGMENT = 56

_apart = False


def own_namespaces():
    """Gives this process, for good, mounts and objects of its own; whether that could be done."""
    global _apart
    if _apart or os.geteuid() != 0:
        return _apart
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS | CLONE_NEWIPC) != 0:
        return False
    if libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None) != 0:
        raise OSError(ctypes.get_errno(), "mount")
    _apart = True
    return True


def mounts():
    """The mounts, where only this process and its children can have done so; or nothing."""
    if not _apart:
        return set()
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        return {line.split(" ", 1)[1] for line in file}


def interprocess_objects():
    """The System V objects of this process's namespace, or else of its user: kind and number."""
    found = set()
    for kind in ("shm", "sem", "msg"):
        try:
            with open(f"/proc/sysvipc/{kind}", encoding="ascii") as file:
                names, *lines = [line.split() for line in file]
        except OSError:
            continue  # a kernel without them
        for line in lines:
            entry = dict(zip(names, line))
            of_postgres = kind == "shm" and int(entry["size"]) == POSTGRES_SEGMENT
            if _apart or (int(entry["uid"]) == os.geteuid() and not of_postgres):
                found.add(f"{kind} {line[1]}")
    return found

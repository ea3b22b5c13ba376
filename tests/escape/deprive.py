"""deprive.py COMMAND... - runs a command as on a machine that has no namespaces and no Landlock.

Stands in for a container's own filter, or an old kernel: every way to a namespace, a mount or a
Landlock ruleset fails as it would there.
"""

import ctypes
import errno
import os
import sys

ALLOW, ERRNO, MASKED_EQUAL = 0x7FFF0000, 0x00050000, 7
NEW_FLAGS = (0x20000, 0x80, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)
REFUSED = ("unshare", "setns", "mount", "umount2", "pivot_root", "fsopen", "fsmount", "fsconfig",
           "move_mount", "open_tree", "mount_setattr")
MISSING = (435, 444, 445, 446)  # clone3 (its flags cannot be seen), and Landlock's three


class Comparison(ctypes.Structure):
    _fields_ = [("argument", ctypes.c_uint), ("operator", ctypes.c_int),
                ("mask", ctypes.c_uint64), ("value", ctypes.c_uint64)]


def install():
    library = ctypes.CDLL("libseccomp.so.2")
    library.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(library.seccomp_init(ctypes.c_uint32(ALLOW)))

    def refuse(number, error, *comparisons):
        rules = (Comparison * len(comparisons))(*comparisons)
        action = ctypes.c_uint32(ERRNO | error)
        if library.seccomp_rule_add_array(context, action, number, len(comparisons), rules) != 0:
            raise OSError(f"no rule for call {number}")

    for name in REFUSED:
        refuse(library.seccomp_syscall_resolve_name(name.encode()), errno.EPERM)
    for number in MISSING:
        refuse(number, errno.ENOSYS)
    clone = library.seccomp_syscall_resolve_name(b"clone")
    for flag in NEW_FLAGS:
        refuse(clone, errno.EPERM, Comparison(0, MASKED_EQUAL, flag, flag))
    if library.seccomp_load(context) != 0:
        raise OSError("the filter cannot be loaded")


if __name__ == "__main__":
    install()
    os.execvp(sys.argv[1], sys.argv[1:])

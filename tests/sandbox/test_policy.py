"""Every argument that the filter looks at, from inside a real worker: one test each.

What is refused here would succeed, or fail with another error, without the filter: EPERM is
the filter's own answer. What is allowed must not fail with EPERM.
"""
import json
import pathlib
import platform
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))

from harness import RLMD, SystemTest, block, turn  # noqa: E402

NUMBERS = {
    "x86_64": dict(sched_getaffinity=204, clock_gettime=228, clock_getres=229, clock_nanosleep=230,
                   mmap=9, mprotect=10, ioctl=16, mremap=25, madvise=28, getpid=39, sendto=44,
                   recvfrom=45, socketpair=53, clone=56, fcntl=72, futex=202, tgkill=234,
                   prlimit64=302, clone3=435),
    "aarch64": dict(sched_getaffinity=123, clock_gettime=113, clock_getres=114, clock_nanosleep=115,
                    fcntl=25, ioctl=29, futex=98, tgkill=131, getpid=172, socketpair=199,
                    sendto=206, recvfrom=207, mremap=216, clone=220, mmap=222, mprotect=226,
                    madvise=233, prlimit64=261, clone3=435),
}[platform.machine()]

# `call` gives the name of the errno, or "ok". What the attempts need stands ready beside it.
PRELUDE = """
import ctypes, errno, json, os, threading
library = ctypes.CDLL(None, use_errno=True)
library.syscall.restype = ctypes.c_long
results = []

def call(number, *arguments):
    if library.syscall(*map(ctypes.c_ulong, (number,) + arguments)) != -1:
        return "ok"
    return errno.errorcode[ctypes.get_errno()]

def address(thing):
    return ctypes.addressof(thing)

HIGH = 1 << 32
ANYWHERE = (1 << 64) - 1  # as a descriptor: none
library.mmap.restype = ctypes.c_void_p
page = library.mmap(None, ctypes.c_size_t(8192), 3, 0x22, -1, ctypes.c_long(0))
word = ctypes.c_uint32(0)
room, zeros = ctypes.create_string_buffer(128), ctypes.create_string_buffer(16)
pair = (ctypes.c_int * 2)()
assert call({socketpair}, 1, 1, 0, address(pair)) == "ok"
left, right = pair
me = os.getpid()
"""


class Policy(SystemTest):
    def attempt(self, allowed, refused):
        """Each is the text of a call's name and arguments; `refused` must fail with EPERM."""
        lines = []
        for attempt in allowed + refused:
            name, _, arguments = attempt.partition(" ")
            lines.append(f"results.append(call({NUMBERS[name]}, {arguments}))")
        code = "\n".join([PRELUDE.format(**NUMBERS), *lines, "print(json.dumps(results))"])
        executions, _ = self.blocks(code)
        self.assertIsNone(executions[0]["error"])
        answers = json.loads(executions[0]["stdout"])
        for attempt, answer in zip(allowed, answers):
            with self.subTest(allowed=attempt):
                self.assertNotIn(answer, ("EPERM", "ENOSYS"))
        for attempt, answer in zip(refused, answers[len(allowed):]):
            with self.subTest(refused=attempt):
                self.assertEqual(answer, "EPERM")
        self.assertEqual(len(answers), len(allowed) + len(refused))
        self.assertGreater(len(refused), 1)

    def test_mmap_protection(self):
        """G7: no executable memory."""
        self.attempt(["mmap 0, 4096, 3, 0x22, ANYWHERE, 0", "mmap 0, 4096, 0, 0x22, ANYWHERE, 0"],
                     [f"mmap 0, 4096, {prot}, 0x22, ANYWHERE, 0"
                      for prot in ("4", "5", "7", "1 | HIGH", "1 | 0x01000000")])

    def test_mmap_flags(self):
        """G8: nothing shared, which RLIMIT_DATA does not count; nothing locked, no huge pages."""
        flags = ("0x21", "0x2022", "0x8022", "0x40022", "0x122", "0x23", "0x22 | HIGH", "0x80022")
        self.attempt(["mmap 0, 4096, 3, 0x4022, ANYWHERE, 0",
                      "mmap 0, 4096, 0, 0x20022, ANYWHERE, 0"],
                     [f"mmap 0, 4096, 3, {flag}, ANYWHERE, 0" for flag in flags])

    def test_mprotect(self):
        self.attempt(["mprotect page, 4096, 1", "mprotect page, 4096, 3"],
                     [f"mprotect page, 4096, {prot}"
                      for prot in ("4", "5", "7", "3 | HIGH", "3 | 0x01000000")])

    def test_mremap(self):
        self.attempt(["mremap page, 8192, 8192, 0, 0", "mremap page, 8192, 8192, 1, 0"],
                     ["mremap page, 8192, 8192, 5, 0", "mremap page, 8192, 8192, 1 | HIGH, 0"])

    def test_madvise(self):
        self.attempt([f"madvise page, 4096, {advice}" for advice in (0, 4, 8, 14, 15, 16)],
                     [f"madvise page, 4096, {advice}"
                      for advice in ("3", "9", "10", "12", "18", "22", "23", "100", "4 | HIGH")])

    def test_futex(self):
        """G7: no priority inheritance, which had holes (CVE-2014-3153). G5, G6: nobody is woken but oneself."""
        self.attempt([f"futex address(word), {op}, 1, 0, address(word), 0"
                      for op in ("129", "3 | 128", "10 | 128")],
                     [f"futex address(word), {op}, 1, 0, address(word), 0"
                      for op in ("1", "3", "4", "10", "2", "5", "6", "6 | 128", "7", "8", "11", "12", "13", "1 | HIGH")])

    def test_clocks(self):
        """G5: a clock can be made of any pid, and tells that the process exists and how busy it is."""
        others = ("(~1 << 3) | 2", "(~os.getppid() << 3) | 2", "(~1 << 3) & 0xffffffff | 2", "2 | HIGH")
        self.attempt([f"{name} {clock}, address(room)" for name in ("clock_gettime", "clock_getres")
                      for clock in (0, 1, 2, 3, 7)] + ["clock_nanosleep 1, 0, address(zeros), 0"],
                     [f"{name} {clock}, address(room)" for name in ("clock_gettime", "clock_getres")
                      for clock in others] +
                     [f"clock_nanosleep {clock}, 0, address(zeros), 0" for clock in ("2", *others)])

    def test_sched_getaffinity(self):
        """G5: an answer tells that the process exists."""
        self.attempt(["sched_getaffinity 0, 128, address(room)"],
                     [f"sched_getaffinity {pid}, 128, address(room)"
                      for pid in ("1", "os.getppid() or 2", "HIGH")])

    def test_clone(self):
        """G4: threads, but no processes and no namespaces."""
        threads, _ = self.blocks("import threading\n"
                                 "t = threading.Thread(target=print, args=('hi',))\n"
                                 "t.start()\nt.join()")
        self.assertEqual((threads[0]["stdout"], threads[0]["error"]), ("hi\n", None))
        flags = ("17", "0", "0x4011", "0x3d0f00 | 0x10000000", "0x3d0f00 | 0x40000000",
                 "0x3d0f00 & ~0x10000", "0x3d0f00 | HIGH", "0x3d0f00 | 0x1000")
        self.attempt([], [f"clone {flag}, 0, 0, 0, 0" for flag in flags])

    def test_clone3(self):
        """Its flags cannot be seen; glibc is told to use clone."""
        code = PRELUDE.format(**NUMBERS) + f"print(call({NUMBERS['clone3']}, address(room), 88))"
        self.assertEqual(self.blocks(code)[0][0]["stdout"], "ENOSYS\n")

    def test_tgkill(self):
        """G5: no signal but abort, to nobody but oneself."""
        self.attempt([], [f"tgkill {arguments}" for arguments in (
            "me, me, 19", "me, me, 9", "me, me, 0", "me + 1, me + 1, 6",
            "os.getppid(), os.getppid(), 6", "me | HIGH, me, 6", "me, me, 6 | HIGH")])
        entries = [turn(block("import os; os.abort()")), turn("FINAL(done)")]
        outcome = self.replay(entries, "--json", "-q")
        # The first process of a pid namespace is spared by SIGABRT, and then aborts by a trap.
        self.assertRegex(outcome.executions()[0]["error"], r"signal (6|11) ")

    def test_prlimit64(self):
        self.attempt(["prlimit64 0, 7, 0, address(room)"],
                     ["prlimit64 0, 7, address(room), 0", "prlimit64 me, 7, 0, address(room)",
                      "prlimit64 os.getppid() or me, 7, 0, address(room)",
                      "prlimit64 HIGH, 7, 0, address(room)", "prlimit64 0, 7, HIGH, address(room)"])

    def test_ioctl(self):
        """Commands are compared whole: the kernel looks at 32 bits (CVE-2019-10063)."""
        self.attempt(["ioctl left, 0x5401, address(room)", "ioctl left, 0x5421, address(word)",
                      "ioctl left, 0x5451"],
                     [f"ioctl left, {command}, address(room)" for command in (
                         "0x5412", "0x541b", "0x5452", "0x8901", "0x5401 | HIGH", "0x5412 | HIGH",
                         "0x5421 | HIGH")])

    def test_fcntl_commands(self):
        """G5, G8: no owner to send signals to, no locks, leases, notes or larger pipes."""
        commands = ("0", "5", "6", "7", "8", "10", "15", "36", "37", "38", "1024", "1026", "1031",
                    "1033", "1 | HIGH", "8 | HIGH")
        self.attempt(["fcntl left, 1", "fcntl left, 2, 1", "fcntl left, 3", "fcntl left, 4, 0",
                      "fcntl left, 1030, 0"],
                     [f"fcntl left, {command}, me" for command in commands])

    def test_fcntl_flags(self):
        self.attempt(["fcntl left, 4, 0x800"],
                     ["fcntl left, 4, 0x2000", "fcntl left, 4, 0x2800"])

    def test_socketpair(self):
        """G3: a pair that leads nowhere, and no other."""
        self.attempt(["socketpair 1, 1, 0, address(room)",
                      "socketpair 1, 0x80801, 0, address(room)"],
                     [f"socketpair {arguments}, address(room)" for arguments in (
                         "1, 2, 0", "1, 5, 0", "1, 3, 0", "2, 1, 0", "10, 1, 0", "40, 1, 0",
                         "1, 1, 1", "1 | HIGH, 1, 0", "1, 1 | HIGH, 0", "1, 1, HIGH")])

    def test_sendto(self):
        """G3: no address; no flags, for MSG_OOB had a hole (CVE-2025-38236)."""
        self.attempt(["sendto left, address(room), 1, 0, 0, 0",
                      "sendto left, address(room), 1, 0x4000, 0, 0"],
                     [f"sendto left, address(room), 1, {flags}, 0, 0"
                      for flags in ("1", "0x40", "0x4001", "0x8000", "0x4000000", "HIGH")]
                     + ["sendto left, address(room), 1, 0, address(room), 16",
                        "sendto left, address(room), 1, 0, HIGH, 16"])

    def test_recvfrom(self):
        self.attempt(["sendto right, address(room), 2, 0, 0, 0",
                      "recvfrom left, address(room), 1, 0, 0, 0",
                      "recvfrom left, address(room), 1, 0x4000, 0, 0"],
                     [f"recvfrom left, address(room), 1, {flags}, 0, 0"
                      for flags in ("1", "2", "0x40", "0x100", "HIGH")]
                     + ["recvfrom left, address(room), 1, 0, address(room), address(word)"])


class Program(SystemTest):
    def test_no_filter_is_made_at_run_time(self):
        """libseccomp makes wrong ones where memory is short, so the program is not linked with it."""
        self.assertNotIn(b"libseccomp", pathlib.Path(RLMD).read_bytes())


if __name__ == "__main__":
    unittest.main()

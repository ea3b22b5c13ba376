"""G7: no privilege, no executable memory, and none of the parts of the kernel where holes have been."""

from attempts import Group

GROUP = Group("kernel")

FORBIDDEN = {
    "io_uring_setup": "8, bytes(120)", "io_uring_enter": "4, 1, 1, 0, 0, 0", "io_uring_register": "4, 0, 0, 0",
    "bpf": "5, bytes(128), 128", "keyctl": "1, 0", "add_key": "b'user', b'x', b'y', 1, -3",
    "request_key": "b'user', b'x', 0, -3", "userfaultfd": "1", "perf_event_open": "bytes(128), 0, -1, -1, 0",
    "personality": "0x400000", "modify_ldt": "1, bytes(16), 16", "iopl": "3", "ioperm": "0x80, 1, 1",
    "seccomp": "1, 8, 0", "unshare": "0x10000000", "setns": "4, 0", "mount": "0, b'/tmp', b'tmpfs', 0, 0",
    "umount2": "b'/', 2", "pivot_root": "b'/', b'/'", "fsopen": "b'tmpfs', 0", "fsmount": "4, 0, 0",
    "fsconfig": "4, 6, 0, 0, 0", "fspick": "-100, b'/', 0", "open_tree": "-100, b'/', 1",
    "move_mount": "4, b'', -100, b'/tmp', 4", "mount_setattr": "-100, b'/', 0, bytes(32), 32", "kexec_load": "0, 0, 0, 0",
    "kexec_file_load": "4, 4, 0, b'', 0", "init_module": "bytes(64), 64, b''", "finit_module": "4, b'', 0",
    "delete_module": "b'x', 0", "swapon": "b'/x', 0", "swapoff": "b'/x'", "reboot": "0xfee1dead, 672274793, 0, 0",
    "quotactl": "0, 0, 0, 0", "acct": "0", "vmsplice": "4, bytes(16), 1, 0",
}
for name, arguments in FORBIDDEN.items():
    GROUP.add(name, "SIGSYS", f"call('{name}', {arguments})")

# Foreign tables of system calls.

GROUP.each(
    "SIGSYS",
    x32_getpid="call(x32(39))",
    x32_open="call(x32(2), FACTS['file'].encode(), 0)",
    x32_own_number="call(x32(520), b'/bin/true', 0, 0)",
    i386_gate="""
# No machine code can be written, but some of the C library's bytes are an `int $0x80`; what is in
# the register for the number is the count of floating-point arguments: 2 is i386's fork.
x32(0)  # only there
first = ctypes.cast(libc.abort, ctypes.c_void_p).value
code = ctypes.string_at(first, 1 << 20)
gate = first + code.index(b"\\xcd\\x80")
ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_double, ctypes.c_double)(gate)(0.0, 0.0)
""",
)

GROUP.add("vsyscall_page", "held died", """
x32(0)  # only there
getcpu = ctypes.CFUNCTYPE(ctypes.c_long, *[ctypes.c_void_p] * 3)(0xffffffffff600800)
check(getcpu(None, None, None) == -1, "answered")
""")

GROUP.add("numbers_of_the_future", "held", """
each("ENOSYS", *[(number, number) for number in [*range(451, 600), 1000, 4096, 65535, (1 << 30) - 1]])
""")

GROUP.add("number_that_is_none", "ENOSYS EPERM SIGSYS", "call(-1)")

GROUP.add("a_number_hidden_in_more_bits", "held", """
path = FACTS["file"].encode()
each("EPERM", ("open", NUMBERS.get("openat") | 1 << 32, -100, path, 0), ("socket", NUMBERS.get("socket") | 1 << 63, 2, 1, 0))
""")

GROUP.add("whatever_else_there_is", "held", """
names = '''_sysctl adjtimex afs_syscall arch_prctl clock_adjtime clock_settime close_range
    create_module epoll_create epoll_ctl_old epoll_wait_old epoll_pwait2 futex_waitv
    get_kernel_syms get_mempolicy get_thread_area getcpu getegid32 getitimer_old getpgrp
    getpmsg getresgid getresuid getrlimit getxattr idle io_cancel io_destroy io_getevents
    io_pgetevents ioprio_get landlock_restrict_self lookup_dcookie mbind mincore mlock
    mlock2 mlockall mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink
    msgctl msgget msgrcv msgsnd msync munlock munlockall nfsservctl pause pidfd_open
    pkey_alloc pkey_free pkey_mprotect preadv2 putpmsg query_module quotactl_fd
    remap_file_pages rt_sigpending rt_sigsuspend rt_sigtimedwait sched_get_priority_max
    sched_getattr sched_getparam sched_getscheduler security semctl semget semop semtimedop
    set_mempolicy set_mempolicy_home_node set_thread_area set_tid_address setdomainname
    sethostname settimeofday shmat shmctl shmdt shmget signalfd stime sysfs sysinfo syslog
    timer_create timer_delete timer_getoverrun timer_gettime timer_settime timerfd_create
    timerfd_gettime timerfd_settime tuxcall uselib ustat vhangup vserver'''.split()
each("EPERM", *[((name, value), name, *[value] * 6) for name in names for value in (0, -1)])
""")

GROUP.add("commands_of_ioctl", "held", """
import random
known = {0x5401, 0x5421, 0x5451}  # TCGETS, FIONBIO, FIOCLEX
room = ctypes.create_string_buffer(1 << 14)
commands = [*range(0x5400, 0x5480), *range(0x8900, 0x8920)]
commands += [0xae01, 0x4b3a, 0x541c, 0x5423, 0xc0045877, 0x40049409]
commands += [random.getrandbits(32) for _ in range(500)]
commands = [command for command in commands if command not in known]
commands += [command | high << 32 for command in known for high in (1, 1 << 31)]
commands += [0x5412 | high << 32 for high in (0, 1, 1 << 31)]
each("EPERM", *[((fd, hex(command)), "ioctl", fd, command, room) for fd in (0, 4) for command in commands])
""")

GROUP.add("commands_of_fcntl", "held", """
known = {1, 2, 3, 4, 1030}  # F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC
room = ctypes.create_string_buffer(256)
commands = [command for command in [*range(0, 64), *range(1024, 1100)] if command not in known]
commands += [command | 1 << 32 for command in known]
each("EPERM", *[((fd, command), "fcntl", fd, command, room) for fd in (0, 4) for command in commands])
""")

# Executable memory.

GROUP.add("mapping_executable_memory", "held", """
protections = (4, 5, 6, 7, 8, 16, 3 | 1 << 32, 3 | 1 << 63, 0x1000000 | 3)
each("EPERM", *[((prot, flags), "mmap", 0, PAGE, prot, flags, -1, 0)
     for prot in protections for flags in (0x22, 0x21)],
     *[(fd, "mmap", 0, PAGE, 5, PRIVATE, fd, 0) for fd in range(5)])
""")

GROUP.add("making_memory_executable", "held", """
page = call("mmap", 0, PAGE, 3, PRIVATE | ANONYMOUS, -1, 0)
text = ctypes.cast(libc.abort, ctypes.c_void_p).value // PAGE * PAGE
stack = ctypes.addressof(ctypes.create_string_buffer(1)) // PAGE * PAGE
each("EPERM", *[((hex(where), prot), "mprotect", where, PAGE, prot) for where in (page, text, stack)
     for prot in (4, 5, 6, 7, 7 | 1 << 32, 3 | 0x1000000, 3 | 0x2000000, 5 | 0x2000000)],
     ("pkey", "pkey_mprotect", page, PAGE, 7, -1), ("pkey_alloc", "pkey_alloc", 0, 0))
""")

GROUP.add("code_that_was_written_over_runs_no_more", "died EPERM EACCES", """
abort = ctypes.cast(libc.abort, ctypes.c_void_p).value
page = abort // PAGE * PAGE
call("mprotect", page, 2 * PAGE, 3)
ctypes.memset(abort, 0x90, 16)
try:
    call("mprotect", page, 2 * PAGE, 5)
finally:
    libc.abort()
""")

GROUP.add("code_by_a_moved_mapping", "died EPERM EINVAL EFAULT EACCES", """
# Old code's mapping is moved away, own bytes are put where it was.
text = ctypes.cast(libc.abort, ctypes.c_void_p).value // PAGE * PAGE
page = call("mmap", 0, PAGE, 3, PRIVATE | ANONYMOUS, -1, 0)
ctypes.memset(page, 0xc3, PAGE)
call("mremap", page, PAGE, PAGE, 3, text)
ctypes.CFUNCTYPE(ctypes.c_long)(text)()
print("own code ran")
""")

GROUP.add("callback_of_ctypes", "MemoryError died", "ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 7)()")

GROUP.add("shared_and_odd_mappings", "held", """
flags = [0x21, 0x23, 0x122, 0x62, 0x2022, 0x8022, 0x40022, 0x80022, 0x4000022, 0x200022]
flags.append(0x22 | 1 << 32)
each("EPERM", *[(hex(flag), "mmap", 0, 1 << 21, 3, flag, -1, 0) for flag in flags])
""")

GROUP.add("flags_of_mremap", "held", """
page = call("mmap", 0, PAGE, 3, PRIVATE | ANONYMOUS, -1, 0)
each("EPERM", *[(hex(flag), "mremap", page, PAGE, PAGE, flag, page)
     for flag in (4, 5, 8, 16, 1 << 32, 1 | 1 << 32)])
""")

GROUP.add("advice_about_memory", "held", """
page = call("mmap", 0, PAGE, 3, PRIVATE | ANONYMOUS, -1, 0)
advice = [value for value in [*range(-1, 130), 4 | 1 << 32] if value not in (0, 4, 8, 14, 15, 16)]
each("EPERM", *[(value, "madvise", page, PAGE, value) for value in advice])
""")

GROUP.add("operations_of_futex", "held", """
word = ctypes.create_string_buffer(64)
known = (0, 1, 3, 4, 9, 10)
operations = [op | flag for op in range(32) if op not in known for flag in (0, 128, 256, 384)]
operations += [op | flag for op in known for flag in (64, 512, 1 << 31, 1 << 32)]
each("EPERM", *[(hex(op), "futex", word, op, 1, 0, word, 0) for op in operations], ("waitv", "futex_waitv", word, 1, 0, 0, 0))
""")

GROUP.add("clocks_and_names_of_the_machine", "held", """
each("EPERM", ("settimeofday", "settimeofday", bytes(16), 0), ("clock_settime", "clock_settime", 0, bytes(16)),
     ("adjtimex", "adjtimex", bytes(256)), ("sethostname", "sethostname", b"x", 1), ("setdomainname", "setdomainname", b"x", 1),
     ("syslog", "syslog", 3, bytes(4096), 4096), ("sysinfo", "sysinfo", bytes(256)))
""")

GROUP.add("interprocess_communication", "held", """
name = b"/" + FACTS["abstract"].encode()
each("EPERM", ("shmget", "shmget", 0x726c6d64, 4096, 0o1666), ("semget", "semget", 0x726c6d64, 1, 0o1666),
     ("msgget", "msgget", 0x726c6d64, 0o1666), ("mq_open", "mq_open", name, 0o102, 0o666, 0), ("shmat", "shmat", 0, 0, 0))
""")

"""G4, G5: no program, no other process, and nobody else is signalled, traced or read."""

from attempts import Group

GROUP = Group("processes")

GROUP.each(
    "EPERM",
    fork="os.fork() or os._exit(0)",
    raw_fork="call('fork') or os._exit(0)",
    vfork="call('vfork') or os._exit(0)",
    execv="os.execv('/bin/true', ['true'])",
    execveat_of_a_descriptor="call('execveat', 4, b'', 0, 0, 0x1000)",
    posix_spawn="os.posix_spawn('/bin/true', ['true'], {})",
    subprocess="import subprocess; subprocess.run(['true'])",
    multiprocessing="import multiprocessing as m; m.get_context('fork').Process(target=print).start()",
    process_pool="from concurrent.futures import ProcessPoolExecutor as P; P(1).submit(print).result()",
    wait_for_any="os.waitpid(-1, 0)",
    end_of_the_parent_unnoticed="call('prctl', 1, 0)",
    dumpable_again="call('prctl', 4, 1)",
)

GROUP.add("forkpty", "OSError EPERM", "import pty; pty.fork()")
GROUP.add("system", "held", "check(os.system('true') != 0, 'a shell ran')")
GROUP.add("popen_of_the_c_library", "held", "check(not libc.popen(b'true', b'r'), 'a shell ran')")

GROUP.add("flags_of_clone", "held", """
THREAD = 0x3d0f00
def clone(flags):
    return call("clone", flags, 0, 0, 0, 0) or os._exit(0)
NEW = [0x20000, *(1 << bit for bit in range(25, 31))]
flags = [0, *(bits | signal.SIGCHLD for bits in (0, 0x80, 0x100, 0x4100, 0x8000, *NEW))]
flags += [THREAD & ~bit for bit in (0x10000, 0x800, 0x100)]
flags += [THREAD | bit for bit in (signal.SIGCHLD, 0x1000, 0x2000, 0x8000, 0x800000, *NEW)]
flags += [THREAD | 1 << bit for bit in (31, 32, 63)]
each("EPERM", *[(hex(each), clone, each) for each in flags])
""")

GROUP.add("clone3", "held", """
def clone3(flags, signal, cgroup=0):
    arguments = struct.pack("11Q", flags, 0, 0, 0, signal, 0, 0, 0, 0, 0, cgroup)
    return call("clone3", arguments, len(arguments)) or os._exit(0)
each("ENOSYS", ("fork", clone3, 0, 17), ("new user", clone3, 0x10000000, 17), ("into a cgroup", clone3, 0x200000000, 17, 3))
""")

GROUP.add("kill", "held", """
pids = [os.getppid(), 0, 1, -1, os.getpid(), -os.getpid(), FACTS["bystander"], -FACTS["bystander"]]
each("EPERM", *[((pid, number), os.kill, pid, number) for pid in pids for number in (0, 9, 15, 19, 2)])
""")

GROUP.add("kill_by_other_names", "held", """
me, info = os.getpid(), ctypes.create_string_buffer(128)
struct.pack_into("iii", info, 0, 9, 0, -1)
pids = (os.getppid(), FACTS["bystander"], me)
each("EPERM", *[((name, pid), name, *build(pid)) for pid in pids for name, build in (
    ("tkill", lambda pid: (pid, 9)), ("tgkill", lambda pid: (pid, pid, 9)),
    ("rt_sigqueueinfo", lambda pid: (pid, 9, info)), ("rt_tgsigqueueinfo", lambda pid: (pid, pid, 9, info)),
    ("pidfd_open", lambda pid: (pid, 0)), ("pidfd_send_signal", lambda pid: (4, 9, 0, 0)))])
""")

GROUP.add("abort_somebody_else", "held", """
me, thread, parent, other = os.getpid(), threading.get_native_id(), os.getppid(), FACTS["bystander"]
each("EPERM", *[(case, "tgkill", *case) for case in (
     (parent, parent, 6), (-1, thread, 6), (other, other, 6), (me | 1 << 32, thread, 6),
     (me, thread, 6 | 1 << 32), (me, thread, 9))])
""")

GROUP.add("stop_itself", "held", """
numbers = (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGKILL, signal.SIGXCPU)
each("EPERM", *[(number, "tgkill", os.getpid(), threading.get_native_id(), number)
     for number in numbers],
     ("raise", signal.raise_signal, signal.SIGSTOP))
""")

GROUP.add("a_signal_without_kill", "held", """
import fcntl
ours, theirs = socket.socketpair()
victim, fd = FACTS["bystander"], ours.fileno()
owner = struct.pack("ii", 1, victim)
each("EPERM", *[((name, fd), fcntl.fcntl, fd, command, argument) for fd in (fd, 3, 4)
     for name, command, argument in (
     ("F_SETOWN", 8, victim), ("F_SETOWN group", 8, -victim), ("F_SETSIG", 10, 9), ("F_SETOWN_EX", 15, owner),
     ("F_GETOWN", 9, 0), ("O_ASYNC", 4, 0x2000), ("O_ASYNC hidden", 4, 0x2800), ("F_NOTIFY", 1026, 1))],
     *[(hex(command), "ioctl", fd, command, struct.pack("i", victim))
       for command in (0x5452, 0x8901, 0x8902, 0x8904)])
""")

GROUP.add("groups_and_sessions", "held", """
each("EPERM", ("setsid", os.setsid), ("setpgid", os.setpgid, 0, 0), ("getpgid", os.getpgid, 0), ("getsid", os.getsid, 0),
     ("tcsetpgrp", "ioctl", 0, 0x5410, 0), ("vhangup", "vhangup"), ("join a session of another", os.setpgid, 0, FACTS["bystander"]))
""")

GROUP.add("process_controls", "held", """
options = list(range(1, 80)) + [0x59616d61, 0x53564d41, 0x41555856, 1 << 32 | 1]
each("EPERM", *[((option, value), "prctl", option, value, 0, 0, 0) for option in options for value in (0, 1)])
""")

GROUP.add("who_it_is", "held", """
each("EPERM", *[((name, value), name, *[value] * count) for value in (0, 1, 65534) for name, count in (
    ("setuid", 1), ("setgid", 1), ("setreuid", 2), ("setregid", 2), ("setresuid", 3), ("setresgid", 3),
    ("setfsuid", 1), ("setfsgid", 1))], ("setgroups", "setgroups", 0, 0), ("getgroups", "getgroups", 0, 0),
    ("capset", "capset", struct.pack("Ii", 0x20080522, 0), bytes(24)), ("capget", "capget", struct.pack("Ii", 0x20080522, 0), bytes(24)))
""")

GROUP.add("it_has_no_capability_to_raise", "held", """
users, groups = {os.getuid(), os.geteuid()}, {os.getgid(), os.getegid()}
check(len(users) == len(groups) == 1, (users, groups))
""")

GROUP.add("limits", "held", """
new, old = struct.pack("QQ", 1 << 40, 1 << 40), ctypes.create_string_buffer(16)
each("EPERM", *[(kind, "prlimit64", 0, kind, new, 0) for kind in range(16)],
     *[((pid, kind), "prlimit64", pid, kind, 0, old) for kind in (0, 7, 9)
       for pid in (os.getppid() or 1, os.getpid(), FACTS["bystander"], 1 << 32)],
     *[(kind, "setrlimit", kind, new) for kind in range(16)])
""")

GROUP.add("limits_are_hard", "held", """
import resource
kinds = ("AS", "DATA", "STACK", "NOFILE", "FSIZE", "CORE", "CPU", "MEMLOCK", "MSGQUEUE", "NICE", "RTPRIO", "SIGPENDING")
limits = {kind: resource.getrlimit(getattr(resource, "RLIMIT_" + kind)) for kind in kinds
          if hasattr(resource, "RLIMIT_" + kind)}
zero = [kind for kind in ("FSIZE", "CORE", "MEMLOCK", "MSGQUEUE", "NICE", "RTPRIO") if limits.get(kind, (0, 0)) != (0, 0)]
check(all(soft == hard != resource.RLIM_INFINITY for soft, hard in limits.values()) and not zero
      and limits["NOFILE"][0] <= 64, (limits, zero))
""")

GROUP.add("priorities", "held", """
room = ctypes.create_string_buffer(64)
each("EPERM", ("nice", os.nice, -1), ("nicer", os.nice, 1), ("setpriority", "setpriority", 0, os.getppid(), 19),
     ("getpriority", "getpriority", 0, 0), ("ioprio_set", "ioprio_set", 1, 0, 0), ("affinity", "sched_setaffinity", 0, 8, b"\\xff" * 8),
     ("of the parent", "sched_setaffinity", os.getppid(), 8, b"\\1" + bytes(7)), ("scheduler", "sched_setscheduler", 0, 1, bytes(4)),
     ("attributes", "sched_setattr", 0, room, 0), ("parameters", "sched_setparam", 0, bytes(4)), ("rr", "sched_rr_get_interval", 0, room))
""")

GROUP.add("memory_of_others_by_the_small_doors", "held", """
me, parent = os.getpid(), os.getppid()
each("EPERM", *[((name, pid), name, *arguments) for pid in (me, parent, FACTS["bystander"]) for name, arguments in (
    ("process_madvise", (4, 0, 0, 4, 0)), ("process_mrelease", (4, 0)), ("migrate_pages", (pid, 1, 0, 0)),
    ("move_pages", (pid, 0, 0, 0, 0, 0)), ("get_robust_list", (pid, bytes(8), bytes(8))))])
""")

GROUP.add("clocks_of_others", "held", """
# A clock is made of any pid; it tells that the process exists, and how busy it is.
room = ctypes.create_string_buffer(16)
pids = (1, os.getppid() or 2, FACTS["bystander"], os.getpid())
clocks = [(~pid << 3 | kind) & mask for pid in pids for kind in (2, 6) for mask in (-1, 0xffffffff)]
each("EPERM", *[((name, clock), name, clock, *rest) for clock in clocks for name, *rest in (
    ("clock_gettime", room), ("clock_getres", room), ("clock_nanosleep", 0, bytes(16), 0))],
    ("clock of a descriptor", "clock_gettime", ~3 << 3 | 3, room), ("sleep by processor time", "clock_nanosleep", 2, 0, bytes(16), 0))
""")

GROUP.add("affinity_of_others", "held", """
room = ctypes.create_string_buffer(128)
pids = (1, os.getppid() or 2, FACTS["bystander"], os.getpid(), 1 << 32)
each("EPERM", *[(pid, "sched_getaffinity", pid, 128, room) for pid in pids])
""")

GROUP.add("wakes_of_others", "held", """
# A futex that is not private is known by file and place; everybody has the C library's mapped.
shared = ctypes.cast(libc.getpid, ctypes.c_void_p).value & -4
each("EPERM ENOSYS", *[((name, operation), "futex", shared, operation, 1, 1, shared + 4, 0)
    for name, operation in (("wake", 1), ("requeue", 3), ("compare and requeue", 4), ("wake some", 10))],
    *[(name, name, shared, 1, 1, 0, 0, 0) for name in ("futex_wake", "futex_requeue") if name in NUMBERS])
""")

GROUP.each(
    "SIGSYS",
    trace_me="call('ptrace', 0, 0, 0, 0)",
    trace_the_parent="call('ptrace', 16, os.getppid(), 0, 0)",
    seize_a_bystander="call('ptrace', 0x4206, FACTS['bystander'], 0, 0)",
    read_memory_of_the_parent="call('process_vm_readv', os.getppid(), bytes(16), 1, bytes(16), 1, 0)",
    write_memory_of_the_parent="call('process_vm_writev', os.getppid(), bytes(16), 1, bytes(16), 1, 0)",
    compare_with_the_parent="call('kcmp', os.getpid(), os.getppid(), 0, 4, 4)",
    descriptor_of_a_bystander="call('pidfd_getfd', 4, 0, 0)",
    forbidden_with_a_handler="""
signal.signal(signal.SIGSYS, lambda *_: print("survived"))
call("ptrace", 0, 0, 0, 0)
""",
    forbidden_with_the_signal_blocked="""
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
call("ptrace", 0, 0, 0, 0)
""",
    forbidden_in_a_thread="""
thread = threading.Thread(target=call, args=("ptrace", 0, 0, 0, 0))
thread.start()
thread.join()
print("survived")
""",
)

GROUP.add("abort", "died", "os.abort()")
GROUP.add("crash", "died", "ctypes.string_at(8)")
GROUP.add("exit", "died", "os._exit(0)")

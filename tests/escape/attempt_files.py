"""G1, G2: no file is read, listed, told of or written."""

from attempts import Group

GROUP = Group("files")

GROUP.each(
    "EPERM",
    open_passwd="open('/etc/passwd').read()",
    open_what_everybody_may_read="open(FACTS['file']).read()",
    open_for_writing="open(FACTS['directory'] + '/new', 'w')",
    open_unnamed="os.open(FACTS['directory'], os.O_TMPFILE | os.O_RDWR)",
    raw_openat="call('openat', -100, b'/etc/passwd', 0)",
    raw_openat2="call('openat2', -100, b'/etc/passwd', bytes(24), 24)",
    openat_beneath_every_descriptor="""
for fd in range(-1, 9):
    try:
        call("openat", fd, b"..", os.O_RDONLY | os.O_DIRECTORY)
    except PermissionError:
        continue
    print("opened below", fd)
raise PermissionError(1, "all")
""",
    listdir_root="os.listdir('/')",
    listdir_here="os.listdir('.')",
    readlink_proc="os.readlink('/proc/self/exe')",
    memory_file="os.memfd_create('x')",
    posix_shared_memory="from multiprocessing import shared_memory as s; s.SharedMemory(create=True, size=4096)",
    posix_semaphore="import multiprocessing; multiprocessing.Semaphore()",
    mmap_of_a_pipe_as_file="import mmap; mmap.mmap(READ, 4096, mmap.MAP_SHARED)",
)

GROUP.add("a_path_is_no_oracle", "held", """
there, missing = FACTS["file"].encode(), FACTS["file"].encode() + b"-not"
room = ctypes.create_string_buffer(4096)
cases = []
for path in (there, missing, b"/", b".", b"", b"/proc/self", b"/proc/self/root/etc/passwd", b"/dev/null"):
    cases += [(("stat", path), "stat", path, room), (("lstat", path), "lstat", path, room),
              (("newfstatat", path), "newfstatat", -100, path, room, 0),
              (("statx", path), "statx", -100, path, 0, 0xfff, room),
              (("access", path), "access", path, 0), (("faccessat", path), "faccessat", -100, path, 0),
              (("faccessat2", path), "faccessat2", -100, path, 0, 0),
              (("statfs", path), "statfs", path, room), (("readlink", path), "readlink", path, room, 4096),
              (("readlinkat", path), "readlinkat", -100, path, room, 4096),
              (("getxattr", path), "getxattr", path, b"user.x", room, 4096),
              (("listxattr", path), "listxattr", path, room, 4096),
              (("utimensat", path), "utimensat", -100, path, 0, 0),
              (("name_to_handle_at", path), "name_to_handle_at", -100, path, room, room, 0)]
each("EPERM", *cases)
""")

GROUP.add("stat_of_an_open_descriptor_by_path", "held", """
room = ctypes.create_string_buffer(4096)
each("EPERM", *[((name, fd), name, fd, b"", *rest) for fd in range(6)
     for name, rest in (("newfstatat", (room, 0x1000)), ("statx", (0x1000, 0xfff, room)),
                        ("name_to_handle_at", (room, room, 0x1000)))])
""")

GROUP.add("proc_and_devices", "held", """
paths = ["/proc/self/" + name for name in ("environ", "mem", "maps", "cmdline", "status", "fd/0", "fd/4",
         "root/etc/passwd", "cwd", "task/1/mem", "map_files", "exe", "auxv", "mountinfo", "pagemap")]
paths += [f"/proc/{pid}/{name}" for pid in (1, os.getppid(), FACTS["bystander"], "thread-self")
          for name in ("environ", "mem", "maps", "cmdline", "fd/4")]
paths += ["/dev/mem", "/dev/kmsg", "/dev/kvm", "/dev/tty", "/dev/ptmx", "/dev/shm", "/dev/fuse",
          "/dev/random", "/dev/vsock", "/sys/kernel/debug", "/sys/fs/cgroup", "/run", "/tmp", "/"]
each("EPERM", *[(path, os.open, path, mode) for path in paths
     for mode in (os.O_RDONLY, os.O_WRONLY, os.O_PATH)])
""")

GROUP.add("changing_what_is_there", "held", """
there, new = FACTS["file"].encode(), FACTS["directory"].encode() + b"/new"
each("EPERM",
     ("creat", "creat", new, 0o666), ("unlink", "unlink", there), ("unlinkat", "unlinkat", -100, there, 0),
     ("rename", "rename", there, new), ("renameat2", "renameat2", -100, there, -100, new, 0),
     ("link", "link", there, new), ("linkat", "linkat", -100, there, -100, new, 0),
     ("linkat of a descriptor", "linkat", 3, b"", -100, new, 0x1000),
     ("symlink", "symlink", there, new), ("symlinkat", "symlinkat", there, -100, new),
     ("mkdir", "mkdir", new, 0o777), ("mkdirat", "mkdirat", -100, new, 0o777), ("rmdir", "rmdir", new),
     ("mknod", "mknod", new, 0o10666, 0), ("mknodat", "mknodat", -100, new, 0o10666, 0),
     ("chmod", "chmod", there, 0), ("fchmod", "fchmod", 4, 0), ("fchmodat", "fchmodat", -100, there, 0),
     ("chown", "chown", there, 0, 0), ("fchown", "fchown", 4, 0, 0), ("lchown", "lchown", there, 0, 0),
     ("fchownat", "fchownat", -100, there, 0, 0, 0), ("truncate", "truncate", there, 0),
     ("utime", "utime", there, 0), ("utimes", "utimes", there, 0), ("futimesat", "futimesat", -100, there, 0),
     ("setxattr", "setxattr", there, b"user.x", b"y", 1, 0), ("fsetxattr", "fsetxattr", 4, b"user.x", b"y", 1, 0),
     ("removexattr", "removexattr", there, b"user.x"))
""")

GROUP.add("own_descriptors_as_files", "held", """
room = ctypes.create_string_buffer(4096)
each("EPERM", *[((name, fd), name, fd, *rest) for fd in (0, 3, 4) for name, rest in (
    ("ftruncate", (1 << 20,)), ("fallocate", (0, 0, 1 << 20)), ("fsync", ()), ("fdatasync", ()),
    ("flock", (2,)), ("getdents64", (room, 4096)), ("getdents", (room, 4096)), ("fchdir", ()),
    ("fstatfs", (room,)), ("fgetxattr", (b"user.x", room, 4096)), ("flistxattr", (room, 4096)),
    ("readahead", (0, 4096)), ("fadvise64", (0, 0, 3)), ("pread64", (room, 16, 0)), ("pwrite64", (room, 16, 0)),
    ("preadv", (room, 1, 0)), ("pwritev2", (room, 1, 0, 0, 0)), ("readv", (room, 1)),
    ("sync_file_range", (0, 0, 0)), ("syncfs", ()))])
""")

GROUP.add("moving_data_between_descriptors", "held", """
each("EPERM", ("splice", "splice", 3, 0, 4, 0, 4096, 0), ("tee", "tee", 3, 4, 4096, 0),
     ("sendfile", "sendfile", 4, 0, 0, 4096), ("copy_file_range", "copy_file_range", 0, 0, 4, 0, 4096, 0),
     ("dup", "dup", 4), ("dup2", "dup2", 4, 9), ("dup3", "dup3", 4, 9, 0), ("pipe2", os.pipe),
     ("io_setup", "io_setup", 8, ctypes.byref(ctypes.c_ulong())), ("io_submit", "io_submit", 0, 0, 0),
     ("memfd_secret", "memfd_secret", 0), ("eventfd", "eventfd2", 0, 0), ("signalfd", "signalfd4", -1, bytes(8), 8, 0))
""")

GROUP.add("another_place", "held", """
each("EPERM", ("chdir", os.chdir, "/etc"), ("chroot", os.chroot, "/tmp"), ("umask", "umask", 0),
     ("sync", "sync"), ("inotify_init", "inotify_init1", 0), ("fanotify_init", "fanotify_init", 0, 0),
     ("inotify_add_watch", "inotify_add_watch", 0, b"/", 1), ("landlock_add_rule", "landlock_add_rule", 0, 1, bytes(16), 0),
     ("landlock_create_ruleset", "landlock_create_ruleset", 0, 0, 1))
""")

GROUP.add("where_it_is_says_nothing", "held", "check(os.getcwd() == '/', os.getcwd())")

GROUP.add("no_descriptor_but_its_own", "held", """
import fcntl, stat
def kind(fd):
    room = ctypes.create_string_buffer(256)
    call("fstat", fd, room)
    return stat.S_IFMT(struct.unpack_from("I", room, 24 if "stat" in NUMBERS else 16)[0])
there = [fd for fd in range(4096) if outcome_of(lambda: fcntl.fcntl(fd, fcntl.F_GETFD)) != "EBADF"]
kinds = [kind(fd) for fd in there]
check(there == [0, 1, 2, 3, 4] and kinds == [stat.S_IFCHR] * 3 + [stat.S_IFIFO] * 2, (there, kinds))
""")

GROUP.add("its_pipes_go_one_way", "held", """
each("EBADF", ("write to what it reads", os.write, READ, b"x"), ("read from what it writes", os.read, WRITE, 1))
""")

GROUP.add("import_from_a_directory", "ModuleNotFoundError", """
sys.path.insert(0, FACTS["directory"])
sys.path_importer_cache.clear()
import importlib
importlib.invalidate_caches()
import bait_module
""")

GROUP.add("load_a_shared_object", "OSError", "ctypes.CDLL(FACTS['directory'] + '/bait.so')")

GROUP.add("database_in_a_file", "OperationalError EPERM", """
import sqlite3
sqlite3.connect(FACTS["directory"] + "/new").execute("create table t (x)")
""")

GROUP.add("database_attached_by_sql", "OperationalError EPERM", """
import sqlite3
sqlite3.connect(":memory:").execute("attach database ? as other", (FACTS["file"],))
""")

GROUP.add("temporary_file", "FileNotFoundError ENOENT EPERM", "import tempfile; tempfile.TemporaryFile()")

GROUP.add("c_library_opens_for_us", "held", """
libc.fopen.restype = libc.opendir.restype = libc.setlocale.restype = ctypes.c_void_p
check(not libc.fopen(b"/etc/passwd", b"r") and not libc.opendir(b"/") and not libc.getpwnam(b"root")
      and not libc.setlocale(6, b"de_DE.UTF-8") and libc.shm_open(b"/x", 0o102, 0o600) == -1
      and libc.mkstemp(ctypes.create_string_buffer(b"/tmp/xXXXXXX")) == -1, "something was opened")
""")

GROUP.add("open_by_handle", "SIGSYS", "call('open_by_handle_at', 4, bytes(128), 0)")

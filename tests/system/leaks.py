"""tests/system/leaks.py - a mixin that fails a test which leaves something behind.

    class ExecTest(LeakGuard, unittest.TestCase):
        def test_answer(self):
            subprocess.run([...], env=self.environment, check=True)

Guards LIB-15: after a test there may be no process that it (or a process that it killed)
started, no open descriptor, no file in the directories where a program may put temporary
files and no shared memory that was not there before, and no cgroup that its children made.
Clean-ups that the test registers itself run before the check; they should stop its servers
and close its pipes.
"""
import ctypes
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest.mock
from pathlib import Path

import patience

PR_SET_CHILD_SUBREAPER = 36
GRACE_SECONDS = 3.0

# Where a program may leave temporary files, and what would lead it to a real provider.
PLACES = ("TMPDIR", "TMP", "TEMP", "HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME")
PROVIDERS = ("_API_KEY", "_BASE_URL", "_HOST")


def adopt_orphans():
    """Descendants whose parent dies become our children, so that they cannot get lost."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def processes():
    """(pid, start time) -> (parent's pid, state, name), for every process."""
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            stat = Path("/proc", entry, "stat").read_text(errors="replace")
        except OSError:
            continue  # gone meanwhile
        name = stat[stat.index("(") + 1 : stat.rindex(")")]
        fields = stat[stat.rindex(")") + 2 :].split()
        found[(int(entry), fields[19])] = (int(fields[1]), fields[0], name)
    return found


def descendants():
    """(pid, start time) -> name, for all that descend from this process and are not dead."""
    every = processes()
    children = {}
    for process, (parent, _, _) in every.items():
        children.setdefault(parent, []).append(process)
    found, queue = {}, [os.getpid()]
    while queue:
        for process in children.get(queue.pop(), []):
            queue.append(process[0])
            if every[process][1] not in "ZX":
                found[process] = every[process][2]
    return found


def descriptors():
    found = {}
    for fd in os.listdir("/proc/self/fd"):
        try:
            found[fd] = os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            pass  # the one that listed the directory
    return found


def shared_memory():
    """Files of this user in /dev/shm, but for what a test beside this one may put there."""
    others = re.compile(rf"rlmd-test-(?!{os.getpid()}$)|PostgreSQL\.")
    try:
        with os.scandir("/dev/shm") as entries:
            return {entry.path for entry in entries
                    if entry.stat().st_uid == os.getuid() and not others.match(entry.name)}
    except OSError:
        return set()


def remember_children():
    """A patch, by which every child that is started with subprocess is put into its list."""
    original = subprocess.Popen.__init__
    children = []

    def start(child, *arguments, **more):
        original(child, *arguments, **more)
        children.append(child)

    return unittest.mock.patch.object(subprocess.Popen, "__init__", start), children


def supervisor_of(cgroup):
    """The pid in a cgroup's name, where it is of our pid namespace: others have their own pids."""
    named = re.match(r"rlmd-(\d+)-ns(\d+)-", cgroup)
    return int(named[1]) if named and int(named[2]) == os.stat("/proc/self/ns/pid").st_ino else None


def is_ours(path):
    try:
        return os.stat(path).st_uid == os.geteuid()
    except OSError:
        return False  # removed meanwhile


def is_in_use(cgroup):
    try:
        return any(Path(directory, "cgroup.procs").read_text()
                   for directory, _, _ in os.walk(cgroup))
    except OSError:
        return False  # removed meanwhile


def cgroups_left(children):
    """
    The cgroups below our own that these children made as supervisors, in every hierarchy that is
    mounted at the usual place: the name begins with the pid, so those of a test beside this one
    are not counted. Who is killed can remove none; the next supervisor does, so they may stay
    as long as nobody is in them.
    """
    found = set()
    killed = {child.pid: child.returncode == -signal.SIGKILL for child in children}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for mount in ("", "unified", controllers):
            own = Path("/sys/fs/cgroup", mount, path.lstrip("/"))
            if path == "/":
                continue
            # Not by glob(), which fails where a test beside this one removes its own meanwhile.
            found.update(Path(place, each) for place, below, _ in os.walk(own) for each in below
                         for pid in [supervisor_of(each)]
                         if pid in killed and is_ours(Path(place, each))
                         and (not killed[pid] or is_in_use(Path(place, each))))
    return found


class LeakGuard:
    """Mix it in before unittest.TestCase; a setUp of one's own calls super().setUp() first."""

    def setUp(self):
        super().setUp()
        adopt_orphans()
        self.directory = Path(tempfile.mkdtemp(prefix="rlmd-test-"))  # the test's own files
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.scratch = Path(tempfile.mkdtemp(prefix="rlmd-scratch-"))  # must stay empty
        self.addCleanup(shutil.rmtree, self.scratch, ignore_errors=True)

        self.environment = dict(os.environ)
        for name in os.environ:
            if name.endswith(PROVIDERS):
                del self.environment[name]
        for name in PLACES:
            self.environment[name] = str(self.scratch)

        patch, children = remember_children()
        before = (set(descendants()), descriptors(), shared_memory())
        self.addCleanup(self.check_leaks, *before, children)
        patch.start()
        self.addCleanup(patch.stop)

    def check_leaks(self, before_processes, before_fds, before_memory, children):
        deadline = time.monotonic() + patience.seconds(GRACE_SECONDS)
        while True:
            now = descendants()
            left = {process[0]: now[process] for process in now if process not in before_processes}
            if not left or time.monotonic() > deadline:
                break
            time.sleep(0.01)
        self.assertEqual(left, {}, "processes are left")

        opened = {fd: to for fd, to in descriptors().items() if before_fds.get(fd) != to}
        self.assertEqual(opened, {}, "descriptors are left open")
        self.assertEqual(sorted(self.scratch.rglob("*")), [], "temporary files are left")
        self.assertEqual(shared_memory() - before_memory, set(), "shared memory is left")
        self.assertEqual(cgroups_left(children), set(), "cgroups are left")

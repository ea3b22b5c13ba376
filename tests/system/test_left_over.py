"""The remains of a run: none, however it ends. G9, LIB-15.

Processes, cgroups, mounts, memory files and files are counted before and after each test; those
that a killed program cannot clear away itself must be gone without it, or with the next run.
"""

import contextlib
import errno
import fcntl
import os
import pathlib
import random
import shutil
import signal
import subprocess
import termios
import time
import unittest

import apart
import leaks
import patience
from harness import RLMD, GuardedTest, block, query, turn

MIB = 1 << 20
MOMENTS = 20
SLEEP = "import time; time.sleep(3600)"


def memory_files(pids=None):
    """{(device, number): bytes} of the memory files that these processes hold, or anybody."""
    found = {}
    for pid in pids or [entry for entry in os.listdir("/proc") if entry.isdigit()]:
        with contextlib.suppress(OSError):  # it has ended, or is not ours to look into
            for entry in os.scandir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    if os.readlink(entry.path).startswith("/memfd:"):
                        file = os.stat(entry.path)
                        found[file.st_dev, file.st_ino] = file.st_size
    return found


def cgroups_of(pids):
    """The cgroups that these processes made, in every hierarchy: their names begin with the pid,
    which another user's process may have had before."""
    found = []
    for place, names, _ in os.walk("/sys/fs/cgroup"):
        for name in names:
            path = os.path.join(place, name)
            if leaks.supervisor_of(name) in pids and leaks.is_ours(path):
                found.append(path)
    return found


def members_of(cgroup):
    """The processes in it: none where another program has swept it, even since it was opened."""
    try:
        return pathlib.Path(cgroup, "cgroup.procs").read_text()
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENODEV):
            raise
        return ""


def setUpModule():
    apart.own_namespaces()


class LeftOver(GuardedTest):
    def setUp(self):
        super().setUp()
        self.started = set()
        self.addCleanup(self.check_more, apart.mounts(), apart.interprocess_objects())

    def check_more(self, before_mounts, before_objects):
        self.assertEqual(apart.mounts() - before_mounts, set(), "mounts are left")
        self.assertEqual(apart.interprocess_objects() - before_objects, set(),
                         "System V objects are left")
        self.assertEqual(cgroups_of(self.started), [], "cgroups are left")
        strange = [path for path in self.dir.rglob("*") if not self.known(path)]
        self.assertEqual(strange, [], "files are left")

    def known(self, path):
        """Whether a test wrote it, or asked for it."""
        name = path.relative_to(self.dir).parts[0]
        return name.startswith(("script-", "context", "trace")) or name in ("out", "small")

    def run_of(self, *entries, arguments=(), **more):
        process = self.start("exec", "-p", "replay", "--replay", self.script(*entries), *arguments,
                             "--", "the task", **more)
        self.started.add(process.pid)
        return process

    def descendants_of(self, pid):
        """Oldest first: the template, then what it forked."""
        every = leaks.processes()
        found, queue = [], [pid]
        while queue:
            parent = queue.pop()
            children = [each for each, (whose, state, _) in every.items()
                        if whose == parent and state not in "ZX"]
            found += children
            queue += [each[0] for each in children]
        return [each[0] for each in sorted(found, key=lambda each: (int(each[1]), each[0]))]

    def await_workers(self, process, count=1):
        """Until so many processes beside the template are there, and no further one comes."""
        last, since, still = [], time.monotonic(), patience.seconds(0.1)
        while True:
            now = self.descendants_of(process.pid)
            if now != last:
                last, since = now, time.monotonic()
            if len(now) >= count + 1 and time.monotonic() - since > still:
                return now
            self.assertIsNone(process.poll(), "it ended early")
            self.assertLess(time.monotonic() - since, patience.hung(), "no workers")
            time.sleep(0.01)

    def finish(self, process):
        out, err = process.communicate(timeout=patience.hung())
        return process.returncode, out.decode(), err.decode("utf-8", "replace")

    def swept(self):
        """A killed program cannot remove its cgroups, though they are empty: the next run does."""
        self.wait_for_end()
        for path in cgroups_of(self.started):
            self.assertEqual(members_of(path), "", "a process is left in " + path)
        status, out, err = self.finish(self.run_of(turn(block("FINAL('swept')"))))
        self.assertEqual((status, out), (0, "swept\n"), err)

    def busy(self):
        """A run with sub-runs and calls, each with blocks of its own; about half a second."""
        return [turn(block("batch_rlm_query(['one', 'two', 'three'])", "llm_query('q')"), turn=0, depth=0),
                turn(block("x = bytearray(1 << 24)", "llm_query('q')"), turn=1, depth=0),
                turn("FINAL(done)", turn=2, depth=0),
                {**turn(block("import time", "time.sleep(0.1)", "llm_query('q')", "FINAL('sub')"), depth=1),
                 "repeat": True}, query("an answer")]

    # Ends of the whole

    def test_normal_end(self):
        status, out, err = self.finish(self.run_of(*self.busy(), arguments=["--max-depth", "2"]))
        self.assertEqual((status, out), (0, "done\n"), err)

    def test_failed_end(self):
        status, _, _ = self.finish(self.run_of(turn(block("1"), turn=0)))
        self.assertEqual(status, 1)

    def test_interrupted(self):
        for number, expected in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            with self.subTest(signal=number):
                process = self.run_of(turn(block(SLEEP)), arguments=["--grace", "200ms"])
                self.await_workers(process)
                process.send_signal(number)
                self.assertEqual(self.finish(process)[0], expected)

    def test_the_supervisor_is_killed(self):
        for workers, entries in ((1, [turn(block(SLEEP))]),
                                 (3, [turn(block("batch_rlm_query(['one', 'two'])"), depth=0),
                                      {**turn(block(SLEEP), depth=1), "repeat": True}])):
            with self.subTest(workers=workers):
                process = self.run_of(*entries, arguments=["--max-depth", "2"])
                found = self.await_workers(process, workers)
                process.kill()
                process.wait()
                left = lambda found=found: [pid for pid in found if self.lives(pid)]
                patience.wait_until(lambda left=left: not left(), lambda left=left: left(), 3)
        self.swept()

    def lives(self, pid):
        try:
            stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return False
        return stat[stat.rindex(")") + 2] not in "ZX"

    def test_the_doctor_sweeps(self):
        """As the next run does: whoever looks after a machine finds no cgroup of the dead."""
        process = self.run_of(turn(block(SLEEP)))
        self.await_workers(process)
        made = cgroups_of(self.started)
        process.kill()
        process.wait()
        self.wait_for_end()
        if not made:
            self.skipTest("this user may make no cgroups")
        doctor = self.start("doctor", "--json")
        self.started.add(doctor.pid)
        self.assertEqual(self.finish(doctor)[0], 0)
        self.assertEqual(cgroups_of(self.started), [])

    def test_killed_with_a_large_input(self):
        """Its memory files are given back though nobody closed them."""
        context = self.write("context", b"x" * (256 * MIB))
        process = self.run_of(turn(block(SLEEP)), arguments=["-c", context])
        self.await_workers(process)
        if not os.access(f"/proc/{process.pid}/fd", os.R_OK):
            self.skipTest("the program is closed to whoever is not root: its files cannot be seen")
        held = memory_files([process.pid])
        self.assertGreaterEqual(sum(held.values()), 256 * MIB)
        process.kill()
        process.wait()
        self.swept()
        self.assertEqual(held.keys() & memory_files().keys(), set(), "memory files are left")

    def test_random_moments(self):
        """Killed whenever it is, from the first instruction to the last."""
        seed = random.randrange(1 << 32)
        chance = random.Random(seed)
        begun = time.monotonic()
        self.finish(self.run_of(*self.busy(), arguments=["--max-depth", "2"]))
        long = 1.1 * (time.monotonic() - begun)
        for _ in range(MOMENTS):
            moment = chance.uniform(0, long)
            with self.subTest(moment=moment, seed=seed):
                process = self.run_of(*self.busy(), arguments=[
                    "--max-depth", "2", "--trace", self.dir / "trace", "-o", self.dir / "out"])
                time.sleep(moment)
                process.kill()
                process.wait()
                out = self.dir / "out"
                self.assertIn(out.read_text() if out.exists() else "", ("", "done\n"))
        self.swept()

    def wait_for_end(self):
        """Until nothing of the killed is on its way to its end any more."""
        ours = ("rlmd", "python3")
        patience.wait_until(lambda: not any(name in ours for name in leaks.descendants().values()),
                            leaks.descendants)

    # Ends of a part

    def test_the_template_is_killed(self):
        """A worker that runs goes on, and one that is wanted later has a template again."""
        process = self.run_of(turn(block(f"import time; time.sleep({patience.seconds(1)}); print('on')"), turn=0),
                              turn(block("import os; os._exit(1)"), turn=1),
                              turn(block("FINAL('with a new one')"), turn=2))
        os.kill(self.await_workers(process)[0], signal.SIGKILL)
        status, out, err = self.finish(process)
        self.assertEqual((status, out), (0, "with a new one\n"), err)

    def test_the_template_dies_with_a_request(self):
        """Stopped while it is asked for a worker, then killed: the next one is asked."""
        process = self.run_of(turn(block(SLEEP), turn=0), turn(block("FINAL('another')"), turn=1))
        template, worker = self.await_workers(process)[:2]
        os.kill(template, signal.SIGSTOP)
        os.kill(worker, signal.SIGKILL)
        time.sleep(0.3)  # it may have asked now, or not yet: both must do
        os.kill(template, signal.SIGKILL)
        status, out, err = self.finish(process)
        self.assertEqual((status, out), (0, "another\n"), err)

    def test_a_worker_is_killed(self):
        process = self.run_of(turn(block(SLEEP), turn=0), turn(block("FINAL('another')"), turn=1))
        os.kill(self.await_workers(process)[-1], signal.SIGKILL)
        self.assertEqual(self.finish(process)[:2], (0, "another\n"))

    def test_workers_killed_again_and_again(self):
        deaths = 30
        entries = [turn(block("import os; os._exit(3)"), turn=i) for i in range(deaths)]
        process = self.run_of(*entries, turn("FINAL(enough)", turn=deaths), arguments=["--max-iterations", "100"])
        self.assertEqual(self.finish(process)[:2], (0, "enough\n"))

    def test_a_worker_without_memory(self):
        fill = ["import ctypes, mmap", "libc = ctypes.CDLL(None)", "libc.malloc.restype = ctypes.c_void_p",
                "while True:", "    piece = libc.malloc(1 << 20)",
                "    ctypes.memset(piece, 1, 1 << 20)"]
        process = self.run_of(turn(block(*fill), turn=0), turn(block("x = []", "while True: x.append(' ' * 9999)"), turn=1),
                              turn(block("FINAL('alive')"), turn=2), arguments=["--worker-memory", "64M"])
        self.assertEqual(self.finish(process)[:2], (0, "alive\n"))

    def test_a_worker_that_does_not_end(self):
        """Threads, exit handlers and a blocked SIGTERM keep nobody alive."""
        stubborn = ["import atexit, signal, threading, time", "atexit.register(time.sleep, 3600)",
                    "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))",
                    "threading.Thread(target=time.sleep, args=(3600,)).start()"]
        process = self.run_of(turn(block(*stubborn), turn=0), turn("FINAL(over)", turn=1))
        self.assertEqual(self.finish(process)[:2], (0, "over\n"))

    # No room, no terminal

    def test_no_room_for_the_trace(self):
        """The answer comes all the same, and that the trace is cut short is told."""
        process = self.run_of(turn(block("FINAL('x' * 3000000)")), arguments=["--trace", "/dev/full"])
        status, out, err = self.finish(process)
        self.assertEqual((status, len(out)), (0, 3000001), err)
        self.assertIn("No space left", err)

    def test_full_disk(self):
        """The answer cannot be written: no half of it is there, and no temporary file."""
        unshare = ["unshare", "-m"] if os.getuid() == 0 else ["unshare", "-rm"]
        if subprocess.run([*unshare, "true"], stderr=subprocess.DEVNULL).returncode:
            self.skipTest("a small disk cannot be mounted here: no mount namespaces")
        small = self.dir / "small"
        small.mkdir()
        steps = f'mount -t tmpfs -o size=64k none {small} && cd / && "$@"; status=$?; ls -A {small} >&2; exit $status'
        command = [*unshare, "sh", "-c", steps, "sh", RLMD, "exec", "-q", "-p", "replay", "--replay",
                   self.script(turn(block("FINAL('x' * 3000000)"))), "-o", str(small / "answer"), "--", "the task"]
        process = subprocess.Popen(command, env=self.environment(), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.end, process)
        status, _, err = self.finish(process)
        self.assertEqual(status, 1, err)
        self.assertRegex(err, "No space left")
        self.assertEqual(err.count("\n"), 1, "the disk is not empty: " + err)

    def test_no_room_for_temporary_files(self):
        """A full or read-only TMPDIR stops nobody: nothing is written there."""
        unshare = ["unshare", "-m"] if os.getuid() == 0 else ["unshare", "-rm"]
        if subprocess.run([*unshare, "true"], stderr=subprocess.DEVNULL).returncode:
            self.skipTest("a small disk cannot be mounted here: no mount namespaces")
        small = self.dir / "small"
        small.mkdir()
        for option, spoil in (("rw", f"! cat /dev/zero >{small}/fill 2>&-"), ("ro", "true")):
            with self.subTest(option):
                steps = f'mount -t tmpfs -o size=64k,{option} none {small} && {spoil} && exec "$@"'
                command = [*unshare, "sh", "-c", steps, "sh", RLMD, "exec", "-q", "-p", "replay", "--replay",
                           self.script(turn(block("FINAL(40 + 2)"))), "--", "the task"]
                process = subprocess.Popen(command, env=self.environment(TMPDIR=str(small)),
                                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                           stderr=subprocess.PIPE)
                self.addCleanup(self.end, process)
                self.started.add(process.pid)
                self.assertEqual(self.finish(process), (0, "42\n", ""))

    def test_closed_terminal(self):
        """A hang-up, with the terminal as all three streams."""
        master, slave = os.openpty()
        self.addCleanup(os.close, slave)

        def take_terminal():
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

        process = self.run_of(turn(block(SLEEP)), arguments=["--grace", "500ms"], stdin=slave, stdout=slave,
                              stderr=slave, preexec_fn=take_terminal, pass_fds=[slave])
        try:
            self.await_workers(process)
        finally:
            os.close(master)
        self.assertNotEqual(process.wait(patience.hung()), 0)
        if process.returncode < 0:
            self.swept()

    def test_closed_pipe(self):
        """The reader of the answer went away before it came."""
        reader, writer = os.pipe()
        process = self.run_of(turn(block("import time; time.sleep(0.2); FINAL('x' * 1000000)")), stdout=writer)
        os.close(writer)
        os.close(reader)
        self.assertNotEqual(process.wait(patience.hung()), 0)
        if process.returncode < 0:
            self.swept()

    @unittest.skipUnless(shutil.which("setpriv") and os.getuid() == 0, "only root can become another user")
    def test_another_user(self):
        """Killed as somebody who may not remove what root made."""
        # tests/escape runs whole suites so; here it is the kill that matters.
        room = pathlib.Path(self.dir / "context-room")
        shutil.copytree(pathlib.Path(RLMD).parent / "worker", room / "worker", ignore=shutil.ignore_patterns("*.p"))
        shutil.copytree(pathlib.Path(RLMD).parent / "share", room / "share", ignore=shutil.ignore_patterns("*.p"))
        for part in ("rlmd", "librlmd.so.0"):
            shutil.copy(pathlib.Path(RLMD).with_name(part), room)
        script = pathlib.Path(self.script(turn(block(SLEEP))))
        for path in (self.dir, self.scratch, script):
            os.chmod(path, 0o755)
        as_user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env"]
        if subprocess.run([*as_user, "/usr/bin/python3", "-c", ""], stderr=subprocess.DEVNULL, cwd="/").returncode:
            self.skipTest("no /usr/bin/python3")
        process = subprocess.Popen(
            [*as_user, str(room / "rlmd"), "exec", "--python", "/usr/bin/python3", "-p", "replay", "--replay",
             str(script), "--", "the task"], env=self.environment(), cwd="/", stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.end, process)
        self.started.add(process.pid)
        self.await_workers(process)
        process.kill()
        process.wait()
        self.wait_for_end()


if __name__ == "__main__":
    unittest.main()

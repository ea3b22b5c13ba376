"""Where /proc tells nobody of other processes, or is not there, limits hold all the same: G8.

A /proc mounted with hidepid=2 hides an undumpable process even from its own user. It is mounted for
the program alone, in namespaces of its own; the doctor tries the limits there, too.
"""

import json
import os
import pathlib
import shutil
import subprocess
import unittest

from harness import RLMD, GuardedTest, block, turn

NOBODY = 65534
LONG = 600  # seconds after which a run counts as hung
AS_USER = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "env"]

# Memory that RLIMIT_DATA has lost sight of: written first, then made read-only.
HIDE = """import ctypes, time
c = ctypes.CDLL(None)
c.mmap.restype = ctypes.c_void_p
c.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
c.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
c.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
for _ in range(10):
    place = c.mmap(None, 40 << 20, 3, 0x22, -1, 0)
    c.memset(place, 1, 40 << 20)
    c.mprotect(place, 40 << 20, 1)
time.sleep(3600)"""
THREADS = """import threading, time
threading.stack_size(64 << 10)
wait = threading.Event()
for _ in range(400): threading.Thread(target=wait.wait, daemon=True).start()
time.sleep(3600)"""


class ProcTest(GuardedTest):
    """The program where an ordinary user can start it, in namespaces of its own."""

    SPACES = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
    MOUNT = None  # a shell command; $0 is the program

    def setUp(self):
        super().setUp()
        if os.getuid() != 0:
            self.skipTest("only root can mount another /proc for an ordinary user")
        if not shutil.which("setpriv"):
            self.skipTest("no setpriv to become an ordinary user with")
        tried = subprocess.run([*self.SPACES, "sh", "-c", self.MOUNT, "/bin/true"], stderr=subprocess.PIPE)
        if tried.returncode:
            self.skipTest("such a /proc cannot be mounted here: " + tried.stderr.decode())
        self.room = self.dir / "room"
        for part in ("helper", "worker", "share"):
            shutil.copytree(pathlib.Path(RLMD).parent / part, self.room / part,
                            ignore=shutil.ignore_patterns("*.p"))
        for part in ("rlmd", "librlmd.so.0"):
            shutil.copy(pathlib.Path(RLMD).with_name(part), self.room)
        for directory in (self.dir, self.scratch):
            os.chmod(directory, 0o755)
        reached = subprocess.run([*AS_USER, "/usr/bin/python3", "-c", ""], cwd="/", stderr=subprocess.DEVNULL)
        if reached.returncode:
            self.skipTest("an ordinary user has no /usr/bin/python3")

    def inside(self, *arguments, deprived=False, user=AS_USER):
        """The program's status, output and complaints; `deprived` of namespaces of its own."""
        program = [str(self.room / "rlmd")]
        if deprived:
            kernel = pathlib.Path(__file__).with_name("kernel.py").read_text()
            last = "without(UNSHARE)()\nimport sys\nos.execv(sys.argv[1], sys.argv[1:])\n"
            program = ["/usr/bin/python3", self.write("deprive.py", kernel + last), *program]
        place = [*self.SPACES, "sh", "-c", self.MOUNT + ' && exec "$@"', str(self.room / "rlmd")]
        command, *rest = arguments
        process = subprocess.Popen(
            [*place, *user, *program, command, "--python", "/usr/bin/python3", *rest], env=self.environment(),
            cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.end, process)
        out, err = process.communicate(timeout=LONG)
        return process.returncode, out.decode(), err.decode("utf-8", "replace")

    def run_blocks(self, *blocks, **more):
        """The outcome of each; the one after them is honest, and gives the answer."""
        entries = [turn(block(code), turn=i) for i, code in enumerate(blocks)]
        script = self.script(*entries, turn(block("FINAL(6 * 7)"), turn=len(blocks)))
        os.chmod(script, 0o755)
        status, out, err = self.inside("exec", "--json", "-q", "--worker-memory", "256M",
                                       "--block-timeout", "100s", "-p", "replay", "--replay", script,
                                       "--", "the task", **more)
        self.assertEqual(status, 0, err + out[:1000])
        result = json.loads(out)
        self.assertEqual(result["output"], "42")
        turns = result["trace"]["iterations"]
        return result, [each["codeExecutions"][0] for each in turns[:len(blocks)]]

    def check_limits(self, mode, **more):
        result, (memory, threads) = self.run_blocks(HIDE, THREADS, **more)
        self.assertEqual(result["sandbox"]["mode"], mode)
        self.assertIn("it used more than its memory of 256 MiB", memory["error"] or memory["stdout"])
        self.assertIn("it had more than 256 threads", threads["error"] or threads["stdout"])
        self.assertIn("memory_watch", result["sandbox"]["layers"])


class HiddenProc(ProcTest):
    MOUNT = "mount -t proc -o hidepid=2 proc /proc"

    def test_limits_hold_in_namespaces(self):
        if subprocess.run([*AS_USER, "unshare", "-Ur", "true"], stderr=subprocess.DEVNULL).returncode:
            self.skipTest("an ordinary user may make no user namespaces here")
        self.check_limits("userns")

    def test_limits_hold_without_namespaces(self):
        self.check_limits("plain", deprived=True)

    def test_the_doctor_tries_them(self):
        status, out, err = self.inside("doctor", "--json")
        findings = json.loads(out)
        self.assertEqual((status, findings["ok"]), (0, True), findings["problems"])
        tried = {attack["name"]: attack for attack in findings["attacks"]}
        for name in ("res_hidden_memory", "res_threads"):
            self.assertEqual(tried[name]["verdict"], "refused", tried[name])


class NoProc(ProcTest):
    """Root makes a /proc of its own; elsewhere nobody can tell what a worker uses: there is none."""

    # The link is how a program that is not installed finds its files.
    MOUNT = 'mount -t tmpfs none /proc && mkdir /proc/self && ln -s "$0" /proc/self/exe'

    def setUp(self):
        if b"__asan_init" in pathlib.Path(RLMD).read_bytes():
            self.skipTest("a sanitizer looks for leaks in /proc, and fails without it")
        super().setUp()

    def test_limits_hold_for_root(self):
        result, (memory, _) = self.run_blocks(HIDE, "pass", user=[])
        self.assertIn("it used more than its memory of 256 MiB", memory["error"] or memory["stdout"])
        self.assertIn("memory_watch", result["sandbox"]["layers"])

    def test_it_is_refused(self):
        """By `exec` and by the doctor, with the remedy."""
        script = self.script(turn("FINAL(never)"))
        os.chmod(script, 0o755)
        for command in (["doctor"], ["exec", "-q", "-p", "replay", "--replay", script, "--", "the task"]):
            with self.subTest(command[0]):
                status, out, err = self.inside(*command)
                self.assertEqual(status, 7, err)
                self.assertRegex(out + err, "open of /proc/self/status failed: No such file.*; mount /proc")
                self.assertNotIn("Every guarantee", out)


if __name__ == "__main__":
    unittest.main()

"""The kernel itself refuses one system call after the other, everywhere below the supervisor.

strace makes it do so. Whatever it refuses: there is no worker, or what stands is named, and a
worker proves what is named.
"""
import json
import os
import shutil
import subprocess
import tempfile
import unittest
import unittest.mock

import apart
import patience

RLMD = os.path.join(os.environ["RLMD_BUILD_ROOT"], "rlmd")
REPORT = os.path.join(os.environ["RLMD_BUILD_ROOT"], "tests/sandbox/report")

# Everything that is called between the start of a template and a worker's first foreign byte.
REFUSALS = {
    "unshare": "EPERM", "mount": "EACCES", "pivot_root": "EPERM", "umount2": "EPERM",
    "chdir": "EACCES", "keyctl": "ENOSYS", "landlock_create_ruleset": "ENOSYS",
    "landlock_restrict_self": "EPERM", "capget": "EPERM", "capset": "EPERM", "prctl": "EINVAL",
    "setgroups": "EPERM", "setresgid": "EPERM", "setresuid": "EAGAIN", "getresuid": "EPERM",
    "seccomp": "EINVAL", "close_range": "ENOSYS", "dup2": "EMFILE", "sched_setattr": "EPERM",
    "prlimit64": "EPERM", "statfs": "ENOSYS", "pidfd_send_signal": "EPERM", "poll": "ENOMEM",
    "ppoll": "ENOMEM", "recvmsg": "ENOMEM", "sendmsg": "ENOMEM", "bind": "EPERM",
    "clone": "EAGAIN", "vfork": "EAGAIN", "socketpair": "EMFILE", "memfd_create": "EMFILE",
    "pipe2": "EMFILE", "setsid": "EPERM", "personality": "EINVAL",
}
# Those that a worker must not be without: at the first refusal there is none.
MANDATORY = {
    "seccomp", "capset", "prctl", "close_range", "prlimit64", "landlock_restrict_self",
    "setsid", "vfork", "socketpair",
}
MODES = ("root", "userns", "uid", "plain")


@unittest.skipUnless(shutil.which("strace"), "strace is not installed")
class RefusalsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # Leaks cannot be looked for in what is traced.
        patch = unittest.mock.patch.dict(os.environ, LSAN_OPTIONS="detect_leaks=0")
        patch.start()
        cls.addClassCleanup(patch.stop)
        probe = subprocess.run(["strace", "-f", "-e", "trace=none", "-o", "/dev/null", "true"],
                               capture_output=True)
        if probe.returncode:
            raise unittest.SkipTest("nothing can be traced here: " + probe.stderr.decode())
        apart.own_namespaces()
        cls.whole = cls.answer()["report"]

    @staticmethod
    def answer(*command):
        done = subprocess.run([*command, REPORT], stdout=subprocess.PIPE, check=True,
                              timeout=patience.hung())
        return json.loads(done.stdout)

    def refuse(self, call, error, when):
        inject = f"inject={call}:error={error}:when={when}"
        return self.answer("strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", inject)

    def check(self, answer):
        """A report that names what is gone, and a worker that proves what is there."""
        report, worker = answer["report"], answer["worker"]
        here = set(report["layers"])
        absent = {entry["layer"] for entry in report["absent"] if entry["errno"]}
        self.assertLessEqual(set(self.whole["layers"]), here | absent)
        self.assertGreaterEqual(MODES.index(report["mode"]), MODES.index(self.whole["mode"]))
        supervised = {"memory_cgroup", "pids_cgroup", "cpu_cgroup", "memory_watch", "locked_uids"}
        self.assertEqual(set(worker["layers"]), here - supervised)
        self.assertEqual(worker["open"], "PermissionError")
        self.assertEqual(worker["pid"] == 1, "pid_namespace" in here)
        self.assertEqual(worker["uid"] >= 2100000000, "own_uid" in here)

    def test_nothing_is_refused(self):
        self.check(self.answer())

    def test_unshare_that_does_nothing(self):
        """A filter around us may say "done" for what it forbids: then nothing is mounted anywhere."""
        before = apart.mounts()
        answer = self.answer("strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=unshare",
                             "-e", "inject=unshare:retval=0")
        self.check(answer)
        self.assertNotIn("empty_root", answer["report"]["layers"])
        absent = {entry["layer"]: entry for entry in answer["report"]["absent"]}
        self.assertEqual((absent["empty_root"]["call"], absent["empty_root"]["errno"]), ("unshare", "ENOSYS"))
        self.assertEqual(apart.mounts(), before)

    def test_own_keyring_first(self):
        """G6: the program leaves the session keyring of whoever started it before it reads anything."""
        with tempfile.NamedTemporaryFile("r") as log:
            subprocess.run(["strace", "-qq", "-o", log.name, "-e", "trace=keyctl,read,openat", RLMD, "--version"],
                           check=True, stdout=subprocess.DEVNULL, timeout=patience.hung())
            calls = [line for line in log.read().splitlines() if ".so" not in line and "read(" not in line]
        self.assertRegex(calls[0] if "keyctl" in calls[0] else calls[1], r"^keyctl\(KEYCTL_JOIN_SESSION_KEYRING, NULL\)")

    def test_each_is_refused_at_its_first_use(self):
        self.refuse_each("1", 15)

    def test_each_is_refused_at_its_second_use(self):
        self.refuse_each("2", 1)

    def test_want_is_no_reason_for_weaker_walls(self):
        """A machine without memory, descriptors or processes says nothing about its walls."""
        for call, error in (("unshare", "ENOMEM"), ("unshare", "EAGAIN"), ("mount", "ENOMEM"),
                            ("landlock_create_ruleset", "EMFILE"), ("setresuid", "EAGAIN"),
                            ("umount2", "ENOMEM"), ("clone", "EAGAIN")):
            with self.subTest(call=call, error=error):
                answer = self.refuse(call, error, "1")
                if "error" in answer:
                    self.assertEqual(answer["kind"], "machine")
                else:
                    self.assertEqual(answer["report"]["mode"], self.whole["mode"])
                    self.assertEqual(answer["report"]["layers"], self.whole["layers"])

    def refuse_each(self, when, least):
        """One call after the other, once in each process; of so many at least nothing stands."""
        refused = 0
        with open(REPORT, "rb") as program:
            sanitized = b"__asan_init" in program.read()
        for call, error in REFUSALS.items():
            if sanitized and call == "prlimit64":
                continue  # the sanitizer needs an answer itself
            with self.subTest(call=call):
                answer = self.refuse(call, error, when)
                if "error" in answer:
                    self.assertIn(answer["kind"], ("sandbox", "usage", "machine"))
                    refused += 1
                    continue
                self.assertFalse(call in MANDATORY and when == "1")
                self.check(answer)
        self.assertGreaterEqual(refused, least)


if __name__ == "__main__":
    unittest.main()

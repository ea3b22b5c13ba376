"""The leak guard itself: each kind of thing that a test may leave makes it fail."""
import os
import subprocess
import sys
import unittest
from pathlib import Path

import leaks


def outcome(leave, clean):
    """The guard's words about a test that does `leave`: the text of its failure, or None."""
    class Case(leaks.LeakGuard, unittest.TestCase):
        def runTest(self):
            leave(self)

    case = Case()
    try:
        result = case.run()
    finally:
        clean()
    if result.wasSuccessful():
        return None
    return result.failures[0][1]


class LeakGuardTest(unittest.TestCase):
    def setUp(self):
        self.addCleanup(setattr, leaks, "GRACE_SECONDS", leaks.GRACE_SECONDS)
        leaks.GRACE_SECONDS = 0.2

    def test_nothing_left(self):
        def leave(case):
            command = [sys.executable, "-c", "import tempfile; tempfile.TemporaryFile()"]
            subprocess.run(command, env=case.environment, check=True)

        self.assertIsNone(outcome(leave, lambda: None))

    def test_process_whose_parent_is_gone(self):
        """In a session of its own, with its parent dead: it is found all the same."""
        pids = []

        def leave(case):
            script = "setsid sleep 60 >/dev/null & echo $!"
            pids.append(int(subprocess.run(["sh", "-c", script], stdout=subprocess.PIPE).stdout))

        def clean():
            os.kill(pids[0], 9)
            os.waitpid(pids[0], 0)

        self.assertIn("processes are left", outcome(leave, clean))

    def test_memory_file(self):
        fds = []

        def leave(case):
            fds.append(os.memfd_create("left"))

        self.assertIn("descriptors are left open", outcome(leave, lambda: os.close(fds[0])))

    def test_temporary_file(self):
        def leave(case):
            subprocess.run(["mktemp"], env=case.environment, check=True, stdout=subprocess.DEVNULL)

        self.assertIn("temporary files are left", outcome(leave, lambda: None))

    @unittest.skipUnless(os.access("/dev/shm", os.W_OK), "/dev/shm is not writable here")
    def test_shared_memory(self):
        path = Path(f"/dev/shm/rlmd-test-{os.getpid()}")
        self.assertIn("shared memory is left", outcome(lambda case: path.touch(), path.unlink))


if __name__ == "__main__":
    unittest.main()

"""rlmd batch: what whoever watches it is shown."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
import unittest

import patience
from providers import final
from test_batch import BatchTest


class WatchTest(BatchTest):
    """A batch of two jobs, the second of which waits for the test."""

    def setUp(self):
        super().setUp()
        self.ready = []
        self.server = self.serve("openai")
        self.server.script("hold on", final(until=lambda: bool(self.ready)))
        self.server.script(None, final())
        self.jobs({"custom_id": "a", "task": "go on", "tenant": "acme"},
                  {"custom_id": "b\x1b[2J", "task": "hold on", "tenant": "zeta"})

    def read_until(self, descriptor, pattern):
        """What comes up to it."""
        seen, deadline = b"", time.monotonic() + patience.hung()
        while not re.search(pattern, seen):
            self.assertLess(time.monotonic(), deadline, seen)
            if select.select([descriptor], [], [], 1)[0]:
                piece = os.read(descriptor, 65536)
                self.assertTrue(piece, seen)
                seen += piece
        return seen

    def held(self, server):
        return len(server.requests) == 2 and server.in_flight == 1


class LineTest(WatchTest):
    IN_FLIGHT = (rb"rlmd:   b\\x1b\[2J \(zeta\): attempt 1, turn 1, 1 call in flight, \S+s, \$0.00\r?\n")

    def test_lines_now_and_then(self):
        process = self.command(begin=True)
        seen = self.read_until(process.stderr.fileno(), rb"\n")
        self.assertRegex(seen, rb"^rlmd: 1 of 2 \| 1 at work \| 1 call \| \$0.00 \| acme 1/1, zeta 0/1\n$")
        self.ready.append(True)
        _, rest = process.communicate()
        self.assertEqual(process.returncode, 0, rest)
        self.assertRegex(rest, rb"rlmd: done in \S+: 2 jobs: 2 succeeded, 0 failed; ")

    def test_what_is_in_flight(self):
        """Also where nobody wants a line, and to whoever reads JSON with all that is known."""
        process = self.command("-q", begin=True)
        self.assertTrue(self.server.wait(self.held))
        process.send_signal(signal.SIGUSR1)
        seen = self.read_until(process.stderr.fileno(), rb"attempt.*\n")
        self.assertRegex(seen, rb"^rlmd: 1 of 2 .*\n" + self.IN_FLIGHT + rb"$")
        self.ready.append(True)
        _, rest = process.communicate()
        self.assertEqual((process.returncode, rest), (0, b""))

    def test_a_line_on_a_terminal(self):
        """It is taken away before anything else is said, and at the end."""
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
        env = self.environment(TERM="xterm", **self.server.environment())
        process = self.start("batch", "-o", "results.jsonl", "-p", "openai", "-m", "m", "jobs.jsonl",
                             env=env, stderr=theirs)
        os.close(theirs)
        seen = self.read_until(ours, rb"\r\033\[2m1 of 2 \| 1 at work \| 1 call \| \$0\.00\033\[0m\033\[K$")
        for line in seen.split(b"\r"):
            self.assertLessEqual(len(re.sub(rb"\033\[\d*[mK]", b"", line)), 40, seen)
        process.send_signal(signal.SIGUSR1)
        seen = self.read_until(ours, rb"attempt.*\n")
        self.assertRegex(seen, rb"\r\033\[Krlmd: 1 of 2 \| .*\r\n" + self.IN_FLIGHT)
        process.send_signal(signal.SIGTERM)
        self.read_until(ours, rb"\r\033\[2mfinishing \| 1 of 2 ")
        self.ready.append(True)
        self.assertRegex(self.read_until(ours, rb"tokens\r\n"), rb"\r\033\[Krlmd: interrupted after ")
        self.assertEqual(process.wait(), 143)


if __name__ == "__main__":
    unittest.main()

"""rlmd top: a run in a terminal, while it goes on."""

import fcntl
import os
import pty
import signal
import struct
import sys
import termios
import threading
import unittest
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent)]
import patience  # noqa: E402
from test_trace_follow import FollowTest  # noqa: E402

BEGIN, END = b"\x1b[?1049h", b"\x1b[?1049l"


class TopTest(FollowTest):
    """`self.seen` is all that the terminal was given: nothing at first, for replies wait for it that
    may be asked for before there is one."""

    def setUp(self):
        super().setUp()
        self.seen = b""

    def top(self, rows=24, columns=100):
        terminal, end = pty.openpty()
        self.addCleanup(os.close, terminal)
        fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.before = termios.tcgetattr(end)
        self.terminal = terminal
        process = self.start("top", self.trace, stdin=end, stdout=end, stderr=end,
                             start_new_session=True)
        self.addCleanup(os.close, end)
        self.end_of_terminal = end
        threading.Thread(target=self.read, daemon=True).start()
        return process

    def read(self):
        try:
            while True:
                self.seen += os.read(self.terminal, 1 << 16)
        except OSError:
            pass

    def shows(self, *words):
        return all(word.encode() in self.seen for word in words)

    def see(self, *words):
        patience.wait_until(lambda: self.shows(*words), f"the screen has {words}")

    def leaves(self, process, status):
        """The terminal is as it was, and one line tells how the run stood."""
        self.assertEqual(process.wait(patience.hung()), status)
        self.see("| " + str(self.trace))
        patience.wait_until(lambda: self.seen.rpartition(END)[2].endswith(b"\n"), "its summary")
        self.assertEqual(termios.tcgetattr(self.end_of_terminal), self.before)
        self.assertEqual((self.seen.count(BEGIN), self.seen.count(END)), (1, 1))
        return self.seen.rpartition(END)[2].decode()


class Watched(TopTest):
    def test_the_run_as_it_goes_on(self):
        """It ends with it."""
        run = self.begin(lambda: self.shows("turn 1: asks its model"),
                         lambda: self.shows("turn 2: asks its model", "< print(1)", "| 1"))
        top = self.top()
        self.finish(run)
        self.assertIn("ended after", self.leaves(top, 0))
        self.assertIn("1 run, 2 turns, 2 calls", self.seen.decode())

    def test_q_leaves(self):
        """Before the run has ended; the run goes on."""
        gone = threading.Event()
        run = self.begin(gone.is_set, gone.is_set)
        top = self.top()
        self.see("asks its model")
        os.write(self.terminal, b"xq")
        self.assertIn("under way for", self.leaves(top, 0))
        gone.set()
        self.finish(run)

    def test_an_interruption(self):
        gone = threading.Event()
        run = self.begin(gone.is_set, gone.is_set)
        top = self.top()
        self.see("asks its model")
        top.send_signal(signal.SIGINT)
        self.leaves(top, 130)
        gone.set()
        self.finish(run)

    def test_another_size(self):
        gone = threading.Event()
        run = self.begin(gone.is_set, gone.is_set)
        top = self.top(columns=30)
        self.see("asks its")
        self.assertNotIn(b"tokens in", self.seen)
        fcntl.ioctl(self.end_of_terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 120, 0, 0))
        self.see("tokens in")
        os.write(self.terminal, b"q")
        self.leaves(top, 0)
        gone.set()
        self.finish(run)

    def test_one_that_has_ended(self):
        self.finish(self.begin(lambda: True, lambda: True))
        self.assertIn("ended after", self.leaves(self.top(), 0))


class Refused(TopTest):
    def test_without_a_terminal(self):
        self.trace.write_text("")
        outcome = self.rlmd("top", self.trace)
        self.assertEqual((outcome.status, outcome.out), (2, ""))
        self.assertIn("rlmd trace --follow", outcome.err)

    def test_what_is_no_trace(self):
        self.assertEqual(self.rlmd("top").status, 2)
        self.assertEqual(self.top().wait(patience.hung()), 8)
        self.see("No such file")


if __name__ == "__main__":
    unittest.main()

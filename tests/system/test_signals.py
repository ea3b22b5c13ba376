"""Signals are the program's from its first line to its last: whenever one comes, what was started is
gone, a result was told to whoever asked for one, and the exit status names the signal."""

import array
import contextlib
import fcntl
import json
import os
import signal
import subprocess
import termios
import threading
import time
import unittest

import patience
from harness import GuardedTest, turn
from test_left_over import cgroups_of

SIGNALS = ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143))
PIPE = 1 << 16


def in_pipe(end):
    """How many bytes nobody has read yet."""
    count = array.array("i", [0])
    fcntl.ioctl(end, termios.FIONREAD, count)
    return count[0]


class SignalTest(GuardedTest):
    def await_that(self, holds, why):
        deadline = time.monotonic() + patience.hung()
        while not holds():
            self.assertLess(time.monotonic(), deadline, why)
            time.sleep(0.01)

    def plan(self):
        return self.write("plan.json", json.dumps(
            {"operations": [{"id": "a", "input": "q", "mode": "rlm"}]}))

    def commands(self):
        replay = ["-p", "replay", "--replay", self.script(turn("FINAL(x)")), "--json"]
        yield "exec", ["exec", *replay, "the task"]
        yield "plan", ["plan", *replay, self.plan()]
        yield "doctor", ["doctor", "--json", "-p", "replay", "--replay", self.script()]

    def ended(self, process, status):
        """Gone, with nothing of it left, by the status of its signal; gives its result object."""
        out, err = process.communicate(timeout=patience.hung())
        self.assertEqual(process.returncode, status, err.decode())
        self.assertEqual(cgroups_of({process.pid}), [])
        return json.loads(out), err.decode()

    def check_result(self, command, result):
        if command == "exec":
            self.assertEqual((result["success"], result["stopReason"]), (False, "interrupted"))
            self.assertEqual(result["usage"]["llmCalls"], 0)
        if command == "doctor":
            self.assertFalse(result["ok"])
            self.assertIn("stopped by SIG", result["problems"][-1])
        else:
            self.assertEqual(result["error"]["kind"], "cancelled")


class Start(SignalTest):
    """An interpreter that tells the test that it was started, and then does nothing."""

    def await_start(self, arguments, python, **more):
        fifo = self.dir / "started"
        if fifo.exists():
            fifo.unlink()
        os.mkfifo(fifo)
        process = self.start(*arguments, "--python", python, **more)
        with open(os.open(fifo, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0) as started:
            self.await_that(lambda: started.read(1) == b"s", "it was not started")
        return process

    def program(self):
        source = self.write("fake.c", """
            #include <fcntl.h>
            #include <unistd.h>
            int main(void)
            {
                if (write(open("%s", O_WRONLY), "s", 1) == 1)
                    for (;;)
                        pause();
                return 1;
            }""" % (self.dir / "started"))
        subprocess.run(["cc", "-o", self.dir / "fake", source], check=True)
        return self.dir / "fake"

    def shim(self):
        """Asked before any template for whom it stands; what it starts goes with it."""
        path = self.write("shim", f"#!/bin/sh\necho s >{self.dir}/started\nsleep 1000 & wait\n")
        os.chmod(path, 0o755)
        return path

    def test_while_the_template_starts(self):
        fake = self.program()
        for command, arguments in self.commands():
            for number, status in SIGNALS:
                with self.subTest(command, signal=number):
                    process = self.await_start(arguments, fake)
                    process.send_signal(number)
                    self.check_result(command, self.ended(process, status)[0])

    def test_while_a_shim_is_asked(self):
        shim = self.shim()
        for command, arguments in self.commands():
            with self.subTest(command):
                process = self.await_start(arguments, shim)
                process.send_signal(signal.SIGTERM)
                self.check_result(command, self.ended(process, 143)[0])

    def test_again_and_again(self):
        """An impatient user gets no less."""
        process = self.await_start(next(self.commands())[1], self.program())
        for _ in range(9):
            process.send_signal(signal.SIGINT)
        self.check_result("exec", self.ended(process, 130)[0])

    def test_without_an_object(self):
        process = self.await_start(["exec", "-p", "replay", "--replay", self.script(), "q"], self.program())
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=patience.hung())
        self.assertEqual((process.returncode, out), (130, b""))
        self.assertRegex(err.decode(), r"^rlmd: error: stopped before anything was begun\n$")

    def test_one_that_is_ignored(self):
        """By whoever started us, as nohup(1) does: it stays ignored."""
        ignore = lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)
        process = self.await_start(next(self.commands())[1], self.program(), preexec_fn=ignore)
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGINT)
        self.ended(process, 130)  # not 143: the first that was heard


class Input(SignalTest):
    def reading(self, *arguments):
        """A program that has taken all there was on its standard input, and waits for more."""
        reader, writer = os.pipe()
        process = self.start(*arguments, stdin=reader)
        os.close(reader)
        self.addCleanup(os.close, writer)
        os.write(writer, b"half")
        self.await_that(lambda: not in_pipe(writer), "it does not read")
        return process

    def test_while_input_is_read(self):
        replay = ["-p", "replay", "--replay", self.script(turn("FINAL(x)")), "--json"]
        for command, *arguments in (("exec", "q"), ("exec", "-c", "-", "q"), ("exec", "-"),
                                    ("exec", "--task-file", "-"), ("plan", "-")):
            for number, status in SIGNALS[:2]:
                with self.subTest([command, *arguments], signal=number):
                    process = self.reading(command, *replay, *arguments)
                    process.send_signal(number)
                    self.check_result(command, self.ended(process, status)[0])

    def test_while_a_trace_is_read(self):
        process = self.reading("trace", "-")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=patience.hung())
        self.assertEqual((process.returncode, b"stopped before" in err), (130, True), err)

    def test_input_without_end(self):
        """It is heard between two pieces, too."""
        taken = []

        def pour(end):
            with contextlib.suppress(BrokenPipeError), open(end, "wb", buffering=0) as pipe:
                while True:
                    taken.append(pipe.write(bytes(PIPE)))

        reader, writer = os.pipe()
        process = self.start("exec", "-p", "replay", "--replay", self.script(), "--json", "q",
                             stdin=reader)
        os.close(reader)
        pouring = threading.Thread(target=pour, args=(writer,))
        pouring.start()
        self.await_that(lambda: sum(taken) > 16 * PIPE, "it reads nothing")
        process.send_signal(signal.SIGINT)
        self.check_result("exec", self.ended(process, 130)[0])
        pouring.join()


class End(SignalTest):
    def test_while_nobody_reads_the_answer(self):
        """The first one ends the wait for a reader who never comes."""
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        process = self.start("exec", "-q", "-p", "replay", "--replay", self.script(turn("FINAL(%s)" % ("x" * 200000))), "q",
                             stdout=writer)
        os.close(writer)
        self.await_that(lambda: in_pipe(reader) == PIPE, "the pipe does not fill")
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=patience.hung())
        self.assertEqual(process.returncode, 143, err)
        self.assertIn(b"interrupted while nobody read", err)


if __name__ == "__main__":
    unittest.main()

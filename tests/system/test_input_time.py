"""--max-time holds from the command's first moment: reading the input is part of it, and a pipe that
nobody writes to, as jobs of a CI inherit one, keeps no run for ever."""

import json
import os
import threading
import unittest

import patience
from harness import GuardedTest, block, turn


class InputTime(GuardedTest):
    def pipe(self, content=b""):
        """A standard input that never ends, and holds `content`."""
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        self.addCleanup(os.close, writer)
        os.write(writer, content)
        return reader

    def given(self, command, *arguments, stdin, entries=(turn("FINAL(x)"),)):
        process = self.start(command, "-p", "replay", "--replay", self.script(*entries), *arguments, stdin=stdin)
        out, err = process.communicate(timeout=patience.hung())
        return process.returncode, out.decode(), err.decode()

    def test_a_pipe_that_nobody_writes_to(self):
        for command, *arguments in (("exec", "q"), ("exec", "-c", "-", "q"), ("exec", "-c", "x=-", "q"),
                                    ("exec", "-"), ("exec", "--task-file", "-"), ("plan", "-")):
            for content in (b"", b"half of it"):
                with self.subTest([command, *arguments], content=content):
                    status, out, err = self.given(command, "--max-time", "100ms", *arguments, stdin=self.pipe(content))
                    self.assertEqual((status, out), (6, ""))
                    self.assertRegex(err, "^rlmd: error: (a context|the task|the plan) on standard input did not end "
                                          "within 100ms: give </dev/null where there is none, name a file instead, or "
                                          "allow more with --max-time\n$")

    def test_the_result_says_it(self):
        status, out, _ = self.given("exec", "--json", "--max-time", "100ms", "--max-cost", "0", "q", stdin=self.pipe())
        result = json.loads(out)
        self.assertEqual((status, result["stopReason"], result["error"]["kind"]), (6, "max_time", "budget"))
        self.assertEqual(result["usage"]["llmCalls"], 0)

    def test_that_somebody_is_waited_for_is_said(self):
        """The reason for the wait, its length, and how to go on without."""
        for command, *arguments in (("exec", "q"), ("exec", "-"), ("plan", "-")):
            with self.subTest([command, *arguments]):
                reader, writer = os.pipe()
                process = self.start(command, "-p", "replay", "--replay", self.script(turn("FINAL(x)")),
                                     *arguments, stdin=reader)
                os.close(reader)
                with os.fdopen(writer, "wb"):
                    line = process.stderr.readline().decode()
                self.assertRegex(line, r"^rlmd: waiting for (a context|the task|the plan) on standard input, for at "
                                       r"most 5m00s \(--max-time\); </dev/null where there is none\n$")
                process.communicate(timeout=patience.hung())

    def test_input_without_end(self):
        """There is always more to read, and the time is over all the same."""
        reader, writer = os.pipe()

        def feed():
            try:
                while True:
                    os.write(writer, b"more\n" * 1000)
            except BrokenPipeError:
                os.close(writer)

        feeder = threading.Thread(target=feed)
        feeder.start()
        process = self.start("exec", "-p", "replay", "--replay", self.script(), "--max-time", "200ms", "q", stdin=reader)
        os.close(reader)
        _, err = process.communicate(timeout=patience.hung())
        feeder.join()
        self.assertEqual((process.returncode, b"did not end within 200ms" in err), (6, True), err)

    def test_a_directory_that_is_large(self):
        self.write("big/a", b"x" * (64 << 20))
        status, _, err = self.given("exec", "--max-time", "1ms", "--max-file-size", "1G", "-c", "big",
                                    "q", stdin=self.pipe())
        self.assertEqual(status, 6, err)
        self.assertIn("--max-time", err)

    def test_what_reading_took_is_gone(self):
        """The model's code is told of less time than was allowed, by what it waited for its input."""
        reader, writer = os.pipe()
        entries = [turn(block("FINAL(budget()['time_ms'])"))]
        process = self.start("exec", "-p", "replay", "--replay", self.script(*entries), "--max-time", "600s", "q", stdin=reader)
        os.close(reader)
        with os.fdopen(writer, "wb"):
            process.stderr.readline()  # it has waited for some seconds
        out, err = process.communicate(timeout=patience.hung())
        self.assertEqual(process.returncode, 0, err)
        self.assertLess(int(out), 597000)

    def test_input_that_is_not_read(self):
        """With a context of another kind it is nobody's business."""
        context = self.write("context.txt", "text")
        status, out, err = self.given("exec", "-q", "-c", context, "q", stdin=self.pipe())
        self.assertEqual((status, out, err), (0, "x\n", ""))


if __name__ == "__main__":
    unittest.main()

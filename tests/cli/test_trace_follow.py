"""`rlmd trace --follow`: a trace while it is written. Each reply of the model waits until what came
before it was seen."""

import json
import sys
import unittest
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1] / "system")]
import patience  # noqa: E402
from harness import Outcome, block  # noqa: E402
from model import ModelServer, Reply  # noqa: E402
from test_trace_page import PageTest, Parsed  # noqa: E402


class FollowTest(PageTest):
    """A run that goes on where its trace was seen."""

    def begin(self, *seen):
        replies = [Reply(block("print(1)"), until=seen[0]), Reply("FINAL(done)", until=seen[1])]
        self.server = ModelServer("openai").replies(*replies)
        self.server.__enter__()
        self.addCleanup(self.server.__exit__, None, None, None)
        run = self.start("exec", "-p", "openai", "-m", "m", "--trace", self.trace, "the task",
                         env=self.environment(**self.server.environment()))
        patience.wait_until(lambda: self.trace.exists() and self.trace.stat().st_size,
                            "the trace begins")
        return run

    def finish(self, process):
        outcome = Outcome(process, *process.communicate(timeout=patience.hung()))
        self.assertEqual(outcome.status, 0, outcome.err)
        return outcome


class Followed(FollowTest):
    def follow(self, *arguments):
        return self.start("trace", "--follow", *arguments, self.trace)

    def test_events_as_they_come(self):
        lines = []
        run = self.begin(lambda: len(lines) >= 1, lambda: len(lines) >= 4)
        reader = self.follow()
        for line in reader.stdout:
            lines.append(line)
        self.finish(run)
        self.finish(reader)
        self.assertEqual(b"".join(lines), self.trace.read_bytes())
        self.assertEqual(json.loads(lines[-1])["event"], "result")

    def test_the_page_is_written_anew(self):
        seen = []

        def look(count):
            if self.page.exists():
                page = Parsed(self.page.read_text("utf-8"))
                seen.append((len(page.events), page.refreshes))
            return bool(seen) and seen[-1][0] >= count

        run = self.begin(lambda: look(1), lambda: look(4))
        reader = self.follow("--html", self.page)
        self.finish(run)
        self.finish(reader)
        self.assertTrue(all(refreshes for _, refreshes in seen))
        page = Parsed(self.page.read_text("utf-8"))
        self.assertEqual(len(page.events), len(self.told()))
        self.assertFalse(page.refreshes)

    def test_from_a_pipe(self):
        self.run_job()
        shown = self.rlmd("trace", "--follow", "-", input=self.trace.read_bytes())
        self.assertEqual((shown.status, shown.raw), (0, self.trace.read_bytes()), shown.err)

    def test_an_interruption_ends_it(self):
        self.run_job()
        self.trace.write_bytes(b"".join(self.trace.read_bytes().splitlines(keepends=True)[:3]))
        reader = self.follow("--html", self.page)
        patience.wait_until(self.page.exists, "a page")
        reader.send_signal(2)
        reader.communicate(timeout=patience.hung())
        self.assertEqual(reader.returncode, 130)
        self.assertFalse(Parsed(self.page.read_text("utf-8")).refreshes)


if __name__ == "__main__":
    unittest.main()

"""A wall clock that leaps by years, which is set by hand or by the network, is no limit's business:
limits, timeouts and waits go by a clock that only ever goes on."""

import os
import subprocess
import time
import unittest

import patience
from harness import BUILD, block, query, turn
from model import Reply
from providers import ProviderTest, code, final

CLOCK = os.path.join(BUILD, "tests", "system", "libjumping_clock.so")


class ClockTest(ProviderTest):
    def environment(self, **more):
        env = super().environment(**more)
        env["LD_PRELOAD"] = CLOCK
        # A sanitizer wants to be the first library of all.
        env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        return env

    def test_the_clock_does_jump(self):
        """Or else the rest of this file shows nothing."""
        self.assertTrue(os.path.exists(CLOCK))
        outcome = self.rlmd("--version", env=self.environment())
        self.assertEqual((outcome.status, outcome.err), (0, ""))  # or ld.so says what it can't load
        date = subprocess.run(["date", "+%s"], env=self.environment(), capture_output=True)
        self.assertGreater(abs(float(date.stdout) - time.time()), 300 * 86400)

    def test_a_run_takes_its_time(self):
        """Within its limits, and to the millisecond that passed for everybody else."""
        entries = [
            turn(block("import time\ntime.sleep(1)\nprint(llm_query('q'))"), turn=0),
            {"match": {"kind": "llm_query"}, "response": {"text": "said", "delay": 300}},
            turn("FINAL(ok)", turn=1),
        ]
        arguments = ["--jsonl", "--max-time", patience.duration(20), "--block-timeout", patience.duration(10)]
        watch = patience.Stopwatch()
        outcome = self.replay(entries, *arguments, env=self.environment())
        self.assertEqual(outcome.status, 0, outcome.err)
        events = outcome.events
        times = [event["ms"] for event in events]
        self.assertEqual(times, sorted(times))
        usage = events[-1]["usage"]
        self.assertTrue(1300 <= usage["duration"] <= 1000 * (time.monotonic() - watch.begun), usage)
        self.assertEqual(events[-1]["warnings"], [])

    def test_the_limit_on_time_holds(self):
        entries = [dict(turn(block("import time\ntime.sleep(0.1)")), repeat=True)]
        entries += [query("as far as I came", kind="forced")]
        watch = patience.Stopwatch()
        arguments = ["--json", "--max-time", "2s", "--max-iterations", "100000"]
        result = self.replay(entries, *arguments, env=self.environment()).result
        self.assertEqual(result["stopReason"], "max_time")
        self.assertEqual(result["output"], "as far as I came")
        self.assertGreaterEqual(time.monotonic() - watch.begun, 1)
        self.assertLess(watch.took(), 20)

    def test_blocks_are_interrupted_in_time(self):
        entries = [turn(block("while True: pass"), turn=0), turn("FINAL(ok)", turn=1)]
        watch = patience.Stopwatch()
        arguments = ["--json", "--block-timeout", "1s"]
        outcome = self.replay(entries, *arguments, env=self.environment())
        self.assertEqual(outcome.result["output"], "ok")
        self.assertGreaterEqual(time.monotonic() - watch.begun, 1)

    def test_waits_are_as_long_as_they_were_asked(self):
        """Of a provider that limits the rate, over real HTTP."""
        limited = Reply(error="rate_limit", headers={"Retry-After": "1"})
        server = self.serve("openai", limited, code("print(1)"), final())
        watch = patience.Stopwatch()
        result = self.ask(server).result
        first, second = (request.time for request in server.requests[:2])
        self.assertGreaterEqual(second - first, 0.9)
        self.assertLess(watch.took(), 15)
        self.assertEqual(result["output"], "ok")


if __name__ == "__main__":
    unittest.main()

"""Calls that wait for a place or for the budget do not run: time-outs, counts and limits of a
plan are held against what the server saw."""

import unittest

from model import Reply
from test_plan import PlanTest, operation

TAKES = 1.0  # seconds of each answer; a time-out of its own is several times that


class Waiting(PlanTest):
    def setUp(self):
        super().setUp()
        self.seen = {}  # of each operation: the requests in flight when its own came, it included
        self.server = self.serve()

        def reply(request):
            self.seen[request.last_user] = self.server.in_flight
            return Reply(text="ok", delay=self.takes, usage=self.usage)

        self.takes, self.usage = TAKES, (100, 100)
        self.server.script(None, reply)

    def any_end(self, plan, *arguments):
        """Runs a plan of which some operations may be refused; its events."""
        environment = self.environment(**self.server.environment())
        arguments = self.arguments(self.server, plan, "--jsonl", *arguments)
        outcome = self.rlmd(*arguments, env=environment)
        self.assertIn(outcome.status, (0, 3, 6), outcome.err)
        return outcome.events

    def operations(self, count, **more):
        return [operation(f"o{i}", **more) for i in range(count)]

    def metrics_of(self, text):
        return dict(line.split(" ") for line in text.splitlines() if line[0] != "#")

    def test_time_outs_wait_for_a_call(self):
        """ASY-6: with one call at a time each operation has all of its time."""
        plan = self.file(*self.operations(6), maxParallel=6, timeoutPerOp=int(4000 * TAKES))
        result = self.run_plan(self.server, plan, "-j", "1").result
        self.assertEqual(set(self.statuses(result).values()), {"succeeded"})
        self.assertEqual(self.server.peak, 1)

    def test_time_outs_wait_for_the_budget(self):
        """ASY-6: likewise where what is left pays for one call at a time."""
        self.takes, self.usage = 2 * TAKES, (100, 1000)
        plan = self.file(*self.operations(3), maxParallel=3, timeoutPerOp=int(5000 * TAKES))
        result = self.run_plan(self.server, plan, "--max-tokens", "4000").result
        self.assertEqual(set(self.statuses(result).values()), {"succeeded"})
        self.assertEqual(self.server.peak, 1)

    def test_counts(self):
        """ASY-39: the highest parallelism and the busy time are what the server had in flight."""
        for arguments in (["-j", "2"], ["--max-tokens", "6000"]):
            with self.subTest(arguments):
                self.server.requests.clear()
                self.server.peak = 0
                self.takes = 0.2
                metrics = self.write("plan.prom", "")
                plan = self.file(*self.operations(6), maxParallel=6)
                result = self.run_plan(self.server, plan, *arguments, "--metrics", metrics).result
                told = result["metrics"]
                self.assertEqual(told["parallelHighest"], self.server.peak)
                self.assertLess(self.server.peak, 6)
                with open(metrics, encoding="utf-8") as file:
                    numbers = self.metrics_of(file.read())
                busy = float(numbers["rlmd_plan_busy_milliseconds_total"])
                slots = float(numbers["rlmd_plan_slot_milliseconds_total"])
                self.assertGreaterEqual(busy, 6 * 1000 * self.takes - 12)  # rounded down, each
                self.assertLessEqual(busy, self.server.peak * result["duration"])
                self.assertAlmostEqual(told["utilisation"], busy / slots, places=3)
                durations = [each["duration"] for each in result["results"].values()]
                self.assertAlmostEqual(sum(durations), busy, delta=12)

    def started(self, events):
        """Of each operation that was sent: what the budget last let run at once before."""
        limit, found = None, {}
        for event in events:
            if event["event"] == "plan_start":
                limit = event["wanted"]
            if event["event"] == "parallelism":
                limit = event["parallel"]
            if event["event"] == "operation_start":
                found[event["id"]] = limit
        return found

    def falling(self, output, *arguments, **more):
        """Eight operations, of which the first four are dear: the limit falls to one while others
        wait, and holds for them."""
        def reply(request):
            name = request.last_user[-2:]
            self.seen[name] = self.server.in_flight
            dear = name < "o4"
            return Reply(text="ok", delay=TAKES / 4 if dear else 2 * TAKES,
                         usage=(100, output if dear else 100))

        self.server.rules.clear()
        self.server.script(None, reply)
        plan = self.file(*self.operations(8, **more), maxParallel=8)
        events = self.any_end(plan, *arguments)
        limits = self.started(events)
        self.assertEqual(set(limits), set(self.seen))
        self.assertEqual(set(limits.values()) & {1, 8}, {1, 8})
        for name, limit in limits.items():
            self.assertLessEqual(self.seen[name], limit, (name, limits, self.seen))
        return events[-1]

    def test_the_limit_holds_for_what_waits(self):
        """ASY-23, ASY-24: what waits for the budget is sent one after the other then, though there
        would be enough for two small ones."""
        self.falling(8000, "--max-tokens", "42000")

    def test_it_holds_for_what_stands_in_for_a_run(self):
        """The same for calls in place of sub-runs, which wait for others of the same run."""
        result = self.falling(20000, "--max-tokens", "110000", "-j", "2", "--max-subruns", "0",
                              mode="rlm")
        self.assertEqual(set(self.statuses(result).values()), {"succeeded"})

    def test_an_event_for_what_was_sent(self):
        """An operation that was refused never started."""
        plan = self.file(*self.operations(6), maxParallel=6)
        events = self.any_end(plan, "-j", "3", "--max-calls", "2")
        starts = [e["id"] for e in events if e["event"] == "operation_start"]
        self.assertEqual(sorted(starts), sorted(self.seen))
        for name, each in events[-1]["results"].items():
            self.assertEqual(each["duration"] > 0, name in self.seen)


if __name__ == "__main__":
    unittest.main()

"""What is spent, what is said of it, and that nothing goes on after the end was called."""

import signal
import time
import unittest

from harness import SystemTest, block, query, turn
from model import Reply
from providers import ProviderTest, code, final

ENDLESS = dict(turn(block("print(1)")), repeat=True)


def slow(kind, ms, text="late", **match):
    return {
        "match": {"kind": kind, **match},
        "response": {"text": text, "delay": ms},
        "repeat": True,
    }


class Purse(ProviderTest):
    def test_a_model_without_a_price_is_not_asked_under_a_limit(self):
        """LIB-20: naming another model in code does not get around the purse."""
        server = self.serve(
            "openai",
            code("try: llm_query('q', model='dear')\nexcept BudgetExceeded as e: print(e)"),
            final(),
        )
        prices = self.prices(m=(1000000, 2000000))
        outcome = self.ask(server, *prices, "--max-cost", "0.5")
        self.assertIn("price of model 'dear' is not known", outcome.executions()[0]["stdout"])
        self.assertEqual(len(server.requests), 2)

    def test_a_retry_is_paid_for_before_it_is_made(self):
        """A stream that breaks after it was billed is not asked for again beyond the purse."""
        cut = Reply(text="x" * 4000, usage=(2000, 4000), cut_after=1500)
        server = self.serve("openai", cut, cut, cut, cut)
        prices = self.prices(m=(10000000, 10000000))  # a turn at full length: about $0.1
        outcome = self.rlmd(
            *self.arguments(server, *prices, "--max-cost", "0.07"),
            env=self.environment(**server.environment()),
        )
        self.assertLessEqual(outcome.result["usage"]["cost"], 0.07)
        self.assertNotEqual(outcome.status, 0)

    def test_the_trace_adds_up(self):
        """All events together are the usage: those of sub-runs, failures and forced answers too."""
        entries = [
            turn(
                block("llm_query('q')\nr = rlm_query('t')\nbatch_llm_query(['bad', 'q'])"),
                depth=0,
                turn=0,
            ),
            turn(block("FINAL(llm_query('deep'))"), depth=1),
            {
                "match": {"kind": "llm_query", "pattern": "bad"},
                "error": {"kind": "refused", "message": "no"},
            },
            query("a"),
            dict(ENDLESS),
            query("forced words", kind="forced"),
        ]
        outcome = self.replay(entries, "--jsonl", "--max-iterations", "3")
        events = [e for e in outcome.events if e["event"] in ("response", "llm_call")]
        usage = outcome.events[-1]["usage"]
        inputs = sum(
            (
                e.get("inputTokens", 0) or e.get("prompt", {}).get("tokens", 0)
                if e["event"] == "response"
                else e["inputTokens"]
            )
            for e in events
        )
        outputs = sum(
            e["response"]["tokens"] if e["event"] == "response" else e["outputTokens"]
            for e in events
        )
        self.assertEqual((inputs, outputs), (usage["inputTokens"], usage["outputTokens"]))
        self.assertEqual(len(events), usage["llmCalls"])

    def test_refused_calls_leave_no_event(self):
        """A call that was never sent costs nothing, memory and trace included."""
        executions, outcome = self.blocks(
            "p = 'A' * 99000\nn = sum(not r for i in range(20) for r in batch_llm_query([p] * 10))\nn",
            entries=[query("a")],
            arguments=["--max-tokens", "30000"],
        )
        self.assertEqual(executions[0]["stdout"], "200\n")
        self.assertEqual(outcome.result["trace"]["llmCalls"], [])

    def test_sub_runs_of_a_run_wait_for_each_other(self):
        """G8: of all its threads together only so many live at once; the others come later."""
        entries = [
            turn(
                block(
                    "from concurrent.futures import ThreadPoolExecutor",
                    "tasks = [['t'] * 4] * 12",
                    "with ThreadPoolExecutor(12) as pool: r = sum(pool.map(batch_rlm_query, tasks), [])",
                    "print(len(r), set(r))",
                ),
                depth=0,
                turn=0,
            ),
            slow("turn", 50, block("FINAL('x')"), depth=1),
            turn("FINAL(done)", depth=0, turn=1),
        ]
        outcome = self.replay(entries, "--json", "--max-cost", "0", "--max-tokens", "1000000000000")
        self.assertEqual(outcome.executions()[0]["stdout"], "48 {'x'}\n")

    def test_sub_runs_of_all_are_limited_and_say_so(self):
        """G8: a run that waited for those of others, which wait for theirs, would wait for ever; so
        beyond the limit of all together tasks are answered directly."""
        entries = [
            turn(
                block(
                    "r = batch_rlm_query(['t'] * 8)",
                    "print(len(r), sum(x.count('Too many sub-runs at once') for x in r) > 0)",
                ),
                depth=0,
                turn=0,
            ),
            dict(turn(block("FINAL(' '.join(batch_rlm_query(['u'] * 8)))"), depth=1), repeat=True),
            slow("turn", 500, block("FINAL('x')"), depth=2),
            query("directly", kind="direct"),
            turn("FINAL(done)", depth=0, turn=1),
        ]
        limits = ["--max-cost", "0", "--max-tokens", "1000000000000", "--max-depth", "3"]
        outcome = self.replay(entries, "--json", "-j", "8", *limits)
        self.assertEqual(outcome.executions()[0]["stdout"], "8 True\n")

    def test_a_grant_that_buys_nothing_starts_nothing(self):
        executions, outcome = self.blocks(
            "print(rlm_query('t'))",
            entries=[query("directly", kind="direct")],
            arguments=["--max-tokens", "9000"],
        )
        self.assertIn("Token budget exhausted", executions[0]["stdout"])
        self.assertEqual(outcome.result["usage"]["subcalls"], 0)


class Whole(SystemTest):
    """A part is never passed off as the whole."""

    def test_a_forced_sub_run_is_marked(self):
        entries = [
            turn(block("print(rlm_query('t'))"), depth=0, turn=0),
            dict(turn(block("1"), depth=1), repeat=True),
            query("a guess", kind="forced"),
            turn("FINAL(done)", depth=0, turn=1),
        ]
        outcome = self.replay(entries, "--json", "--max-iterations", "4")
        self.assertIn("best guess:]\na guess", outcome.executions()[0]["stdout"])
        self.assertTrue(any("forced" in w for w in outcome.result["warnings"]))

    def test_a_cut_answer_is_marked(self):
        cut = {"match": {"kind": "llm_query"}, "response": {"text": "half", "finish": "length"}}
        executions, _ = self.blocks("print(llm_query('q'))", entries=[cut])
        self.assertIn("cut at its length limit", executions[0]["stdout"])

    def test_a_worker_that_dies_between_blocks_is_told_of(self):
        entries = [
            turn(
                block("x = 1\nimport os, threading\nthreading.Timer(0.2, os._exit, [3]).start()"),
                turn=0,
            ),
            slow("turn", 1000, block("'x' in globals()"), turn=1),
            turn("FINAL(ok)", turn=2),
        ]
        outcome = self.replay(entries, "--json")
        self.assertEqual(outcome.executions()[1]["stdout"], "False\n")
        self.assertIn("lost", outcome.result["trace"]["iterations"][2]["prompt"]["content"])

    def test_a_forced_answer_may_name_a_variable(self):
        entries = [
            dict(turn(block("v = 'in a variable'")), repeat=True),
            query("FINAL_VAR(v)", kind="forced"),
        ]
        outcome = self.replay(entries, "--max-iterations", "2")
        self.assertEqual((outcome.status, outcome.out), (0, "in a variable\n"))

    def test_a_forced_answer_that_names_nothing_is_none(self):
        entries = [ENDLESS, query("FINAL_VAR(nothing)", kind="forced")]
        self.assertEqual(self.replay(entries, "--max-iterations", "2").status, 6)


class End(SystemTest):
    """The end of the time, and a person's word, hold whatever code and models do."""

    def test_time_holds_against_calls_in_flight_and_listings_that_hang(self):
        """A thread's open call must not stop the clock of the variables' listing."""
        entries = [
            turn(
                block(
                    "import threading\nthreading.Thread(target=llm_query, args=['q'], daemon=True).start()",
                    "class E:\n    def __repr__(self):\n        while True: pass\ne = E()",
                ),
                turn=0,
            ),
            slow("turn", 60000, turn=1),
            slow("llm_query", 60000),
            query("in time", kind="forced"),
        ]
        for seconds in (3, 50):
            with self.subTest(max_time=seconds):
                started = time.monotonic()
                process = self.start(
                    "exec",
                    "--provider",
                    "replay",
                    "--replay",
                    self.script(*entries),
                    "--max-time",
                    f"{seconds}s",
                    "--grace",
                    "6s",
                    "task",
                )
                if seconds > 10:
                    time.sleep(2)
                    process.send_signal(signal.SIGINT)
                out, _ = process.communicate(timeout=30)
                self.assertLess(time.monotonic() - started, 12)
                self.assertEqual(out, b"in time\n")

    def test_no_calls_after_the_end_was_called(self):
        entries = [
            dict(
                turn(
                    block(
                        "import threading, time",
                        "def go():\n    while True:\n        llm_query('q'); time.sleep(0.01)",
                        "threading.Thread(target=go, daemon=True).start()\ntime.sleep(0.3)",
                    )
                ),
                repeat=True,
            ),
            query("a"),
            slow("forced", 1500, "words"),
        ]
        outcome = self.replay(entries, "--jsonl", "--max-iterations", "1")
        calls = [e for e in outcome.events if e["event"] == "llm_call" and e["kind"] == "llm_query"]
        forced = next(e for e in outcome.events if e.get("kind") == "forced")
        self.assertLess(max(e["ms"] for e in calls), forced["ms"] - 1000)

    def test_an_interruption_during_the_forced_answer_counts(self):
        entries = [ENDLESS, slow("forced", 60000)]
        process = self.start(
            "exec",
            "--provider",
            "replay",
            "--replay",
            self.script(*entries),
            "--max-iterations",
            "1",
            "--grace",
            "1s",
            "task",
        )
        time.sleep(1.5)
        started = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
        self.assertLess(time.monotonic() - started, 4)
        self.assertEqual(process.returncode, 130)


if __name__ == "__main__":
    unittest.main()

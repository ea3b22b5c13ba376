"""Ends of a run before it is done: every limit, in the root and below, with an answer or an error.

docs/budget.md states the grace of --max-time: less than a second, whatever models and code do. The
whole process takes a little longer: it starts before the clock does, and cleans up after it.
"""

import json
import signal
import time
import unittest

import patience
from harness import block
from model import Reply
from providers import ProviderTest, final, pico

GRACE = 1  # seconds
PROCESS = 2  # seconds of an idle machine
FORCED = "No code runs any more"
PRICES = (1000000, 2000000)  # pico-dollars a token, in and out
STEP = Reply(text=block("treasure = [1, 2, 3]", "print('seen it')"), usage=(1500, 500))
WORDS = Reply(text="the forced words", usage=(900, 100))
WORDLESS = Reply(text="I am thinking.", usage=(1500, 500))

# Which limit, its reason and its stopReason, and what the model does until then.
LIMITS = [
    (["--max-iterations", "2"], "Max iterations reached", "max_iterations", [STEP]),
    (["--max-cost", "0.03"], "Cost budget exhausted", "max_cost", [STEP]),
    (["--max-tokens", "20000"], "Token budget exhausted", "max_tokens", [STEP]),
    (["--max-calls", "2"], "Max calls reached", "max_calls", [STEP]),
    (["--max-time", patience.duration(3)], "Time budget exhausted", "max_time", [STEP, Reply(delay=3600)]),
    (
        [],
        "three turns in a row had neither code nor an answer",
        "no_code",
        [STEP, WORDLESS],
    ),
]


class ForcedTest(ProviderTest):
    def limited(self, *steps, forced=WORDS, depth=0):
        """A model that takes these steps, the last for ever, until its answer is asked for."""
        server = self.serve("openai", prices=PRICES)
        server.script(FORCED, forced)
        for step in steps[:-1]:
            server.script(None, step, times=1)
        return server.script(None, steps[-1])

    def run_limited(self, server, *arguments, status=0):
        prices = self.prices(m=PRICES)
        return self.ask(server, *prices, "--max-time", "10m", *arguments, status=status).result


class EveryLimit(ForcedTest):
    def test_an_answer_is_asked_for(self):
        """ENG-7, ENG-19, ENG-20, LIB-24: once, with what there is, within the limit, and counted."""
        for arguments, reason, stop, steps in LIMITS:
            with self.subTest(reason=reason):
                server = self.limited(*steps)
                result = self.run_limited(server, *arguments)
                self.assertEqual(result["output"], "the forced words")
                self.assertEqual(result["stopReason"], stop)
                self.assertEqual(result["trace"]["answerSource"], "forced")
                expected = ["Budget exhausted, answer was forced", reason]
                if stop == "no_code":  # nothing was exhausted
                    expected[0] = "No code and no answer, answer was forced"
                others = ("% of budget", "were cut off")
                told = [w for w in result["warnings"] if not any(text in w for text in others)]
                self.assertEqual(told[:2], expected)
                forced = server.requests[-1].last_user
                self.assertIn(f"{FORCED}: {reason}.", forced)
                self.assertIn("TASK: the task", forced)
                self.assertIn("treasure", forced)
                self.assertIn("seen it", "".join(text for _, text in server.requests[-1].messages))
                usage = result["usage"]
                if stop == "max_time":
                    self.assertTrue(usage["estimated"])
                else:
                    self.assertEqual(pico(usage["cost"]), server.billed_cost)
                    self.assertEqual(usage["tokens"], sum(server.billed_tokens))
                    self.assertEqual(usage["llmCalls"], len(server.requests))

    def test_the_budget_holds(self):
        """ENG-19: the call comes out of what was set aside for it."""
        for arguments, key, limit in (
            (["--max-cost", "0.03"], "cost", 0.03),
            (["--max-tokens", "20000"], "tokens", 20000),
            (["--max-tokens", "6000"], "tokens", 6000),
        ):
            with self.subTest(arguments=arguments):
                result = self.run_limited(self.limited(STEP), *arguments)
                self.assertEqual(result["output"], "the forced words")
                self.assertLessEqual(result["usage"][key], limit)

    def test_an_empty_or_failed_one_is_an_error(self):
        """Never a success; what it cost is counted."""
        for forced in (Reply(text="  \n", usage=(900, 1)), Reply(error="bad_request")):
            for arguments, reason, stop, steps in LIMITS:
                with self.subTest(reason=reason, forced=forced.error or "empty"):
                    server = self.limited(*steps, forced=forced)
                    result = self.run_limited(server, *arguments, status=6)
                    self.assertFalse(result["success"])
                    kind = "no_answer" if stop == "no_code" else "budget"
                    self.assertEqual(result["error"]["kind"], kind)
                    self.assertIn(reason, result["error"]["message"])
                    self.assertEqual(result["stopReason"], stop)
                    if stop != "max_time":
                        self.assertEqual(pico(result["usage"]["cost"]), server.billed_cost)

    # Texts that are no answer, however they are fenced: "```\n" is bare, and the last one is not closed.
    CODE = (
        block("print(len(context))"),
        block("print(1)") + "\n\n" + block("print(2)") + "\n",
        "```\nprint(len(context))\n```",
        "```Python\nprint(1)\n```\n```\nprint(2)\n```",
        "~~~\nprint(1)",
    )

    def test_code_alone_is_no_answer(self):
        """No code runs any more: words are asked for, once more and in other words; else exit 6."""
        for code in self.CODE:
            with self.subTest(forced=code):
                finish = "stop" if code.endswith(("```", "\n")) else "length"
                server = self.limited(STEP, forced=Reply(text=code, finish=finish))
                server.script("Your last reply was only code", Reply(text=code))
                result = self.run_limited(server, "--max-iterations", "1", status=6)
                self.assertIn("it was only code", result["error"]["message"])
                self.assertEqual(result["output"], "")
                self.assertEqual(len(server.requests), 3)
                self.assertEqual(pico(result["usage"]["cost"]), server.billed_cost)

    def test_words_after_code(self):
        """The second time it is an answer, out of the same reserve, with all that was said."""
        for code in self.CODE:
            with self.subTest(forced=code):
                server = self.serve("openai", prices=PRICES)
                server.script(FORCED, Reply(text=code, usage=(900, 100)), times=1)
                server.script("Your last reply was only code", WORDS)
                server.script(None, STEP)
                result = self.run_limited(server, "--max-cost", "0.04")
                self.assertEqual(result["output"], "the forced words")
                self.assertEqual(result["stopReason"], "max_cost")
                self.assertEqual(pico(result["usage"]["cost"]), server.billed_cost)
                self.assertLessEqual(result["usage"]["cost"], 0.04)
                kinds = [call["kind"] for call in result["trace"]["llmCalls"]]
                self.assertEqual(kinds, ["forced", "forced"])
                asked = server.requests[-1].messages
                self.assertIn("treasure", "".join(text for _, text in asked))

    def test_no_code_but_data_or_words(self):
        """Beside words, as data, or in a language that no worker runs, it is an answer."""
        code = block("print(len(context))")
        for answer in (
            f"It may be 3:\n{code}",
            "```json\n3\n```",
            '```\n{"hosts": ["a", "b"]}\n```',
            '```python\n{"hosts": 2}\n```',
            "```sql\nSELECT 1;\n```",
            "use ```x``` here",
        ):
            with self.subTest(answer=answer):
                server = self.limited(STEP, forced=Reply(text=answer))
                result = self.run_limited(server, "--max-iterations", "1")
                self.assertEqual(result["output"], answer.strip())

    def test_a_cut_one_is_told_of(self):
        for finish, told in (("length", 1), ("stop", 0)):
            with self.subTest(finish=finish):
                forced = Reply(text="the forced wor", usage=(900, 100), finish=finish)
                result = self.run_limited(self.limited(STEP, forced=forced), "--max-iterations", "1")
                self.assertEqual(result["output"], "the forced wor")
                cut = "The forced answer was cut at its length limit"
                self.assertEqual(result["warnings"].count(cut), told)

    def test_of_a_small_budget_as_much_is_kept_as_it_takes(self):
        """A tenth would be too little, where each turn takes all that it may."""
        server = self.serve("openai", prices=PRICES)
        server.script(FORCED, lambda asked: Reply(text="the forced words", usage=(400, 60)))
        greedy = lambda asked: Reply(text=block("1"), usage=(2300, asked.max_tokens))
        server.script(None, greedy)
        result = self.run_limited(server, "--max-tokens", "4000")
        self.assertEqual(result["output"], "the forced words")
        self.assertLessEqual(result["usage"]["tokens"], 4000)

    def test_what_an_answer_lacked(self):
        """A budget that not even an answer fits into: what it may cost, and what there is."""
        for arguments, words in (
            (["--max-tokens", "300"], r"the request may take \d+ tokens, and 300 are left"),
            (["--max-cost", "0.0003"], r"the request may cost \$0\.\d+, and \$0\.0003\d* is left"),
        ):
            with self.subTest(arguments=arguments):
                server = self.limited(STEP)
                result = self.run_limited(server, *arguments, status=6)
                self.assertRegex(result["error"]["message"], words)
                self.assertEqual(server.requests, [])

    def test_an_interruption(self):
        """The answer of a person who does not want to wait: with the listing, and counted."""
        server = self.limited(STEP, Reply(delay=3600))
        trace = self.dir / "trace"
        arguments = self.arguments(server, *self.prices(m=PRICES), "--trace", trace)
        process = self.start(*arguments, env=self.environment(**server.environment()))
        self.assertTrue(server.wait(lambda s: len(s.requests) == 2))
        began = time.monotonic()
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        waited = time.monotonic() - began
        out, _ = process.communicate(timeout=patience.hung())
        self.assertIn(b"the forced words", out)
        self.assertIn(b"Interrupted, answer was forced", out)
        self.assertIn("treasure", server.requests[-1].last_user)
        self.assertIn(f"{FORCED}: Interrupted.", server.requests[-1].last_user)
        calls = json.loads(self.rlmd("trace", trace).out)["llmCalls"]
        cut = [call for call in calls if call.get("error", {}).get("kind") == "cancelled"]
        self.assertEqual(len(cut), 1)
        self.assertGreater(cut[0]["duration"], 1000 * waited - 100)

    def test_a_forced_answer_may_take_all_the_time_that_is_left(self):
        """The time that is set aside is for it, not against it."""
        limit = patience.seconds(6)  # of which all else takes less than a tenth
        slow = Reply(text="late words", delay=0.925 * limit)
        server = self.limited(STEP, forced=slow)
        arguments = ["--max-iterations", "1", "--max-time", f"{limit * 1000:.0f}ms"]
        result = self.run_limited(server, *arguments)
        self.assertEqual(result["output"], "late words")


class Below(ForcedTest):
    """The same for a sub-run: its caller gets the guess, marked as one, or an error it can see."""

    def nest(self, *steps, forced=WORDS):
        call = "print(rlm_query('the part'))"
        server = self.serve("openai", prices=PRICES)
        server.script(FORCED, forced)
        server.script(lambda r: "SUB-RLM at depth" not in r.system and r.turn == 0,
                      Reply(text=block(call), usage=(1500, 50)))
        server.script(lambda r: "SUB-RLM at depth" not in r.system, final("done", usage=(1500, 5)))
        for step in steps[:-1]:
            server.script(None, step, times=1)
        return server.script(None, steps[-1])

    def test_its_guess_is_marked(self):
        """ENG-7: half of the parent's, so its own limit; the parent goes on."""
        doubled = {"2": "4", "0.03": "0.06", "20000": "60000", "3s": "6s"}
        for arguments, reason, _, steps in LIMITS:
            if "--max-calls" in arguments:
                continue  # of the whole tree: nobody may go on
            arguments = [doubled.get(word, word) for word in arguments]
            with self.subTest(reason=reason):
                server = self.nest(*steps)
                result = self.run_limited(server, *arguments)
                execution = result["trace"]["iterations"][0]["codeExecutions"][0]
                self.assertEqual(execution["stdout"], "the forced words\n")
                self.assertIn(f"answer was forced ({reason})", execution["stderr"])
                self.assertEqual(result["output"], "done")
                (sub,) = result["trace"]["subcalls"]
                self.assertEqual(sub["answerSource"], "forced")
                forced = next(r for r in server.requests if FORCED in r.last_user)
                self.assertIn(reason, forced.last_user)
                self.assertIn("treasure", forced.last_user)

    def test_a_failed_one_is_an_error_value(self):
        server = self.nest(STEP, forced=Reply(text=""))
        result = self.run_limited(server, "--max-iterations", "4")
        error = result["trace"]["iterations"][0]["codeExecutions"][0]["error"]
        self.assertIn("no answer could be forced", error)
        self.assertEqual(result["output"], "done")

    def test_calls_are_those_of_the_whole_tree(self):
        """Both are asked for their answers, beyond the limit, and each is counted."""
        server = self.nest(STEP)
        result = self.run_limited(server, "--max-calls", "3")
        self.assertEqual(result["stopReason"], "max_calls")
        self.assertEqual(result["output"], "the forced words")
        self.assertEqual(result["usage"]["llmCalls"], 5)
        self.assertEqual(pico(result["usage"]["cost"]), server.billed_cost)


SILENT = Reply(text="FINAL(x)", delay=600)
STALLED = Reply(text="FINAL(x)", stall_after=30)
DRIPPING = Reply(text="FINAL(x)" * 500, piece_size=1, piece_delay=0.05)
LOOP = Reply(text=block("while True: pass"))
DEAF = Reply(
    text=block(
        "import signal",
        "signal.signal(signal.SIGINT, signal.SIG_IGN)",
        "while True: pass",
    )
)
IN_C = Reply(text=block("import re", "re.match('(a+)+$', 'a' * 60 + 'b')"))
SLEEP = Reply(text=block("import time", "time.sleep(3600)"))
DEEPER = "rlm_query('part')"
WIDER = "batch_rlm_query(['part'] * 4)"


class Time(ForcedTest):
    """maxTime holds, for the whole process."""

    SECONDS = 2

    def timed(self, server, *arguments, status):
        watch = patience.Stopwatch()
        outcome = self.ask(server, "--max-time", f"{self.SECONDS}s", *arguments, status=status)
        self.assertLess(watch.took(), self.SECONDS + GRACE + PROCESS)
        duration = outcome.result["usage"]["duration"] / 1000
        self.assertLess(duration / watch.slowness, self.SECONDS + GRACE)
        self.assertEqual(outcome.result["stopReason"], "max_time")
        return outcome

    def test_models_that_never_answer(self):
        """Silent, stalled or dripping bytes, the forced answer too: an error in time."""
        for reply in (SILENT, STALLED, DRIPPING):
            for option in ([], ["--no-stream"]):
                with self.subTest(reply=reply, option=option):
                    server = self.serve("openai").script(None, reply)
                    self.timed(server, *option, status=6)
                    self.assertTrue(server.wait(lambda s: not s.in_flight))

    def test_blocks_of_a_reply_that_comes_late(self):
        """Its code runs in what is left, its calls are refused, and the last answer has its output."""
        limit = patience.seconds(8)
        late = block("print(6 * 7)\ntry:\n    llm_query('q')\nexcept BudgetExceeded as e:\n    print(e)")
        for code, output in ((late, "forced"), (block("FINAL(6 * 7)"), "42")):
            with self.subTest(code):
                server = self.serve("openai", Reply(text=code, delay=0.65 * limit), Reply(text="forced"))
                outcome = self.ask(server, "--max-time", f"{limit * 1000:.0f}ms")
                self.assertEqual(outcome.result["output"], output)
                if output == "forced":
                    told = server.requests[-1].last_user
                    self.assertIn("42\n", told)
                    self.assertIn("Time budget exhausted", told)
                    self.assertEqual(outcome.result["stopReason"], "max_time")
                self.assertEqual(len(server.requests), 1 + (output == "forced"))

    def test_blocks_that_never_end(self):
        """A loop, one that is deaf to signals, one in C, a sleep: an answer in time."""
        for reply in (LOOP, DEAF, IN_C, SLEEP):
            with self.subTest(code=reply.text):
                server = self.limited(reply)
                outcome = self.timed(server, status=0)
                self.assertEqual(outcome.result["output"], "the forced words")

    def test_in_recursion(self):
        """Whatever hangs at whatever depth, alone and in a batch."""
        for hanging in (SILENT, DRIPPING, LOOP, DEAF, IN_C):
            for call in (DEEPER, WIDER):
                with self.subTest(hanging=hanging.text[:40], call=call):
                    server = self.serve("openai")
                    server.script(FORCED, SILENT)
                    server.script(lambda r: "at depth 2" in r.system, hanging)
                    server.script(lambda r: r.turn == 0, Reply(text=block(call)))
                    server.script(None, SILENT)
                    self.timed(server, "--max-depth", "3", status=6)
                    self.assertTrue(server.wait(lambda s: not s.in_flight))


class Warnings(ForcedTest):
    """LIB-23: at 80 % of a limit, once a kind, in the result and in the trace."""

    def warnings(self, *steps, arguments):
        server = self.limited(*steps)
        prices = self.prices(m=PRICES)
        outcome = self.ask(server, "--jsonl", *prices, "--max-time", "10m", *arguments)
        events = [e["text"] for e in outcome.events if e["event"] == "warning"]
        told = outcome.events[-1]["warnings"]
        of_budget = [text for text in told if "% of budget" in text]
        self.assertEqual([text for text in events if "% of budget" in text], of_budget)
        return of_budget

    def test_each_kind(self):
        step = Reply(text=block("1"), usage=(8000, 100))
        for kind, arguments in (
            ("Cost", ["--max-cost", "0.2"]),
            ("Tokens", ["--max-tokens", "200000"]),
        ):
            with self.subTest(kind=kind):
                (told,) = self.warnings(step, arguments=["--max-iterations", "100", *arguments])
                self.assertRegex(told, rf"^{kind} at 8\d% of budget$")

    def test_of_time(self):
        """Of a model that takes long, and of a block."""
        limit = patience.seconds(8)  # of which what is not slept takes less than a tenth
        slow = Reply(text=block("import time", f"time.sleep({0.81 * limit})", "FINAL('late')"))
        for late in (Reply(text="FINAL(late)", delay=0.81 * limit), slow):
            with self.subTest(late=late.text):
                server = self.serve("openai").script(None, late)
                limits = ["--max-time", f"{limit * 1000:.0f}ms", "--block-timeout", "10h"]
                result = self.ask(server, *limits).result
                self.assertEqual(result["output"], "late")
                (told,) = [text for text in result["warnings"] if "% of budget" in text]
                self.assertRegex(told, r"^Time at [89]\d% of budget$")

    def test_a_jump_past_the_limit(self):
        """A provider that bills more than it may: one warning, that says how much."""
        dear = final(usage=(100, 60000))
        (told,) = self.warnings(dear, arguments=["--max-tokens", "40000"])
        self.assertRegex(told, r"^Tokens at 15\d% of budget$")

    def test_two_kinds_at_once(self):
        jump = Reply(text="FINAL(x)", usage=(27000, 100))
        told = self.warnings(jump, arguments=["--max-tokens", "30000", "--max-cost", "0.03"])
        self.assertEqual([text.split()[0] for text in told], ["Cost", "Tokens"])

    def test_none_below(self):
        self.assertEqual(self.warnings(final(), arguments=["--max-cost", "1"]), [])


if __name__ == "__main__":
    unittest.main()

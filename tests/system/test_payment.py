"""The money spent, what is said of it, and that nothing goes on after the end was called."""

import json
import signal
import time
import unittest

import patience
from harness import SystemTest, block, query, turn
from model import Answer, ModelServer, Reply, dumps
from providers import ProviderTest, code, final, pico

ENDLESS = dict(turn(block("print(1)")), repeat=True)


def slow(kind, ms, text="late", **match):
    return {
        "match": {"kind": kind, **match},
        "response": {"text": text, "delay": ms},
        "repeat": True,
    }


class Purse(ProviderTest):
    def test_a_model_without_a_price_is_not_asked_under_a_limit(self):
        """LIB-20: naming another model in code does not get around the budget."""
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
        """A stream that breaks after it was billed is not asked for again beyond the budget."""
        cut = Reply(text="x" * 4000, usage=(2000, 4000), cut_after=1500)
        server = self.serve("openai", cut, cut, cut, cut)
        prices = self.prices(m=(10000000, 10000000))  # a turn at full length: about $0.1
        outcome = self.rlmd(
            *self.arguments(server, *prices, "--max-cost", "0.07"),
            env=self.environment(**server.environment()),
        )
        self.assertLessEqual(outcome.result["usage"]["cost"], 0.07)
        self.assertNotEqual(outcome.status, 0)

    def test_calls_that_were_cut_pay_the_most(self):
        """The bill of a stream that broke is not known: the budget holds all the same."""
        prices = (1000000, 2000000)

        def reply(request):
            if request.last_user.startswith("q"):
                usage = (200, min(8000, request.max_tokens))
                return Reply(text="x" * 400, usage=usage, cut_after=300)
            if "No code runs any more" in request.last_user:
                return Reply(text="a guess")
            if request.turn == 0:
                return code(
                    "for i in range(20):",
                    "  try: llm_query(f'q{i}')",
                    "  except Exception: pass",
                )
            return final()

        server = self.serve("openai", prices=prices).script(None, reply)
        outcome = self.ask(server, *self.prices(m=prices), "--max-cost", "0.1")
        self.assertLessEqual(server.billed_cost, 10**11)
        told = [w for w in outcome.result["warnings"] if "were cut off" in w]
        self.assertEqual(len(told), 1)

    def test_no_more_output_is_asked_for_than_a_model_can_give(self):
        """And never so little that an answer would be cut to nothing."""
        row = {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6}
        for output, asked in ((1000, 1000), (10, 256)):
            with self.subTest(output=output):
                table = {"m": dict(row, max_output_tokens=output)}
                path = self.write("table.json", json.dumps(table))
                server = self.serve("openai", final())
                self.ask(server, "--price-table", path)
                self.assertEqual(server.requests[0].max_tokens, asked)

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

    def test_sub_runs_wait_for_each_other(self):
        """G8: sub-runs of all threads together have so many workers; beyond it they wait."""
        entries = [
            turn(
                block(
                    "from concurrent.futures import ThreadPoolExecutor",
                    "tasks = [['t'] * 4] * 12",
                    "with ThreadPoolExecutor(12) as pool: r = sum(pool.map(batch_rlm_query, tasks), [])",
                    "print(len(r), r.count('x'), sum('Max sub-runs reached' in x.reason for x in r))",
                ),
                depth=0,
                turn=0,
            ),
            slow("turn", 50, block("FINAL('x')"), depth=1),
            query("directly", kind="direct"),
            turn("FINAL(done)", depth=0, turn=1),
        ]
        arguments = ["--max-tokens", "1000000000000", "--downgrade", "0", "--max-workers", "3"]
        outcome = self.replay(entries, "--json", "--max-cost", "0", *arguments, "--max-subruns", "40")
        self.assertEqual(outcome.executions()[0]["stdout"], "48 40 8\n")

    def test_a_batch_divides(self):
        """LIB-22: the sub-runs of one call have half of what is left, all together."""
        entries = [
            turn(
                block(
                    "left = budget()['tokens']",
                    "shares = [int(r) for r in batch_rlm_query(['t'] * 8)]",
                    "print(len(shares), sum(shares) <= left / 2, sum(shares) > left / 4)",
                ),
                depth=0,
                turn=0,
            ),
            # All of them hold their shares at once, for none ends before all have begun.
            slow("turn", 1000, block("b = budget()", "FINAL(b['tokens'] )"), depth=1),
            turn("FINAL(done)", depth=0, turn=1),
        ]
        outcome = self.replay(entries, "--json", "--max-tokens", "400000", "-j", "8")
        self.assertEqual(outcome.executions()[0]["stdout"], "8 True True\n")

    def test_whatever_stands_in_for_a_sub_run_is_told(self):
        """ENG-13, ENG-14: to the code, the trace and the warnings, with the reason."""
        cases = {
            "Max depth reached": ("direct", ["--max-depth", "1"]),
            "Max sub-runs reached": ("direct", ["--max-subruns", "0"]),
            "its share of the tokens would not pay for one turn": (
                "direct",
                ["--max-tokens", "9000"],
            ),
            "less than 100 % of cost left": ("llm_query", ["--downgrade", "100"]),
        }
        for reason, (kind, arguments) in cases.items():
            with self.subTest(reason):
                executions, outcome = self.blocks(
                    "for i in range(2): r = rlm_query('t'); print([r, r.reason])",
                    entries=[query("in short", kind=kind)],
                    arguments=arguments,
                )
                lines = executions[0]["stdout"].splitlines()
                self.assertEqual(len(lines), 2)
                for line in lines:
                    self.assertIn(reason, line)
                    self.assertIn("'in short'", line)
                result = outcome.result
                self.assertEqual(sum(reason in w for w in result["warnings"]), 1)
                reasons = [(c["kind"], c["reason"]) for c in result["trace"]["llmCalls"]]
                self.assertEqual(reasons, [(kind, reason)] * 2)
                self.assertEqual(result["usage"]["subcalls"], 0)

    def test_what_nothing_stands_in_for_is_an_exception(self):
        """The last to fall back to; it is told as well."""
        entries = [
            turn(block("try: rlm_query('t')\nexcept BudgetExceeded as e: print(e)"), turn=0),
            query("in short", kind="forced"),
        ]
        outcome = self.replay(entries, "--json", "--max-calls", "1")
        self.assertEqual(outcome.executions()[0]["stdout"], "Max calls reached\n")
        self.assertEqual(outcome.result["stopReason"], "max_calls")
        self.assertTrue(any("sub-run" in w for w in outcome.result["warnings"]))

    def test_a_grant_that_buys_nothing_starts_nothing(self):
        executions, outcome = self.blocks(
            "print(rlm_query('t').reason)",
            entries=[query("directly", kind="direct")],
            arguments=["--max-tokens", "9000"],
        )
        self.assertIn("would not pay for one turn", executions[0]["stdout"])
        self.assertEqual(outcome.result["usage"]["subcalls"], 0)


class Bill(ProviderTest):
    """The server's count is what is reported, and never more than the budget."""

    PRICES = (1234567, 7654321)  # pico-dollars a token

    def server_with(self, provider, reply):
        server = ModelServer(provider, prices=self.PRICES).start()
        self.addCleanup(server.stop)
        return server.script(None, reply)

    def check(self, server, usage):
        self.assertEqual((usage["inputTokens"], usage["outputTokens"]), server.billed_tokens)
        self.assertEqual(pico(usage["cost"]), server.billed_cost)

    def test_a_budget_of_ten_serves_no_more_of_64(self):
        """64 calls in parallel, each billed all the output that it may have."""

        def reply(request):
            if request.last_user == "q":
                output = min(1000, request.max_tokens)
                return Reply(text="x", usage=(100, output), finish="length", delay=0.1)
            if "No code runs any more" in request.last_user:
                return Reply(text="a guess")
            if request.turn == 0:
                return code("r = batch_llm_query(['q'] * 64)\nprint(sum(map(bool, r)))")
            return final()

        cost = 100 * self.PRICES[0] + 1000 * self.PRICES[1]
        for limit in (
            ["--max-cost", f"{10 * cost / 1e12:.12f}"],
            ["--max-tokens", str(10 * 1100)],
        ):
            with self.subTest(limit=limit[0]):
                server = self.server_with("openai", reply)
                outcome = self.ask(server, *self.prices(m=self.PRICES), *limit, "-j", "64")
                usage = outcome.result["usage"]
                self.check(server, usage)
                if limit[0] == "--max-cost":
                    self.assertLessEqual(server.billed_cost, 10 * cost)
                else:
                    self.assertLessEqual(sum(server.billed_tokens), 10 * 1100)
                answered = int(outcome.executions()[0]["stdout"])
                # One that was cut by a limit of ours may have been asked twice.
                self.assertLessEqual(answered, sum(r.last_user == "q" for r in server.requests))
                # Calls that are not affordable at once are, one after the other; a reserve is kept.
                self.assertGreaterEqual(answered, 6)
                self.assertLessEqual(answered, 10)

    def test_all_kinds_of_calls_together(self):
        """Sub-runs, batches, retries, forced answers, and calls whose transfers were closed."""
        ends = {"openai": b"data: [DONE]\n\n", "anthropic": b"event: message_stop\n"}
        for provider, end in ends.items():
            with self.subTest(provider):
                self.bill_of_all_kinds(provider, end)

    def bill_of_all_kinds(self, provider, end):
        flaky = iter(["rate_limit", "server_error"])

        def reply(request):
            last, first = request.last_user, request.messages[1][1]
            if last == "flaky":
                error = next(flaky, "")
                return Reply(error=error, headers={"Retry-After": "0"}) if error else Reply("ok")
            if last.startswith("stuck"):
                whole = Answer(request, Reply("all of it")).stream()
                return Reply("all of it", stall_after=whole.index(end))
            if last in ("one", "two", "deep"):
                return Reply(text="an answer to " + last)
            if "TASK: asks" in first:
                return code("FINAL(llm_query('deep'))")
            if "TASK: recurses" in first:
                return code("FINAL(rlm_query('ends'))")
            if "TASK: ends" in first:
                return final()
            if "TASK: endless" in first:
                return code("1") if request.turn < 3 else Reply(text="a guess")
            if request.turn == 0:
                return code(
                    "a = batch_llm_query(['one', 'two', 'flaky'])",
                    "b = batch_rlm_query(['asks', 'recurses', 'endless'])",
                    "print(a, b)",
                )
            if request.turn == 1:
                return code("batch_llm_query(['stuck 1', 'stuck 2'])")
            return final()

        server = self.server_with(provider, reply)
        arguments = ["--max-iterations", "6", "--max-depth", "4", "--max-cost", "9"]
        arguments += ["--max-tokens", "10000000"]
        process = self.start(
            *self.arguments(server, *self.prices(m=self.PRICES), *arguments),
            env=self.environment(**server.environment()),
        )
        self.assertTrue(server.wait(lambda server: server.silent == 2))
        # The usage is on its way; and some seconds later the call would end without an end.
        patience.wait_until(server.is_read, "all that was sent to be read")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=patience.hung())
        result = json.loads(out)
        self.assertEqual(result["stopReason"], "interrupted", err)
        self.assertEqual(result["usage"]["subcalls"], 4)
        self.assertEqual(len(server.requests), result["usage"]["llmCalls"] + 2)  # the retries
        self.assertFalse(result["usage"]["estimated"])
        self.check(server, result["usage"])

    def test_a_model_that_does_not_stop(self):
        """Its answer is cut where it is clearly beyond what was asked for, used, and paid for."""

        def reply(request):
            if request.last_user == "q":
                # Ten thousand times of what was asked for, a few words an event.
                event = dumps({"choices": [{"delta": {"content": "so it goes on and "}}]})
                body = b"data: %s\n\n" % event * 100
                times = 20 * request.max_tokens
                return Reply(body=body, repeat_body=times, content_type="text/event-stream")
            if request.turn == 0:
                return code("r = [llm_query('q') for i in range(3)]", "print(r[0][:6])")
            return final()

        server = self.server_with("openai", reply)
        prices, limit = self.prices(m=self.PRICES), 0.05
        outcome = self.rlmd(
            *self.arguments(server, *prices, "--max-cost", str(limit)),
            env=self.environment(**server.environment()),
        )
        result = outcome.result
        asked = [r for r in server.requests if r.last_user == "q"]
        self.assertGreater(len(asked), 0)
        self.assertTrue(server.wait(lambda server: all(r.disconnected for r in asked)))
        self.assertTrue(any("cut off there" in w for w in result["warnings"]), result["warnings"])
        self.assertTrue(result["usage"]["estimated"])
        self.assertLess(result["usage"]["cost"], 2.5 * limit)
        for request, call in zip(asked, result["trace"]["llmCalls"]):
            self.assertTrue(call["response"].startswith("so it goes on"))
            self.assertLess(call["outputTokens"], 2.5 * request.max_tokens + 200)

    def test_a_cache_without_a_price(self):
        """A row of the input's price alone: Anthropic bills 1.25 times what it writes, or twice."""
        price, output = self.PRICES
        real = (price, output, price, price * 5 // 4, price * 2)
        server = ModelServer("anthropic", prices=real).start()
        self.addCleanup(server.stop)
        server.script(None, final(usage=(5000, 10), cached=1000, written=2000, written_1h=1000))
        table = {"m": {"input_cost_per_token": price / 1e12, "output_cost_per_token": output / 1e12}}
        path = self.write("table.json", json.dumps(table))
        usage = self.ask(server, "--price-table", path).result["usage"]
        self.check(server, usage)

    def test_more_output_than_was_asked_for(self):
        """It is spent, reported, warned of once, and expected of the calls after it."""

        def reply(request):
            if request.last_user == "q":
                return Reply(text="x", usage=(100, 3 * request.max_tokens))
            if request.turn == 0:
                return code("print([bool(llm_query('q')) for i in range(2)])")
            return final()

        server = self.server_with("openai", reply)
        prices = self.prices(m=self.PRICES)
        outcome = self.ask(server, *prices, "--max-tokens", "1000000", "--max-cost", "5")
        self.check(server, outcome.result["usage"])
        told = [w for w in outcome.result["warnings"] if "billed more output than max_tokens" in w]
        self.assertEqual(len(told), 1)


SHOW = "print(json.dumps([[str(r), r.degraded, r.reason] for r in answers]))"
DIRECT = "no sub-RLM was started (Max depth reached), answered directly"
FORCED = "the sub-RLM's answer was forced (Max iterations reached)"
CUT = "cut at its length limit"


class Whole(SystemTest):
    """A part is never passed off as the whole, and what is said about an answer is not in it."""

    def answers(self, code, *entries, arguments=()):
        """Of a block that gathers `answers`: their text, .degraded and .reason; and the outcome."""
        first = turn(block("import json", code, SHOW), depth=0, turn=0)
        last = turn("FINAL(done)", depth=0, turn=1)
        outcome = self.replay([first, *entries, last], "--json", *arguments, context="abc")
        execution = outcome.executions()[0]
        self.assertIsNone(execution["error"], execution["error"])
        return json.loads(execution["stdout"]), outcome

    def told(self, outcome):
        """The block's output about it, and the model's next turn."""
        shown = outcome.executions()[0]["stderr"]
        for line in shown.splitlines():
            self.assertIn(line, outcome.result["trace"]["iterations"][1]["prompt"]["content"])
        return shown

    def test_an_answer_in_place_of_a_sub_runs(self):
        """ENG-13, ENG-14: what code reads is the answer, as it was given."""
        scarce = "downgraded to llm_query (less than 100 % of cost left)"
        code = "answers = [rlm_query('t')]; assert json.loads(answers[0]) == {'hosts': 3}"
        for arguments, kind, reason in (
            (["--max-depth", "1"], "direct", DIRECT),
            (["--downgrade", "100"], "llm_query", scarce),
        ):
            with self.subTest(reason=reason):
                told, outcome = self.answers(code, query('{"hosts": 3}', kind=kind),
                                             arguments=arguments)
                self.assertEqual(told, [['{"hosts": 3}', True, reason]])
                self.assertIn(f"rlm_query(): 1 degraded answer: {reason}", self.told(outcome))
                degraded = [{"call": "rlm_query", "reason": reason}]
                self.assertEqual(outcome.result["trace"]["degraded"], degraded)

    def test_a_batch(self):
        """Each for itself; what is the same is said once, with how often."""
        code = "answers = batch_rlm_query(['a', 'b', 'c']) + batch_llm_query(['d'])"
        entries = [dict(query("x", kind="direct"), repeat=True), query("y")]
        told, outcome = self.answers(code, *entries, arguments=["--max-depth", "1"])
        self.assertEqual(told, [["x", True, DIRECT]] * 3 + [["y", False, ""]])
        shown = self.told(outcome)
        self.assertIn(f"batch_rlm_query(): 3 degraded answers: {DIRECT}", shown)
        self.assertNotIn("batch_llm_query()", shown)

    def test_a_race_and_a_plan(self):
        code = (
            "answers = [race_query([{'task': 't'}])]\n"
            "results = run_plan([{'id': 'a', 'input': 't', 'mode': 'rlm'},"
            " {'id': 'b', 'input': 'of {{a}}', 'dependsOn': ['a']}])['results']\n"
            "answers += [results['a']['response'], results['b']['response']]\n"
            "assert results['a']['degraded'] and 'degraded' not in results['b']"
        )
        entries = [dict(query("x", kind="direct"), repeat=True), query("y", pattern="^of x$")]
        told, outcome = self.answers(code, *entries, arguments=["--max-depth", "1"])
        self.assertEqual(told, [["x", True, DIRECT], ["x", True, DIRECT], ["y", False, ""]])
        shown = self.told(outcome)
        self.assertIn(f"race_query(): 1 degraded answer: {DIRECT}", shown)
        self.assertIn(f"run_plan(): 1 degraded answer: {DIRECT}", shown)

    def test_a_forced_sub_run_is_marked(self):
        entries = [dict(turn(block("1"), depth=1), repeat=True), query("a guess", kind="forced")]
        code = "answers = [rlm_query('t')]"
        told, outcome = self.answers(code, *entries, arguments=["--max-iterations", "4"])
        self.assertEqual(told, [["a guess", True, FORCED]])
        self.assertIn(FORCED, self.told(outcome))
        self.assertTrue(any("forced" in w for w in outcome.result["warnings"]))

    def test_a_cut_answer_is_marked(self):
        """Of a call, and of a sub-run's forced answer; of one that is complete it says nothing."""
        cut = {"match": {"kind": "llm_query"}, "response": {"text": "half", "finish": "length"}}
        told, outcome = self.answers("answers = [llm_query('q')]", cut)
        self.assertEqual(told, [["half", True, CUT]])
        self.assertIn(f"llm_query(): 1 degraded answer: {CUT}", self.told(outcome))
        forced = {"match": {"kind": "forced"}, "response": {"text": "half", "finish": "length"}}
        entries = [dict(turn(block("1"), depth=1), repeat=True), forced]
        code = "answers = [rlm_query('t')]"
        told, _ = self.answers(code, *entries, arguments=["--max-iterations", "4"])
        self.assertEqual(told, [["half", True, f"{FORCED}; {CUT}"]])
        told, outcome = self.answers(code, turn("FINAL(whole)", depth=1))
        self.assertEqual(told, [["whole", False, ""]])
        self.assertEqual(self.told(outcome), "")
        self.assertNotIn("degraded", outcome.result["trace"])

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
            slow("turn", 3600000, turn=1),
            slow("llm_query", 3600000),
            query("in time", kind="forced"),
        ]
        for seconds in (3, 3000):
            with self.subTest(max_time=seconds):
                watch = patience.Stopwatch()
                trace = self.dir / f"trace-{seconds}"
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
                    "--trace",
                    trace,
                    "task",
                )
                if seconds > 10:  # once its second turn is asked for
                    code = lambda path=trace: path.exists() and '"event":"code"' in path.read_text()
                    patience.wait_until(code, "the first block")
                    process.send_signal(signal.SIGINT)
                out, _ = process.communicate(timeout=patience.hung())
                self.assertLess(watch.took(), 12)
                self.assertEqual(out, b"in time\n")

    def test_no_calls_after_the_end_was_called(self):
        unit = 1000 * patience.seconds(0.5)
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
            slow("forced", int(3 * unit), "words"),
        ]
        outcome = self.replay(entries, "--jsonl", "--max-iterations", "1")
        calls = [e for e in outcome.events if e["event"] == "llm_call" and e["kind"] == "llm_query"]
        forced = next(e for e in outcome.events if e.get("kind") == "forced")
        self.assertLess(max(e["ms"] for e in calls), forced["ms"] - 2 * unit)

    def test_an_interruption_during_the_forced_answer_counts(self):
        entries = [ENDLESS, slow("forced", 3600000)]
        trace = self.dir / "trace"
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
            "--trace",
            trace,
            "task",
        )
        code = lambda: trace.exists() and '"event":"code"' in trace.read_text()
        patience.wait_until(code, "the first block")
        time.sleep(patience.seconds(0.3))  # the forced answer is asked for by now
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=patience.hung())
        self.assertEqual(process.returncode, 130)


if __name__ == "__main__":
    unittest.main()

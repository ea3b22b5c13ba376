"""Several things at once, through the real program: plans, races, batches; and what they leave."""

import json
import unittest

import patience
from harness import GuardedTest, block, query, turn
from model import Reply
from providers import ProviderTest, code, final
from test_recursion import below

AMPLE = ["--max-tokens", "1000000000", "-j", "8", "--downgrade", "0"]


def is_query(request):
    """A call out of a block, or of a plan: not a turn."""
    return "Answer exactly what is asked" in request.system


def queries(server, start=""):
    return [r for r in server.requests if is_query(r) and r.last_user.startswith(start)]


class Plan(ProviderTest):
    """`rlmd plan`."""

    def plan(self, server, plan, *arguments, status=0):
        path = self.write("plan.json", json.dumps(plan))
        outcome = self.rlmd(
            *["plan", "-p", server.provider, "-m", "m", *AMPLE, *arguments, path],
            env=self.environment(**server.environment()),
        )
        if status is not None:
            self.assertEqual(outcome.status, status, outcome.err + outcome.out[:2000])
        return outcome

    def echo(self):
        """A server whose model says what it was asked, and whose runs print their context."""
        server = self.serve("openai")

        def reply(request):
            if is_query(request):
                slow = request.last_user.startswith("slow")
                return Reply(text=f"<{request.last_user}>", delay=3600 if slow else 0)
            if "TASK: sleep" in request.messages[1][1]:
                return code("import time", "time.sleep(3600)")
            return code("FINAL(context)")

        return server.script(None, reply)

    def test_calls_and_runs(self):
        """ASY-13, ASY-30: a graph of both; responses go into inputs, contexts to where they
        belong, and the usage is the sum."""
        server = self.echo()
        operations = [
            {"id": "run", "input": "the task", "mode": "rlm", "context": {"key": [1, 2]}},
            {"id": "call", "input": "question", "context": "facts", "model": "other"},
            {"id": "both", "input": "{{run}} and {{call}}", "dependsOn": ["run", "call"]},
        ]
        result = self.plan(server, {"operations": operations}).result
        responses = {name: each["response"] for name, each in result["results"].items()}
        self.assertEqual(responses["run"], '{"key":[1,2]}')
        self.assertEqual(responses["call"], "<question\n\nThe context:\n\nfacts\n>")
        self.assertEqual(responses["both"], f"<{responses['run']} and {responses['call']}>")
        self.assertEqual([r.model for r in queries(server, "question")], ["other"])
        tokens = sum(each["tokens"] for each in result["results"].values())
        self.assertEqual(tokens, result["totalTokens"])
        self.assertEqual(tokens, result["usage"]["tokens"])

    def test_a_race_closes_the_losers(self):
        """ASY-8 to ASY-11: within milliseconds of the win transfers are closed and workers gone;
        what the losers used is counted, estimated where nobody reported it."""
        server = self.echo()
        operations = [
            {"id": "sleeper", "input": "sleep", "mode": "rlm"},
            {"id": "slow-1", "input": "slow 1"},
            {"id": "slow-2", "input": "slow 2"},
            {"id": "quick", "input": "quick"},
        ]

        def reply(request):
            if request.last_user.startswith("quick"):
                # The sleeper's worker is at work by then.
                return Reply(text="won", delay=patience.seconds(1.5))
            return None

        server.script(lambda request: request.last_user.startswith("quick"), reply)
        path = self.write(
            "plan.json", json.dumps({"strategy": "Speculative", "operations": operations})
        )
        process = self.start(
            *["plan", "-p", "openai", "-m", "m", *AMPLE, "--jsonl", path],
            env=self.environment(**server.environment()),
        )
        won = None
        for line in process.stdout:
            event = json.loads(line)
            if event["event"] == "winner":
                won = patience.Stopwatch()
                patience.wait_until(lambda: below(process.pid) <= 1, "the workers of the losers")
                closed = lambda server: all(r.disconnected for r in queries(server, "slow"))
                self.assertTrue(server.wait(closed))
                took = won.took()
        self.assertEqual(process.wait(patience.hung()), 0, process.stderr.read())
        self.assertEqual(len(queries(server, "slow")), 2)
        self.assertLess(took, 1)  # which else would be an hour
        self.assertEqual(event["winner"], "quick")
        self.assertEqual(sorted(event["cancelled"]), ["sleeper", "slow-1", "slow-2"])
        losers = [event["results"][f"slow-{i}"] for i in (1, 2)]
        self.assertTrue(all(each["tokens"] > 0 and each["estimated"] for each in losers), losers)
        self.assertEqual(event["totalTokens"], event["usage"]["tokens"])

    def test_a_context_beyond_the_window_is_not_cut_in_silence(self):
        """The prompt says how much is missing, and so does a warning."""
        server = self.echo()
        operation = {"id": "a", "input": "question", "context": "start" + "x" * 3000000 + "end"}
        result = self.plan(server, {"operations": [operation]}).result
        (asked,) = queries(server)
        self.assertRegex(asked.last_user, r"start(?s:.*)\[\d+ characters omitted\](?s:.*)end\n$")
        self.assertTrue([w for w in result["warnings"] if "head and tail" in w], result["warnings"])

    def test_partial_failures(self):
        """ASY-16: what follows from an operation that fails, told by the kinds of errors."""
        fails = {"id": "a", "input": "refuse"}
        then = {"id": "b", "input": "then {{a}}", "dependsOn": ["a"]}
        cases = {"FailDependents": "dependency", "FailFast": "cancelled", "ContinueOnError": None}
        for mode, kind in cases.items():
            with self.subTest(mode):
                server = self.serve("openai").script(
                    None,
                    lambda r: Reply(error="content_filter" if r.last_user == "refuse" else ""),
                )
                plan = {"partialFailure": mode, "operations": [fails, then]}
                result = self.plan(server, plan, status=None).result
                self.assertEqual(result["results"]["a"]["error"]["kind"], "refused")
                self.assertEqual((result["results"]["b"]["error"] or {}).get("kind"), kind)
                if not kind:
                    self.assertIn("then Error: openai answered", server.requests[-1].last_user)

    def test_time_outs_are_of_their_own_kind(self):
        """ASY-36."""
        server = self.echo()
        operations = [{"id": "a", "input": "slow", "timeout": 200}]
        result = self.plan(server, {"operations": operations}, status=5).result
        self.assertEqual(result["results"]["a"]["error"]["kind"], "timeout")


class InBlocks(ProviderTest):
    """race_query, run_plan and batches of a worker's code."""

    def serve_block(self, *lines, also=None, **more):
        """Turn 0 of the root is a block of these lines, turn 1 the end; calls echo."""
        server = self.serve("openai")

        def reply(request):
            other = also and also(request)
            if other:
                return other
            if is_query(request):
                slow = request.last_user.startswith("slow")
                delay = 3600 if slow else patience.seconds(0.05)
                return Reply(text=f"<{request.last_user}>", delay=delay)
            return final("done") if request.turn else code(*lines)

        return server.script(None, reply)

    def stdout(self, server, *arguments):
        prices = self.prices(m=(1, 1))
        outcome = self.ask(server, *prices, *AMPLE, *arguments)
        (execution, *_) = outcome.executions()
        self.assertIsNone(execution["error"], execution)
        return execution["stdout"], outcome.result

    def test_a_race(self):
        """The first success wins; the others' transfers are closed at once."""
        server = self.serve_block(
            "print(race_query(['slow 1', 'quick', 'slow 2']))",
        )
        stdout, result = self.stdout(server)
        self.assertEqual(stdout, "<quick>\n")
        closed = lambda server: all(r.disconnected for r in queries(server, "slow"))
        self.assertTrue(server.wait(closed))
        self.assertTrue(result["usage"]["estimated"])
        errors = [call.get("error", {}).get("kind") for call in result["trace"]["llmCalls"]]
        self.assertEqual(errors.count("cancelled"), len(queries(server, "slow")))

    def test_a_plan(self):
        """A sub-run shares the caller's context; the events are in the trace."""
        def also(request):
            if "TASK: sub" in request.messages[1][1]:
                return code("FINAL(len(context))")

        server = self.serve_block(
            "plan = [{'id': 'a', 'input': 'sub', 'mode': 'rlm'},",
            "        {'id': 'b', 'input': 'and {{a}}', 'dependsOn': ['a']}]",
            "result = run_plan(plan)",
            "print(result['results']['b']['response'], result['totalTokens'])",
            also=also,
        )
        trace = self.dir / "trace.jsonl"
        context = ["-c", self.write("context.txt", "x" * 1234)]
        stdout, result = self.stdout(server, *context, "--trace", trace)
        self.assertEqual(stdout.split()[:2], ["<and", "1234>"])
        self.assertEqual(result["usage"]["subcalls"], 1)
        events = [json.loads(line)["event"] for line in trace.read_text().splitlines()]
        self.assertEqual([e for e in events if e.startswith("plan_")], ["plan_start", "plan_end"])

    def test_plans_of_code_have_the_limits_of_plan_files(self):
        """max_parallel=2000 is none too many, and a race of 1,500 asks all of them at once."""
        server = self.serve_block(
            "plan = [{'id': 'a', 'input': 'x'}]",
            "print(run_plan(plan, max_parallel=2000)['results']['a']['response'])",
            "print(race_query(['quick'] * 1499 + [{'task': 'quick'}]))",
            "try: run_plan(plan, max_parallel=100001)",
            "except ValueError as error: print('from 1 to 100000' in str(error))",
        )
        trace = self.dir / "trace.jsonl"
        stdout, _ = self.stdout(server, "--trace", trace)
        self.assertEqual(stdout, "<x>\n<quick>\nTrue\n")
        events = map(json.loads, trace.read_text().splitlines())
        self.assertEqual([e["wanted"] for e in events if e["event"] == "plan_start"], [1, 1500])

    def test_a_plan_in_a_sub_run(self):
        """The run that orders it pays for it, and its depth is one more."""
        def also(request):
            if "TASK: deepest" in request.messages[1][1]:
                return code("FINAL(budget()['depth'])")
            if "TASK: middle" in request.messages[1][1]:
                return code(
                    "plan = [{'id': 'a', 'input': 'deepest', 'mode': 'rlm'}]",
                    "FINAL(run_plan(plan)['results']['a']['response'])",
                )

        server = self.serve_block("print(rlm_query('middle'))", also=also)
        stdout, result = self.stdout(server, "--max-depth", "3", "--max-workers", "1")
        self.assertEqual(stdout, "2\n")
        self.assertEqual(result["usage"]["maxDepthReached"], 2)

    def test_no_plan(self):
        """A cycle is named, in code that can catch it, and nothing is sent."""
        server = self.serve_block(
            "plan = [{'id': 'a', 'input': 'x', 'dependsOn': ['b']},",
            "        {'id': 'b', 'input': 'x', 'dependsOn': ['a']}]",
            "try: run_plan(plan)",
            "except Exception as error: print(error)",
        )
        stdout, _ = self.stdout(server)
        self.assertRegex(stdout, "a cycle of 2: [ab] -> [ab] -> [ab]")
        self.assertEqual(queries(server), [])

    def test_plans_at_once_are_limited(self):
        """G10: each holds its inputs; of twenty at once four are refused, and say why."""
        late = patience.seconds(1)  # all twenty have asked by then
        server = self.serve_block(
            "from concurrent.futures import ThreadPoolExecutor",
            "def race(_):",
            "    try: return race_query(['who?'])",
            "    except ValueError as error: return str(error)",
            "with ThreadPoolExecutor(20) as pool: told = list(pool.map(race, range(20)))",
            "print(sum('16 plans or races are under way' in x for x in told))",
            also=lambda request: Reply(text="done", delay=late) if is_query(request) else None,
        )
        stdout, _ = self.stdout(server, "-j", "20")
        self.assertEqual(stdout, "4\n")

    def test_order_and_isolation(self):
        """ENG-29: answers stand where their questions do, and one that fails loses no other."""
        step = patience.seconds(0.03)

        def also(request):
            if is_query(request) and request.last_user == "3":
                return Reply(error="bad_request")
            if is_query(request):
                return Reply(text=request.last_user, delay=step * (9 - int(request.last_user)))

        server = self.serve_block(
            "answers = batch_llm_query([str(i) for i in range(8)])",
            "print([str(a)[:5] for a in answers], bool(answers[3]))",
            also=also,
        )
        stdout, _ = self.stdout(server)
        expected = [str(i) if i != 3 else "Error" for i in range(8)]
        self.assertEqual(stdout, f"{expected} False\n")
        self.assertGreater(server.peak, 4)

    def hints(self, server):
        """The turns after the first whose message has the hint."""
        self.stdout(server)
        turns = [r for r in server.requests if not is_query(r)]
        return sum("one after the other" in r.last_user for r in turns)

    def test_serial_calls_get_a_hint(self):
        """At most once, and only where they were many and none overlapped another."""
        cases = {
            "for i in range(4): llm_query(str(i))": 1,
            "for i in range(3): llm_query(str(i))": 0,
            "batch_llm_query(list('abcdef'))": 0,
            "for i in range(5): batch_llm_query(['a', 'b'])": 0,
            "from concurrent.futures import ThreadPoolExecutor as Pool\n"
            "with Pool(4) as pool: list(pool.map(llm_query, map(str, range(8))))": 0,
        }
        for lines, hints in cases.items():
            with self.subTest(lines):
                self.assertEqual(self.hints(self.serve_block(lines)), hints)

    def test_the_hint_comes_once(self):
        lines = "for i in range(4): llm_query(str(i))"

        def also(request):
            if not is_query(request) and request.turn < 3:
                return code(lines)
            if not is_query(request):
                return final("done")

        self.assertEqual(self.hints(self.serve_block(lines, also=also)), 1)


class Memory(GuardedTest):
    def test_the_answers_of_one_call_are_limited(self):
        """64 MiB together; the slots beyond fail and say why, and lose no other."""
        entries = [
            turn(
                block(
                    "answers = batch_llm_query(['q'] * 10)",
                    "print(sum(len(a) == 8 << 20 for a in answers if a))",
                    "print([str(a) for a in answers if not a][0])",
                ),
                turn=0,
            ),
            turn("FINAL(done)", turn=1),
            query("x" * (8 << 20)),
        ]
        outcome = self.replay(
            entries, "--json", "--max-cost", "0", "--max-tokens", "1000000000000"
        )
        self.assertEqual(outcome.status, 0, outcome.err)
        printed = outcome.executions()[0]["stdout"].splitlines()
        self.assertEqual(printed[0], "8")
        self.assertIn("may have 64 MiB together", printed[1])

    def test_what_sub_runs_print_and_answer(self):
        """The trace keeps 32 MiB of texts, and of each sub-run's answer 100,000 characters."""
        text = block("print('\\x01' * 100000)", "FINAL('y' * 300000)")
        entries = [
            turn(block("print(len(batch_rlm_query(['t'] * 200)))"), depth=0, turn=0),
            dict(turn(text, depth=1), repeat=True),
            turn("FINAL(done)", depth=0, turn=1),
        ]
        arguments = ["--max-cost", "0", "--max-tokens", "1000000000000", "--max-output", "100000"]
        outcome = self.replay(entries, "--json", *arguments, "--max-subruns", "1000")
        self.assertEqual(outcome.executions()[0]["stdout"], "200\n")
        subcalls = outcome.result["trace"]["subcalls"]
        self.assertEqual(len(subcalls), 200)
        self.assertTrue(all(len(sub["finalAnswer"]) < 101000 for sub in subcalls))
        self.assertLess(len(outcome.raw), 64 << 20)


if __name__ == "__main__":
    unittest.main()

"""`rlmd plan`, by the real program over HTTP: docs/plans.md, as its user meets it."""

import json
import random
import re
import signal
import string
import threading
import time
import unittest

import patience
from model import Reply
from providers import ProviderTest, code, final

MANY = 10000
PROMPT = 1  # second of an idle machine in which what is immediate has happened


def operation(name, given=None, needs=(), **more):
    found = {"id": name, "input": name if given is None else given, **more}
    if needs:
        found["dependsOn"] = list(needs)
    return found


def asked(server):
    """The inputs that were sent, in order."""
    return [request.last_user for request in server.requests]


class PlanTest(ProviderTest):
    def serve(self, *replies, provider="openai", **more):
        return super().serve(provider, *replies, **more)

    def echo(self, delay=0.0, **more):
        """A server that answers each input with itself in angle brackets."""
        server = self.serve()
        server.script(None, lambda r: Reply(text=f"<{r.last_user}>", delay=delay, **more))
        return server

    def file(self, *operations, name="plan.json", **members):
        return self.write(name, json.dumps({"operations": operations, **members}))

    def arguments(self, server, plan, *arguments):
        return ["plan", "-p", server.provider, "-m", "m", *arguments, plan]

    def begin(self, server, plan, *arguments, **more):
        environment = self.environment(**server.environment())
        return self.start(*self.arguments(server, plan, *arguments), env=environment, **more)

    def run_plan(self, server, plan, *arguments, status=0, **more):
        """Runs it to its end, checks the exit status, and gives what was printed and said."""
        environment = self.environment(**server.environment())
        outcome = self.rlmd(*self.arguments(server, plan, *arguments), env=environment, **more)
        self.assertEqual(outcome.status, status, outcome.err + outcome.out[:2000])
        return outcome

    def statuses(self, result):
        return {name: each["status"] for name, each in result["results"].items()}

    def kinds(self, result):
        return {n: each["error"]["kind"] for n, each in result["results"].items() if each["error"]}


class Strategies(PlanTest):
    def test_dependency_aware(self):
        """ASY-13: each starts when its last dependency ended, with the responses put in."""
        server = self.echo(usage=(10, 5))
        plan = self.file(
            operation("c", "{{a}} and {{ b }}", ["a", "b"]),
            operation("a", "one"),
            operation("b", "two \\{{a}} {x}"),
        )
        result = self.run_plan(server, plan).result
        self.assertEqual(asked(server)[2], "<one> and <two {{a}} {x}>")
        self.assertEqual(list(result["results"]), ["c", "a", "b"])
        self.assertEqual(
            {**result["results"]["a"], "duration": 0},
            {"id": "a", "response": "<one>", "tokens": 15, "duration": 0, "error": None,
             "status": "succeeded"},
        )
        self.assertEqual(result["totalTokens"], 45)

        self.assertEqual((result["winner"], result["cancelled"], result["error"]), (None, [], None))
        self.assertEqual(result["usage"]["llmCalls"], 3)

    def test_a_cut_answer_says_so_beside_it(self):
        server = self.echo(finish="length")
        (result,) = self.run_plan(server, self.file(operation("a"))).result["results"].values()
        self.assertEqual(result["response"], "<a>")
        self.assertEqual(result["degraded"], "cut at its length limit")

    def test_sequential(self):
        """One at a time, as listed, dependencies first; priorities mean nothing."""
        server = self.echo()
        plan = self.file(
            operation("c", needs=["d"]), operation("a"), operation("b", priority=9), operation("d"),
            strategy="Sequential",
        )
        self.run_plan(server, plan)
        self.assertEqual(asked(server), ["a", "b", "d", "c"])
        self.assertEqual(server.peak, 1)

    def test_parallel(self):
        """ASY-1: so many at once, whatever depends on what; the higher priority first."""
        server = self.echo(delay=0.1)
        names = [f"o{i}" for i in range(9)]
        plan = self.file(
            *(operation(n, needs=["o8"], priority=i % 2) for i, n in enumerate(names)),
            strategy="Parallel", maxParallel=3,
        )
        result = self.run_plan(server, plan).result
        self.assertEqual(server.peak, 3)
        self.assertEqual(result["metrics"]["parallelHighest"], 3)
        self.assertEqual(set(asked(server)[:3]), {"o1", "o3", "o5"})
        self.assertEqual(set(asked(server)), set(names))

    def test_calls_are_as_many_as_the_plan_lets_run(self):
        """Unless somebody said how many there may be in flight."""
        plan = self.file(*(operation(f"o{i}") for i in range(8)), maxParallel=8)
        for arguments, peak in (((), 8), (("-j", "2"), 2)):
            with self.subTest(arguments=arguments):
                server = self.echo(delay=0.2)
                self.run_plan(server, plan, *arguments)
                self.assertEqual(server.peak, peak)

    def test_priorities(self):
        server = self.echo()
        plan = self.file(*(operation(str(i), priority=i % 5) for i in range(10)), maxParallel=1)
        self.run_plan(server, plan)
        self.assertEqual(asked(server), ["4", "9", "3", "8", "2", "7", "1", "6", "0", "5"])

    def test_race(self):
        """ASY-8: the first success wins; what the others used counts, estimated, and their
        connections are closed at once."""
        server = self.serve()
        server.script("^slow", Reply(text="late", delay=3600))
        server.script("^stuck", Reply(text="word " * 50, pieces=50, piece_size=400, stall_after=2000))
        server.script("^bad", Reply(error="bad_request"))
        closed = []

        def win(request):
            server.won = time.monotonic()
            return Reply(text="won", delay=0.3)

        def watch():
            server.wait(lambda s: sum(r.disconnected for r in s.requests) == 2)
            closed.append(time.monotonic())

        clock = patience.Stopwatch()
        server.script("^fast", win)
        watcher = threading.Thread(target=watch)
        watcher.start()
        plan = self.file(
            *(operation(n, f"{n} {'word ' * 50}") for n in ("slow", "bad", "fast", "stuck")),
            strategy="Speculative",
        )
        outcome = self.run_plan(server, plan, "--jsonl")
        watcher.join()
        result = outcome.events[-1]
        clock.took()
        self.assertLess((closed[0] - server.won - 0.3) / clock.slowness, PROMPT)
        self.assertEqual(result["winner"], "fast")
        self.assertEqual(result["cancelled"], ["slow", "stuck"])
        self.assertEqual(
            self.statuses(result),
            {"slow": "cancelled", "bad": "failed", "fast": "succeeded", "stuck": "cancelled"},
        )
        for name in ("slow", "stuck"):
            self.assertTrue(result["results"][name]["estimated"])
            self.assertGreater(result["results"][name]["tokens"], 50)
        total = sum(each["tokens"] for each in result["results"].values())
        self.assertEqual((result["totalTokens"], result["usage"]["tokens"]), (total, total))
        self.assertTrue(result["usage"]["estimated"])
        ends = {e["id"]: e["ms"] for e in outcome.events if e["event"] == "operation_end"}
        self.assertLess(max(ends.values()) - ends["fast"], 1000 * PROMPT * clock.slowness)

    def test_a_race_that_nobody_wins(self):
        server = self.serve()
        server.script(None, Reply(error="auth"))
        plan = self.file(operation("a"), operation("b"), strategy="Speculative")
        outcome = self.run_plan(server, plan, status=4)
        self.assertEqual(outcome.result["error"]["kind"], "all_failed")
        self.assertIsNone(outcome.result["winner"])


class Runs(PlanTest):
    def test_a_run_among_calls(self):
        """An operation in mode rlm is a whole run with its context in a worker."""
        server = self.serve()
        server.script("^shout", lambda r: Reply(text=r.last_user.split()[-1].upper()))
        server.script(lambda r: r.turn == 0, code("import json", "print(json.loads(context)['n'] + 1)"))
        server.script(lambda r: r.turn == 1, final("forty-two"))
        plan = self.file(
            operation("count", mode="rlm", context={"n": 41}),
            operation("shout", "shout {{count}}", ["count"]),
        )
        outcome = self.run_plan(server, plan, "--jsonl")
        result = outcome.events[-1]
        self.assertEqual(result["results"]["count"]["response"], "forty-two")
        self.assertEqual(result["results"]["shout"]["response"], "FORTY-TWO")
        self.assertIn("seccomp", result["sandbox"]["layers"])
        blocks = [event for event in outcome.events if event["event"] == "code"]
        self.assertEqual([each["stdout"] for each in blocks], ["42\n"])

    def test_the_loser_of_a_race_of_runs(self):
        """Its worker is killed, whatever it computes."""
        server = self.serve()
        server.script("endless", code("while True: pass"))
        server.script("quick", final("first", delay=0.5))
        plan = self.file(
            operation("endless", mode="rlm"), operation("quick", mode="rlm"), strategy="Speculative"
        )
        result = self.run_plan(server, plan).result  # else it would never end
        self.assertEqual((result["winner"], result["cancelled"]), ("quick", ["endless"]))

    def test_without_runs_there_is_no_sandbox(self):
        """Not even one that could not be had."""
        plan = self.file(operation("a"))
        outcome = self.run_plan(self.echo(), plan, "--python", "/nonexistent")
        self.assertIsNone(outcome.result["sandbox"])
        plan = self.file(operation("a", mode="rlm"))
        outcome = self.run_plan(self.echo(), plan, "--python", "/nonexistent", status=2)
        self.assertIn("/nonexistent", outcome.err)

    def test_contexts_of_calls(self):
        """A text as it is, anything else as JSON."""
        server = self.echo()
        plan = self.file(
            operation("a", "what?", context="the\ntext"), operation("b", "what?", context=[1, {}])
        )
        self.run_plan(server, plan)
        sent = sorted(asked(server))
        self.assertIn("what?", sent[0])
        self.assertIn("the\ntext", "".join(sent))
        self.assertIn("[1,{}]", "".join(sent))


class Failures(PlanTest):
    def plan(self, **members):
        return self.file(
            operation("bad"), operation("good"), operation("after", "{{bad}}!", ["bad"]),
            operation("beyond", "{{after}}", ["after"]), operation("slow", needs=["good"]),
            **members,
        )

    def serve_one_failure(self):
        server = self.serve()
        server.script("^bad", Reply(error="bad_request"))
        server.script("^slow", lambda r: Reply(text="<slow>", delay=1))
        server.script(None, lambda r: Reply(text=f"<{r.last_user}>"))
        return server

    def test_dependents_fail(self):
        """ASY-29: what depends on it fails with it, however far; the rest goes on."""
        outcome = self.run_plan(self.serve_one_failure(), self.plan(), status=3)
        self.assertEqual(
            self.kinds(outcome.result),
            {"bad": "bad_request", "after": "dependency", "beyond": "dependency"},
        )
        self.assertEqual(self.statuses(outcome.result)["slow"], "succeeded")
        self.assertRegex(outcome.err, r"error: 3 of 5 operations failed; the first, 'bad': ")

    def test_fail_fast(self):
        """Operations that had succeeded are in the result, those under way are closed."""
        server = self.serve()
        server.script("^bad", Reply(error="bad_request", delay=patience.seconds(0.5)))
        server.script("^slow", Reply(text="<slow>", delay=3600))
        server.script(None, Reply(text="<good>"))
        outcome = self.run_plan(server, self.plan(partialFailure="FailFast"), status=3)
        result = outcome.result
        self.assertEqual(result["error"]["kind"], "bad_request")
        self.assertEqual(result["results"]["good"]["response"], "<good>")
        self.assertEqual(result["cancelled"], ["after", "beyond", "slow"])
        closed = lambda s: [r.disconnected for r in s.requests if "slow" in r.last_user] == [True]
        self.assertTrue(server.wait(closed))

    def test_continue_on_error(self):
        server = self.serve_one_failure()
        outcome = self.run_plan(server, self.plan(partialFailure="ContinueOnError"), status=3)
        self.assertEqual(list(self.kinds(outcome.result)), ["bad"])
        after = next(text for text in asked(server) if text.endswith("!"))
        self.assertRegex(after, r"^Error: .*Invalid 'messages'.*!$")

    def test_exit_status_of_a_reason_for_all(self):
        """4, 5, 10: nothing succeeded, and for one reason."""
        cases = (
            (4, Reply(error="auth")), (4, Reply(error="billing")), (10, Reply(text="No.", finish="refusal")),
            (1, Reply(error="bad_request")), (2, Reply(error="not_found")),
        )
        for status, reply in cases:
            with self.subTest(reply=reply):
                server = self.serve()
                server.script(None, reply)
                plan = self.file(operation("a"), operation("b"), operation("c", needs=["a"]))
                self.run_plan(server, plan, status=status)

    def test_nobody_there(self):
        server = self.serve(provider="ollama")
        plan = self.file(operation("a"))
        self.run_plan(server, plan, "--base-url", "http://127.0.0.1:1", status=5)

    def test_timeouts(self):
        """ASY-25: an operation's own, and the plan's; from its start, not from when it waits."""
        server = self.serve()
        server.script("^slow", Reply(text="late", delay=3600))
        unit = int(1000 * patience.seconds(0.1))
        server.script(None, Reply(text="in time", delay=4 * unit / 1000))
        plan = self.file(
            operation("slow1", timeout=3 * unit), operation("slow2"), operation("x"), operation("y"),
            maxParallel=2, timeoutPerOp=7 * unit,
        )
        result = self.run_plan(server, plan, status=3).result
        self.assertEqual(self.kinds(result), {"slow1": "timeout", "slow2": "timeout"})
        ended = {name: each["duration"] for name, each in result["results"].items()}
        early = 20  # milliseconds: a loop's timers count from when it woke up
        self.assertTrue(3 * unit - early <= ended["slow1"] < 7 * unit, ended)
        self.assertTrue(7 * unit - early <= ended["slow2"], ended)
        closed = lambda s: all(r.disconnected for r in s.requests if "slow" in r.last_user)
        self.assertTrue(server.wait(closed))
        self.assertTrue(result["results"]["slow1"]["estimated"])
        self.run_plan(server, self.file(operation("slow", timeout=1)), status=5)

    def test_an_input_that_grew_too_large(self):
        """Beyond 16 MiB it is never sent."""
        word = "".join(random.Random(1).choices(string.ascii_lowercase, k=100000))
        server = self.serve()
        server.script("^a", Reply(text=word, pieces=1))
        plan = self.file(operation("a"), operation("b", "{{a}}" * 170, ["a"]))
        result = self.run_plan(server, plan, status=3).result
        self.assertEqual(self.kinds(result), {"b": "input"})
        self.assertEqual(len(server.requests), 1)


class Budget(PlanTest):
    def test_exhausted(self):
        """6, and what was answered is there; nothing is sent that could not be paid."""
        server = self.echo(usage=(1500, 500))
        plan = self.file(*(operation(str(i)) for i in range(20)), maxParallel=1)
        outcome = self.run_plan(server, plan, "--max-tokens", "10000", status=6)
        result = outcome.result
        self.assertEqual(set(self.kinds(result).values()), {"budget"})
        self.assertTrue(0 < len(server.requests) < 20)
        self.assertEqual(list(self.statuses(result).values()).count("succeeded"),
                         len(server.requests))
        self.assertLessEqual(result["totalTokens"], 10000)

    def test_parallelism_follows_what_is_left(self):
        """ASY-3: fewer at once as the budget shrinks, and events say so."""
        server = self.echo(delay=0.05, usage=(1000, 1000))
        plan = self.file(*(operation(str(i)) for i in range(12)), maxParallel=8)
        outcome = self.run_plan(server, plan, "--max-tokens", "30000", "--jsonl")
        events = [e for e in outcome.events if e["event"] == "parallelism"]
        self.assertTrue(events)
        for event in events:
            self.assertEqual(event["wanted"], 8)
            self.assertEqual(event["parallel"], event["remaining"] // event["estimate"])
        limits = [event["parallel"] for event in events]
        self.assertEqual(limits, sorted(limits, reverse=True))
        self.assertLess(limits[-1], 8)
        self.assertEqual(outcome.events[-1]["metrics"]["budgetLimited"], len(events))

    def test_cost(self):
        """LIB-25: what has a price is not asked with nothing to spend."""
        server = self.echo()
        prices = self.prices(m=(1, 1))
        self.run_plan(server, self.file(operation("a")), *prices, "--max-cost", "0", status=6)
        self.assertEqual(server.requests, [])
        self.run_plan(server, self.file(operation("a")), "--max-cost", "1", status=2)
        outcome = self.run_plan(server, self.file(operation("a")), "--json")
        self.assertEqual(sum("price of model 'm'" in w for w in outcome.result["warnings"]), 1)
        self.assertEqual(outcome.err.count("price of model 'm'"), 1)

    def test_models_of_operations(self):
        """Each has to have a price where a limit was asked for, and is the one that is asked."""
        server = self.echo()
        plan = self.file(operation("a", model="other"), operation("b", model="m"))
        arguments = [*self.prices(m=(1, 1)), "--max-cost", "1"]
        outcome = self.run_plan(server, plan, *arguments, status=2)
        self.assertIn("the price of model 'other' is not known", outcome.err)
        self.assertEqual(server.requests, [])
        self.run_plan(server, plan, *self.prices(m=(1, 1), other=(1, 1)), "--max-cost", "1")
        self.assertEqual({r.last_user: r.model for r in server.requests}, {"a": "other", "b": "m"})

    def test_time(self):
        """--max-time holds for the plan as a whole."""
        server = self.echo(delay=3600)
        plan = self.file(operation("a"), operation("b", needs=["a"]))
        result = self.run_plan(server, plan, "--max-time", "1s", status=6).result
        self.assertEqual(self.kinds(result), {"a": "budget", "b": "dependency"})


class Bad(PlanTest):
    """One clear message, exit status 8, and nothing was sent."""

    def refused(self, plan, words, status=8, **more):
        server = self.echo()
        with self.subTest(words=words):
            outcome = self.run_plan(server, plan, status=status, **more)
            self.assertEqual((outcome.out, server.requests), ("", []))
            first, *rest = outcome.err.splitlines()
            self.assertRegex(first, r"^rlmd: error: ")
            self.assertRegex(first, words)
            self.assertEqual(len(rest), 1 if status == 2 else 0, outcome.err)
            return outcome

    def test_no_plan(self):
        cases = {
            b"": "plan.json: the plan is",
            b"{": "plan.json: the plan is",
            b"\xff\xfe": "the plan is",
            b"[]": "object",
            b"{}": "operations",
            b'{"operations": []}': "operations",
            b'{"operations": {}}': "operations",
            b'{"operations": [1]}': r"operations\[0\]",
            b'{"operations": [{"id": "a", "input": "x"}], "operations": []}': "duplicate",
            b'{"operations": [{"id": "a", "input": "x"}]} {}': "the plan is",
            b"[" * 1000: "the plan is",
        }
        for text, words in cases.items():
            self.refused(self.write("plan.json", text), words)

    def test_wrong_members(self):
        one = operation("a")
        cases = {
            "strategy": ({"strategy": "Sideways"}, "Sequential"),
            "partialFailure": ({"partialFailure": "Never"}, "FailFast"),
            "maxParallel": ({"maxParallel": 0}, "1"),
            "maxParallel: ": ({"maxParallel": 10**6}, "100000"),
            "timeoutPerOp": ({"timeoutPerOp": -1}, "positive"),
            "timeoutPerOp: ": ({"timeoutPerOp": 0.5}, "whole"),
            "retries": ({"retries": 1}, "not a member"),
        }
        for place, (members, words) in cases.items():
            self.refused(self.file(one, **members), f"plan.json: .*{place.strip(': ')}.*{words}")

    def test_wrong_operations(self):
        cases = {
            "id": {"input": "x"},
            "input": {"id": "x"},
            "id.*": {"id": "", "input": "x"},
            "timeout": operation("x", timeout=-1),
            "priority": operation("x", priority="high"),
            "mode": operation("x", mode="fast"),
            "type": operation("x", type="query"),
            "metadata": operation("x", metadata={"n": 1}),
            "context": operation("x", context=7),
            "dependsOn": operation("x", dependsOn="a"),
            "depends": operation("x", depends=["a"]),
        }
        for place, wrong in cases.items():
            self.refused(self.file(operation("a"), wrong), rf"operations\[1\].*{place}")

    def test_wrong_relations(self):
        cases = {
            "twice|duplicate|taken": [operation("a"), operation("a")],
            "nobody": [operation("a", needs=["nobody"])],
            "itself": [operation("a", needs=["a"])],
            "cycle of 3: a -> c -> b -> a|cycle of 3: a -> b -> c -> a": [
                operation("a", needs=["b"]), operation("b", needs=["c"]),
                operation("c", needs=["a"]),
            ],
            r"\{\{b\}\}": [operation("a", "{{b}}"), operation("b")],
        }
        for words, operations in cases.items():
            self.refused(self.file(*operations), words)
        racing = self.file(operation("a"), operation("b", needs=["a"]), strategy="Speculative")
        self.refused(racing, "dependsOn")

    def test_wrong_files(self):
        self.refused(str(self.dir / "missing.json"), "missing.json: No such file")
        self.refused(str(self.dir), "not a regular file")
        huge = self.dir / "huge.json"
        with open(huge, "wb") as file:
            file.truncate((64 << 20) + 1)
        self.refused(str(huge), "larger than")

    def test_wrong_standard_input(self):
        self.refused("-", "standard input: the plan is", input=b"{")
        self.refused("-", "standard input: the plan is", input=b"")

    def test_wrong_command_lines(self):
        server = self.echo()
        plan = self.file(operation("a"))
        cases = (
            (["plan"], "there is no plan"),
            (["plan", plan, plan], "one argument too many"),
            (["plan", "--strict", plan], "plan has no use for --strict but with --dry-run"),
            (["plan", "-c", "x", plan], "plan has no use for --context"),
            (["plan", "--json", "--jsonl", plan], "exclude each other"),
            (["plan", "--metrics", str(self.dir / "no" / "where"), plan], "the metrics: cannot write"),
            (["exec", "--metrics", "x", "task"], "exec has no use for --metrics"),
        )
        for arguments, words in cases:
            with self.subTest(words=words):
                environment = self.environment(**server.environment())
                outcome = self.rlmd(*arguments, env=environment)
                self.assertEqual((outcome.status, outcome.out), (2, ""), outcome.err)
                self.assertIn(words, outcome.err)
        self.assertEqual(server.requests, [])

    def test_an_object_for_machines(self):
        """With --json and --jsonl there is a result whatever happens."""
        plan = self.file(operation("a", needs=["a"]))
        for form in ("--json", "--jsonl"):
            result = self.run_plan(self.echo(), plan, form, status=8).result
            self.assertEqual((result["results"], result["error"]["kind"]), ({}, "input"))


class Output(PlanTest):
    def test_standard_input_and_a_file(self):
        server = self.echo()
        out = self.dir / "out.json"
        text = json.dumps({"operations": [operation("a")]}).encode()
        outcome = self.run_plan(server, "-", "-o", str(out), input=text)
        self.assertEqual(outcome.out, "")
        self.assertEqual(json.loads(out.read_text())["results"]["a"]["response"], "<a>")
        self.assertRegex(outcome.err, r"rlmd: done in .*: 1 operation, 1 call, ")
        self.assertEqual(self.run_plan(server, self.file(operation("a")), "-q").err, "")

    def test_events(self):
        """ASY-38: one object a line, the last is the result; the trace holds the same."""
        server = self.echo()
        plan = self.file(operation("a"), operation("b", "{{a}}", ["a"]))
        trace = self.dir / "trace"
        events = self.run_plan(server, plan, "--jsonl", "--trace", str(trace)).events
        names = [event["event"] for event in events if event["event"] != "llm_call"]
        self.assertEqual(
            names,
            ["plan_start", "operation_start", "operation_end", "operation_start", "operation_end",
             "plan_end", "result"],
        )
        self.assertEqual(sum(event["event"] == "llm_call" for event in events), 2)
        self.assertEqual([e["id"] for e in events if e["event"] == "operation_end"], ["a", "b"])
        self.assertEqual([json.loads(line) for line in trace.read_text().splitlines()], events)
        self.assertEqual(set(self.statuses(events[-1]).values()), {"succeeded"})

    def test_verbose(self):
        server = self.serve_failing("bad")
        outcome = self.run_plan(server, self.file(operation("good"), operation("bad")), "-v", status=3)
        self.assertRegex(outcome.err, r"\] good succeeded: [\d.k]+ tokens, ")
        self.assertRegex(outcome.err, r"\] bad failed: .*Invalid 'messages'")

    def serve_failing(self, name):
        server = self.serve()
        server.script(f"^{name}", Reply(error="bad_request"))
        server.script(None, Reply(text="fine"))
        return server

    def test_metrics(self):
        """ASY-39: Prometheus' text format, written when the plan has ended, all or nothing."""
        metrics = self.write("plan.prom", "old\n")
        server = self.serve_failing("bad")
        plan = self.file(operation("good", type="Verify"), operation("bad"))
        self.run_plan(server, plan, "--metrics", metrics, status=3)
        text = (self.dir / "plan.prom").read_text()
        self.assertIn('rlmd_plan_operations_total{type="Verify",outcome="succeeded"} 1\n', text)
        self.assertIn('rlmd_plan_operations_total{type="Query",outcome="failed"} 1\n', text)
        self.assertIn('rlmd_plan_executions_total{strategy="DependencyAware"} 1\n', text)
        for line in text.splitlines():
            self.assertRegex(line, r'^(# (HELP|TYPE) rlmd_plan_\w+ .+|rlmd_plan_\w+(\{.*\})? [\d.]+)$')
        self.write("plan.prom", "old\n")
        self.run_plan(server, self.file(), "--metrics", metrics, status=8)
        self.assertEqual((self.dir / "plan.prom").read_text(), "old\n")

    def test_dry_run(self):
        """Shows the order and the most that it may cost; nothing is sent, no key is needed."""
        server = self.echo()
        plan = self.file(
            operation("last", "{{run}}", ["run"]), operation("run", mode="rlm"),
            operation("low"), operation("high", priority=1),
        )
        arguments = ["plan", "-p", "openai", "-m", "m", *self.prices(m=(10**6, 2 * 10**6)), "--dry-run"]
        text = self.rlmd(*arguments, plan)
        self.assertEqual(text.status, 0, text.err)
        self.assertEqual(re.findall(r"^ +\d+  (\w+) ", text.out, re.M), ["high", "run", "low", "last"])
        self.assertIn("DependencyAware, 4 at once", text.out)
        self.assertIn("prompts         default\n", text.out)
        self.assertEqual(self.rlmd(*arguments, "--prompt", "small", "--json", plan).result["promptProfile"],
                         "small")
        shown = self.rlmd(*arguments, "--json", plan).result
        self.assertEqual([o["id"] for o in shown["operations"]], ["high", "run", "low", "last"])
        self.assertEqual((shown["runs"], shown["worstCaseTokens"]), (1, 500000))
        calls = self.file(operation("a", "x" * 4000), operation("b", "{{a}}", ["a"]))
        shown = self.rlmd(*arguments, "--json", calls).result
        self.assertTrue(3 * 8192 < shown["worstCaseTokens"] < 3 * 8192 + 2000, shown)
        self.assertAlmostEqual(shown["worstCaseCost"], (9192 * 1 + 2 * 8192 * 2) / 1e6, places=3)
        for context, more, misfit in (
            ("", [], None), ("", ["--max-calls", "3"], "and max-calls is 3"),
            ("word " * 400_000, [], "and max-tokens is 500000"),
        ):
            with self.subTest(misfit=misfit):
                plan = self.file(operation("a"), operation("b"),
                                 operation("run", mode="rlm", context=context))
                gate = self.rlmd(*arguments, "--json", "--strict", *more, plan)
                self.assertEqual(gate.status, 6 if misfit else 0, gate.err)
                self.assertIn(misfit or "", gate.err)
                self.assertEqual(gate.result["fits"], not misfit)
        self.assertEqual(server.requests, [])
        self.assertEqual(self.rlmd(*arguments, self.file(operation("a", "{{b}}"))).status, 8)

    def test_record_and_replay(self):
        server = self.echo()
        tape = str(self.dir / "tape")
        plan = self.file(operation("a"), operation("b", "{{a}}!", ["a"]))
        once = self.run_plan(server, plan, "--record", tape).result
        again = self.run_plan(server, plan, "--replay", tape).result
        self.assertEqual(len(server.requests), 2)
        self.assertEqual(
            [each["response"] for each in once["results"].values()],
            [each["response"] for each in again["results"].values()],
        )
        other = self.file(operation("a", "something else"))
        self.run_plan(server, other, "--replay", tape, status=1)

    def test_nobody_reads_the_events(self):
        """A closed pipe ends the plan."""
        server = self.echo(delay=0.2)
        plan = self.file(*(operation(str(i)) for i in range(200)), maxParallel=1)
        process = self.begin(server, plan, "--jsonl")
        process.stdout.readline()
        process.stdout.close()
        self.assertEqual(process.wait(patience.hung()), 1)
        self.assertLess(len(server.requests), 100)


class Signals(PlanTest):
    def test_once(self):
        """130 and 143: everything is cancelled, and what there was is printed."""
        for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)):
            with self.subTest(number):
                server = self.serve()
                server.script("^slow", Reply(text="late", delay=3600))
                server.script(None, Reply(text="fine"))
                plan = self.file(
                    operation("quick"), operation("slow1"), operation("slow2"),
                    operation("after", needs=["slow1"]),
                )
                process = self.begin(server, plan, "--jsonl")
                for line in process.stdout:
                    if json.loads(line)["event"] == "operation_end":
                        break
                self.assertTrue(server.wait(lambda s: len(s.requests) == 3))
                process.send_signal(number)
                out, err = process.communicate(timeout=patience.hung())
                self.assertEqual(process.returncode, status, err)
                result = json.loads(out.splitlines()[-1])
                self.assertEqual(result["error"]["kind"], "cancelled")
                self.assertEqual(result["cancelled"], ["slow1", "slow2", "after"])
                self.assertEqual(result["results"]["quick"]["response"], "fine")
                self.assertTrue(result["results"]["slow1"]["estimated"])
                self.assertTrue(server.wait(lambda s: s.in_flight == 0))
                self.assertIn(b"interrupted after", err)

    def test_during_a_run(self):
        """A worker that computes is killed as well."""
        server = self.serve()
        server.script(None, code("while True: pass"))
        process = self.begin(server, self.file(operation("a", mode="rlm")), "--jsonl")
        for line in process.stdout:
            if json.loads(line)["event"] == "response":
                break
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=patience.hung())
        self.assertEqual(process.returncode, 130, err)
        result = json.loads(out.splitlines()[-1])
        self.assertEqual(result["cancelled"], ["a"])


class Scale(PlanTest):
    def test_many(self):
        """ASY-2: ten thousand calls at sixteen at once."""
        server = self.serve(provider="ollama")
        server.script(None, Reply(text="ok", usage=(1, 1)))
        plan = self.file(*(operation(str(i)) for i in range(MANY)), maxParallel=16)
        result = self.run_plan(server, plan, "--max-tokens", "1000000000", "--max-calls", "1000000",
                               "--max-time", "10h").result
        self.assertEqual(len(server.requests), MANY)
        self.assertEqual(result["totalTokens"], 2 * MANY)
        self.assertEqual(list(result["results"]), [str(i) for i in range(MANY)])

    def test_a_long_chain(self):
        """A failure at its head ends ten thousand dependents without a call, and without a
        function that calls itself."""
        server = self.serve()
        server.script(None, Reply(error="bad_request"))
        chain = [operation("0")] + [
            operation(str(i), "{{%d}}" % (i - 1), [str(i - 1)]) for i in range(1, MANY)
        ]
        result = self.run_plan(server, self.file(*chain), status=1).result
        self.assertEqual(len(server.requests), 1)
        self.assertEqual(set(list(self.kinds(result).values())[1:]), {"dependency"})

    def test_a_dense_graph(self):
        """ASY-2: ten thousand operations with a hundred thousand dependencies are checked at once,
        and of a cycle among them the message names the beginning."""
        graph = [
            operation(str(i), needs=[str(j) for j in range(max(0, i - 10), i)]) for i in range(MANY)
        ]
        watch = patience.Stopwatch()
        shown = self.rlmd("plan", "--dry-run", "--json", self.file(*graph)).result
        self.assertEqual([each["id"] for each in shown["operations"]], [str(i) for i in range(MANY)])
        graph[0]["dependsOn"] = [str(MANY - 1)]
        outcome = self.rlmd("plan", "--dry-run", self.file(*graph))
        self.assertEqual(outcome.status, 8)
        self.assertRegex(outcome.err, r"^rlmd: error: .*plan.json: operations: a cycle of \d+: ")
        self.assertLess(watch.took(), 20)


if __name__ == "__main__":
    unittest.main()

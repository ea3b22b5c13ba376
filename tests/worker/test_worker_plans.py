"""run_plan() and race_query(): the plan that they ask for, what they make of its result."""

import json
import unittest

from supervisor import Worker, WorkerTest

CONTEXT = b"the context"


def outcome(response=None, kind=None, message="why"):
    error = kind and {"kind": kind, "message": message}
    return {"response": response, "error": error, "status": "failed" if kind else "succeeded"}


class Plans(WorkerTest):
    def setUp(self):
        self.worker = Worker(context=CONTEXT)
        self.addCleanup(self.worker.__exit__)
        self.result = {"results": {}, "winner": None, "error": None}
        self.worker.answer = lambda _call: [json.dumps(self.result)]

    def asked(self):
        """The plan of the only call so far."""
        call, = self.worker.calls
        self.worker.calls.clear()
        self.assertEqual(call["type"], "run_plan")
        return json.loads(call["plan"])

    def plan(self, code):
        done = self.worker.run(code)
        self.assertIsNone(done["error"], done["error"])
        return self.asked()

    def assert_raises(self, code, name, pattern=""):
        error = self.worker.run(code)["error"]
        self.assertRegex(error or "", rf"(?m)^{name}: .*{pattern}")
        self.assertNotIn(".py", error)


class RunPlan(Plans):
    def test_what_is_given_is_asked_for(self):
        """ASY-13: all members, under their names in plan files."""
        plan = self.plan(
            "run_plan([{'id': 'a', 'input': 'one', 'type': 'Verify', 'priority': 2, 'model': 'm',"
            " 'timeout': 5000, 'metadata': {'k': 'v'}, 'context': {'x': [1]}},"
            " {'id': 'b', 'prompt': '{{a}}', 'depends_on': ('a',), 'mode': 'rlm',"
            " 'context': 'own'}, {'id': 'c', 'input': '', 'dependsOn': ['a', 'b']}],"
            " strategy='Sequential', failure='FailFast', max_parallel=7, timeout=1e3)"
        )
        self.assertEqual(plan, {
            "strategy": "Sequential", "partialFailure": "FailFast", "maxParallel": 7,
            "timeoutPerOp": 1000,
            "operations": [
                {"id": "a", "input": "one", "type": "Verify", "priority": 2, "model": "m",
                 "timeout": 5000, "metadata": {"k": "v"}, "context": {"x": [1]}},
                {"id": "b", "input": "{{a}}", "dependsOn": ["a"], "mode": "rlm",
                 "context": "own"},
                {"id": "c", "input": "", "dependsOn": ["a", "b"]},
            ],
        })

    def test_what_is_left_out(self):
        """No time-out but the run's own end; None is as good as nothing."""
        plan = self.plan("run_plan([{'id': 'a', 'input': 'p', 'model': None, 'context': None}])")
        self.assertEqual(plan, {
            "strategy": "DependencyAware", "partialFailure": "FailDependents",
            "timeoutPerOp": 10**12, "operations": [{"id": "a", "input": "p"}],
        })

    def test_the_callers_context_is_shared_with_runs(self):
        """A sub-RLM has it anyway; a model call sees only what is sent."""
        plan = self.plan("run_plan([{'id': m, 'input': 'p', 'mode': m, 'context': context}"
                         " for m in ('llm', 'rlm')])")
        self.assertEqual([o.get("context") for o in plan["operations"]], [CONTEXT.decode(), None])

    def test_the_result_is_a_dict(self):
        self.result["results"] = {"a": outcome("é"), "b": outcome(kind="timeout")}
        self.assert_shows("r = run_plan([{'id': i, 'input': 'p'} for i in 'ab'])\n"
                          "r['results']['a']['response'], r['results']['b']['error']",
                          "('é', {'kind': 'timeout', 'message': 'why'})")

    def test_a_plan_that_failed_is_no_exception(self):
        """The results that are there are given back, with the reason beside them."""
        self.result["error"] = {"kind": "all_failed", "message": "m"}
        self.assert_shows("run_plan([{'id': 'a', 'input': 'p'}], 'Speculative')['error']['kind']",
                          "'all_failed'")

    def test_errors_of_the_call_are_exceptions(self):
        """ASY-36: a plan that is none is the caller's mistake."""
        for function, code in (("run_plan", "run_plan([{'id': 'a', 'input': 'p'}])"),
                               ("race_query", "race_query(['p'])")):
            for kind, name, pattern in (
                ("input", "ValueError", function + r"\(\): operations: a cycle of 2"),
                ("budget", "BudgetExceeded", "a cycle"), ("timeout", "TimeoutError", "a cycle"),
                ("cancelled", "LLMError", r"Error \(cancelled\): operations: a cycle"),
            ):
                with self.subTest(code, kind=kind):
                    self.worker.answer = lambda _call: [(kind, "operations: a cycle of 2")]
                    self.assert_raises(code, name, pattern)

    def test_wrong_arguments_ask_nothing(self):
        for code, name, pattern in (
            ("run_plan('a')", "TypeError", "list, not str"),
            ("run_plan({})", "TypeError", "list, not dict"),
            ("run_plan(5)", "TypeError", "list, not int"),
            ("run_plan([])", "ValueError", "no operations"),
            ("run_plan([{'id': 'a', 'input': 'p'}, 'b'])", "TypeError",
             "operation 1 must be a dict, not str"),
            ("run_plan([{'input': 'p'}])", "ValueError", "operation 0 has no 'id'"),
            ("run_plan([{'id': None, 'input': 'p'}])", "ValueError", "operation 0 has no 'id'"),
            ("run_plan([{'id': 'a'}])", "ValueError", "operation 0 has no 'input'"),
            ("run_plan([{'id': 'a', 'input': 'p', 'prompt': 'q'}])", "ValueError", "twice"),
            ("run_plan([{'id': 'a', 'input': 'p', 'deps': []}])", "ValueError",
             "operation 0 has 'deps'; it may have id, .*dependsOn"),
            ("run_plan([{'id': 'a', 'input': 'p'}], strategy='parallel')", "ValueError",
             "strategy must be one of .*'Parallel'"),
            ("run_plan([{'id': 'a', 'input': 'p'}], failure='ignore')", "ValueError", "failure"),
            ("run_plan([{'id': 'a', 'input': 'p'}], strategy=None)", "TypeError", "strategy"),
            ("run_plan([{'id': 'a', 'input': 'p'}], max_parallel=0)", "ValueError",
             "from 1 to 100000, not 0"),
            ("run_plan([{'id': 'a', 'input': 'p'}], timeout=0.5)", "ValueError", "milliseconds"),
            ("run_plan([{'id': 'a', 'input': 'p'}], timeout=0)", "ValueError", "milliseconds"),
            ("run_plan([{'id': 'a', 'input': 'p'}], timeout=True)", "TypeError", "not bool"),
        ):
            with self.subTest(code):
                self.assert_raises(code, name, pattern)
        self.assertEqual(self.worker.calls, [])

    def test_wrong_members_are_told_with_their_operation(self):
        for member, name, pattern in (
            ("'id': 5", "TypeError", "'id' of operation 1 must be a str, not int"),
            ("'input': b'p'", "TypeError", "'input' of operation 1"),
            ("'type': 'query'", "ValueError", "'type' of operation 1 must be one of"),
            ("'mode': 'batch'", "ValueError", "'mode' of operation 1 must be one of"),
            ("'model': 1", "TypeError", "'model' of operation 1"),
            ("'model': 'm' * 257", "ValueError", "256 bytes"),
            ("'model': 'm\\0n'", "ValueError", "NUL"),
            ("'model': 'm', 'mode': 'rlm'", "ValueError", "'model' of operation 1"),
            ("'context': 5", "TypeError", "'context' of operation 1"),
            ("'context': {'a': {1}}", "TypeError", "'context' of operation 1"),
            ("'context': [float('nan')]", "ValueError", "'context' of operation 1"),
            ("'context': loop", "ValueError", "'context' of operation 1"),
            ("'context': deep", "ValueError", "'context' of operation 1"),
            ("'priority': '1'", "TypeError", "'priority' of operation 1 must be a number"),
            ("'priority': float('inf')", "ValueError", "'priority' of operation 1"),
            ("'timeout': -1", "ValueError", r"'timeout' of operation 1 \(milliseconds\)"),
            ("'timeout': float('nan')", "ValueError", "'timeout' of operation 1"),
            ("'metadata': 'm'", "TypeError", "'metadata' of operation 1"),
            ("'metadata': {'k': 1}", "TypeError", "'k' in 'metadata' of operation 1"),
            ("'metadata': {1: 'v'}", "TypeError", "a key in 'metadata' of operation 1"),
            ("'dependsOn': 'a'", "TypeError", "'dependsOn' of operation 1 must be a list"),
            ("'depends_on': [1]", "TypeError", "each id in 'depends_on' of operation 1"),
        ):
            with self.subTest(member):
                self.assert_raises(
                    "loop = []\nloop.append(loop)\ndeep = []\n"
                    "for _ in range(100000): deep = [deep]\n"
                    "run_plan([{'id': 'a', 'input': 'p'}, {**{'id': 'b', 'input': 'p'}, %s}])"
                    % member, name, pattern)
        self.assertEqual(self.worker.calls, [])

    def test_texts_of_any_characters(self):
        """The plan stays JSON, whatever its texts are; what is no Unicode is replaced."""
        plan = self.plan("run_plan([{'id': 'é', 'input': '\\udcff\"\\\\\\0\\n🙂\\ud83d',"
                         " 'context': {'\\udc80': '\\ud800'}}])")
        self.assertEqual(plan["operations"], [
            {"id": "é", "input": "\ufffd\"\\\0\n🙂\ufffd", "context": {"\ufffd": "\ufffd"}}])

    def test_str_subclasses_are_plain_text(self):
        self.worker.run("class S(str):\n    def __str__(self): return 'no'\n"
                        "    def __len__(self): return 1\n"
                        "    encode = isascii = __getitem__ = None")
        plan = self.plan("run_plan([{'id': S('a'), 'input': S('text'), 'mode': S('rlm'),"
                         " 'context': S('ctx')}])")
        self.assertEqual(plan["operations"],
                         [{"id": "a", "input": "text", "mode": "rlm", "context": "ctx"}])

    def test_large_plans(self):
        """100,000 operations go out at once; more than 64 MiB do not go out at all."""
        plan = self.plan("n = 100000\nrun_plan([{'id': str(i), 'input': 'p',"
                         " 'dependsOn': [str(i - 1)] if i else []} for i in range(n)])")
        self.assertEqual(len(plan["operations"]), 100000)
        self.worker.run("half = 'x' * (33 << 20)")
        self.assert_raises("run_plan([{'id': i, 'input': half} for i in 'ab'])", "ValueError",
                           "more than 64 MiB")
        self.assert_raises("run_plan([{'id': 'a', 'input': half * 2}])", "ValueError",
                           "'input' of operation 0 has more than 64 MiB.*chunk_text")
        self.assert_raises("race_query([half, half])", "ValueError", "more than 64 MiB")
        self.assertEqual(self.worker.calls, [])


class Races(Plans):
    def test_what_is_given_is_asked_for(self):
        """ASY-8: all at once, with no time-out but the run's own end."""
        self.result.update(winner="1", results={"0": outcome(kind="cancelled"),
                                                "1": outcome("fast")})
        code = ("race_query(['p', {'prompt': 'q', 'model': 'm'}, {'prompt': 'r', 'model': None},"
                " {'task': 't'}, {'task': 'u', 'context': 'own'},"
                " {'task': 'v', 'context': context}])")
        self.assert_shows(code, "'fast'")
        self.assertEqual(self.asked(), {
            "strategy": "Speculative", "maxParallel": 6, "timeoutPerOp": 10**12,
            "operations": [
                {"id": "0", "input": "p"}, {"id": "1", "input": "q", "model": "m"},
                {"id": "2", "input": "r"}, {"id": "3", "mode": "rlm", "input": "t"},
                {"id": "4", "mode": "rlm", "input": "u", "context": "own"},
                {"id": "5", "mode": "rlm", "input": "v"},
            ],
        })

    def test_nothing_is_substituted(self):
        """Texts that look like a substitution are escaped, and only those."""
        self.result.update(winner="0", results={"0": outcome("r")})
        for text, escaped in (
            ("{{a}}", r"\{{a}}"), (r"\{{a}}", r"\\\{{a}}"), (r"\\{{ é }}", r"\\\\\{{ é }}"),
            ("{{{a}}}", r"{\{{a}}}"), ("{{a}}{{b}}", r"\{{a}}\{{b}}"),
            ("{{}} {{ a b }} {{a} } \\ {x}", "{{}} {{ a b }} {{a} } \\ {x}"),
            ("{{%s}}" % ("x" * 128), r"\{{%s}}" % ("x" * 128)),
            ("{{%s}}" % ("é" * 65), "{{%s}}" % ("é" * 65)),
            ("{{\n" + "{{a\n}}", "{{\n{{a\n}}"),
        ):
            with self.subTest(text):
                plan = self.plan(f"race_query([{text!r}])")
                self.assertEqual(plan["operations"][0]["input"], escaped)

    def test_a_race_that_all_lose(self):
        """Its error names each failure; it is of a kind of its own where all are of one."""
        for kinds, name, pattern in (
            (("refused", "timeout"), "LLMError",
             r"Error \(all_failed\): all 2 alternatives failed: 0: refused: why 0; "
             "1: timeout: why 1$"),
            (("refused", "refused"), "LLMError", r"Error \(refused\): all 2"),
            (("timeout", "timeout"), "TimeoutError", "all 2 alternatives failed: 0: timeout"),
            (("budget",), "BudgetExceeded", "all 1 alternatives failed: 0: budget: why 0"),
            (("network",) * 12, "LLMError", "9: network: why 9; and 2 more$"),
        ):
            with self.subTest(kinds):
                self.result["error"] = {"kind": "all_failed", "message": "m"}
                self.result["results"] = {
                    str(n): outcome(kind=kind, message=f"why {n}") for n, kind in enumerate(kinds)}
                self.assert_raises(f"race_query(['p'] * {len(kinds)})", name, pattern)

    def test_long_reasons_are_cut(self):
        self.result["results"] = {"0": outcome(kind="refused", message="x" * 5000)}
        self.assert_shows("try: race_query(['p'])\nexcept LLMError as e: print(len(str(e)) < 300)",
                          "True")

    def test_wrong_arguments_ask_nothing(self):
        for code, name, pattern in (
            ("race_query([])", "ValueError", "nothing to race"),
            ("race_query('abc')", "TypeError", "list, not str"),
            ("race_query({'prompt': 'p'})", "TypeError", "list, not dict"),
            ("race_query(['a', 5])", "TypeError", "alternative 1 must be a str or a dict, not int"),
            ("race_query([{}])", "ValueError", "alternative 0 must have"),
            ("race_query([{'prompt': 'p', 'context': 'c'}])", "ValueError", "'context'"),
            ("race_query([{'task': 't', 'model': 'm'}])", "ValueError", "'model'"),
            ("race_query([{'task': 't', 'prompt': 'p'}])", "ValueError", "'prompt'"),
            ("race_query([{'prompt': 5}])", "TypeError", "the prompt of alternative 0"),
            ("race_query([{'task': None}])", "TypeError", "the task of alternative 0"),
            ("race_query([{'task': 't', 'context': {}}])", "TypeError", "json.dumps"),
            ("race_query([{'prompt': 'p', 'model': 5}])", "TypeError", "model of alternative 0"),
        ):
            with self.subTest(code):
                self.assert_raises(code, name, pattern)
        self.assertEqual(self.worker.calls, [])


if __name__ == "__main__":
    unittest.main()

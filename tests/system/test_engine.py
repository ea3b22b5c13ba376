"""A run's way through the real program: turns, blocks, calls, sub-runs, answers, limits."""

import json
import unittest

from harness import SystemTest, block, query, turn


class Turns(SystemTest):
    def test_answer_in_text_is_printed_and_nothing_else(self):
        """ENG-2, ENG-6: FINAL(...) ends the run; standard output is the answer and a newline."""
        outcome = self.replay([turn("FINAL(forty-two)")])
        self.assertEqual((outcome.status, outcome.raw), (0, b"forty-two\n"))

    def test_blocks_of_one_response_share_a_namespace_and_run_in_order(self):
        """ENG-8, ENG-9: both blocks run, in order, and each is recorded."""
        one, two = block("x = 20", "print('one')"), block("print(x + 1)").replace("repl", "python")
        text = "First.\n%s\nThen.\n%s\nFINAL_VAR(x)" % (one, two)
        outcome = self.replay([turn(text)], "--json")
        executions = outcome.executions()
        self.assertEqual([e["stdout"] for e in executions], ["one\n", "21\n"])
        self.assertEqual([e["code"] for e in executions], ["x = 20\nprint('one')", "print(x + 1)"])
        self.assertEqual(outcome.result["output"], "20")
        self.assertEqual(outcome.result["trace"]["answerSource"], "final_var")
        self.assertIn("First.", outcome.result["trace"]["iterations"][0]["response"]["thinking"])

    def test_output_is_in_the_next_prompt(self):
        """ENG-10: what a block printed, its errors too, is what the next turn tells."""
        entries = [
            turn(
                block(
                    "print('needle-1')", "import sys", "print('needle-2', file=sys.stderr)", "1/0"
                ),
                turn=0,
            ),
            turn("FINAL(ok)", turn=1),
        ]
        prompts = [
            i["prompt"]["content"]
            for i in self.replay(entries, "--json").result["trace"]["iterations"]
        ]
        for needle in ("needle-1", "needle-2", "ZeroDivisionError", "the task"):
            self.assertIn(needle, prompts[1])

    def test_later_blocks_run_after_one_that_raised(self):
        """ENG-8."""
        outcome = self.replay(
            [turn(block("1/0") + "\n" + block("print('still')") + "\nFINAL(x)")], "--json"
        )
        self.assertIn("ZeroDivisionError", outcome.executions()[0]["error"])
        self.assertEqual(outcome.executions()[1]["stdout"], "still\n")

    def test_answer_beside_a_failed_block_is_asked_about(self):
        """ENG-6: the model sees the error first; where nothing can be asked, there is a warning."""
        entries = [turn(block("1/0") + "\nFINAL(x)", turn=0), turn("FINAL(y)", turn=1)]
        outcome = self.replay(entries, "--json")
        self.assertEqual(outcome.result["output"], "y")
        self.assertEqual(outcome.result["warnings"], [])
        outcome = self.replay(entries, "--json", "--max-iterations", "1")
        self.assertEqual(outcome.result["output"], "x")
        self.assertTrue(any("failed" in warning for warning in outcome.result["warnings"]))

    def test_unknown_variable_is_no_answer(self):
        """ENG-6: the model is told which variables exist, and the loop goes on."""
        entries = [
            turn(block("found = 7") + "\nFINAL_VAR(fuond)", turn=0),
            turn("FINAL_VAR(found)", turn=1),
        ]
        outcome = self.replay(entries, "--json")
        self.assertEqual(outcome.result["output"], "7")
        told = outcome.result["trace"]["iterations"][1]["prompt"]["content"]
        self.assertIn("fuond", told)
        self.assertIn("found", told)

    def test_answers_out_of_code(self):
        """ENG-3: FINAL, FINAL_VAR and the answer dict end the run after their block."""
        cases = {
            "FINAL({'a': 1})": ("{'a': 1}", "final_direct"),
            "value = [1, 2]\nFINAL_VAR('value')": ("[1, 2]", "final_var"),
            "answer['content'] = 'in a dict'\nanswer['ready'] = True": (
                "in a dict",
                "final_direct",
            ),
        }
        for code, (output, source) in cases.items():
            with self.subTest(code=code):
                outcome = self.replay(
                    [turn(block(code) + "\n" + block("print('not run')"))], "--json"
                )
                self.assertEqual(outcome.result["output"], output)
                self.assertEqual(outcome.result["trace"]["answerSource"], source)
                self.assertEqual(len(outcome.executions()), 1)

    def test_cut_fence_is_not_run(self):
        """ENG-1: half a block of a response that was cut is not executed, and the model is told."""
        cut = {
            "match": {"kind": "turn", "turn": 0},
            "response": {"text": "```repl\nprint('half", "finish": "length"},
        }
        outcome = self.replay([cut, turn("FINAL(ok)", turn=1)], "--json")
        self.assertEqual(outcome.executions(), [])
        self.assertIn("length limit", outcome.result["trace"]["iterations"][1]["prompt"]["content"])

    def test_neither_code_nor_answer(self):
        """A response with nothing to do is answered with what to do."""
        outcome = self.replay([turn("Hm.", turn=0), turn("FINAL(ok)", turn=1)], "--json")
        self.assertIn(
            "neither a code block nor an answer",
            outcome.result["trace"]["iterations"][1]["prompt"]["content"],
        )

    def test_a_model_that_repeats_itself_ends_at_the_limit(self):
        """ENG-5, ENG-7, ENG-20, LIB-24: once the iterations are spent, one is forced."""
        entries = [
            dict(turn(block("print(1)")), repeat=True),
            query("the best there is", kind="forced"),
        ]
        outcome = self.replay(entries, "--json", "--max-iterations", "4")
        result = outcome.result
        self.assertEqual(outcome.status, 0)
        self.assertEqual(result["output"], "the best there is")
        self.assertEqual(result["usage"]["iterations"], 4)
        self.assertEqual(result["trace"]["answerSource"], "forced")
        self.assertEqual(result["stopReason"], "max_iterations")
        self.assertEqual(
            result["warnings"][:2],
            ["Budget exhausted, answer was forced", "Max iterations reached"],
        )

    def test_strict_takes_a_forced_answer_for_a_failure(self):
        entries = [dict(turn(block("print(1)")), repeat=True), query("x", kind="forced")]
        outcome = self.replay(entries, "--json", "--strict", "--max-iterations", "2")
        self.assertEqual(outcome.status, 6)
        self.assertFalse(outcome.result["success"])
        self.assertEqual(outcome.result["output"], "x")

    def test_no_answer_could_be_forced(self):
        """An empty forced answer is an error, not a success."""
        entries = [dict(turn(block("print(1)")), repeat=True), query("  ", kind="forced")]
        outcome = self.replay(entries, "--json", "--max-iterations", "2")
        self.assertEqual((outcome.status, outcome.result["error"]["kind"]), (6, "budget"))


class Calls(SystemTest):
    def test_llm_query(self):
        """ENG-11, ENG-17: the call is routed, recorded and counted."""
        executions, outcome = self.blocks(
            "print(llm_query('what is it?'))", entries=[query("an answer", pattern="what is it")]
        )
        self.assertEqual(executions[0]["stdout"], "an answer\n")
        (call,) = outcome.result["trace"]["llmCalls"]
        self.assertEqual((call["prompt"], call["response"]), ("what is it?", "an answer"))
        self.assertGreater(call["tokens"], 0)
        self.assertEqual(call["tokens"], call["inputTokens"] + call["outputTokens"])
        self.assertEqual(outcome.result["usage"]["llmCalls"], 3)

    def test_batch_keeps_its_order_and_its_failed_slots(self):
        """A failing slot is a falsy LLMError at its place; the others are not lost."""
        failing = {
            "match": {"kind": "llm_query", "pattern": "bad"},
            "error": {"kind": "refused", "message": "no"},
        }
        slow = {
            "match": {"kind": "llm_query", "pattern": "slow"},
            "response": {"text": "late", "delay": 200},
        }
        executions, _ = self.blocks(
            "r = batch_llm_query(['slow one', 'bad one', 'good one'])",
            "print(r[0], '|', bool(r[1]), str(r[1])[:5], type(r[1]).__name__, '|', r[2])",
            entries=[failing, slow, query("early", pattern="good")],
        )
        self.assertEqual(executions[1]["stdout"], "late | False Error LLMError | early\n")

    def test_parallel_calls_are_parallel_and_bounded(self):
        """-j: so many at once, the rest in line."""
        entry = {
            "match": {"kind": "llm_query"},
            "response": {"text": "x", "delay": 200},
            "repeat": True,
        }
        durations = {}
        for parallel in (8, 2):
            executions, _ = self.blocks(
                "len(batch_llm_query(['p'] * 8))", entries=[entry], arguments=["-j", parallel]
            )
            durations[parallel] = executions[0]["duration"], self.duration
        self.assertLess(durations[8][1], durations[2][1])

    def blocks(self, *blocks, **more):
        executions, outcome = super().blocks(*blocks, **more)
        self.duration = outcome.result["usage"]["duration"]
        return executions, outcome

    def test_threads_may_call(self):
        executions, _ = self.blocks(
            "from concurrent.futures import ThreadPoolExecutor",
            "with ThreadPoolExecutor(4) as pool: print(sorted(pool.map(llm_query, 'abcd')))",
            entries=[query("x")],
        )
        self.assertEqual(executions[1]["stdout"], "['x', 'x', 'x', 'x']\n")

    def test_sub_run(self):
        """ENG-12, ENG-15, ENG-17, LIB-6: its own worker and trace; counted in the root's usage."""
        entries = [
            turn(block("x = 1", "print(rlm_query('the part'))", "print(x)"), depth=0, turn=0),
            turn(block("x = 2", "FINAL(context.upper())"), depth=1),
            turn("FINAL(done)", depth=0, turn=1),
        ]
        outcome = self.replay(entries, "--json", context="abc")
        result = outcome.result
        self.assertEqual(outcome.executions()[0]["stdout"], "ABC\n1\n")
        (sub,) = result["trace"]["subcalls"]
        self.assertEqual((sub["depth"], sub["task"], sub["finalAnswer"]), (1, "the part", "ABC"))
        self.assertEqual(sub["parentId"], result["trace"]["id"])
        self.assertRegex(
            sub["id"], r"^[0-9a-f]{8}-[0-9a-f]{4}-[48][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"
        )
        usage = result["usage"]
        self.assertEqual(
            (usage["iterations"], usage["subcalls"], usage["maxDepthReached"]), (3, 1, 1)
        )

    def test_sub_runs_in_a_batch(self):
        """batch_rlm_query: in order, with contexts of their own; a failing one loses nothing."""
        entries = [
            turn(
                block(
                    "own = {'task': 'own', 'context': 'xyz'}",
                    "r = batch_rlm_query(['share', own, 'share', 'fail'])",
                    "print(r[:3], bool(r[3]))",
                ),
                depth=0,
                turn=0,
            ),
            {
                "match": {"kind": "turn", "depth": 1, "pattern": "TASK: fail"},
                "error": {"kind": "refused", "message": "no"},
            },
            dict(turn(block("FINAL(len(context))"), depth=1), repeat=True),
            turn("FINAL(done)", depth=0, turn=1),
        ]
        outcome = self.replay(entries, "--json", context="abcde")
        self.assertEqual(outcome.executions()[0]["stdout"], "['5', '3', '5'] False\n")
        self.assertEqual(
            [s["task"] for s in outcome.result["trace"]["subcalls"]],
            ["share", "own", "share", "fail"],
        )

    def test_depth(self):
        """LIB-22: maxDepth is absolute and counts the root; deeper is answered directly."""
        entries = [
            turn(block("print(rlm_query('level one'))"), depth=0, turn=0),
            turn(block("FINAL(rlm_query('level two'))"), depth=1),
            turn(block("FINAL(rlm_query('level three'))"), depth=2),
            query("directly", kind="direct"),
            turn("FINAL(done)", depth=0, turn=1),
        ]
        for depth, subcalls in (("1", 0), ("2", 1), ("3", 2)):
            with self.subTest(max_depth=depth):
                outcome = self.replay(entries, "--json", "--max-depth", depth, context="abc")
                self.assertEqual(outcome.executions()[0]["stdout"], "directly\n")
                self.assertEqual(outcome.result["usage"]["subcalls"], subcalls)

    def test_context_slices_reach_a_sub_run_unharmed(self):
        """LIB-9: a slice of a context with bytes that are no UTF-8 arrives as the same bytes."""
        entries = [
            turn(block("print(rlm_query('t', context[1:]))"), depth=0, turn=0),
            turn(block("FINAL(context.encode('utf-8', 'surrogateescape').hex())"), depth=1),
            turn("FINAL(done)", depth=0, turn=1),
        ]
        outcome = self.replay(entries, "--json", context=b"x\xff\x00\r\n\xe2\x82\xac")
        self.assertEqual(outcome.executions()[0]["stdout"], "ff000d0ae282ac\n")

    def test_large_texts_both_ways(self):
        """Prompts, answers and contexts of megabytes go beside the JSON."""
        entries = [
            turn(
                block(
                    "big = 'a€\"\\n' * 700000",
                    "print(len(big), len(llm_query(big)), rlm_query('t', big))",
                ),
                depth=0,
                turn=0,
            ),
            {"match": {"kind": "llm_query"}, "response": {"text": "é" * 3000000}},
            turn(block("FINAL(len(context))"), depth=1),
            turn("FINAL(done)", depth=0, turn=1),
        ]
        outcome = self.replay(entries, "--json", "--max-tokens", "100000000", context="")
        self.assertEqual(outcome.executions()[0]["stdout"], "2800000 3000000 2800000\n")

    def test_budget(self):
        """budget() tells what is left, as a dict."""
        executions, _ = self.blocks(
            "b = budget()",
            "print(sorted(b), b['max_depth'], b['depth'])",
            arguments=["--max-depth", "4"],
        )
        self.assertEqual(executions[1]["stdout"].split()[-2:], ["4", "0"])

    def test_budget_exceeded_is_an_exception_that_code_can_catch(self):
        executions, _ = self.blocks(
            "try: llm_query('x' * 200000)\nexcept BudgetExceeded as error: print('caught', error)",
            entries=[query("never")],
            arguments=["--max-tokens", "30000"],
        )
        self.assertEqual(executions[0]["stdout"], "caught Token budget exhausted\n")

    def test_a_call_that_fails_is_an_exception(self):
        failing = {
            "match": {"kind": "llm_query"},
            "error": {"kind": "overloaded", "message": "busy"},
            "repeat": True,
        }
        executions, _ = self.blocks(
            "try:\n    llm_query('x')\nexcept LLMError as error:\n    print(error.kind)",
            "llm_query('y')",
            entries=[failing],
        )
        self.assertEqual(executions[0]["stdout"], "overloaded\n")
        self.assertIn("LLMError", executions[1]["error"])


class Result(SystemTest):
    def test_fields(self):
        """LIB-5, LIB-6, LIB-7: names as in the specification."""
        result = self.replay(
            [turn(block("1"), turn=0), turn("FINAL(x)", turn=1)], "--json", context="abc"
        ).result
        self.assertLessEqual(
            {"success", "output", "trace", "usage", "warnings", "sandbox", "stopReason"},
            set(result),
        )
        self.assertLessEqual(
            {
                "cost",
                "tokens",
                "inputTokens",
                "outputTokens",
                "duration",
                "iterations",
                "subcalls",
                "llmCalls",
                "maxDepthReached",
                "cachedTokens",
                "estimated",
                "costComplete",
            },
            set(result["usage"]),
        )
        self.assertLessEqual(
            {
                "id",
                "parentId",
                "depth",
                "task",
                "iterations",
                "subcalls",
                "llmCalls",
                "finalAnswer",
                "answerSource",
            },
            set(result["trace"]),
        )
        iteration = result["trace"]["iterations"][0]
        self.assertEqual(iteration["index"], 0)
        self.assertEqual(set(iteration["prompt"]), {"content", "tokens"})
        self.assertLessEqual({"content", "thinking", "tokens", "cost"}, set(iteration["response"]))
        self.assertLessEqual(
            {"code", "stdout", "stderr", "error", "duration"}, set(iteration["codeExecutions"][0])
        )
        self.assertEqual(result["stopReason"], "final")

    def test_events(self):
        """LIB-4: --jsonl tells everything as it happens; the last line is the result."""
        outcome = self.replay(
            [turn(block("print(1)"), turn=0), turn("FINAL(x)", turn=1)], "--jsonl"
        )
        names = [event["event"] for event in outcome.events]
        self.assertEqual(
            names,
            ["run", "response", "code", "iteration", "response", "iteration", "end", "result"],
        )
        self.assertEqual([event["seq"] for event in outcome.events], list(range(len(names))))
        self.assertEqual(outcome.events[-1]["output"], "x")


if __name__ == "__main__":
    unittest.main()

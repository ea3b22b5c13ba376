"""Replies as models write them, through the whole program: code runs, what was invented does not.

Each habit stands with its twin, which looks like it and is something else; docs/replies.md has the
rules.
"""

import json
import unittest

from harness import block
from model import Reply
from test_small_models import NO_CODE, WORK, Habit

ANSWER = f"{WORK}\nFINAL(total)"
CALL = json.dumps({"name": "python", "arguments": {"code": ANSWER}})
CONFIRM = "beside code that had not run yet"
FORM = "is the form of an answer"
INVENTED = "what it added was cut off"
OPEN_THOUGHT = "ended inside of a thought"


class Code(Habit):
    def runs(self, *habits):
        for habit in habits:
            with self.subTest(habit=habit):
                result = self.run_habit(habit)
                self.assertEqual(result["output"], "42")
                self.assertEqual(result["usage"]["iterations"], 1)

    def is_not_run(self, habit, told=NO_CODE):
        result = self.run_habit(habit, "FINAL(42)")
        self.assertEqual(result["output"], "42")
        self.assertEqual(result["trace"]["iterations"][0]["codeExecutions"], [])
        self.assertIn(told, self.told[1])

    def test_bare_fences(self):
        """Correct code in them was ignored, turn after turn."""
        self.runs(f"```\n{ANSWER}\n```", f"First:\n\n```\npython\n{ANSWER}\n```",
                  f"```code\n{ANSWER}\n```")

    def test_bare_fences_of_something_else(self):
        for habit in ("grep -c x context.txt", '{"total": 42}', "the total is 42 (see above)",
                      "total: 42", "42", "-total = 1\n+total = 2", "const total = sum(context)"):
            with self.subTest(habit=habit):
                self.is_not_run(f"```\n{habit}\n```")

    def test_a_tagged_block_wins(self):
        """Text in the bare one is what it prints, or is to be seen."""
        result = self.run_habit(f"{block(WORK)}\n```\nraise SystemExit(total)\n```", "FINAL_VAR(total)")
        self.assertEqual(result["output"], "42")
        self.assertEqual(len(result["trace"]["iterations"][0]["codeExecutions"]), 1)

    def test_names_of_languages(self):
        self.runs(*(f"```{name}\n{ANSWER}\n```" for name in (
            "tool_code", "ipython", "python-repl", "python3.11", "pycon", "{python}")))

    def test_marks_of_chat_templates_behind_a_fence(self):
        """Marks that a server should have taken off; other words there are no end of a fence."""
        self.runs(*(f"```python\n{ANSWER}\n```{mark}" for mark in (
            "<|im_end|>", "</s>", "<end_of_turn>", "<|eot_id|>\n",
            "<|im_end|>\n<|im_start|>user\n41<|im_end|>\n<|im_start|>assistant\nFINAL(41)")))
        self.runs('```python\ntext = """\n```<b>\n"""\nFINAL(text.count("<b>") + 41)\n```')

    def test_words_behind_a_closing_fence(self):
        self.runs(f"```python\n{ANSWER}``` That is it.", f"```python\n{ANSWER}\n``` That is it.\n")
        self.runs('```python\ntext = "``` That is it."\nFINAL(len(text) + 27)\n```')

    def test_tool_calls(self):
        self.runs(CALL, f"```json\n{CALL}\n```", f"<tool_call>\n{CALL}\n</tool_call>",
                  f"I call it:\n<tool_code>\n{ANSWER}\n</tool_code>",
                  f"<|python_tag|>{ANSWER}", f"<code>\n{ANSWER}\n</code>",
                  "<tool_call>\n<function=python>\n<parameter=code>\n"
                  f"{ANSWER}\n</parameter>\n</function>\n</tool_call>")

    def test_calls_in_the_forms_of_other_models(self):
        """Forms that each was trained to write, where a server does not take it off the text."""
        arguments = json.dumps({"code": ANSWER})
        self.runs(
            json.dumps({"action": "python", "action_input": ANSWER}),
            CALL.replace("\\n", "\n"),  # Qwen 2.5
            f'<function_calls>\n<invoke name="python">\n<parameter name="code">{ANSWER}</parameter>\n'
            "</invoke>\n</function_calls>",
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>python\n```json\n"
            f"{arguments}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
            f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>python<｜tool▁sep｜>{arguments}<｜tool▁call▁end｜>",
            '<｜DSML｜invoke name="python">\n<｜DSML｜parameter name="code" string="true">'
            f"{ANSWER}</｜DSML｜parameter>\n</｜DSML｜invoke>",
            f"[TOOL_CALLS]python[ARGS]{arguments}",
            f"<function=python>{arguments}</function>",
            f"[python(code={json.dumps(ANSWER)})]",
            f"<|python_start|>{ANSWER}<|python_end|>",
            f"<tool_call>python\n<arg_key>code</arg_key>\n<arg_value>{ANSWER}</arg_value>\n</tool_call>",
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.python:0"
            f"<|tool_call_argument_begin|>{arguments}<|tool_call_end|><|tool_calls_section_end|>",
            f"<|channel|>commentary to=python code<|message|>{ANSWER}<|call|>",
            f"Thought: I count.\nAction: python\nAction Input: {ANSWER}",
            f"<pre><code>\n{ANSWER}\n</code></pre>",
        )

    def test_calls_in_their_own_member(self):
        """Servers that take calls off the text tell them beside it, in pieces or whole."""
        arguments = json.dumps({"code": ANSWER})
        call = {"index": 0, "function": {"name": "python", "arguments": arguments}}
        pieces = [
            {**call, "function": {"name": "python", "arguments": ""}},
            *({"index": 0, "function": {"arguments": piece}} for piece in (arguments[:9], arguments[9:])),
        ]
        stream = b"".join(
            b"data: " + json.dumps({"choices": [{"delta": {"tool_calls": [piece]}}]}).encode() + b"\n\n"
            for piece in pieces
        ) + b'data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n'
        message = {"content": None, "tool_calls": [{**call, "index": None}]}
        whole = {"choices": [{"message": message, "finish_reason": "tool_calls"}]}
        native = {"function": {"name": "python", "arguments": {"code": ANSWER}}}
        line = {"message": {"content": "", "tool_calls": [native]}, "done": True}
        for provider, options, reply in (
            ("openai", (), Reply(body=stream, content_type="text/event-stream")),
            ("openai", ("--no-stream",), Reply(body=json.dumps(whole).encode())),
            ("ollama", (), Reply(body=json.dumps(line).encode() + b"\n")),
        ):
            with self.subTest(provider=provider, options=options):
                result = self.run_habit(lambda _, reply=reply: reply, provider=provider,
                                        arguments=options)
                self.assertEqual(result["output"], "42")
                self.assertEqual(result["usage"]["iterations"], 1)

    def test_fences_on_one_line_and_in_each_other(self):
        line = "FINAL(sum(int(n) for n in context.split()))"
        self.runs(f"```python {line}```", f"```\n{block(ANSWER)}\n```", f"```python_repl\n{ANSWER}\n```")

    def test_a_reply_that_is_all_python(self):
        self.runs(ANSWER, f"import re\n{WORK}\nFINAL_VAR(total)")

    def test_calls_of_another_tool(self):
        self.is_not_run('<tool_call>\n{"name": "search", "arguments": {"code": "1"}}\n</tool_call>',
                        "called a tool")
        self.is_not_run('```json\n{"name": "python", "version": "3.11"}\n```')


class Clear(Habit):
    def test_answers_that_no_marker_leads(self):
        for habit in ("`FINAL(42)`", "```text\nFINAL(42)\n```", "SUBMIT(answer=42)", "So $\\boxed{42}$.",
                      "It is clear.\n\n**Final Answer:** 42", "### Final Answer\n\n42"):
            with self.subTest(habit=habit):
                result = self.run_habit(habit)
                self.assertEqual(result["output"], "42")
                self.assertEqual(result["usage"]["iterations"], 1)

    def test_one_in_other_letters(self):
        result = self.run_habit(f"{block(WORK)}\nFINAL_var(total)")
        self.assertEqual(result["output"], "42")

    def test_talk_about_them(self):
        for habit in ("I end with `FINAL(41)` later.", "Final answer: 41\n\nBut I look first.",
                      "```sql\nFINAL(41)\n```"):
            with self.subTest(habit=habit):
                self.assertEqual(self.run_habit(habit, "FINAL(42)")["output"], "42")


class Thoughts(Habit):
    def test_are_taken_out(self):
        """Drafts and answers in them are none; a fence left open there hides nothing."""
        for habit in (
            f"<think>\nI could\n```python\n1/0\n</think>\n{block(ANSWER)}",
            f"<think>FINAL(41)</think>\n{block(ANSWER)}",
            f"the tag was eaten: FINAL(41)\n</think>\n\n{block(ANSWER)}",
            f"◁think▷FINAL(41)◁/think▷{block(ANSWER)}",
            f"<|START_THINKING|>FINAL(41)<|END_THINKING|>{block(ANSWER)}",
            f"<|begin_of_thought|>\n\nFINAL(41)\n\n<|end_of_thought|>\n\n{block(ANSWER)}",
        ):
            with self.subTest(habit=habit):
                result = self.run_habit(habit)
                self.assertEqual(result["output"], "42")
                executions = result["trace"]["iterations"][0]["codeExecutions"]
                self.assertEqual([one["error"] for one in executions], [None])

    def test_an_answer_in_an_open_one_is_none(self):
        result = self.run_habit("<think>\nPerhaps FINAL(41)\n" + block("FINAL(41)"), "FINAL(42)")
        self.assertEqual(result["output"], "42")
        self.assertIn(OPEN_THOUGHT, self.told[1])
        self.assertNotIn(NO_CODE, self.told[1])

    def test_a_task_about_the_tags(self):
        for habit, answer in (
            ("FINAL(It opens with <think> and ends with </think>.)",
             "It opens with <think> and ends with </think>."),
            (block("FINAL('''\n<think>\n42\n</think>\n'''.strip())"), "<think>\n42\n</think>"),
            ("Models write `<think>` first.\nFINAL(42)", "42"),
        ):
            with self.subTest(habit=habit):
                self.assertEqual(self.run_habit(habit)["output"], answer)


class Inventions(Habit):
    def test_end_the_reply(self):
        """The model plays our part: neither its code nor its answer of then count."""
        for words in (
            "Turn 2 of 9. Left: cost 1.00\n\nWhat happened since your last response",
            "<output>\n[block 1]\n[stdout]\n41\n</output>",
            "[block 1]\n[stdout]\n41",
            "**Output:**\n```\n41\n```",
            "```tool_output\n41\n```",
            "Observation: 41",
        ):
            with self.subTest(words=words):
                habit = f"{block(WORK)}\n\n{words}\n\n{block('total = 41')}\nFINAL(41)"
                result = self.run_habit(habit, block("FINAL(total)"))
                self.assertEqual(result["output"], "42")
                self.assertIn(INVENTED, self.told[1])
                kept = [text for role, text in self.requests[1].messages if role == "assistant"]
                self.assertEqual(kept[-1], block(WORK).strip())

    def test_what_only_looks_like_it(self):
        for habit, answer in (
            (f"Turn 1 of 9. Left: cost 1.00\n{block(ANSWER)}", "42"),
            (block(WORK, "print('''\n<output>\n''')", "FINAL(total)"), "42"),
            ("I looked.\n\nFINAL(\n[stdout]\n42\n)", "[stdout]\n42"),
            ("Output:\n\nFINAL(42)", "42"),
        ):
            with self.subTest(habit=habit):
                self.assertEqual(self.run_habit(habit)["output"], answer)


class Answers(Habit):
    def test_our_own_words(self):
        for form in ("FINAL(the answer)", "FINAL(...)", "FINAL(<your answer>)", "**FINAL(value)**"):
            with self.subTest(form=form):
                result = self.run_habit(form, "FINAL(42)")
                self.assertEqual(result["output"], "42")
                self.assertIn(FORM, self.told[1])
                self.assertNotIn(NO_CODE, self.told[1])

    def test_our_own_words_as_an_answer(self):
        """In quotes they are one, and so is what holds more than them."""
        self.assertEqual(self.run_habit('FINAL("value")')["output"], "value")
        self.assertEqual(self.run_habit("FINAL(the answer is 42)")["output"], "the answer is 42")

    def test_other_spellings(self):
        for habit in ("Final(42)", "final_answer(42)", "**Final(42)**."):
            with self.subTest(habit=habit):
                self.assertEqual(self.run_habit(habit)["output"], "42")
        self.assertEqual(self.run_habit(f"{block(WORK)}\nFinalVar(total)")["output"], "42")

    def test_words_of_that_spelling(self):
        result = self.run_habit("Final(s) were played in May.", "FINAL(42)")
        self.assertEqual(result["output"], "42")


class Beside(Habit):
    """FINAL beside code that has not run: the model saw no output of it."""

    GUESS = f"{block(WORK, 'print(total)')}\nFINAL(41)"

    def test_it_is_asked_whether_it_stands(self):
        """ENG-6: with the output of the code, which it may go by or not."""
        for second in ("FINAL(42)", block("FINAL(total)")):
            with self.subTest(second=second):
                result = self.run_habit(self.GUESS, second)
                self.assertEqual(result["output"], "42")
                self.assertIn(CONFIRM, self.told[1])
                self.assertIn("42", self.told[1])
                self.assertEqual(result["warnings"], [])

    def test_what_it_then_says_counts(self):
        """Also where it only says it again, with the code."""
        for second in ("FINAL(41)", self.GUESS, "Yes, it stands.\n\nFINAL(41)"):
            with self.subTest(second=second):
                result = self.run_habit(self.GUESS, second)
                self.assertEqual(result["output"], "41")
                self.assertEqual(result["usage"]["iterations"], 2)

    def test_it_is_not_lost(self):
        """Where nothing can be asked any more it stands, as it would have without the question."""
        result = self.run_habit(self.GUESS, arguments=["--max-iterations", "1"])
        self.assertEqual(result["output"], "41")
        self.assertEqual(result["trace"]["answerSource"], "final_direct")
        self.assertEqual(result["stopReason"], "final")
        self.assertIn("was not confirmed", " ".join(result["warnings"]))
        result = self.run_habit(self.GUESS, lambda _: Reply(error="bad_request"))
        self.assertEqual(result["output"], "41")
        self.assertIn("was not confirmed", result["warnings"][0])
        result = self.run_habit(self.GUESS, *["It stands, I think."] * 3)
        self.assertEqual(result["output"], "41")

    def test_code_takes_it_back(self):
        result = self.run_habit(self.GUESS, block("total += 0"), "FINAL_VAR(total)")
        self.assertEqual(result["output"], "42")

    def test_a_variable_is_computed(self):
        """FINAL_VAR is no guess: it is read when the code has run."""
        result = self.run_habit(f"{block(WORK)}\nFINAL_VAR(total)")
        self.assertEqual(result["output"], "42")
        self.assertEqual(result["usage"]["iterations"], 1)


class Values(Habit):
    """FINAL(...) as text, of a value that code has computed: its name was the answer."""

    def value(self, answer, source, *replies, arguments=()):
        with self.subTest(replies=replies):
            result = self.run_habit(*replies, arguments=arguments)
            self.assertEqual((result["output"], result["trace"]["answerSource"]), (answer, source))
            return result

    def test_a_name(self):
        """Beside its code, and a turn later; also as an argument by name."""
        self.value("42", "final_var", f"{block(WORK)}\nFINAL(total)")
        for answer in "FINAL(total)", "FINAL( total )", "FINAL(answer=total)", "**FINAL(total)**":
            self.value("42", "final_var", block(WORK), answer)
        self.value("4.2 €", "final_var", block("größe = '4.2 €'"), "FINAL(größe)")

    def test_a_text(self):
        """Text in quotes is meant, and a word that names nothing."""
        for answer, text in (("FINAL('total')", "total"), ("FINAL(Total)", "Total"),
                             ("FINAL(Paris (France))", "Paris (France)"), ("FINAL(12-13)", "12-13"),
                             ("FINAL(north-east)", "north-east"), ('FINAL(answer="20")', "20"),
                             ("FINAL(final_answer = 20)", "20"), ("FINAL(answer == 20)", "answer == 20"),
                             ("FINAL(len)", "len"), ("FINAL(llm_query)", "llm_query"),
                             ("FINAL(答え)", "答え"), ("FINAL(total,\nand more)", "total,\nand more")):
            self.value(text, "final_direct", block(WORK), answer)

    def test_an_expression_is_asked_about(self):
        """With both readings; what is said next counts."""
        for expression in ("str(total)", 'f"{total} lines"', "len(str(total))", "total + 1",
                           "[total]", "answer=str(total)"):
            result = self.value("42", "final_direct", block(WORK), f"FINAL({expression})",
                                block("FINAL(total)"))
            bare = expression.replace("answer=", "")
            self.assertIn(f"call FINAL({bare}) in a code block; if the text itself is, give it again as "
                          f'FINAL("{bare}")', self.told[2])
            self.assertEqual(result["usage"]["iterations"], 3)
        self.value("total + 1", "final_direct", block(WORK), *["FINAL(total + 1)"] * 2)
        self.value("total + 1", "final_direct", block(WORK), "FINAL(total + 1)", 'FINAL("total + 1")')
        self.value("42", "final_var", block(WORK), "FINAL(total + 1)", "FINAL(total)")

    def test_where_an_answer_is_forced(self):
        self.value("42", "forced", block(WORK), "FINAL(total)", arguments=("--max-iterations", "1"))
        self.value("total + 1", "forced", block(WORK), "FINAL(total + 1)",
                   arguments=("--max-iterations", "1"))


class Forced(Habit):
    """No code runs where an answer is forced, so none passes as words."""

    CODE = "print(sum(map(int, context.split())))"

    def force(self, *replies, status=0):
        arguments = ["--max-iterations", "1"]
        return self.run_habit(block("1"), *replies, arguments=arguments, status=status)

    def test_code_is_no_answer(self):
        fence = f"```python\n{self.CODE}\n```"
        for habit in (
            f"<think>Let me see.</think>\n{fence}", f"> ```python\n> {self.CODE}\n> ```",
            f"\u200b{fence}", f"```tool_code\n{self.CODE}\n```", f"<|python_tag|>{self.CODE}",
            self.CODE, f"FINAL(\n{fence}\n)", f"<tool_call>\n{CALL}\n</tool_call>", "FINAL()",
            "FINAL(the answer)", "<think>It is 42", "<think>It is 42</think>\n",
        ):
            with self.subTest(habit=habit):
                self.assertEqual(self.force(habit, "It is 42.")["output"], "It is 42.")
                result = self.force(habit, habit, status=6)
                self.assertIn("no answer could be forced", result["error"]["message"])

    def test_words_are(self):
        for words in ("42", "> 42", "The call is `f(x)`.", "f(x)", "x = 42", '{"a": [1]}',
                      "```json\n[1]\n```", "Models write <think> first."):
            with self.subTest(words=words):
                self.assertEqual(self.force(words)["output"], words)

    def test_thoughts_are_no_part_of_it(self):
        self.assertEqual(self.force("<think>Hm.</think>\n\nIt is 42.")["output"], "It is 42.")


if __name__ == "__main__":
    unittest.main()

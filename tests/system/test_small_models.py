"""Habits of small models, each scripted: none ends a run in a wrong way, and each gets on.

A script stands for a model here: it does what it is used to, and changes its way only when a
message tells it what was wrong. What it needs to be told is what these tests hold.
"""

import unittest

from harness import block
from model import Reply
from providers import ProviderTest, final

NO_CODE = "neither a code block nor an answer"
WORK = "total = sum(int(line) for line in context.split())"


class Habit(ProviderTest):
    def run_habit(self, *replies, status=0, arguments=(), provider="ollama"):
        """One reply a turn; a callable answers by what it was told."""
        server = self.serve(provider)
        for reply in replies:
            server.script(None, reply if callable(reply) else Reply(text=reply), times=1)
        path = self.write("context.txt", "1\n2\n39\n")
        outcome = self.ask(server, "-c", path, *arguments, status=status)
        self.requests = server.requests
        self.told = [request.last_user for request in server.requests]
        return outcome.result

    def learns(self, habit, lesson, *after):
        """The habit in the first turn; told the lesson, the right thing in the second."""

        def second(request):
            text = block(WORK, "FINAL_VAR('total')") if lesson in request.last_user else habit
            return Reply(text=text)

        result = self.run_habit(habit, second, *after)
        self.assertEqual(result["output"], "42")
        self.assertEqual(result["usage"]["iterations"], 2)
        return result


class Code(Habit):
    def test_fences_of_another_name(self):
        """ENG-1: they write python, or py, or Python, whatever they were told."""
        for name in ("python", "Python", "py", "repl", "REPL"):
            with self.subTest(name=name):
                result = self.run_habit(f"Sure!\n```{name}\n{WORK}\nFINAL_VAR('total')\n```\n")
                self.assertEqual(result["output"], "42")

    def test_a_fence_behind_words_or_closed_on_its_code(self):
        """ENG-1: specification 004's expression runs them, and nothing else can be meant."""
        code = f"{WORK}\nFINAL_VAR('total')"
        for reply in (
            f"Sure: ```python\n{code}\n```",
            f"```python\n{code}```",
            f"Sure: ```python\n{code}```",
            f"Like this ```x```:\n\n```repl\nbox = \"\"\"x```\n\"\"\"\n{code}```\nDone.",
        ):
            with self.subTest(reply=reply):
                result = self.run_habit(reply)
                self.assertEqual(result["output"], "42")
                self.assertEqual(result["usage"]["iterations"], 1)

    def test_inline_code_is_not_run(self):
        """The same marks in prose: nothing runs, and the answer in the text is found."""
        for words in (
            "I use ```1/0``` here.",
            "One opens with ```python\nand closes with ```.",
            "One opens with ```python\n\nThen one writes 1/0.",
        ):
            with self.subTest(words=words):
                result = self.run_habit(f"{words}\n\nFINAL(42)")
                self.assertEqual(result["output"], "42")
                self.assertEqual(result["trace"]["iterations"][0]["codeExecutions"], [])

    def test_code_without_a_fence(self):
        """It runs where it is all of the reply; among words it is not run, for those could be more."""
        result = self.run_habit(f"{WORK}\nFINAL(total)")
        self.assertEqual(result["output"], "42")
        self.learns(f"I add them up:\n\n{WORK}\nprint(total)", "stood outside of a block")

    def test_a_tool_call_in_json(self):
        """As models write it that were trained to call tools: no such tool is there."""
        call = '{"name": "search", "arguments": {"query": "1"}}'
        for habit in (call, f"```json\n{call}\n```", f"<tool_call>\n{call}\n</tool_call>",
                      'I look.\n<invoke name="search">\n<parameter name="query">1</parameter>\n</invoke>',
                      "Action: search\nAction Input: 1"):
            with self.subTest(habit=habit):
                self.learns(habit, "called a tool")
                self.assertIn("opens with ```python", self.told[1])

    def test_another_language(self):
        self.learns("```bash\ngrep -c x context.txt\n```", "stood in a `bash` block")
        self.learns("So:\n\n```javascript\nconsole.log(1)\n```\n", "stood in a `javascript` block")
        for habit in ('```json\n{"total": 42}\n```', "```text\nI look.\n```"):
            with self.subTest(habit=habit):
                self.learns(habit, NO_CODE)

    def test_a_fence_that_is_never_closed(self):
        """ENG-1: a complete response whose last fence is open is run."""
        result = self.run_habit(f"```repl\n{WORK}\nFINAL_VAR('total')")
        self.assertEqual(result["output"], "42")

    def test_an_import_that_is_not_there(self):
        """The error is told, and what there is instead was told before."""
        result = self.run_habit(
            block("import requests"), block(WORK, "FINAL(total)")
        )
        self.assertEqual(result["output"], "42")
        self.assertIn("ModuleNotFoundError", self.told[1])

    def test_a_file_that_is_opened(self):
        result = self.run_habit(block("open('context.txt').read()"), block(WORK, "FINAL(total)"))
        self.assertEqual(result["output"], "42")
        self.assertRegex(self.told[1], "PermissionError|FileNotFoundError|OSError")

    def test_input_is_asked_for(self):
        result = self.run_habit(block("x = input('?')"), block(WORK, "FINAL(total)"))
        self.assertEqual(result["output"], "42")

    def test_the_same_code_again_and_again(self):
        """It is told so; and where that is of no use, the run ends at its limit with an answer."""
        result = self.run_habit(block(WORK), block(WORK), block("FINAL(total)"))
        self.assertEqual(result["output"], "42")
        self.assertNotIn("word for word", self.told[1])
        self.assertIn("word for word", self.told[2])
        same = [block(WORK)] * 4 + ["42, it seems"]
        result = self.run_habit(*same, arguments=["--max-iterations", "4"])
        self.assertEqual(result["output"], "42, it seems")
        self.assertEqual(result["trace"]["answerSource"], "forced")


class Answers(Habit):
    def test_final_in_the_code(self):
        """ENG-3: as a call, of a value or of a name."""
        for call in ("FINAL(total)", "FINAL_VAR('total')", "FINAL_VAR(total)", "FINAL(str(total))"):
            with self.subTest(call=call):
                self.assertEqual(self.run_habit(block(WORK, call))["output"], "42")

    def test_final_in_a_print(self):
        """It is an output, not an answer; the run goes on."""
        result = self.run_habit(block(WORK, "print('FINAL(', total, ')')"), "FINAL(42)")
        self.assertEqual(result["output"], "42")
        self.assertEqual(result["usage"]["iterations"], 2)

    def test_final_before_the_code_has_run(self):
        """ENG-6: FINAL_VAR beside the code that makes the variable."""
        result = self.run_habit(block(WORK) + "\nFINAL_VAR(total)")
        self.assertEqual(result["output"], "42")

    def test_a_variable_of_another_name(self):
        """ENG-6: it is told which there are."""

        def right(request):
            return final("x") if "total" not in request.last_user else Reply(text="FINAL_VAR(total)")

        result = self.run_habit(block(WORK) + "\nFINAL_VAR(the_total)", right)
        self.assertEqual(result["output"], "42")
        self.assertIn("FINAL_VAR(the_total) is no answer", self.told[1])

    def test_an_answer_that_was_never_written(self):
        """The `answer` that stands ready for code of another library is no variable of theirs."""
        habit = block("print(sum(map(int, context.split())))") + "\nFINAL_VAR(answer)"
        self.learns(habit, "FINAL_VAR(answer) is no answer")
        for call in ("FINAL_VAR(answer)", "FINAL_VAR('answer')"):
            with self.subTest(call=call):
                self.learns(block(call), "there is no variable 'answer'")
        result = self.run_habit(block("answer['content'] = 'Paris'") + "\nFINAL_VAR(answer)")
        self.assertEqual(result["output"], "Paris")

    def test_a_variable_where_there_is_none(self):
        self.run_habit("FINAL_VAR(total)", "FINAL(42)")
        self.assertIn("These variables exist:\nnone but the inputs\nDefine it", self.told[1])

    def test_an_expression_in_final_var(self):
        """No variable has such a name; it is not taken for an answer."""
        result = self.run_habit(block(WORK), "FINAL_VAR(total + 1)", "FINAL_VAR(total)")
        self.assertEqual(result["output"], "42")
        self.assertIn("FINAL_VAR(total + 1) is no answer", self.told[2])
        self.assertNotIn(NO_CODE, self.told[2])
        self.learns(block(WORK) + "\n**FINAL_VAR(len(total))**", "takes the name of one variable")
        for other in ("Then FINAL_VAR(a + b) follows.", "`FINAL_VAR(a + b)`"):
            with self.subTest(other=other):
                self.run_habit(other, "FINAL(42)")
                self.assertIn(NO_CODE, self.told[1])

    def test_an_expression_in_final_var_in_code(self):
        """ENG-3: neither; the turn after it is told so."""
        result = self.run_habit(
            block("d = {'k': 42}", """FINAL_VAR("d['k']")"""), block("FINAL(d['k'])")
        )
        self.assertEqual(result["output"], "42")
        self.assertIn("Write FINAL(d['k'])", self.told[1])

    def test_markup_around_the_answer(self):
        for answer in ("**FINAL(42)**", "Answer:\nFINAL(42)", "FINAL(42).", "  FINAL( 42 )"):
            with self.subTest(answer=answer):
                self.assertEqual(self.run_habit(answer)["output"], "42")

    def test_a_boxed_answer(self):
        self.assertEqual(self.run_habit("The answer is \\boxed{42}.")["output"], "42")

    def test_prose(self):
        """Told what to do, it does it."""
        self.learns("I would first look at the file, then add up the numbers.", NO_CODE)

    def test_prose_again(self):
        """Its last sentence is offered back as the answer."""
        offer = "FINAL(The sum of the numbers is 42.)"

        def third(request):
            return Reply(text=offer if offer in request.last_user else "Hm.")

        said = "I added them up. The sum of the numbers is 42."
        result = self.run_habit("I would add up the numbers.", said, third)
        self.assertEqual(result["output"], "The sum of the numbers is 42.")
        self.assertNotIn("FINAL(I would", self.told[1])

    def test_only_prose(self):
        """Told twice in vain, it is asked for its answer, and gives it in prose: three turns."""
        words = "The sum of the numbers is 42."
        result = self.run_habit(words, words, words, words)
        self.assertEqual(result["output"], words)
        self.assertEqual(result["trace"]["answerSource"], "forced")
        self.assertEqual(result["usage"]["iterations"], 3)
        self.assertIn("three turns in a row", result["warnings"][1])
        self.assertIn(NO_CODE, self.told[1])
        self.assertIn("No code runs any more", self.told[3])

    def test_a_turn_of_code_starts_the_count_again(self):
        words = "Let me think."
        result = self.run_habit(words, words, block(WORK), words, words, "FINAL_VAR(total)")
        self.assertEqual(result["output"], "42")

    def test_nothing(self):
        """Empty responses: the conversation stays one that providers take."""
        for provider in ("ollama", "openai", "anthropic"):
            with self.subTest(provider=provider):
                result = self.run_habit("", "  \n", "FINAL(42)", provider=provider)
                self.assertEqual(result["output"], "42")
                self.assertIn(NO_CODE, self.told[2])

    def test_only_thinking(self):
        """ENG-4: code in the provider's reasoning field is not run."""
        thought = Reply(text="", thinking=block("FINAL('wrong')"))
        result = self.run_habit(lambda _: thought, "FINAL(42)")
        self.assertEqual(result["output"], "42")

    def test_code_where_the_answer_was_asked_for(self):
        """No code runs any more, and code alone is no answer."""
        result = self.run_habit(
            block("1"), *[block("FINAL('not run')")] * 2,
            arguments=["--max-iterations", "1"], status=6,
        )
        self.assertIn("it was only code", result["error"]["message"])


class Cut(Habit):
    """ENG-1: what max_tokens cuts, in code, in an answer, in prose."""

    def cut(self, text):
        return lambda _: Reply(text=text, finish="length")

    def test_in_code(self):
        """Whole blocks before it run; the model is told of the one that did not."""
        result = self.run_habit(
            self.cut(block(WORK) + "\n```repl\nFINAL('ha"), block("FINAL(total)")
        )
        self.assertEqual(result["output"], "42")
        self.assertIn("was cut inside a code block, at its length limit", self.told[1])

    def test_in_an_answer(self):
        """Half an answer is none."""
        result = self.run_habit(self.cut("FINAL(4"), "FINAL(42)")
        self.assertEqual(result["output"], "42")
        self.assertEqual(result["usage"]["iterations"], 2)
        self.assertIn("was cut, at its length limit or because it went on repeating itself, before it had", self.told[1])

    def test_after_an_answer(self):
        result = self.run_habit(self.cut("FINAL(42)\nBecause the numbers are"))
        self.assertEqual(result["output"], "42")

    def test_in_prose(self):
        result = self.run_habit(self.cut("I shall now explain at len"), "FINAL(42)")
        self.assertEqual(result["output"], "42")

    def test_always(self):
        """Code that never gets whole is no turn without code; the limit ends it."""
        cut = self.cut("```repl\nx = 'endless")
        result = self.run_habit(cut, cut, cut, cut, "words", arguments=["--max-iterations", "4"])
        self.assertEqual(result["stopReason"], "max_iterations")
        self.assertEqual(result["output"], "words")


if __name__ == "__main__":
    unittest.main()

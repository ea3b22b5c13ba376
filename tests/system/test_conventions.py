"""Names and arguments of other RLM libraries, as far as they reach the model: real workers, and
what a real server was asked. The rest is in tests/worker/test_worker_conventions.py."""

import unittest

from harness import block, query, turn
from model import Reply
from providers import CLOUD, ProviderTest, code, final

AMPLE = ["--max-tokens", "1000000000"]


class Requests(ProviderTest):
    def asked(self, provider, line, *arguments, **environment):
        """The server's requests from a block of this line: all requests but the root's turns."""
        server = self.serve(provider)
        root = iter([code(line), final()])

        def reply(request):
            if request is server.requests[0] or "TASK: the task" in request.messages[1][1]:
                return next(root)
            if "Answer exactly" in request.system or request.system in ("s", "S"):
                return Reply(text="r")
            return final("sub")

        server.script(None, reply)
        outcome = self.ask(server, *AMPLE, *arguments, **environment)
        execution = outcome.executions()[0]
        self.assertIsNone(execution["error"], execution["error"])
        self.outcome = outcome
        return server.requests[1:-1]

    def test_the_request_has_what_the_call_says(self):
        """LLM-1: in the words of each provider; the next call has none of it."""
        where = {
            "openai": ("temperature", "max_tokens"), "anthropic": ("temperature", "max_tokens"),
            "ollama": ("temperature", "num_predict"),
        }
        for provider, (temperature, tokens) in where.items():
            with self.subTest(provider):
                first, second = self.asked(
                    provider, "llm_query('p', 'm2', system='s', max_tokens=50, temperature=0.25);"
                    " llm_query('q')")
                settings = first.json.get("options", first.json)
                self.assertEqual((first.system, first.last_user, first.model), ("s", "p", "m2"))
                self.assertEqual(settings[temperature], 0.25)
                self.assertEqual(first.max_tokens, 50)
                self.assertNotIn("temperature", second.json.get("options", second.json))
                self.assertIn("Answer exactly", second.system)
                self.assertEqual(second.model, "m")
                self.assertGreater(second.max_tokens, 1000)

    def test_a_call_of_its_own_goes_before_the_settings(self):
        first, second = self.asked(
            "openai", "llm_query('p', temperature=0); llm_query('q')",
            "--temperature", "1.5", "--max-output-tokens", "300")
        self.assertEqual([r.json["temperature"] for r in (first, second)], [0, 1.5])
        self.assertEqual(first.max_tokens, 300)

    def test_the_settings_limit_holds_for_a_call(self):
        request, = self.asked("openai", "llm_query('p', max_tokens=5000)",
                              "--max-output-tokens", "300")
        self.assertEqual(request.max_tokens, 300)

    def test_a_conversation(self):
        """Roles arrive as roles, in a batch too, each in a request of its own."""
        talk = ("[{'role': 'system', 'content': 'S'}, {'role': 'user', 'content': 'u'}, "
                "{'role': 'assistant', 'content': 'a'}, {'role': 'user', 'content': 'v'}]")
        for provider in (*CLOUD, "ollama"):
            with self.subTest(provider):
                requests = self.asked(provider, f"batch_llm_query([{talk}, 'q', {talk}])")
                self.assertEqual(sorted(len(r.messages) for r in requests), [2, 4, 4])
                for request in requests:
                    if len(request.messages) == 4:
                        self.assertEqual([(role, text) for role, text in request.messages], [
                            ("system", "S"), ("user", "u"), ("assistant", "a"), ("user", "v")])

    def test_the_model_of_a_sub_run(self):
        """Of all of its turns, but not of what it asks itself."""
        server = self.serve("openai")
        server.replies(
            code("rlm_query('look', model='m2'); batch_rlm_query(['a'], model='m3')"),
            code("llm_query('inner')"), Reply(text="r"), final("sub"), final("sub"), final())
        self.ask(server, *AMPLE)
        self.assertEqual([r.model for r in server.requests], ["m", "m2", "m", "m2", "m3", "m"])

    def test_a_sub_runs_model_that_is_answered_directly(self):
        server = self.serve("openai")
        server.replies(code("rlm_query('look', model='m2')"), Reply(text="r"), final())
        self.ask(server, *AMPLE, "--max-depth", "1")
        self.assertEqual([r.model for r in server.requests], ["m", "m2", "m"])

    def test_a_model_without_a_price_is_refused_where_money_is_limited(self):
        """BUD: also one that a sub-run's turns are to have; nothing is sent to it."""
        server = self.serve("openai", prices={"m": (1000, 1000)})
        server.replies(
            code("for ask in (llm_query, rlm_query):",
                 "    try: print(ask('p', model='dear'))",
                 "    except Exception as error: print(error)"), final())
        outcome = self.ask(server, *AMPLE, "--max-cost", "1", *self.prices(m=(1000, 1000)))
        said = outcome.executions()[0]["stdout"].splitlines()
        self.assertEqual(len(said), 2)
        for line in said:
            self.assertIn("the price of model 'dear' is not known", line)
        self.assertEqual({r.model for r in server.requests}, {"m"})

    def test_the_price_of_the_named_model_is_what_is_billed(self):
        prices = {"m": (1000, 1000), "dear": (5000000, 5000000)}
        server = self.serve("openai", prices=prices)
        server.replies(code("rlm_query('look', model='dear')"), final("sub"), final())
        result = self.ask(server, *AMPLE, *self.prices(**prices)).result
        billed = sum(
            prices[r.model][0] * r.billed_input + prices[r.model][1] * r.billed_output
            for r in server.requests)
        self.assertAlmostEqual(result["usage"]["cost"], billed / 1e12, 12)

    def test_a_short_answer_is_no_reason_to_ask_again(self):
        """A reply that the call's own limit cut is what was asked for, and says so."""
        server = self.serve("openai")
        server.replies(code("a = llm_query('p', max_tokens=3)", "a, a.degraded"),
                       Reply(text="one two three", finish="length", usage=(10, 3)), final())
        outcome = self.ask(server, *AMPLE)
        self.assertEqual(outcome.executions()[0]["stdout"], "('one two three', True)\n")
        self.assertEqual([r.max_tokens for r in server.requests][1], 3)
        self.assertEqual(len(server.requests), 3)


class Names(ProviderTest):
    def test_answers(self):
        """Ways to end a run in other libraries end it here."""
        for line, answer in (
            ("SUBMIT(answer='42')", "42"), ("SUBMIT(a=1, b='x')", '{"a": 1, "b": "x"}'),
            ("final_answer('Paris')", "Paris"), ("FINAL(answer='x')", "x"),
            ("FINAL('Total:', 5)", "Total: 5"), ("city = 'Berlin'\nFINAL_VAR(city)", "Berlin"),
        ):
            with self.subTest(line):
                outcome = self.replay([turn(block(line))], "--json", "-q")
                self.assertEqual(outcome.status, 0, outcome.err)
                self.assertEqual(outcome.result["output"], answer)

    def test_names(self):
        """The task, the context, what was before: each run has its own."""
        entries = [query("r")]
        executions, _ = self.blocks(
            "query, context_0 is context, history",
            "find_line('two'), count_lines(), search('two')[0]['start']",
            "[sub_llm('t', 'c'), llm('p'), call_llm('p')]",
            "history = ['mine']; query = 1",
            "history, query",
            context="one\ntwo", entries=entries, task="the question?")
        self.assertEqual([e["error"] for e in executions], [None] * 5)
        self.assertEqual([e["stdout"] for e in executions], [
            "('the question?', True, [])\n", "([(2, 'two')], 2, 4)\n", "['r', 'r', 'r']\n", "",
            "(['mine'], 1)\n"])

    def test_a_sub_runs_task(self):
        entries = [
            turn(block("rlm_query('the part')"), depth=0, turn=0),
            turn(block("FINAL(query)"), depth=1), turn("FINAL(done)", depth=0, turn=1),
        ]
        outcome = self.replay(entries, "--json", "-q", task="the whole")
        self.assertEqual(outcome.executions()[0]["stdout"], "'the part'\n")

    def test_an_input_of_such_a_name(self):
        path = self.write("history.txt", "an input")
        executions, _ = self.blocks(
            "history, query", "'history' in SHOW_VARS(), 'query' in SHOW_VARS()",
            arguments=["-c", f"history={path}"])
        self.assertEqual([e["stdout"] for e in executions],
                         ["('an input', 'the task')\n", "(True, False)\n"])

    def test_the_prompt_does_not_name_them(self):
        outcome = self.replay([turn("FINAL(x)")], "--dry-run", "--json", context="x")
        for name in ("SUBMIT", "final_answer", "find_line", "sub_llm", "context_0"):
            self.assertNotIn(name, outcome.out)


if __name__ == "__main__":
    unittest.main()

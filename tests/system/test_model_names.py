"""Models of several providers in one job: "provider/model", wherever a model is named."""

import json
import os
import unittest

from model import Reply
from providers import ProviderTest, code, final


class NamesTest(ProviderTest):
    def setUp(self):
        super().setUp()
        self.anthropic, self.openai = self.serve("anthropic"), self.serve("openai")
        self.openai.key = "sk-" "of-the-other-server"  # in two: no file with a key is this

    def both(self, **more):
        return {**self.anthropic.environment(), **self.openai.environment(), **more}

    def run_both(self, *arguments, status=0, **environment):
        """Under -p anthropic, with what the environment needs to ask either."""
        outcome = self.rlmd("exec", "-p", "anthropic", "-m", "m", "--json", *arguments, "--", "task",
                            env=self.environment(**self.both(**environment)))
        self.assertEqual(outcome.status, status, outcome.err + outcome.out[:2000])
        return outcome

    def models(self, server):
        return [request.model for request in server.requests]


class ExecTest(NamesTest):
    def test_subcall_model_of_another_provider(self):
        """Each is asked for its model, under its own key, at its own price; the result adds up."""
        self.anthropic.replies(code("print(llm_query('what?'))"), final("done"))
        self.openai.replies(Reply(text="an answer"))
        prices = self.prices(**{"m": (1_000_000, 2_000_000), "gpt-5-mini": (3_000_000, 5_000_000)})
        self.anthropic.prices, self.openai.prices = (1_000_000, 2_000_000), (3_000_000, 5_000_000)
        outcome = self.run_both("--subcall-model", "openai/gpt-5-mini", *prices)
        self.assertEqual(outcome.result["output"], "done")
        self.assertEqual(outcome.executions()[0]["stdout"], "an answer\n")
        self.assertEqual(self.models(self.anthropic), ["m", "m"])
        self.assertEqual(self.models(self.openai), ["gpt-5-mini"])
        self.assertIn(self.openai.key, self.openai.requests[0].headers["authorization"])
        for server, other in ((self.anthropic, self.openai), (self.openai, self.anthropic)):
            for request in server.requests:
                self.assertNotIn(other.key, repr(request.headers))
        spent = self.anthropic.billed_cost + self.openai.billed_cost
        self.assertAlmostEqual(outcome.result["usage"]["cost"], spent / 1e12)
        self.assertEqual(outcome.result["provider"], "anthropic")

    def test_root_of_another_provider(self):
        """The result names whose model answered."""
        self.openai.replies(final("done"))
        outcome = self.run_both("-m", "openai/gpt-5-mini")
        self.assertEqual(self.models(self.openai), ["gpt-5-mini"])
        self.assertEqual(outcome.result["provider"], "openai")
        self.assertEqual(outcome.result["model"], "openai/gpt-5-mini")
        self.assertEqual(self.anthropic.requests, [])

    def test_code_may_ask_those_that_the_user_named(self):
        self.anthropic.replies(
            code(
                "print(llm_query('a', model='openai/gpt-5'))",
                "print(rlm_query('b', model='openai/gpt-5'))",
                "print(llm_query('c', model='anthropic/claude'))",
            ),
            Reply(text="from anthropic"),
            final("done"),
        )
        self.openai.replies(Reply(text="from openai"), final("from a run"))
        outcome = self.run_both("--subcall-model", "openai/gpt-5-mini")
        self.assertEqual(outcome.executions()[0]["stdout"],
                         "from openai\nfrom a run\nfrom anthropic\n")
        self.assertEqual(self.models(self.openai), ["gpt-5", "gpt-5"])
        self.assertEqual(self.models(self.anthropic), ["m", "claude", "m"])

    def test_code_reaches_no_other(self):
        """Though the key of another provider is set, and a server of a third one listens: such a
        name is a model of the own provider, which says that it knows none."""
        ollama = self.serve("ollama")
        self.anthropic.replies(
            code(
                "for model in ('openai/gpt-5', 'ollama/llama3', 'meta-llama/llama-3'):",
                "    print(llm_query('secret', model=model))",
            ),
            *[Reply(text="own")] * 3,
            final("done"),
        )
        outcome = self.run_both(**ollama.environment())
        self.assertEqual(outcome.executions()[0]["stdout"], "own\n" * 3)
        self.assertEqual(self.models(self.anthropic),
                         ["m", "openai/gpt-5", "ollama/llama3", "meta-llama/llama-3", "m"])
        self.assertEqual(self.openai.requests + ollama.requests, [])

    def test_missing_key(self):
        """A model that the user named and no key opens is told before anything is asked."""
        outcome = self.rlmd("exec", "-p", "anthropic", "-m", "m", "--subcall-model", "openai/gpt",
                            "--json", "task", env=self.environment(**self.anthropic.environment()))
        self.assertEqual(outcome.status, 4, outcome.err)
        self.assertIn("OPENAI_API_KEY", outcome.err)
        self.assertIn("with provider openai", outcome.err)
        self.assertEqual(self.anthropic.requests, [])

    def test_what_is_wrong_with_a_provider_that_nobody_asks(self):
        """It has no part in this: neither its key nor its address is looked at."""
        self.anthropic.replies(final("done"))
        outcome = self.run_both(OPENAI_API_KEY="two words", OPENAI_BASE_URL="no address")
        self.assertEqual(outcome.result["output"], "done")

    def test_key_file(self):
        """It is the key of the provider that the model's name begins with, whatever else is set."""
        key = self.write("key", "sk-" "of-a-file")
        os.chmod(key, 0o600)
        self.anthropic.replies(final("done"))
        address = {"ANTHROPIC_BASE_URL": self.anthropic.environment()["ANTHROPIC_BASE_URL"]}
        outcome = self.rlmd("exec", "-m", "anthropic/m", "--key-file", key, "--json", "task",
                            env=self.environment(**self.openai.environment(), **address))
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertEqual(self.anthropic.requests[0].key, "sk-" "of-a-file")
        self.assertEqual(self.openai.requests, [])

    def test_no_model(self):
        outcome = self.run_both("--subcall-model", "openai/", status=2)
        self.assertIn("no model", outcome.err)

    def test_gateway(self):
        """A server that speaks OpenAI's protocol has names like these, which it gets as they are."""
        self.openai.replies(code("llm_query('a', model='anthropic/claude')"), Reply(text="x"),
                            final("done"))
        outcome = self.rlmd("exec", "-p", "openai", "-m", "openai/gpt-oss-20b", "--subcall-model",
                            "meta-llama/llama-3", "--json", "task",
                            env=self.environment(**self.openai.environment()))
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertEqual(self.models(self.openai),
                         ["openai/gpt-oss-20b", "anthropic/claude", "openai/gpt-oss-20b"])


class RecordTest(NamesTest):
    def test_replay_of_two_providers(self):
        """A recording holds the exchanges of both, and no key; it asks nobody, and needs no key."""
        self.anthropic.replies(code("print(llm_query('what?'))"), final("done"))
        self.openai.replies(Reply(text=f"an answer, {self.openai.key}"))
        kept = self.dir / "kept"
        names = ["--subcall-model", "openai/gpt-5-mini", *self.prices(**{"m": (1, 2)})]
        first = self.run_both(*names, "--record", kept)
        texts = [path.read_text() for path in kept.iterdir()]
        self.assertEqual(len(texts), 3)
        self.assertNotIn(self.openai.key, "".join(texts))
        self.assertNotIn(self.anthropic.key, "".join(texts))
        again = self.rlmd("exec", "-p", "anthropic", "-m", "m", *names, "--json", "--replay", kept,
                          "task", env=self.environment())
        self.assertEqual(again.status, 0, again.err)
        self.assertEqual(again.executions()[0]["stdout"], "an answer, ***\n")
        self.assertEqual(again.result["output"], "done")
        self.assertEqual(again.result["usage"]["cost"], first.result["usage"]["cost"])
        self.assertEqual(len(self.anthropic.requests) + len(self.openai.requests), 3)


class PlanTest(NamesTest):
    def plan(self, *operations):
        return self.write("plan.json", json.dumps({"operations": list(operations)}))

    def test_operations_of_two_providers(self):
        """The plan is the user's: its names are theirs."""
        self.anthropic.replies(Reply(text="one"))
        self.openai.replies(Reply(text="two"))
        plan = self.plan({"id": "a", "input": "x"},
                         {"id": "b", "input": "y", "model": "openai/gpt-5-mini"})
        outcome = self.rlmd("plan", "-p", "anthropic", "-m", "m", "--json", plan,
                            env=self.environment(**self.both()))
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertEqual(self.models(self.anthropic), ["m"])
        self.assertEqual(self.models(self.openai), ["gpt-5-mini"])

    def test_warnings_come_once(self):
        """Found before the plan began, and again by its calls: told once."""
        self.anthropic.replies(Reply(text="one"))
        plan = self.plan({"id": "a", "input": "x"})
        outcome = self.rlmd("plan", "-p", "anthropic", "-m", "nobody-knows", "--json", plan,
                            env=self.environment(**self.both()))
        warnings = outcome.result["warnings"]
        self.assertEqual(len(warnings), len(set(warnings)), warnings)
        self.assertIn("nobody-knows", "".join(warnings))

    def test_missing_key(self):
        plan = self.plan({"id": "b", "input": "y", "model": "openai/gpt-5-mini"})
        outcome = self.rlmd("plan", "-p", "anthropic", "-m", "m", "--json", plan,
                            env=self.environment(**self.anthropic.environment()))
        self.assertEqual(outcome.status, 4, outcome.err)
        self.assertIn('operation "b"', outcome.err)
        self.assertIn("OPENAI_API_KEY", outcome.err)


if __name__ == "__main__":
    unittest.main()

"""A base for tests that drive the real program against the scripted model server."""

import json

from harness import SystemTest, block
from model import ModelServer, Reply

CLOUD = ("openai", "anthropic")
WHOLE = {  # the fields that make a whole answer of each provider
    "openai": b'{"choices":[{"message":{"content":"%s"}}]}',
    "anthropic": b'{"content":[{"type":"text","text":"%s"}]}',
    "ollama": b'{"message":{"content":"%s"},"done":true}',
}


def final(text="ok", **more):
    return Reply(text=f"FINAL({text})", **more)


def code(*lines, **more):
    return Reply(text=block(*lines), **more)


class ProviderTest(SystemTest):
    def serve(self, provider, *replies, **more):
        """A server that gives these replies, one a request, until the test ends."""
        server = ModelServer(provider, **more).start()
        self.addCleanup(server.stop)
        return server.replies(*replies)

    def arguments(self, server, *arguments, task="the task"):
        form = [] if "--jsonl" in arguments else ["--json"]
        return ["exec", "-p", server.provider, "-m", "m", *form, *arguments, "--", task]

    def ask(self, server, *arguments, status=0, task="the task", **environment):
        """Runs one task to its end, with --json, and checks the exit status."""
        environment = self.environment(**{**server.environment(), **environment})
        outcome = self.rlmd(*self.arguments(server, *arguments, task=task), env=environment)
        self.assertEqual(outcome.status, status, outcome.err + outcome.out[:2000])
        return outcome

    def fails(self, server, status, kind, *arguments, **more):
        """As ask(), of a run that fails; gives the error of its result."""
        result = self.ask(server, *arguments, status=status, **more).result
        self.assertFalse(result["success"])
        self.assertEqual(result["error"]["kind"], kind, result["error"])
        return result["error"]

    def prices(self, **models):
        """A price table in LiteLLM's format, of pico-dollars a token as ModelServer has them."""
        names = (
            "input_cost_per_token",
            "output_cost_per_token",
            "cache_read_input_token_cost",
            "cache_creation_input_token_cost",
            "cache_creation_input_token_cost_above_1hr",
        )
        table = {
            model: {name: price / 1e12 for name, price in zip(names, prices)}
            for model, prices in models.items()
        }
        return ["--price-table", self.write("prices.json", json.dumps(table))]


def pico(dollars):
    """A result's cost in pico-dollars."""
    return round(dollars * 1e12)

"""How models are asked to choose their words, and how long a reply may get: --temperature, --stop,
--max-output-tokens, and what code asks for in their place."""

import json
import unittest

from model import PROVIDERS, Reply
from providers import ProviderTest, code, final

WHERE = {"openai": (), "anthropic": (), "ollama": ("options",)}
STOP = {"openai": "stop", "anthropic": "stop_sequences", "ollama": "stop"}
REFUSALS = {
    "openai": {"error": {
        "message": "Unsupported value: 'temperature' does not support 0.2 with this model. Only "
                   "the default (1) value is supported.",
        "type": "invalid_request_error", "param": "temperature", "code": "unsupported_value"}},
    "anthropic": {"type": "error", "error": {
        "type": "invalid_request_error",
        "message": "`temperature` is deprecated for this model."}},
}
STOP_REFUSED = {"error": {
    "message": "Unsupported parameter: 'stop' is not supported with this model.",
    "type": "invalid_request_error", "param": "stop", "code": "unsupported_parameter"}}


def refusal(body):
    return Reply(status=400, body=json.dumps(body).encode())


class Sampling(ProviderTest):
    def options_of(self, request):
        options = request.json
        for name in WHERE[request.provider]:
            options = options[name]
        return options

    def test_in_every_wire_format(self):
        """Each provider is asked in its own words, of turns and of calls alike."""
        for provider in PROVIDERS:
            with self.subTest(provider=provider):
                server = self.serve(provider, code("print(llm_query('x'))"), Reply(text="y"), final())
                self.ask(server, "--temperature", "0.2", "--stop", "<output>", "--stop", "a, b c",
                         "--max-output-tokens", "300")
                self.assertEqual(len(server.requests), 3)
                for request in server.requests:
                    options = self.options_of(request)
                    self.assertEqual(options["temperature"], 0.2)
                    self.assertEqual(options[STOP[provider]], ["<output>", "a, b c"])
                    self.assertEqual(request.max_tokens, 300)

    def test_zero_is_a_temperature(self):
        server = self.serve("openai", final())
        self.ask(server, "--temperature", "0")
        self.assertEqual(server.requests[0].json["temperature"], 0)

    def test_a_plan_too(self):
        server = self.serve("ollama", Reply(text="y"))
        plan = self.write("plan.json", json.dumps({"operations": [
            {"id": "a", "type": "Query", "mode": "llm", "input": "x"}]}))
        outcome = self.rlmd("plan", "-p", "ollama", "-m", "m", "--temperature", "1.5", "--stop", "z",
                            "--max-output-tokens", "64", "--", plan,
                            env=self.environment(**server.environment()))
        self.assertEqual(outcome.status, 0, outcome.err)
        options = server.requests[0].json["options"]
        self.assertEqual((options["temperature"], options["stop"], options["num_predict"]),
                         (1.5, ["z"], 64))

    def test_from_file_and_environment(self):
        """Commas and blanks belong to a stop text; a file has one a line."""
        path = self.write("my.conf", "temperature = 0.5\nstop = one, two\nstop = three\n")
        (self.dir / "my.conf").chmod(0o600)
        server = self.serve("openai", final(), final())
        self.ask(server, "--config", path)
        self.ask(server, "--config", path, RLMD_STOP="x y\nz", RLMD_TEMPERATURE="1",
                 RLMD_MAX_OUTPUT_TOKENS="1k")
        first, second = (request.json for request in server.requests)
        self.assertEqual((first["temperature"], first["stop"]), (0.5, ["one, two", "three"]))
        self.assertEqual((second["temperature"], second["stop"]), (1, ["x y", "z"]))
        self.assertEqual(second["max_completion_tokens"], 1000)

    def test_more_than_usual(self):
        """A longer reply may be asked for, of a quarter of the model's window; no forced one."""
        server = self.serve("openai", *[Reply(text=f"prose {i}") for i in range(3)], Reply(text="an answer"))
        self.ask(server, "--max-output-tokens", "20000")
        self.assertEqual([request.max_tokens for request in server.requests],
                         [20000, 20000, 20000, 4096])
        server = self.serve("ollama", final())
        self.ask(server, "--max-output-tokens", "20000")
        self.assertEqual(server.requests[0].max_tokens, 8192)

    def test_refused_by_the_model(self):
        """It is asked once more without what it refuses, then never with it; the user is told."""
        for provider in REFUSALS:
            with self.subTest(provider=provider):
                server = self.serve(provider, refusal(REFUSALS[provider]),
                                    code("print(1)"), final())
                outcome = self.ask(server, "--temperature", "0.2")
                self.assertEqual(["temperature" in request.json for request in server.requests],
                                 [True, False, False])
                told = [text for text in outcome.result["warnings"] if "refuses" in text]
                self.assertEqual(told, ["model 'm' refuses a temperature: it is asked without"])
        server = self.serve("openai", refusal(STOP_REFUSED), final())
        outcome = self.ask(server, "--stop", "x")
        self.assertEqual(["stop" in request.json for request in server.requests], [True, False])
        self.assertIn("refuses stop texts", " ".join(outcome.result["warnings"]))

    def test_what_was_not_sent_is_not_left_out(self):
        """A refusal that names it where nothing of it was sent is an error like any other."""
        server = self.serve("openai", refusal(REFUSALS["openai"]))
        error = self.fails(server, 1, "bad_request")
        self.assertIn("temperature", error["message"])
        self.assertEqual(len(server.requests), 1)

    def test_a_bad_value_is_no_refusal(self):
        """Of a temperature out of its range the provider's own words are told."""
        server = self.serve("anthropic", refusal({"type": "error", "error": {
            "type": "invalid_request_error", "message": "temperature: range: 0..1"}}))
        error = self.fails(server, 1, "bad_request", "--temperature", "1.7")
        self.assertIn("temperature: range: 0..1", error["message"])

    def test_a_stop_text_ends_a_block(self):
        """Code before it runs, also where its fence was open."""
        server = self.serve("openai", Reply(text="```repl\nprint(6 * 7)\n"), final())
        result = self.ask(server, "--stop", "```output").result
        executions = result["trace"]["iterations"][0]["codeExecutions"]
        self.assertEqual([each["stdout"] for each in executions], ["42\n"])

    def test_recordings(self):
        """A parameter that was not asked for is no part of a recording's key; one that was, is."""
        keys = {}
        for name, options in {"plain": [], "warm": ["--temperature", "0.7"],
                              "stopped": ["--stop", "x"]}.items():
            server = self.serve("openai", final())
            directory = self.dir / name
            self.ask(server, "--record", str(directory), *options)
            (path,) = directory.glob("*-0.json")
            keys[name] = path.name
            recorded = json.loads(path.read_text())["request"]
            self.assertEqual(set(recorded) - {"model", "messages", "max_tokens"},
                             {"plain": set(), "warm": {"temperature"}, "stopped": {"stop"}}[name])
            again = self.rlmd("exec", "-p", "openai", "-m", "m", "--json", "--replay",
                              str(directory), *options, "--", "the task")
            self.assertEqual(again.status, 0, again.err)
        self.assertEqual(len(set(keys.values())), 3)

    def test_bad_values(self):
        for option, value, words in (
            ("temperature", "2.1", "no number from 0 to 2"), ("temperature", "-1", "no number"),
            ("temperature", "nan", "no number"), ("temperature", "1e-1", "no number"),
            ("temperature", "warm", "write it like 0.7"), ("temperature", "", "no number"),
            ("stop", "", "the TEXT is empty"), ("max-output-tokens", "0", "from 16 to 1000000"),
            ("max-output-tokens", "x", "no whole number"),
        ):
            with self.subTest(option=option, value=value):
                outcome = self.rlmd("exec", f"--{option}={value}", "--", "the task")
                self.assertEqual(outcome.status, 2)
                self.assertIn(words, outcome.err)

    def test_dry_run_tells(self):
        shown = self.rlmd("exec", "-p", "ollama", "--dry-run", "--temperature", "0.3", "--stop",
                          'a "b"', "--max-output-tokens", "500", "--", "x")
        self.assertEqual(shown.status, 0, shown.err)
        self.assertRegex(shown.out, r"(?m)^one reply +500 tokens at most$")
        self.assertRegex(shown.out, r"(?m)^temperature +0\.3$")
        self.assertRegex(shown.out, r'(?m)^stop +"a \\"b\\""$')
        plain = self.rlmd("exec", "-p", "ollama", "--dry-run", "--json", "--", "x").result
        self.assertEqual((plain["temperature"], plain["stop"], plain["maxOutputTokens"]),
                         (None, [], 8192))


if __name__ == "__main__":
    unittest.main()

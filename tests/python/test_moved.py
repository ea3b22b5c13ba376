"""rlmd.RLM with the arguments of rlms 0.1.3, as its documentation shows them."""

import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import test_client  # noqa: E402
import rlmd  # noqa: E402
from client import code  # noqa: E402
from model import ModelServer, Reply  # noqa: E402

QUESTION = "Which colour is it?"


def root(request):
    """The root looks, asks a model, and answers with what it heard."""
    if QUESTION in request.last_user and request.turn == 0 and "Turn" not in request.last_user:
        return Reply(text="blue", usage=(50, 5))
    if not request.turn:
        return Reply(text=code("print(len(context))", f"said = llm_query('{QUESTION}')", "print(said)"),
                     usage=(1000, 100))
    return Reply(text="FINAL_VAR(said)", usage=(1200, 10))


class Moved(test_client.PythonTest):
    def setUp(self):
        super().setUp()
        self.server = ModelServer(provider="openai")
        self.server.script("^" + QUESTION.replace("?", r"\?"), Reply(text="blue", usage=(50, 5)))
        self.root = root
        self.server.script(None, lambda request: self.root(request))
        self.addCleanup(self.server.stop)
        self.server.start()

    def made(self, **more):
        kwargs = {"model_name": "gpt-5-mini", "base_url": self.server.environment()["OPENAI_BASE_URL"],
                  "api_key": self.server.key}
        return rlmd.RLM(**{"backend": "openai", "backend_kwargs": kwargs, **more})

    def test_a_completion(self):
        done = self.made(max_budget=0.5, max_iterations=10, max_timeout=60).completion(
            "a blue house" * 100, root_prompt="Which colour has the house?")
        self.assertEqual((str(done), done.response, done.error), ("blue", "blue", None))
        self.assertEqual((done.root_model, done.prompt), ("gpt-5-mini", "a blue house" * 100))
        self.assertGreater(done.execution_time, 0)
        self.assertIsNone(done.metadata)
        used = done.usage_summary.model_usage_summaries["gpt-5-mini"]
        self.assertEqual((used.total_calls, used.total_input_tokens, used.total_output_tokens),
                         (3, 2250, 115))
        self.assertAlmostEqual(done.usage_summary.total_cost, 2250 * 0.25e-6 + 115 * 2e-6)
        summary = done.usage_summary
        self.assertEqual((summary.total_input_tokens, summary.total_output_tokens), (2250, 115))
        told = json.loads(json.dumps(done.to_dict()))
        self.assertEqual(set(told), {"root_model", "prompt", "response", "usage_summary", "execution_time"})
        self.assertIn("Which colour has the house?", self.server.requests[0].first_turn)

    def test_without_a_question(self):
        """The prompt itself has it, as in rlms' first example."""
        self.made().completion("Print me the first 100 powers of two")
        self.assertIn("has a request", self.server.requests[0].first_turn)
        self.assertIn("powers of two", self.server.requests[0].first_turn)

    def test_the_logger_s_file(self):
        logger = rlmd.RLMLogger(log_dir=str(self.dir / "logs"))
        done = self.made(logger=logger).completion("a blue house", "Which colour?")
        written = pathlib.Path(logger.log_file_path).read_text()
        lines = [json.loads(line) for line in written.splitlines()]
        self.assertEqual([line["type"] for line in lines], ["metadata", "iteration", "iteration"])
        self.assertEqual((lines[0]["root_model"], lines[0]["backend"], lines[0]["max_depth"]),
                         ("gpt-5-mini", "openai", 1))
        self.assertNotIn(self.server.key, json.dumps(lines))
        first, last = lines[1:]
        (block,) = first["code_blocks"]
        self.assertEqual(block["result"]["stdout"], "12\nblue\n")
        (call,) = block["result"]["rlm_calls"]
        self.assertEqual((call["prompt"], call["response"]), (QUESTION, "blue"))
        self.assertEqual((first["final_answer"], last["final_answer"]), (None, "blue"))
        self.assertEqual((first["iteration"], last["iteration"]), (1, 2))
        self.assertEqual(len(done.metadata["iterations"]), 2)
        self.assertEqual(done.metadata["run_metadata"]["root_model"], "gpt-5-mini")

    def test_callbacks(self):
        seen = []
        self.root = lambda request: Reply(text=(
            "FINAL(deep)" if "of the part" in request.first_turn else
            code("said = rlm_query('The colour of the part?', context='blue')")
            if not request.turn else "FINAL_VAR(said)"))
        rlm = self.made(max_depth=2, on_subcall_start=lambda *told: seen.append(("start", *told)),
                        on_subcall_complete=lambda depth, model, taken, error: seen.append(
                            ("end", depth, model, error)),
                        on_iteration_start=lambda *told: seen.append(("turn", *told)),
                        on_iteration_complete=lambda *told: seen.append(("done", *told[:2])))
        rlm.completion("a house", "Which colour?")
        self.assertIn(("start", 1, "gpt-5-mini", "The colour of the part?"), seen)
        self.assertIn(("end", 1, "gpt-5-mini", None), seen)
        self.assertEqual([each for each in seen if each[0] == "turn" and each[1] == 0],
                         [("turn", 0, 1), ("turn", 0, 2)])
        self.assertIn(("done", 0, 1), seen)

    def test_tools(self):
        def lookup(number: int) -> str:
            """The customer's town."""
            return f"town {number}"

        self.root = lambda request: Reply(text=(
            code("said = lookup(7) + double(4)") if not request.turn else "FINAL_VAR(said)"))
        rlm = self.made(custom_tools={"lookup": lookup, "double": {
            "tool": lambda text: str(2 * text), "description": "Twice."}})
        self.assertEqual(rlm.completion("x", "Which town?").response, "town 78")
        self.assertIn("The customer's town.", json.dumps(self.server.requests[0].messages))

    def test_another_model_below(self):
        rlm = self.made(other_backends=["openai"], other_backend_kwargs=[{"model_name": "gpt-5-nano"}])
        done = rlm.completion("a blue house", "Which colour?")
        self.assertEqual(set(done.usage_summary.model_usage_summaries), {"gpt-5-mini", "gpt-5-nano"})

    def test_what_is_refused(self):
        """By its name, with what to do."""
        kwargs = {"model_name": "m"}
        for given, words in (({"environment": "docker"}, "kernel walls"), ({"persistent": True}, "Session"),
                             ({"backend": "portkey"}, "backend='openai' with base_url"),
                             ({"backend": "vllm"}, "base_url"),
                             ({"custom_tools": {"data": {"a": 1}}}, "contexts="),
                             ({"custom_system_prompt": "x"}, "prompt=DIRECTORY"),
                             ({"sampling_args": {"top_p": 1}}, "temperature"), ({"max_errors": 3}, "max_iterations"),
                             ({"backend_kwargs": {"organization": "x"}}, "model_name"),
                             ({"other_backends": ["anthropic"]}, "subcall_model")):
            with self.subTest(given), self.assertRaises(rlmd.UsageError) as refused:
                rlmd.RLM(**{"backend": "openai", "backend_kwargs": kwargs, **given})
            self.assertIn(words, str(refused.exception))
        with self.assertRaises(rlmd.UsageError):
            self.made(nothing_of_the_kind=1).completion("x")


if __name__ == "__main__":
    unittest.main()

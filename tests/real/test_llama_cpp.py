"""llama.cpp's own server, with a real model."""

import unittest

import servers
from servers import LONG, RealTest


def setUpModule():
    servers.wanted()


class Loading(RealTest):
    def test_a_model_that_is_being_loaded_is_waited_for(self):
        """The server listens, and answers 503 until the model is there."""
        server = self.llama(503, 200)
        result, outcome = self.call(server, "openai")
        self.assertEqual(result["status"], "succeeded", outcome.err)
        self.assertIn("Paris", result["response"])


class Serving(RealTest):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.llama(200)

    def test_plain_question(self):
        self.answers(self.server, "openai")

    def test_a_prompt_longer_than_the_window(self):
        said = self.fails(self.server, "openai", "context_overflow", question=LONG)
        self.assertIn("context", said)

    def test_a_run(self):
        """A run of one turn ends with an answer, whatever the model thinks of it."""
        arguments, environment = self.given(self.server, "openai", "--json",
                                            "--max-iterations", "1")
        context = self.write("cities.txt", "Paris is the capital of France.\n")
        outcome = self.rlmd("exec", *arguments, "-c", context, "--",
                            "What is the capital of France?", env=environment)
        self.assertEqual(outcome.status, 0, outcome.err + outcome.out[:2000])
        self.assertNotEqual(outcome.result["output"], "")
        self.assertFalse(outcome.result["usage"]["estimated"])
        self.assertEqual(outcome.result["model"], servers.MODEL)


if __name__ == "__main__":
    unittest.main()

"""LiteLLM's proxy before llama.cpp's server, in OpenAI's and in Anthropic's protocol."""

import json
import pathlib
import unittest

import servers
from servers import KEY, LONG, MODEL, PLACE, RealTest


def setUpModule():
    servers.wanted()


class Proxy(RealTest):
    @classmethod
    def setUpClass(cls):
        llama = cls.llama(200)
        # JSON is YAML.
        config = cls.room() / "config.yaml"
        config.write_text(json.dumps({
            "model_list": [{"model_name": MODEL, "litellm_params": {
                "model": f"openai/{MODEL}", "api_base": llama.url("/v1"), "api_key": "none"}}],
            "litellm_settings": {"telemetry": False, "num_retries": 0},
            "general_settings": {"master_key": KEY}}))
        start = "import sys; from litellm import run_server; sys.exit(run_server())"
        command = [pathlib.Path(PLACE, "litellm/bin/python"), "-c", start, "--host", "127.0.0.1",
                   "--port", "{port}", "--config", config]
        cls.server = cls.serve("litellm", command, "/health/liveliness", (200,),
                               LITELLM_LOCAL_MODEL_COST_MAP="True")

    def test_plain_question(self):
        for provider in ("openai", "anthropic"):
            self.answers(self.server, provider)

    def test_a_prompt_longer_than_the_window(self):
        for provider in ("openai", "anthropic"):
            with self.subTest(provider=provider):
                self.fails(self.server, provider, "context_overflow", question=LONG)

    def test_a_model_that_it_does_not_have(self):
        for provider in ("openai", "anthropic"):
            with self.subTest(provider=provider):
                said = self.fails(self.server, provider, "not_found", model="nobody")
                self.assertIn("nobody", said)


if __name__ == "__main__":
    unittest.main()

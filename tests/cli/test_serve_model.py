"""The providers of jobs of rlmd serve: the client, the server's provider, or one at an address of its own."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import client  # noqa: E402
from model import ModelServer, Reply  # noqa: E402


class TheClient(client.ServeTest):
    def test_requests(self):
        def answer(asked):
            if asked["kind"] == "subcall":
                return {"text": "eight", "usage": {"inputTokens": 7, "outputTokens": 1, "cost": 0.25}}
            return client.model(client.code("x = llm_query('é?')"), "FINAL_VAR(x)")(asked)

        peer = self.open(model_request=answer)
        result = self.answered(peer, task="How many?", model="client", options={"model": "m"})
        self.assertEqual(result["output"], "eight")
        self.assertAlmostEqual(result["usage"]["cost"], 0.252)
        self.assertEqual((result["usage"]["inputTokens"], result["usage"]["outputTokens"]), (27, 11))
        asked = [one["params"] for one in peer.asked]
        self.assertEqual([(one["kind"], one["depth"], one["model"]) for one in asked],
                         [("turn", 0, "m"), ("subcall", 0, "m"), ("turn", 0, "m")])
        self.assertEqual({one["run"] for one in asked}, {result["trace"]["id"]})
        self.assertEqual(asked[1]["messages"][-1], {"role": "user", "content": "é?"})
        self.assertEqual(asked[0]["messages"][0]["role"], "system")
        self.assertGreater(asked[0]["maxTokens"], 0)
        self.assertEqual(self.close(peer), (0, ""))

    def test_answers_that_are_none(self):
        def fails(asked):
            raise ValueError("the model is out")

        for answer, word in ((fails, "the model is out"), (lambda asked: {}, "no text"),
                             (lambda asked: 7, "no text"), (lambda asked: {"text": 7}, "no text")):
            peer = self.open(model_request=answer)
            result = self.answered(peer, task="?", model="client")
            self.assertFalse(result["success"])
            self.assertIn(word, result["error"]["message"])
            self.assertEqual(self.close(peer)[0], 0)

    def test_a_request_that_is_not_wanted_any_more(self):
        peer = self.open()
        job = peer.call("job.start", task="?", model="client")["job"]
        peer.wait(lambda: peer.asked)
        peer.call("job.cancel", job=job)
        self.assertEqual(peer.result(job)["error"]["kind"], "cancelled")
        peer.wait(lambda: peer.told("$/cancelRequest", id=peer.asked[0]["id"]))
        self.assertEqual(self.close(peer), (0, ""))


class Providers(client.ServeTest):
    def serve(self, text):
        server = ModelServer(provider="ollama")
        server.script(None, Reply(text=f"FINAL({text})"))
        self.addCleanup(server.stop)
        return server.start()

    def test_the_servers_and_others(self):
        ours, other = self.serve("ours"), self.serve("other")
        peer = self.open("-p", "ollama", "--base-url", ours.url)
        start = {"task": "?"}
        self.assertEqual(self.answered(peer, **start)["output"], "ours")
        for _ in range(2):
            self.assertEqual(self.answered(peer, **start, options={"base-url": other.url})["output"], "other")
        self.assertEqual(self.answered(peer, **start)["output"], "ours")
        self.assertEqual((len(ours.requests), len(other.requests)), (2, 2))
        refused = self.refused(peer, "job.start", task="?", options={"provider": "nobody"})
        self.assertIn("nobody", str(refused))
        refused = self.refused(peer, "job.start", task="?", options={"provider": "openai"})
        self.assertEqual((refused.code, refused.kind), (-32000, "auth"))
        self.assertEqual(self.close(peer), (0, ""))

    def test_a_free_port_where_nobody_is(self):
        peer = self.open("-p", "ollama")
        result = self.answered(peer, task="?", options={"base-url": "http://127.0.0.1:9"})
        self.assertEqual(result["error"]["kind"], "network")
        self.assertEqual(self.close(peer)[0], 0)


if __name__ == "__main__":
    unittest.main()

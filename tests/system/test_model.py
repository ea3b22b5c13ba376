"""The scripted model server does what its tests' authors believe."""

import http.client
import json
import unittest

import patience
from model import ERRORS, ModelServer, Reply


def ask(server, path, stream, text="hello", connection=None, **more):
    """One request, on a connection of its own unless one is given; returns response and body."""
    own = connection or http.client.HTTPConnection("127.0.0.1", server.port, timeout=patience.hung())
    body = {"model": "m", "stream": stream, "messages": [{"role": "user", "content": text}], **more}
    try:
        own.request("POST", path, json.dumps(body), {"Authorization": "Bearer " + server.key})
        response = own.getresponse()
        return response, response.read()
    finally:
        if not connection:
            own.close()


def sse(body):
    """The data of each event."""
    return [line[6:] for line in body.decode().split("\n") if line.startswith("data: ")]


class Formats(unittest.TestCase):
    # Whole and streamed answers hold the same text and usage, in each provider's own fields.

    def test_openai(self):
        with ModelServer("openai") as server:
            server.script(None, Reply(text="Paris is it", thinking="hm", usage=(12, 3), cached=4))
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=patience.hung())
            self.addCleanup(connection.close)
            _, body = ask(server, "/v1/chat/completions", False, connection=connection)
            whole = json.loads(body)
            self.assertEqual(whole["choices"][0]["message"]["content"], "Paris is it")
            self.assertEqual(whole["usage"]["prompt_tokens"], 12)
            _, body = ask(server, "/v1/chat/completions", True, connection=connection,
                             stream_options={"include_usage": True})
            events = sse(body)
            self.assertEqual(events[-1], "[DONE]")
            chunks = [json.loads(event) for event in events[:-1]]
            text = "".join(choice["delta"].get("content") or ""
                           for chunk in chunks for choice in chunk["choices"])
            self.assertEqual(text, "Paris is it")
            self.assertEqual(chunks[-1]["usage"], whole["usage"])
            self.assertEqual(server.connection_count, 1)
            self.assertEqual(server.billed_tokens, (24, 6))

    def test_anthropic(self):
        with ModelServer("anthropic") as server:
            server.script(None, Reply(text="Paris", thinking="hm", usage=(12, 3), cached=2))
            _, body = ask(server, "/v1/messages", False)
            self.assertEqual([block["type"] for block in json.loads(body)["content"]],
                             ["thinking", "text"])
            self.assertEqual(json.loads(body)["usage"]["input_tokens"], 10)
            _, body = ask(server, "/v1/messages", True)
            events = [json.loads(event) for event in sse(body)]
            self.assertEqual(events[0]["type"], "message_start")
            self.assertEqual(events[-1]["type"], "message_stop")
            self.assertEqual(events[-2]["usage"]["output_tokens"], 3)
            self.assertEqual("".join(event["delta"].get("text", "") for event in events
                                     if event["type"] == "content_block_delta"), "Paris")

    def test_ollama(self):
        with ModelServer("ollama") as server:
            server.script(None, Reply(text="Paris", usage=(12, 3), finish="length"))
            _, body = ask(server, "/api/chat", False)
            self.assertEqual(json.loads(body)["message"]["content"], "Paris")
            _, body = ask(server, "/api/chat", True)
            lines = [json.loads(line) for line in body.splitlines()]
            self.assertEqual("".join(line["message"]["content"] for line in lines), "Paris")
            self.assertEqual((lines[-1]["done"], lines[-1]["done_reason"]), (True, "length"))
            self.assertEqual(lines[-1]["eval_count"], 3)


class Faults(unittest.TestCase):
    PATHS = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages", "ollama": "/api/chat"}

    # Every error of the table comes with its status, as JSON, and is not billed.
    def test_errors(self):
        for provider, errors in ERRORS.items():
            with ModelServer(provider) as server:
                for name, (status, _) in errors.items():
                    server.replies(Reply(error=name, headers={"Retry-After": "7"}))
                    response, body = ask(server, self.PATHS[provider], True)
                    self.assertEqual(response.status, status, (provider, name))
                    self.assertEqual(response.headers["Retry-After"], "7")
                    self.assertIn("error", json.loads(body))
                self.assertEqual(server.billed_tokens, (0, 0))

    # A cut stream ends without its last chunk: a client can tell.
    def test_cut(self):
        with ModelServer() as server:
            server.script(None, Reply(text="long enough", cut_after=100))
            with self.assertRaises(http.client.IncompleteRead):
                ask(server, "/v1/chat/completions", True)

    # Split at every byte, the bytes are the same.
    def test_split(self):
        with ModelServer() as server:
            server.replies(Reply(text="Grüße 😀"), Reply(text="Grüße 😀", piece_size=1))
            _, at_once = ask(server, "/v1/chat/completions", True)
            _, split = ask(server, "/v1/chat/completions", True)
            self.assertEqual(at_once, split)

    # A stalled answer keeps the connection; that the client left is seen.
    def test_stall_and_leave(self):
        with ModelServer() as server:
            server.script(None, Reply(text="never all of it", stall_after=10))
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=patience.hung())
            connection.request("POST", "/v1/chat/completions", '{"stream": true, "messages": []}')
            response = connection.getresponse()
            self.assertEqual(len(response.read(10)), 10)
            self.assertEqual(server.in_flight, 1)
            response.close()
            connection.close()
            self.assertTrue(server.wait(lambda s: s.requests[0].disconnected))
            self.assertEqual(server.in_flight, 0)

    # Nonsense is delivered as it was asked for.
    def test_nonsense(self):
        with ModelServer() as server:
            server.replies(Reply.html(), Reply.empty(), Reply.truncated_json(), Reply.huge(1 << 20))
            response, body = ask(server, "/v1/chat/completions", True)
            self.assertTrue(response.headers["Content-Type"].startswith("text/html"))
            self.assertTrue(body.startswith(b"<!DOCTYPE"))
            self.assertEqual(ask(server, "/v1/chat/completions", True)[1], b"")
            with self.assertRaises(ValueError):
                json.loads(ask(server, "/v1/chat/completions", True)[1])
            self.assertGreaterEqual(len(ask(server, "/v1/chat/completions", True)[1]), 1 << 20)

    # A connection that dies unanswered was billed; one that is hung up on was answered; and what
    # is no HTTP comes as it is.
    def test_connections(self):
        with ModelServer("openai", prices=(3, 5)) as server:
            server.replies(Reply(usage=(10, 2), hang_up=True), Reply(usage=(1, 0)),
                           Reply(usage=(10, 2), drop=True), Reply(raw=b"220 hello\r\n"))
            path = "/v1/chat/completions"
            self.assertEqual(ask(server, path, False)[0].status, 200)
            kept = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
            self.addCleanup(kept.close)
            ask(server, path, False, connection=kept)
            with self.assertRaises(http.client.RemoteDisconnected):
                ask(server, path, False, connection=kept)
            self.assertRaises(http.client.BadStatusLine, ask, server, path, False)
            self.assertEqual([request.nth for request in server.requests], [0, 0, 1, 0])
            self.assertEqual(server.billed_cost, 40 + 3 + 40)
            self.assertEqual(server.accepted, 3)


class Scripts(unittest.TestCase):
    # Rules match by pattern, by function or always; each answers as often as it says.
    def test_rules(self):
        with ModelServer() as server:
            server.script("apple", Reply(text="fruit"), times=1)
            server.script(lambda request: "apple" in request.last_user, Reply(text="again"))
            server.script(None, lambda request: Reply(text=request.last_user[::-1]))
            texts = [json.loads(ask(server, "/v1/chat/completions", False, text)[1])
                     ["choices"][0]["message"]["content"] for text in ("apple", "apple", "pear")]
            self.assertEqual(texts, ["fruit", "again", "raep"])

    # A request that no rule answers is an error that a test cannot overlook.
    def test_no_rule(self):
        with ModelServer() as server:
            response, body = ask(server, "/v1/chat/completions", False)
            self.assertEqual(response.status, 500)
            self.assertIn(b"no answer", body)

    # Requests are kept with what tests ask about; money is counted by the given prices.
    def test_records(self):
        with ModelServer("openai", prices=(3, 5)) as server:
            server.script(None, Reply(text="x", usage=(10, 2)))
            ask(server, "/v1/chat/completions", False, max_completion_tokens=77)
            request = server.requests[0]
            self.assertEqual((request.model, request.max_tokens, request.key, request.turn),
                             ("m", 77, server.key, 0))
            self.assertEqual(server.billed_cost, 40)
            self.assertEqual(server.peak, 1)


if __name__ == "__main__":
    unittest.main()

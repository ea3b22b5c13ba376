"""JSON-RPC, a message a line: which messages are taken, and which are refused with what code."""

import json
import random
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import client  # noqa: E402
import patience  # noqa: E402


class Messages(client.ServeTest):
    def test_messages_that_are_none(self):
        """Each is answered with an error; the next one is read."""
        peer = self.open()
        for line, code in ((b"{", -32700), (b"\xff\xfe", -32700), (b'"a"', -32600),
                           (b"[]", -32600), (b'[{"jsonrpc":"2.0","id":1,"method":"shutdown"}]', -32600),
                           (b'{"id":1,"method":"shutdown"}', -32600),
                           (b'{"jsonrpc":"1.0","id":1,"method":"shutdown"}', -32600),
                           (b'{"jsonrpc":"2.0","id":1}', -32600),
                           (b'{"jsonrpc":"2.0","id":1.5,"method":"shutdown"}', -32600),
                           (b'{"jsonrpc":"2.0","id":{},"method":"shutdown"}', -32600),
                           (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600),
                           (b"[" * 100000, -32700), (b'{"a":1,"a":2}', -32700)):
            with self.subTest(line[:60]):
                peer.raw(line + b"\n")
                refused = peer.answer_to_no_id()
                self.assertEqual((refused.code, refused.kind), (code, "usage"))
        self.assertEqual(self.refused(peer, "job.status", job="j1").code, -32602)
        self.assertEqual(self.close(peer), (0, ""))

    def test_ids_and_params(self):
        peer = self.open()
        for number in ("a text", 0, -7, 2 ** 53):
            peer.send({"id": number, "method": "blob.begin"})
            self.assertIn("blob", peer.end(number))
        peer.send({"id": 9, "method": "blob.begin", "params": [1]})
        with self.assertRaises(client.Refused) as refused:
            peer.end(9)
        self.assertEqual(refused.exception.code, -32602)
        self.assertEqual(self.refused(peer, "blob.burn").code, -32601)
        peer.raw(b"\n  \r\n")
        peer.send({"method": "blob.begin", "params": {}})  # a notification: nothing is said
        peer.send({"id": 1000, "result": 7})  # an answer to nothing that was asked
        self.assertEqual(peer.call("blob.begin")["blob"], "b6")
        self.assertEqual(self.close(peer), (0, ""))

    def test_a_line_that_is_too_long(self):
        peer = self.open()
        text = b"x" * (65 << 20)
        peer.raw(b'{"jsonrpc":"2.0","id":1,"method":"blob.begin","params":{"a":"' + text + b'"}}\n')
        refused = peer.answer_to_no_id()
        self.assertEqual(refused.code, -32600)
        self.assertIn("blobs", str(refused))
        self.assertEqual(peer.call("blob.begin")["blob"], "b1")
        self.assertEqual(self.close(peer), (0, ""))

    def test_messages_in_pieces_and_many_at_once(self):
        peer = self.open()
        line = json.dumps({"jsonrpc": "2.0", "id": "é", "method": "blob.begin"}).encode() + b"\n"
        for place in range(len(line)):
            peer.raw(line[place:place + 1])
        self.assertEqual(peer.end("é")["blob"], "b1")
        peer.raw(b"".join(line.replace(b"\\u00e9", b"%d" % number) for number in range(1000)))
        for number in range(1000):
            self.assertEqual(peer.end(str(number))["blob"], f"b{number + 2}")
        self.assertEqual(self.close(peer), (0, ""))

    def test_random_messages(self):
        """The server answers the message behind them."""
        methods = [f"{one}.{other}" for one in ("job", "session", "blob") for other in
                   ("start", "open", "execute", "get", "set", "close", "begin", "append", "end",
                    "free", "status", "cancel", "interrupt")] + ["initialize", "$/cancelRequest"]
        keys = ("job", "session", "blob", "task", "plan", "review", "contexts", "options", "tools",
                "code", "name", "value", "base64", "events", "schema", "model", "check", "text")
        generator = random.Random(11)

        def value(depth=0):
            kind = generator.randrange(9 if depth < 3 else 6)
            if kind > 6:
                return {generator.choice(keys): value(depth + 1) for _ in range(3)}
            if kind == 6:
                return [value(depth + 1) for _ in range(generator.randrange(3))]
            return generator.choice((None, True, -1, 0.5, 2 ** 60, "", "s1", "j1", "b1", "client",
                                     "x" * 5000, "é\0🙂", "git:HEAD", "/nowhere", "-"))

        peer = self.open(model_request=client.model("FINAL(x)"))
        for number in range(400):
            line = json.dumps({"jsonrpc": "2.0", "id": f"r{number}", "method":
                               generator.choice(methods), "params":
                               {generator.choice(keys): value() for _ in range(4)}}).encode()
            if generator.random() < 0.3:
                place = generator.randrange(len(line))
                line = line[:place] + bytes([generator.randrange(256)]) + line[place + 1:]
            peer.raw(line.replace(b"\n", b" ") + b"\n")
        self.assertIn("protocolVersion", peer.initialize())
        self.assertEqual(self.close(peer)[0], 0)


class Slow(client.ServeTest):
    def test_a_client_that_reads_nothing(self):
        """It is waited for until 64 MiB wait; then the server ends, with a word."""
        process = self.start("serve", "--stdio", stdin=subprocess.PIPE)

        def say(**message):
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

        say(id=1, method="initialize", params={})
        process.stdin.flush()
        process.stdout.readline()
        for number in range(12):
            say(id=number, method="session.open", params={"options": {"max-output": 10_000_000}})
            process.stdin.flush()
            process.stdout.readline()
        for number in range(12):  # each answer has 8 MB
            say(id=number, method="session.execute",
                params={"session": f"s{number + 1}", "code": "print('x' * 4_000_000)"})
        process.stdin.flush()
        self.assertEqual(process.wait(patience.hung()), 5)
        self.assertIn(b"the client reads too slowly: 64 MiB wait", process.stderr.read())


if __name__ == "__main__":
    unittest.main()

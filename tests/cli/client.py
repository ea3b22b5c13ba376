"""A client of `rlmd serve`, a few lines of its own: it knows docs/serve.md and nothing else.

All messages of the server are held to docs/serve.schema.json, and each request that it took.
"""

import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import jsonschema

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / part) for part in ("", "system")]
import patience  # noqa: E402
from harness import GuardedTest  # noqa: E402


SCHEMA = json.loads((Path(__file__).resolve().parents[2] / "docs/serve.schema.json").read_text())


def validator(place):
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{place}", "$defs": SCHEMA["$defs"]})


FROM_SERVER, FROM_CLIENT = validator("fromServer"), validator("fromClient")
RESULTS = {method: validator(f"results/{method}") for method in SCHEMA["$defs"]["results"]}


class Refused(Exception):
    def __init__(self, error):
        super().__init__(error["message"])
        self.code, self.kind = error["code"], error["data"]["kind"]


class Client:
    """Answers to requests by id, notifications in a list, requests of the server by a function."""

    def __init__(self, process, serves=None, stream=None):
        """Of the process's standard input and output, or of a stream of a socket."""
        self.process, self.serves = process, serves or {}
        self.input, self.output = stream or process.stdin, stream or process.stdout
        self.notes, self.asked, self.wrong = [], [], []
        self._last, self._answers, self._begun = 0, {}, {}
        self._news = threading.Condition()
        self._over = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def send(self, message):
        """As it is: what is wrong with it is the server's to say."""
        self.raw(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def raw(self, line):
        with self._news:
            self.input.write(line)
            self.input.flush()

    def begin(self, method, **params):
        with self._news:
            self._last += 1
            number = self._last
        self._begun[number] = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self.send({"id": number, "method": method, "params": params})
        return number

    def end(self, number):
        self.wait(lambda: number in self._answers)
        answer = self._answers.pop(number)
        if "error" in answer:
            raise Refused(answer["error"])
        asked = self._begun.pop(number, None)
        if asked:
            FROM_CLIENT.validate(asked)
            RESULTS[asked["method"]].validate(answer["result"])
        return answer["result"]

    def call(self, method, **params):
        return self.end(self.begin(method, **params))

    def initialize(self, **params):
        return self.call("initialize", protocolVersion="1", client={"name": "test", "version": "0"},
                         **params)

    def wait(self, condition):
        with self._news:
            if not self._news.wait_for(lambda: condition() or self._over, patience.hung()):
                raise TimeoutError(str(self.notes[-3:]))
            if not condition():
                raise EOFError("the server is gone")

    def told(self, method, **params):
        """The notifications of that method, with these params."""
        return [note["params"] for note in list(self.notes) if note["method"] == method
                and params.items() <= note["params"].items()]

    def result(self, job):
        """Of a job, once it has ended."""
        self.wait(lambda: self.told("job.end", job=job))
        return self.told("job.end", job=job)[0]["result"]

    def answer_to_no_id(self):
        self.wait(lambda: None in self._answers)
        return Refused(self._answers.pop(None)["error"])

    def _read(self):
        for line in self.output:
            message = json.loads(line)
            self.wrong += [f"{error.message}: {line[:300]}" for error in
                           FROM_SERVER.iter_errors(message)]
            if "method" in message and "id" in message:
                threading.Thread(target=self._serve, args=(message,), daemon=True).start()
            with self._news:
                if "method" not in message:
                    self._answers[message["id"]] = message
                elif "id" in message:
                    self.asked.append(message)
                else:
                    self.notes.append(message)
                self._news.notify_all()
        with self._news:
            self._over = True
            self._news.notify_all()

    def _serve(self, message):
        serve = self.serves.get(message["method"])
        if serve is None:
            return
        try:
            self.send({"id": message["id"], "result": serve(message["params"])})
        except (BrokenPipeError, ValueError) as failed:
            if not isinstance(failed, BrokenPipeError):
                self.send({"id": message["id"], "error": {"code": 1, "message": str(failed)}})


def model(*texts):
    """Answers of a model, one a turn of each run; the last one again and again."""
    def answer(asked):
        turn = re.search(r"(?m)^Turn (\d+) of", asked["messages"][-1]["content"])
        text = texts[min(int(turn[1]) - 1 if turn else len(texts), len(texts) - 1)]
        return {"text": text, "usage": {"inputTokens": 10, "outputTokens": 5, "cost": 0.001}}
    return answer


def code(*lines):
    return "```python\n%s\n```" % "\n".join(lines)


class ServeTest(GuardedTest):
    def open(self, *options, initialize=True, preexec_fn=None, **serves):
        """A client of a server of its own; `tool_call=f` serves tool.call."""
        process = self.start("serve", "--stdio", *options, stdin=subprocess.PIPE, preexec_fn=preexec_fn)
        client = Client(process, {name.replace("_", ".", 1): serve
                                  for name, serve in serves.items()})
        if initialize:
            client.initialize()
        return client

    def listen(self, *options, path=None, **more):
        """A server at a socket of its own, once it is there."""
        self.path = path or self.dir / "socket"
        process = self.start("serve", "--listen", f"unix:{self.path}", *options, **more)
        line = process.stderr.readline().decode()
        self.assertIn(f"listening at unix:{self.path}", line)
        return process

    def connect(self, process, initialize=True, tenant=None, **serves):
        """A client of its own of such a server."""
        end = socket.socket(socket.AF_UNIX)
        self.addCleanup(end.close)
        end.settimeout(patience.hung())
        end.connect(str(self.path))
        client = Client(process, {name.replace("_", ".", 1): serve
                                  for name, serve in serves.items()}, end.makefile("rwb"))
        client.socket = end
        self.addCleanup(self.hang_up, client)
        if initialize:
            client.initialize(**({"tenant": tenant} if tenant else {}))
        return client

    @staticmethod
    def hang_up(client):
        """The reader ends, and then the stream, without which the socket is not closed."""
        try:
            client.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the server has closed its end
        client._reader.join(patience.hung())
        try:
            client.input.close()
        except OSError:
            pass  # words that nobody reads any more

    def leave(self, client):
        """The client's end of its connection; the server ends the other."""
        client.socket.shutdown(socket.SHUT_WR)
        client._reader.join(patience.hung())
        self.assertFalse(client._reader.is_alive())
        self.assertEqual(client.wrong, [])

    def terminate(self, process, status=0):
        """Of a server that listens, by a signal; its words."""
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(patience.hung()), status)
        return process.stderr.read().decode()

    def terminate_at_once(self, process):
        process.send_signal(signal.SIGTERM)
        self.wait_for(lambda: not self.path.exists())
        return self.terminate(process)

    def wait_for(self, condition):
        deadline = time.monotonic() + patience.hung()
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    def close(self, client):
        """The end of its input ends the server; its status and words."""
        client.process.stdin.close()
        status = client.process.wait(patience.hung())
        client._reader.join()
        self.assertEqual(client.wrong, [])
        return status, client.process.stderr.read().decode()

    def answered(self, client, **params):
        return client.result(client.call("job.start", **params)["job"])

    def refused(self, client, method, **params):
        with self.assertRaises(Refused) as refused:
            client.call(method, **params)
        return refused.exception

"""No peer holds the event loop: not a server without end, not a worker that asks for very much.

What is measured is counted in work, or compared with other work of the same run: how much of the
one is done while somebody waits for the other. A busy machine is slow in both.
"""

import json
import signal
import unittest

import patience
from model import Reply, dumps
from providers import ProviderTest, code, final

MIB = 1 << 20
STREAMS = 16
AMPLE = ["--max-tokens", "1000000000", "--max-calls", "1000000"]


def deltas(size=64 << 10):
    """Events of a stream, `size` bytes of them, without text: for text that repeats itself, or is
    more than was asked for, ends an answer."""
    event = b"data: " + dumps({
        "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": None}]}) + b"\n\n"
    return event * (size // len(event))


class EndlessStreams(ProviderTest):
    """As many streams as the program reads at once, each as fast as it is read, without end."""

    def setUp(self):
        super().setUp()
        self.served = 0  # of the quick ones
        self.server = self.serve("openai")
        endless = Reply(body=deltas(), repeat_body=1 << 30, content_type="text/event-stream")

        def reply(request):
            if "endless" in request.last_user:
                return endless
            self.served += 1
            return Reply(text=request.last_user)

        self.server.script(None, reply)

    def plan(self, *more):
        streams = [{"id": f"stream{i}", "input": "endless", "timeout": 10 ** 9}
                   for i in range(STREAMS)]
        plan = {"maxParallel": STREAMS + 1, "operations": streams + list(more)}
        return self.start("plan", "-p", "openai", "-m", "m", "-q", *AMPLE,
                          self.write("plan.json", json.dumps(plan)),
                          env=self.environment(**self.server.environment()))

    def flows_until(self, condition, most):
        """Waits; false if so many bytes of the streams were served meanwhile."""
        until = self.server.sent + most
        while not condition() and self.server.sent < until:
            self.server.wait(lambda s: False, 0.01)
        return condition()

    def test_others_are_served(self):
        """Beside them, a chain of calls goes on: a call takes few turns of the loop, a turn takes
        little of the streams."""
        chain = [{"id": f"q{i}", "input": "q", "timeout": 10 ** 9,
                  **({"dependsOn": [f"q{i - 1}"]} if i else {})} for i in range(40)]
        process = self.plan(*chain)
        self.assertTrue(self.flows_until(lambda: self.served == len(chain), 512 * MIB))
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=patience.hung())
        self.assertEqual(process.returncode, 130)

    def test_signals(self):
        """Ctrl-C is heard at once: little more is read of the streams."""
        process = self.plan()
        self.assertTrue(self.server.wait(lambda s: s.in_flight >= STREAMS, patience.hung()))
        self.flows_until(lambda: False, 64 * MIB)
        process.send_signal(signal.SIGINT)
        self.assertTrue(self.flows_until(lambda: self.server.in_flight == 0, 96 * MIB))
        out, _ = process.communicate(timeout=patience.hung())
        self.assertEqual(process.returncode, 130)
        self.assertEqual(len(json.loads(out)["cancelled"]), STREAMS)


# Writes its calls itself, a further one before the last was answered: batches of prompts for a
# model without a price, which a budget with a limit refuses one by one.
CROWD = """
import json, os, time
def put(message):
    body = json.dumps(message).encode()
    view = memoryview(len(body).to_bytes(4, "big") + body)
    while view:
        view = view[os.write(4, view):]
def take(size):
    data = b""
    while len(data) < size:
        data += os.read(3, size - len(data))
    return data
def reply():
    message = json.loads(take(int.from_bytes(take(4), "big")))
    for size in message.get("attachments", []):
        take(size)
    return message
def ask(number):
    put({"type": "llm_query", "id": 1000 + number, "prompts": ["x"] * 9990, "turns": [],
         "model": "dear", "system": None, "max_tokens": None, "temperature": None})
times = []
ask(0)
for number in range(1, 13):
    ask(number)
    assert set(reply()["errors"]) == {"budget"}
    times.append(time.monotonic())
FINAL(json.dumps(times))
"""
PATIENT = """
import json, threading, time
answers, asked = [], []
thread = threading.Thread(target=lambda: answers.append(rlm_query("be a crowd")))
thread.start()
while thread.is_alive():
    before = time.monotonic()
    budget()
    asked.append((before, time.monotonic()))
    time.sleep(0.001)
times = json.loads(answers[0])
waits = [after - before for before, after in asked if before > times[0] and after < times[-1]]
# The wait of a request at any moment: long waits fill more moments.
print(json.dumps([sum(each ** 2 for each in waits) / sum(waits),
                  (times[-1] - times[0]) / (len(times) - 1)]))
"""


class Crowd(ProviderTest):
    def test_calls_of_another_worker(self):
        """While one worker has tens of thousands of prompts refused, another's budget() is answered
        between them: in a fraction of the time that one batch takes."""
        server = self.serve("openai")
        server.script(lambda r: "be a crowd" in r.messages[1][1], code(CROWD))
        server.replies(code(PATIENT), final("done"))
        outcome = self.ask(server, *AMPLE, "--max-cost", "1", "--max-time", "1h",
                           "--block-timeout", "1h", *self.prices(m=(1, 1)))
        (execution,) = outcome.executions()
        self.assertIsNone(execution["error"])
        wait, batch = json.loads(execution["stdout"])
        self.assertLess(wait, batch / 4)


if __name__ == "__main__":
    unittest.main()

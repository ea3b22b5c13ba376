"""rlmd serve: how it begins and ends, and that nothing is left of it."""

import json
import signal
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import client  # noqa: E402
import leaks  # noqa: E402
import patience  # noqa: E402


class Begin(client.ServeTest):
    def test_it_wants_to_know_where_the_client_is(self):
        outcome = self.rlmd("serve")
        self.assertEqual((outcome.status, outcome.out), (2, ""))
        self.assertIn("--stdio", outcome.err)
        self.assertEqual(self.rlmd("serve", "--stdio", "word").status, 2)

    def test_messages_in_a_file(self):
        """No pipe: they are read to the end."""
        path = self.write("messages", '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}\n'
                                      '{"jsonrpc":"2.0","id":2,"method":"blob.begin","params":{}}\n')
        with open(path) as messages, open(self.dir / "answers", "w+") as answers:
            self.assertEqual(self.rlmd("serve", "--stdio", stdin=messages, stdout=answers).status, 0)
            answers.seek(0)
            lines = answers.read().splitlines()
        self.assertEqual(len(lines), 2)
        self.assertIn('"b1"', lines[1])


class End(client.ServeTest):
    """At each, jobs and sessions are at work, and wait for a client that does not answer."""

    def at_work(self, *options):
        peer = self.open(*options)
        tools = [{"name": "never", "doc": "Waits.", "timeoutMs": -1}]
        session = peer.call("session.open", tools=tools)["session"]
        peer.begin("session.execute", session=session, code="never()")
        peer.call("job.start", task="?", model="client", tools=tools)
        peer.wait(lambda: {"tool.call", "model.request"} <= {one["method"] for one in peer.asked})
        self.assertGreater(len(leaks.descendants()), 2)
        return peer

    def test_of_the_input(self):
        self.assertEqual(self.close(self.at_work()), (0, ""))

    def test_a_hangup(self):
        peer = self.at_work()
        peer.process.send_signal(signal.SIGHUP)
        self.assertEqual(peer.process.wait(patience.hung()), 0)

    def test_the_client_is_killed(self):
        """Both ends of the pipes are closed at once."""
        process = self.start("serve", "--stdio", stdin=subprocess.PIPE)
        for number, (method, params) in enumerate((
                ("initialize", {}), ("session.open", {}),
                ("session.execute", {"session": "s1", "code": "while True: pass"}))):
            process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method,
                                            "params": params}).encode() + b"\n")
            process.stdin.flush()
            if number < 2:
                process.stdout.readline()
        process.stdout.close()
        process.stdin.close()
        self.assertIn(process.wait(patience.hung()), (0, 5))

    def test_shutdown(self):
        peer = self.at_work()
        self.assertEqual(peer.call("shutdown"), {})
        self.assertEqual(peer.process.wait(patience.hung()), 0)

    def test_a_kill(self):
        peer = self.at_work()
        peer.process.kill()
        peer.process.wait()

    def test_ctrl_c_is_for_the_client(self):
        peer = self.at_work()
        peer.process.send_signal(signal.SIGINT)
        self.assertIn("blob", peer.call("blob.begin"))
        self.assertEqual(self.close(peer)[0], 0)

    def test_sigterm_lets_jobs_answer(self):
        """They are asked for an answer at once; then the server ends. No new one is begun."""
        peer = self.open()
        job = peer.call("job.start", task="?", model="client")["job"]
        peer.wait(lambda: peer.asked)
        peer.process.send_signal(signal.SIGTERM)
        peer.wait(lambda: len([one for one in peer.asked if one["method"] == "model.request"]) > 1)
        self.assertEqual(peer.asked[-1]["params"]["kind"], "forced")
        self.assertIn("about to end", str(self.refused(peer, "job.start", task="?")))
        peer.send({"id": peer.asked[-1]["id"], "result": {"text": "FINAL(so far)"}})
        self.assertEqual(peer.result(job)["output"], "so far")
        self.assertEqual(peer.process.wait(patience.hung()), 0)

    def test_sigterm_waits_no_longer_than_the_grace(self):
        peer = self.at_work("--grace", "10ms")
        peer.process.send_signal(signal.SIGTERM)
        self.assertEqual(peer.process.wait(patience.hung()), 0)
        peer = self.at_work()
        peer.process.send_signal(signal.SIGTERM)
        while "forced" not in [one["params"].get("kind") for one in peer.asked]:
            peer.wait(lambda: peer.asked)
        peer.process.send_signal(signal.SIGTERM)
        self.assertEqual(peer.process.wait(patience.hung()), 0)


if __name__ == "__main__":
    unittest.main()

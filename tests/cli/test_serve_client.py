"""A client of rlmd serve: initialize comes first, and many things go on at once."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import client  # noqa: E402


class First(client.ServeTest):
    def test_initialize_comes_first(self):
        peer = self.open(initialize=False)
        for method in ("job.start", "session.open", "blob.begin", "shutdown", "what"):
            self.assertEqual(self.refused(peer, method).code, -32002)
        told = peer.call("initialize", protocolVersion="99")
        self.assertEqual(told["protocolVersion"], "1")
        self.assertEqual(told["server"]["name"], "rlmd")
        self.assertEqual(told["limits"], {"line": 64 << 20, "unreadBytes": 64 << 20, "unreadMs": 30000})
        self.assertEqual(self.refused(peer, "what").code, -32601)
        self.assertEqual(self.close(peer), (0, ""))


class Many(client.ServeTest):
    def test_a_thousand_jobs_at_once(self):
        peer = self.open(model_request=client.model("FINAL_VAR(context)"))
        begun = [peer.begin("job.start", task="?", model="client", contexts=[{"text": f"text {i}"}])
                 for i in range(1000)]
        jobs = [peer.end(number)["job"] for number in begun]
        for i, job in enumerate(jobs):
            self.assertEqual(peer.result(job)["output"], f"text {i}")
        self.assertEqual(self.close(peer), (0, ""))

    def test_sessions_beside_jobs(self):
        peer = self.open(model_request=client.model("FINAL(well)"))
        sessions = [peer.call("session.open")["session"] for _ in range(8)]
        begun = [peer.begin("session.execute", session=session, code=f"print({i})")
                 for i, session in enumerate(sessions)]
        job = peer.call("job.start", task="?", model="client")["job"]
        for i, number in enumerate(begun):
            self.assertEqual(peer.end(number)["stdout"], f"{i}\n")
        self.assertEqual(peer.result(job)["output"], "well")
        self.assertEqual(self.close(peer), (0, ""))


if __name__ == "__main__":
    unittest.main()

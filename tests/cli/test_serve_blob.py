"""Texts that come in pieces: contexts of jobs and sessions."""

import base64
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import client  # noqa: E402

TEXT = "héllo 🙂\n" * 100000


class Blobs(client.ServeTest):
    def blob(self, peer, data, size=1 << 20):
        name = peer.call("blob.begin")["blob"]
        for place in range(0, len(data), size):
            part = base64.b64encode(data[place:place + size]).decode()
            peer.call("blob.append", blob=name, base64=part)
        return name

    def test_a_blob_is_a_context(self):
        """Of any number of jobs and sessions, until it is freed."""
        peer = self.open(model_request=client.model("FINAL_VAR(length)",))
        name = self.blob(peer, TEXT.encode(), 99999)
        self.assertIn("blob.end", str(self.refused(peer, "session.open", contexts=[{"blob": name}])))
        peer.call("blob.end", blob=name)
        for contexts in ([{"blob": name}], [{"blob": name, "name": "context"}]) * 2:
            session = peer.call("session.open", contexts=contexts)["session"]
            done = peer.call("session.execute", session=session,
                             code="import hashlib\nprint(hashlib.sha256(context.encode()).hexdigest())")
            import hashlib
            self.assertEqual(done["stdout"], hashlib.sha256(TEXT.encode()).hexdigest() + "\n")
        other = self.blob(peer, b"")
        peer.call("blob.end", blob=other)
        session = peer.call("session.open", contexts=[{"blob": name, "name": "a"},
                                                      {"blob": other, "name": "b"}])["session"]
        self.assertEqual(peer.call("session.execute", session=session,
                                   code="print(len(a), len(b))")["stdout"], f"{len(TEXT)} 0\n")
        peer.call("blob.free", blob=name)
        self.assertIn("no blob", str(self.refused(peer, "session.open", contexts=[{"blob": name}])))
        self.assertEqual(self.close(peer), (0, ""))

    def test_refused(self):
        peer = self.open()
        name = peer.call("blob.begin")["blob"]
        for part in ("a", "ab=c", "====", "é===", "abc\n", "ab-_", None, 7):
            with self.subTest(part):
                self.assertEqual(self.refused(peer, "blob.append", blob=name, base64=part).code, -32602)
        for part in ("", "YQ==", "YWI=", "YWJj"):
            peer.call("blob.append", blob=name, base64=part)
        peer.call("blob.end", blob=name)
        self.assertIn("ended", str(self.refused(peer, "blob.append", blob=name, base64="")))
        session = peer.call("session.open", contexts=[{"blob": name}])["session"]
        self.assertEqual(peer.call("session.get", session=session, name="context")["value"], "aababc")
        for method in ("append", "end", "free"):
            self.assertIn("no blob", str(self.refused(peer, f"blob.{method}", blob="b99")))
        self.assertEqual(self.close(peer), (0, ""))


if __name__ == "__main__":
    unittest.main()

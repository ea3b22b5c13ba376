"""rlmd serve --listen: its socket, several clients, and its end."""

import json
import os
import signal
import socket
import stat
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import client  # noqa: E402
import leaks  # noqa: E402
import patience  # noqa: E402
from client import code, model  # noqa: E402


class Address(client.ServeTest):
    def refuse(self, *options, status=2):
        outcome = self.rlmd("serve", *options)
        self.assertEqual((outcome.status, outcome.out), (status, ""))
        return outcome.err

    def test_what_is_no_address(self):
        for address in ("", "unix:", "tcp:1234", "/tmp/socket", "127.0.0.1:80"):
            with self.subTest(address):
                self.assertIn("unix:PATH", self.refuse("--listen", address))
        self.assertIn("at most 107 bytes", self.refuse("--listen", "unix:/" + "x" * 107))
        self.assertIn("missing/socket", self.refuse("--listen", "unix:missing/socket"))

    def test_what_excludes_each_other(self):
        self.assertIn("exclude", self.refuse("--stdio", "--listen", "unix:s"))
        self.assertIn("--root", self.refuse("--stdio", "--root", "."))
        self.assertIn("--trust-clients", self.refuse("--stdio", "--trust-clients"))

    def test_a_file_that_is_there(self):
        path = self.write("socket", "of somebody")
        self.assertIn("no socket", self.refuse("--listen", f"unix:{path}"))
        self.assertEqual(Path(path).read_text(), "of somebody")

    def test_it_is_for_its_own_user(self):
        mask = os.umask(0)
        self.addCleanup(os.umask, mask)
        process = self.listen()
        state = self.path.lstat()
        self.assertTrue(stat.S_ISSOCK(state.st_mode))
        self.assertEqual((stat.S_IMODE(state.st_mode), state.st_uid), (0o600, os.geteuid()))
        self.terminate(process)
        self.assertFalse(self.path.exists())

    def test_another_server(self):
        """A living one's socket is left alone, a dead one's is replaced."""
        first = self.listen()
        self.assertIn("another server listens", self.refuse("--listen", f"unix:{self.path}"))
        self.connect(first)
        first.kill()
        first.wait()
        self.assertTrue(self.path.exists())
        self.connect(self.listen())

    def test_a_socket_that_is_not_its_own_any_more(self):
        process = self.listen()
        self.path.unlink()
        other = socket.socket(socket.AF_UNIX)
        self.addCleanup(other.close)
        other.bind(str(self.path))
        self.terminate(process)
        self.assertTrue(self.path.exists())


class Clients(client.ServeTest):
    def test_several_at_once(self):
        """Each has its own jobs, sessions, blobs, and is asked for its own job alone."""
        process = self.listen()
        peers = [self.connect(process, model_request=model(code(f"FINAL('it is {i}')")))
                 for i in range(3)]
        jobs = [peer.call("job.start", task="?", model="client")["job"] for peer in peers]
        self.assertEqual(jobs, ["j1"] * 3)
        for i, peer in enumerate(peers):
            self.assertEqual(peer.result("j1")["output"], f"it is {i}")
            self.assertEqual(len(peer.told("job.end")), 1)
        peers[0].call("session.open")
        self.assertEqual(self.refused(peers[1], "session.get", session="s1", name="x").kind,
                         "usage")
        self.assertEqual(self.refused(peers[1], "job.status", job="j2").kind, "usage")

    def test_one_that_goes_ends_what_is_its_own(self):
        process = self.listen()
        first, second = self.connect(process), self.connect(process)
        names = [peer.call("session.open")["session"] for peer in (first, second)]
        second.call("session.execute", session=names[1], code="x = 1")
        first.begin("session.execute", session=names[0], code="while True: pass")
        second.begin("job.start", task="?", model="client")
        second.wait(lambda: second.asked)
        count = len(leaks.descendants())
        self.leave(first)
        self.wait_for(lambda: len(leaks.descendants()) < count)
        self.assertEqual(second.call("session.get", session=names[1], name="x")["value"], 1)
        self.assertFalse(second.call("job.status", job="j1")["ended"])
        self.connect(process)
        self.assertNotIn("is gone", self.terminate_at_once(process))

    def test_one_that_says_nothing(self):
        """It is sent away, and one that has said initialize is not, however silent it is then."""
        process = self.listen()
        other = self.connect(process)
        silent, babbler = (self.connect(process, initialize=False) for _ in range(2))
        for _ in range(2):
            with self.assertRaises(client.Refused):
                babbler.call("job.status", job="j1")
        for peer in (silent, babbler):
            self.wait_for(lambda peer=peer: peer._over)
        self.assertEqual(other.call("session.open"), {"session": "s1"})
        self.assertEqual(self.terminate_at_once(process).count("did not say initialize"), 2)

    def test_one_that_breaks_off(self):
        """In the middle of a message, with answers that it has not read."""
        process = self.listen()
        for _ in range(20):
            peer = self.connect(process)
            peer.raw(b'{"jsonrpc":"2.0","id":1,"method":"job.start","params":{"task":"?","mod')
            self.hang_up(peer)
        self.assertIn("blob", self.connect(process).call("blob.begin"))
        self.terminate(process)

    def test_one_that_does_not_read(self):
        """It is cut, and the others go on."""
        process = self.listen()
        other = self.connect(process)
        end = socket.socket(socket.AF_UNIX)
        self.addCleanup(end.close)
        end.connect(str(self.path))
        reader = end.makefile("rb")
        self.addCleanup(reader.close)

        def say(number, method, **params):
            end.sendall(json.dumps({"jsonrpc": "2.0", "id": number, "method": method,
                                    "params": params}).encode() + b"\n")

        say(0, "initialize")
        for number in range(12):
            say(number, "session.open", options={"max-output": 10_000_000})
        for _ in range(13):
            reader.readline()
        for number in range(12):  # each answer has 8 MB
            say(number, "session.execute", session=f"s{number + 1}",
                code="print('x' * 4_000_000)")
        words = process.stderr.readline().decode()
        self.assertIn(f"a client of user {os.geteuid()} is gone", words)
        self.assertIn("64 MiB", words)
        self.assertIn("blob", other.call("blob.begin"))

    def test_shutdown_is_of_one_connection(self):
        process = self.listen()
        first, second = self.connect(process), self.connect(process)
        self.assertEqual(first.call("shutdown"), {})
        first._reader.join(patience.hung())
        self.assertIn("blob", second.call("blob.begin"))
        self.assertIsNone(process.poll())

    def test_more_than_are_served_at_once_wait(self):
        process = self.listen()
        ends = []
        for _ in range(260):
            end = socket.socket(socket.AF_UNIX)
            self.addCleanup(end.close)
            end.settimeout(patience.hung())
            end.connect(str(self.path))
            ends.append(end)
        hello = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}\n'
        for end in ends:
            end.sendall(hello)
        for end in ends[:20]:
            self.assertIn(b"protocolVersion", end.recv(4096))
            end.close()
        self.assertIn(b"protocolVersion", ends[-1].recv(4096))
        self.assertIsNone(process.poll())


class End(client.ServeTest):
    def test_sigterm_lets_jobs_answer(self):
        process = self.listen()
        first, second = self.connect(process), self.connect(process)
        job = first.call("job.start", task="?", model="client")["job"]
        first.wait(lambda: first.asked)
        process.send_signal(signal.SIGTERM)
        self.wait_for(lambda: not self.path.exists())
        first.wait(lambda: len(first.asked) > 1)
        self.assertEqual(self.refused(second, "job.start", task="?", model="client").code, -32000)
        first.send({"id": first.asked[-1]["id"], "result": {"text": "FINAL(so far)"}})
        self.assertEqual(first.result(job)["output"], "so far")
        self.assertEqual(process.wait(patience.hung()), 0)

    def test_all_signals(self):
        """Without work, each ends it at once."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(number):
                process = self.listen()
                self.connect(process)
                process.send_signal(number)
                self.assertEqual(process.wait(patience.hung()), 0)
                self.assertFalse(self.path.exists())

    def test_a_second_signal(self):
        process = self.listen()
        peer = self.connect(process)
        peer.call("job.start", task="?", model="client")
        peer.wait(lambda: peer.asked)
        self.terminate_at_once(process)


class Trust(client.ServeTest):
    """Files and addresses of the server that clients may name."""

    def setUp(self):
        super().setUp()
        (self.dir / "open").mkdir()
        self.write("open/text", "of all")
        self.write("secret", "of nobody")
        (self.dir / "open/link").symlink_to("../secret")

    def read(self, peer, path):
        session = peer.call("session.open", contexts=[{"path": str(path)}])["session"]
        return peer.call("session.execute", session=session, code="print(context)")["stdout"]

    def test_no_file_without_a_root(self):
        peer = self.connect(self.listen())
        refused = self.refused(peer, "session.open", contexts=[{"path": "open/text"}])
        self.assertEqual((refused.kind, refused.code), ("input", -32000))
        self.assertIn("--root", str(refused))
        self.assertIn("--root", str(self.refused(peer, "job.start", review={}, model="client")))
        peer.call("session.open", contexts=[{"text": "a text needs none"}])

    def test_files_below_the_root(self):
        peer = self.connect(self.listen("--root", self.dir / "open"))
        for path in ("text", "./text", self.dir / "open/text"):
            self.assertEqual(self.read(peer, path), "of all\n")
        for path in ("../secret", "link", self.dir / "secret", "/etc/passwd", "../open/../secret",
                     "git:HEAD", "x=../secret", "/proc/self/fd/1", "-"):
            with self.subTest(path):
                refused = self.refused(peer, "session.open", contexts=[{"path": str(path)}])
                self.assertIn(refused.kind, ("input", "usage"))
                refused = self.refused(peer, "job.start", review={"path": str(path)},
                                       model="client")
                self.assertIn(refused.kind, ("input", "usage"))
        for review in ({"path": ".", "rules": ".."}, {"path": ".", "diff": "HEAD"}):
            self.refused(peer, "job.start", review=review, model="client")
        for options in ({"add-rules": ".."}, {"baseline": "../secret"}):
            self.refused(peer, "job.start", review={"path": "."}, options=options, model="client")
        self.refused(peer, "session.open", contexts=[{"git": "HEAD"}])

    def test_sessions_are_limited(self):
        peer = self.connect(self.listen())
        names = [peer.call("session.open")["session"] for _ in range(50)]
        self.assertIn("at most 50", str(self.refused(peer, "session.open")))
        peer.call("session.close", session=names[0])
        peer.call("session.open")

    def test_options(self):
        peer = self.connect(self.listen())
        for name, value in (("base-url", "http://127.0.0.1:1/v1"), ("key-file", "/etc/passwd"),
                            ("python", "/bin/true"), ("cache", "/tmp/x"), ("record", "x"),
                            ("replay", "x"), ("price-table", "x"), ("prompt", "/etc"),
                            ("preload", "os"), ("worker-memory", "1G"), ("first-uid", 1)):
            with self.subTest(name):
                refused = self.refused(peer, "job.start", task="?", model="client",
                                       options={name: value})
                self.assertEqual(refused.kind, "usage")
                self.assertIn("--trust-clients", str(refused))
        peer.call("job.start", task="?", model="client",
                  options={"max-cost": 0.5, "max-depth": 1, "require": "L1", "strict": True})

    def test_clients_that_are_trusted(self):
        peer = self.connect(self.listen("--trust-clients"))
        self.assertEqual(self.read(peer, self.dir / "secret"), "of nobody\n")
        self.assertEqual(self.read(peer, "open/text"), "of all\n")
        peer.call("job.start", task="?", model="client", options={"worker-memory": "256M"})


if __name__ == "__main__":
    unittest.main()

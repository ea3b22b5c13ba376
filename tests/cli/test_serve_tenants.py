"""rlmd serve --listen: tenants of rlmd.conf, whose clients are known by their users."""

import os
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import client  # noqa: E402
import patience  # noqa: E402
from client import Refused, code, model  # noqa: E402
from providers import ProviderTest, final  # noqa: E402
from test_service import ServiceTest  # noqa: E402

STRANGER = 54321
PACKAGE = Path(__file__).resolve().parents[2] / "python/src"
ASK = """
import socket, sys
end = socket.socket(socket.AF_UNIX)
end.connect(sys.argv[1])
end.sendall(sys.argv[2].encode() + b"\\n")
print(end.makefile().readline())
"""


class TenantsTest(client.ServeTest, ProviderTest):
    def tenants(self, **settings):
        """Their sections of rlmd.conf; each has a key of its own."""
        lines = []
        for name, more in settings.items():
            key = self.write(f"{name}.key", f"sk-the-key-of-{name}-0123456789\n")
            os.chmod(key, 0o600)
            lines += [f"[tenant {name}]", f"key-file = {key}", *more]
        return ["--config", self.write("rlmd.conf", "\n".join(lines) + "\n"), "--require=L1"]

    def ask_model(self, *options, reply=None, **more):
        """A server of theirs, and the model behind it."""
        self.server = self.serve("openai", **more).script(None, reply or final("an answer"))
        return self.listen(*options, "-p", "openai", "-m", "m",
                           env=self.environment(**self.server.environment()))


class Identity(TenantsTest):
    def test_by_its_user(self):
        """Its own key pays, and its own models are asked."""
        process = self.ask_model(*self.tenants(
            acme=[f"users = nobody-there, {os.geteuid()}", "models = m, m2"], beta=[]))
        peer = self.connect(process)
        self.assertEqual(self.answered(peer, task="?")["output"], "an answer")
        self.assertEqual(self.answered(peer, task="?", options={"model": "m2"})["output"],
                         "an answer")
        self.assertEqual([(each.key, each.model) for each in self.server.requests],
                         [("sk-the-key-of-acme-0123456789", name) for name in ("m", "m2")])
        for options in ({"model": "m3"}, {"subcall-model": "m3"}):
            self.assertIn("may not use", str(self.refused(peer, "job.start", task="?",
                                                          options=options)))
        for name, value in (("provider", "anthropic"), ("key-file", "x"), ("require", "L1"),
                            ("worker-memory", "1G")):
            refused = self.refused(peer, "job.start", task="?", options={name: value})
            self.assertIn("for tenants", str(refused))

    def test_by_the_package_for_python(self):
        self.ask_model(*self.tenants(acme=[], beta=[]))
        program = (
            "import rlmd, sys\n"
            "for name in sys.argv[2:]:\n"
            "    try:\n"
            "        print(name, rlmd.RLM(binary=sys.argv[1], tenant=name).completion('?'))\n"
            "        with rlmd.Session('é', binary=sys.argv[1], tenant=name) as session:\n"
            "            print(session.run('print(context)').stdout, end='')\n"
            "    except rlmd.Error as error:\n"
            "        print(error.kind, error)\n")
        done = subprocess.run(
            [sys.executable, "-c", program, f"unix:{self.path}", "acme", "beta", "gamma"],
            env={**self.environment(), "PYTHONPATH": str(PACKAGE), "PYTHONIOENCODING": "utf-8"},
            capture_output=True, text=True, encoding="utf-8")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.splitlines()[:4],
                         ["acme an answer", "é", "beta an answer", "é"])
        self.assertIn("no tenant 'gamma'", done.stdout.splitlines()[4])
        self.assertEqual([each.key for each in self.server.requests],
                         [f"sk-the-key-of-{name}-0123456789" for name in ("acme", "beta")])

    def test_by_a_name(self):
        """The server's own user may say whose it is; what it is not it cannot become later."""
        process = self.ask_model(*self.tenants(acme=[], beta=[]))
        for name in ("acme", "beta"):
            peer = self.connect(process, tenant=name)
            self.answered(peer, task="?")
            self.assertEqual(self.server.requests[-1].key, f"sk-the-key-of-{name}-0123456789")
        peer.initialize(tenant="acme")
        self.answered(peer, task="?")
        self.assertEqual(self.server.requests[-1].key, "sk-the-key-of-beta-0123456789")
        peer = self.connect(process, initialize=False)
        for params, words in (({}, "is no tenant's"), ({"tenant": "gamma"}, "no tenant 'gamma'")):
            with self.assertRaises(Refused) as refused:
                peer.initialize(**params)
            self.assertIn(words, str(refused.exception))
        self.assertEqual(self.refused(peer, "job.start", task="?").code, -32002)

    def test_without_tenants(self):
        peer = self.connect(self.ask_model(), initialize=False)
        with self.assertRaises(Refused) as refused:
            peer.initialize(tenant="acme")
        self.assertIn("no tenants", str(refused.exception))
        peer.initialize()
        self.assertEqual(self.answered(peer, task="?")["output"], "an answer")

    def test_clients_as_models(self):
        process = self.ask_model(*self.tenants(acme=["models = m"]))
        peer = self.connect(process, tenant="acme", model_request=model(code("FINAL(6 * 7)")))
        self.assertEqual(self.answered(peer, task="?", model="client")["output"], "42")
        self.assertEqual(self.server.requests, [])


class OtherUsers(ServiceTest, TenantsTest):
    def ask_as(self, uid, path, message, program=ASK):
        def become():
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)

        asked = subprocess.run([sys.executable, "-I", "-c", program, path, message],
                               capture_output=True, text=True, preexec_fn=become, cwd="/")
        return asked.stdout + asked.stderr

    def open_room(self):
        """A path that all users reach."""
        room = tempfile.TemporaryDirectory()
        self.addCleanup(room.cleanup)
        os.chmod(room.name, 0o755)
        return Path(room.name) / "socket"

    def listen_for_all(self, **tenants):
        """At a socket that is for all of them, as a service manager may open it; its path."""
        path = self.open_room()
        process = self.activate("--listen", f"unix:{path}", "-p", "openai",
                                *self.tenants(**tenants), socket_at=path,
                                env=self.environment(OPENAI_API_KEY="k"))
        self.assertIn(b"listening", process.stderr.readline())
        os.chmod(path, 0o666)
        return path

    @unittest.skipIf(os.geteuid(), "only root can be another user")
    def test_who_they_are(self):
        path = self.listen_for_all(acme=[f"users = {STRANGER}"], beta=[])
        hello = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{%s}}'
        self.assertIn("protocolVersion", self.ask_as(STRANGER, str(path), hello % ""))
        self.assertIn("is no tenant's", self.ask_as(STRANGER + 1, str(path), hello % ""))
        for uid in (STRANGER, STRANGER + 1):
            self.assertIn("no user of tenant 'beta'",
                          self.ask_as(uid, str(path), hello % '"tenant":"beta"'))

    @unittest.skipIf(os.geteuid(), "only root can be another user")
    def test_one_does_not_keep_others_out(self):
        path = self.listen_for_all(acme=[f"users = {STRANGER}"])
        many = ASK.replace("end =", "held = [socket.socket(socket.AF_UNIX) for _ in range(60)]\n"
                                    "for each in held: each.connect(sys.argv[1])\nend =")
        hello = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}'
        self.assertNotIn("protocolVersion", self.ask_as(STRANGER, str(path), hello, many))
        self.wait_for(lambda: "protocolVersion" in self.ask_as(STRANGER, str(path), hello))

    @unittest.skipIf(os.geteuid(), "only root can be another user")
    def test_they_cannot_come_to_its_own(self):
        self.listen(path=self.open_room())
        self.assertIn("PermissionError", self.ask_as(STRANGER, str(self.path), "{}"))


class Caps(TenantsTest):
    def test_of_all_its_jobs(self):
        """Of several clients of one tenant, whatever each job itself may spend; another goes on."""
        dear = self.prices(m=(10**9, 10**9))
        process = self.ask_model(*self.tenants(acme=["max-cost = 12"], beta=[]), *dear,
                                 prices=(10**9, 10**9))
        first, second = (self.connect(process, tenant="acme") for _ in range(2))
        ends = [self.answered(peer, task="?", options={"max-cost": 1000})
                for _ in range(12) for peer in (first, second)]
        failed = [end["error"] for end in ends if not end["success"]]
        self.assertTrue(failed)
        self.assertEqual({error["kind"] for error in failed}, {"budget"})
        self.assertIn("tenant 'acme'", failed[0]["message"])
        self.assertLessEqual(self.server.billed_cost, 12 * 10**12)
        self.assertGreater(self.server.billed_cost, 0)
        other = self.connect(process, tenant="beta")
        self.assertTrue(self.answered(other, task="?")["success"])

    def test_of_a_day(self):
        dear = self.prices(m=(10**9, 10**9))
        process = self.ask_model(*self.tenants(acme=["max-cost-per-day = 7"]), *dear,
                                 prices=(10**9, 10**9))
        peer = self.connect(process, tenant="acme")
        ends = [self.answered(peer, task="?", options={"max-cost": 1000}) for _ in range(24)]
        failed = [end["error"] for end in ends if not end["success"]]
        self.assertIn("tenant 'acme' today", failed[0]["message"])
        self.assertLessEqual(self.server.billed_cost, 7 * 10**12)

    def test_a_clients_cost_counts(self):
        """Also the cost of its own model's answers, as it says it."""
        process = self.ask_model(*self.tenants(acme=["max-cost = 0.01"]))
        peer = self.connect(process, tenant="acme", model_request=lambda asked: {
            "text": code("FINAL(6 * 7)"), "usage": {"inputTokens": 1, "outputTokens": 1,
                                                    "cost": 0.006}})
        ends = [self.answered(peer, task="?", model="client") for _ in range(3)]
        self.assertEqual([end["success"] for end in ends], [True, True, False])
        self.assertIn("tenant 'acme'", ends[-1]["error"]["message"])


class Roots(TenantsTest):
    def test_each_has_its_own(self):
        for name in ("one", "two"):
            (self.dir / name).mkdir()
            self.write(f"{name}/text", f"of {name}")
        process = self.ask_model(*self.tenants(one=[f"root = {self.dir}/one"], two=[]),
                                 "--root", self.dir / "two")
        for name, other in (("one", "two"), ("two", "one")):
            peer = self.connect(process, tenant=name)
            session = peer.call("session.open", contexts=[{"path": "text"}])["session"]
            seen = peer.call("session.execute", session=session, code="print(context)")
            self.assertEqual(seen["stdout"], f"of {name}\n")
            refused = self.refused(peer, "session.open",
                                   contexts=[{"path": f"{self.dir}/{other}/text"}])
            self.assertEqual(refused.kind, "input")


class Walls(TenantsTest):
    def test_fewer_than_tenants_need(self):
        """Where there is less than L3 it is said, and nothing listens."""
        options = [one for one in self.tenants(acme=[], beta=[]) if one != "--require=L1"]
        end = socket.socket(socket.AF_UNIX)
        self.addCleanup(end.close)
        process = self.start("serve", "--listen", f"unix:{self.dir}/socket", *options, "-p",
                             "openai", env=self.environment(OPENAI_API_KEY="k"))
        words = process.stderr.readline()
        if b"listening" in words:
            process.terminate()
            self.assertEqual(process.wait(patience.hung()), 0)
        else:
            self.assertIn(b"need isolation L3", words)
            self.assertEqual(process.wait(patience.hung()), 7)


if __name__ == "__main__":
    unittest.main()

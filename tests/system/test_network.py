"""Between rlmd and a provider: connections that die, proxies, certificates, and what is not HTTP."""

import pathlib
import socketserver
import ssl
import subprocess
import threading
import unittest

from model import ModelServer, Reply
from providers import ProviderTest, code, final, pico

CALLS = 12
ASKS = "for i in range(%d): llm_query('q')" % CALLS
PRICES = (1000000, 2000000)  # pico-dollars a token
SOON = {"retry-after-ms": "1"}


class Listener(socketserver.ThreadingTCPServer):
    """Reads one head of a request, or anything at all, says `answer` and closes the connection."""

    allow_reuse_address = daemon_threads = True

    def __init__(self, answer, whole=True):
        self.answer, self.whole, self.heads = answer, whole, []
        super().__init__(("127.0.0.1", 0), self.Handler)
        threading.Thread(target=self.serve_forever, args=[0.05], daemon=True).start()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            if not self.server.whole:
                self.request.recv(1)
                self.wfile.write(self.server.answer)
                return
            lines = iter(self.rfile.readline, b"")
            head = b"".join(iter(lambda: next(lines, b"\r\n"), b"\r\n"))
            if head:
                self.server.heads.append(head.decode())
                self.wfile.write(self.server.answer)

    @property
    def port(self):
        return self.server_address[1]

    def stop(self):
        self.shutdown()
        self.server_close()


class NetworkTest(ProviderTest):
    def listen(self, answer, **more):
        listener = Listener(answer, **more)
        self.addCleanup(listener.stop)
        return listener

    def priced(self, reply):
        server = ModelServer("openai", prices=PRICES).start()
        self.addCleanup(server.stop)
        return server.script(None, reply)

    def assert_nothing_was_sent(self, server, usage):
        self.assertEqual(server.requests, [])
        self.assertEqual((usage["tokens"], usage["cost"]), (0, 0))
        self.assertFalse(usage["estimated"])


class Connections(NetworkTest):
    """Every request that leaves is an attempt, and connections are used again."""

    @staticmethod
    def drops_the_second(request):
        """Ways of servers to end a connection that they no longer want, after the work."""
        if request.nth:
            return Reply(text="x", drop=True)
        if request.last_user == "q":
            return Reply(text="x")
        return code(ASKS) if request.turn == 0 else final()

    def test_a_request_that_dies_unanswered_is_counted(self):
        """The server answers a connection's first request, and drops the second after its work."""
        server = self.priced(self.drops_the_second)
        result = self.ask(server, *self.prices(m=PRICES)).result
        usage = result["usage"]
        dropped = sum(request.nth > 0 for request in server.requests)
        self.assertGreater(dropped, 0)
        self.assertEqual(usage["llmCalls"], CALLS + 2)
        self.assertEqual(len(server.requests), CALLS + 2 + dropped)
        self.assertTrue(usage["estimated"])
        self.assertGreaterEqual(usage["inputTokens"], server.billed_tokens[0])
        self.assertGreaterEqual(pico(usage["cost"]), server.billed_cost - dropped * PRICES[1])

    def test_a_budget_pays_for_what_died_unanswered(self):
        """No request is sent that was not reserved."""
        server = self.priced(self.drops_the_second)
        prices = self.prices(m=PRICES)
        limit = 0.012
        outcome = self.rlmd(
            *self.arguments(server, *prices, "--max-cost", str(limit)),
            env=self.environment(**server.environment()),
        )
        self.assertIn(outcome.status, (0, 6), outcome.err)
        self.assertGreater(sum(request.nth > 0 for request in server.requests), 0)
        self.assertLessEqual(server.billed_cost, limit * 1e12)
        self.assertTrue(any("cut off before" in w for w in outcome.result["warnings"]))

    def test_connections_are_used_again(self):
        replies = [code(ASKS), *[Reply(text="x")] * CALLS, final()]
        server = self.serve("openai", *replies)
        self.assertFalse(self.ask(server).result["usage"]["estimated"])
        self.assertEqual((len(server.requests), server.connection_count), (CALLS + 2, 1))

    def test_a_connection_that_is_closed_while_idle_costs_nothing(self):
        """Its end came with the answer's last byte: no request is lost on it."""
        hang_up = {"hang_up": True}
        replies = [code(ASKS, **hang_up), *[Reply(text="x", **hang_up)] * CALLS, final()]
        server = self.serve("openai", *replies)
        self.assertFalse(self.ask(server).result["usage"]["estimated"])
        self.assertEqual((len(server.requests), server.connection_count), (CALLS + 2,) * 2)


class NotHttp(NetworkTest):
    RAW = b"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n"

    def test_once(self):
        """In the middle of a run: the call is tried again, and what it may have cost is counted."""
        server = self.serve("openai", code("1"), Reply(raw=self.RAW), final())
        result = self.ask(server).result
        self.assertEqual((result["output"], len(server.requests)), ("ok", 3))
        self.assertTrue(result["usage"]["estimated"])

    def test_always(self):
        server = self.serve("openai").script(None, Reply(raw=self.RAW))
        message = self.fails(server, 5, "bad_reply")["message"]
        self.assertIn("no HTTP", message)
        self.assertIn("base URL", message)
        self.assertEqual(len(server.requests), 2)


class Proxies(NetworkTest):
    """A proxy is named, and what it refused was never sent."""

    def through(self, proxy, scheme, **more):
        name = scheme + "_proxy"
        return {name: f"http://us%40er:hushhush@127.0.0.1:{proxy.port}", "no_proxy": "", **more}

    def check(self, proxy, server, status, kind, url, scheme, **more):
        prices = self.prices(m=PRICES)
        environment = self.through(proxy, scheme, **more)
        environment["OPENAI_BASE_URL"] = url
        result = self.ask(server, *prices, status=status, **environment).result
        self.assertEqual(result["error"]["kind"], kind)
        message = result["error"]["message"]
        self.assertIn(f"http://127.0.0.1:{proxy.port}", message)
        self.assertIn("proxy", message)
        self.assertNotIn("hush", message)
        return result

    def test_that_refuses_a_tunnel(self):
        cases = [
            (407, 4, "auth", 1),
            (403, 5, "network", 1),
            (502, 5, "network", 3),
        ]
        for code_, status, kind, times in cases:
            with self.subTest(code_):
                answer = b"HTTP/1.1 %d No\r\nContent-Length: 0\r\n\r\n" % code_
                proxy, server = self.listen(answer), self.serve("openai")
                url = f"https://127.0.0.1:{server.port}/v1"
                result = self.check(proxy, server, status, kind, url, "https")
                self.assertIn(str(code_), result["error"]["message"])
                self.assertEqual(len(proxy.heads), times)
                self.assertTrue(proxy.heads[0].startswith("CONNECT "))
                self.assert_nothing_was_sent(server, result["usage"])

    def test_that_wants_a_password_for_plain_http(self):
        """It answers in the provider's place."""
        answer = b"HTTP/1.1 407 No\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n"
        proxy, server = self.listen(answer), self.serve("openai")
        self.check(proxy, server, 4, "auth", server.url, "http")
        asked = [head.split(" ")[0] for head in proxy.heads]
        self.assertEqual(asked, ["GET", "POST"])  # its list of models, and the first turn

    def test_that_is_down(self):
        for scheme in ("http", "https"):
            with self.subTest(scheme):
                proxy, server = self.listen(b""), self.serve("openai")
                proxy.server_close()
                url = f"{scheme}://127.0.0.1:{server.port}/v1"
                result = self.check(proxy, server, 5, "network", url, scheme)
                self.assert_nothing_was_sent(server, result["usage"])

    def test_that_is_not_used_is_not_named(self):
        with socketserver.TCPServer(("127.0.0.1", 0), None) as closed:
            port = closed.server_address[1]
        proxy, server = self.listen(b""), self.serve("openai")
        environment = self.through(proxy, "http", no_proxy="127.0.0.1")
        environment["OPENAI_BASE_URL"] = f"http://127.0.0.1:{port}/v1"
        message = self.fails(server, 5, "network", **environment)["message"]
        self.assertIn(f"http://127.0.0.1:{port}", message)
        self.assertNotIn("proxy", message)


class Certificates(NetworkTest):
    def setUp(self):
        super().setUp()
        self.certificate, key = str(self.dir / "cert.pem"), str(self.dir / "key.pem")
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
            + ["-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
            + ["-addext", "subjectAltName=IP:127.0.0.1", "-out", self.certificate, "-keyout", key],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(self.certificate, key)

    def test_that_nobody_vouches_for(self):
        """Looked at once; the message says why it is not trusted, and what to do."""
        server = self.serve("openai", final(), tls=self.context)
        result = self.ask(server, status=5, SSL_CERT_DIR=str(self.dir)).result
        self.assertEqual(result["error"]["kind"], "network")
        for words in (server.url[:-3], "self-signed", "SSL_CERT_FILE"):
            self.assertIn(words, result["error"]["message"])
        self.assertEqual(server.accepted, 1)
        self.assert_nothing_was_sent(server, result["usage"])

    def test_that_the_environment_vouches_for(self):
        empty = self.write("empty.pem", "")
        cases = [
            {"SSL_CERT_FILE": self.certificate},
            {"CURL_CA_BUNDLE": self.certificate},
            {"CURL_CA_BUNDLE": self.certificate, "SSL_CERT_FILE": empty},
            {"CURL_CA_BUNDLE": "", "SSL_CERT_FILE": self.certificate},
        ]
        for environment in cases:
            with self.subTest(environment):
                server = self.serve("openai", final(), tls=self.context)
                self.assertEqual(self.ask(server, **environment).result["output"], "ok")

    def test_a_directory_of_them(self):
        directory = self.dir / "certs"
        directory.mkdir()
        pathlib.Path(directory, "own.pem").write_text(pathlib.Path(self.certificate).read_text())
        subprocess.run(["openssl", "rehash", str(directory)], check=True)
        server = self.serve("openai", final(), tls=self.context)
        self.assertEqual(self.ask(server, SSL_CERT_DIR=str(directory)).result["output"], "ok")

    def test_a_session_is_taken_up_again(self):
        """By the next connection: a full handshake costs both sides several times as much."""
        close = {"headers": {"connection": "close"}}
        replies = [code(ASKS, **close), *[Reply(text="x", **close)] * CALLS, final()]
        server = self.serve("openai", *replies, tls=self.context)
        self.assertEqual(self.ask(server, SSL_CERT_FILE=self.certificate).result["output"], "ok")
        self.assertEqual((server.connection_count, server.resumed), (CALLS + 2, CALLS + 1))

    def test_a_file_that_is_not_there(self):
        for name in ("SSL_CERT_FILE", "CURL_CA_BUNDLE"):
            with self.subTest(name):
                server = self.serve("openai", final(), tls=self.context)
                message = self.fails(server, 2, "usage", **{name: "/nowhere/ca.pem"})["message"]
                self.assertIn(f"{name}=/nowhere/ca.pem", message)


class Tls(NetworkTest):
    def test_a_server_that_speaks_none(self):
        """https in the base URL of a server of plain http."""
        plain = self.listen(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", whole=False)
        url = f"https://127.0.0.1:{plain.port}/v1"
        message = self.fails(self.serve("openai"), 5, "network", OPENAI_BASE_URL=url,
                             SSL_CERT_DIR=str(self.dir))["message"]
        self.assertIn("TLS", message)
        self.assertIn("https", message)


if __name__ == "__main__":
    unittest.main()

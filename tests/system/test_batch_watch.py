"""rlmd batch: what whoever watches it is shown."""

import contextlib
import fcntl
import http.client
import os
import pathlib
import pty
import re
import select
import signal
import socket
import struct
import termios
import time
import unittest
import urllib.parse

import patience
from model import Reply
from providers import final
from test_batch import BatchTest


class WatchTest(BatchTest):
    """A batch of two jobs, the second of which waits for the test."""

    def setUp(self):
        super().setUp()
        self.ready = []
        self.server = self.serve("openai")
        self.server.script("hold on", final(until=lambda: bool(self.ready)))
        self.after = 1  # requests, the first one is answered
        self.server.script(None, final(until=lambda: len(self.server.requests) >= self.after))
        self.jobs({"custom_id": "a", "task": "go on", "tenant": "acme"},
                  {"custom_id": "b\x1b[2J", "task": "hold on", "tenant": "zeta"})

    def read_until(self, descriptor, pattern):
        """The part that comes up to it."""
        seen, deadline = b"", time.monotonic() + patience.hung()
        while not re.search(pattern, seen):
            self.assertLess(time.monotonic(), deadline, seen)
            if select.select([descriptor], [], [], 1)[0]:
                piece = os.read(descriptor, 65536)
                self.assertTrue(piece, seen)
                seen += piece
        return seen

    def held(self, server):
        return len(server.requests) == 2 and server.in_flight == 1


class LineTest(WatchTest):
    IN_FLIGHT = (rb"rlmd:   b\\x1b\[2J \(zeta\): attempt 1, turn 1, 1 call in flight, \S+s, \$0.00\r?\n")

    def test_lines_now_and_then(self):
        self.after = 2  # so that the other call is on its way when the first job is over
        process = self.command(begin=True)
        seen = self.read_until(process.stderr.fileno(), rb"\n")
        self.assertRegex(seen, rb"^rlmd: 1 of 2 \| 1 at work \| 1 call \| \$0.00 \| acme 1/1, zeta 0/1\n$")
        self.ready.append(True)
        _, rest = process.communicate()
        self.assertEqual(process.returncode, 0, rest)
        self.assertRegex(rest, rb"rlmd: done in \S+: 2 jobs: 2 succeeded, 0 failed; ")

    def test_what_is_in_flight(self):
        """Also where nobody wants a line, and to whoever reads JSON with all that is known."""
        process = self.command("-q", begin=True)
        self.assertTrue(self.server.wait(self.held))
        results = self.dir / "results.jsonl"
        patience.wait_until(lambda: results.read_bytes().endswith(b"\n"), "the first result")
        process.send_signal(signal.SIGUSR1)
        seen = self.read_until(process.stderr.fileno(), rb"attempt.*\n")
        self.assertRegex(seen, rb"^rlmd: 1 of 2 .*\n" + self.IN_FLIGHT + rb"$")
        self.ready.append(True)
        _, rest = process.communicate()
        self.assertEqual((process.returncode, rest), (0, b""))

    def test_a_line_on_a_terminal(self):
        """It is taken away before anything else is said, and at the end."""
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
        env = self.environment(TERM="xterm", **self.server.environment())
        process = self.start("batch", "-o", "results.jsonl", "-p", "openai", "-m", "m", "jobs.jsonl",
                             env=env, stderr=theirs)
        os.close(theirs)
        seen = self.read_until(ours, rb"\r\033\[2m1 of 2 \| 1 at work \| 1 call \| \$0\.00\033\[0m\033\[K$")
        for line in seen.split(b"\r"):
            self.assertLessEqual(len(re.sub(rb"\033\[\d*[mK]", b"", line)), 40, seen)
        process.send_signal(signal.SIGUSR1)
        seen = self.read_until(ours, rb"attempt.*\n")
        self.assertRegex(seen, rb"\r\033\[Krlmd: 1 of 2 \| .*\r\n" + self.IN_FLIGHT)
        process.send_signal(signal.SIGTERM)
        self.read_until(ours, rb"\r\033\[2mfinishing \| 1 of 2 ")
        self.ready.append(True)
        self.assertRegex(self.read_until(ours, rb"tokens\r\n"), rb"\r\033\[Krlmd: interrupted after ")
        self.assertEqual(process.wait(), 143)


class Metrics(dict):
    """Prometheus' text format, version 0.0.4, read strictly: (name, labels) -> value."""

    LABEL = r'[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*"'
    SAMPLE = re.compile(rf"([a-zA-Z_:][\w:]*)(?:\{{({LABEL}(?:,{LABEL})*)\}})? (\d+(?:\.\d+)?)")
    SUFFIXES = {"histogram": ("_bucket", "_sum", "_count")}

    def __init__(self, test, text):
        super().__init__()
        test.assertTrue(text.endswith("\n"))
        self.families, name, kind = {}, None, None
        for line in text[:-1].split("\n"):
            if line.startswith("# HELP "):
                name, kind = line.split(" ")[2], None
                test.assertNotIn(name, self.families, "two families of one name")
            elif line.startswith("# TYPE "):
                _, _, named, kind = line.split(" ")
                test.assertEqual(named, name)
                test.assertIn(kind, ("gauge", "counter", "histogram"))
                test.assertEqual(kind == "counter", name.endswith("_total"))
                self.families[name] = kind
            else:
                found = self.SAMPLE.fullmatch(line)
                test.assertTrue(found and kind, line)
                test.assertIn(found[1], [name + end for end in self.SUFFIXES.get(kind, ("",))])
                labels = tuple(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', found[2] or ""))
                test.assertEqual(len(dict(labels)), len(labels), line)
                test.assertNotIn((found[1], labels), self, "two samples of one series")
                self[found[1], labels] = float(found[3])
        for name, kind in self.families.items():
            if kind == "histogram":
                self.check_histogram(test, name)

    def check_histogram(self, test, name):
        buckets = [(float(dict(labels)["le"]), value) for (named, labels), value in self.items()
                   if named == name + "_bucket"]
        test.assertEqual(buckets, sorted(buckets))
        test.assertEqual(buckets[-1], (float("inf"), self.of(name + "_count", batch="jobs.jsonl")))

    def of(self, name, **labels):
        return self.get((name, tuple(labels.items())))


class MetricsTest(WatchTest):
    BATCH = {"batch": "jobs.jsonl"}

    def get(self, url, path="/metrics", method="GET"):
        connection = http.client.HTTPConnection(url.hostname, url.port, timeout=patience.hung())
        with contextlib.closing(connection):
            connection.request(method, path)
            answer = connection.getresponse()
            return answer, answer.read().decode()

    def check(self, metrics, acme, zeta, at_work):
        for tenant, states in (("acme", acme), ("zeta", zeta)):
            found = [metrics.of("rlmd_batch_jobs", **self.BATCH, tenant=tenant, state=state)
                     for state in ("pending", "running", "succeeded", "failed")]
            self.assertEqual(found, states, tenant)
        self.assertEqual(metrics.of("rlmd_batch_jobs_at_work", **self.BATCH, tenant="zeta"), at_work)
        self.assertEqual(metrics.of("rlmd_batch_model_calls_in_flight", **self.BATCH), at_work)

    def test_by_http(self):
        self.after = 2
        process = self.command("--metrics=:0", begin=True)
        error = process.stderr.fileno()
        told = self.read_until(error, rb"1 of 2 .*\n")
        url = urllib.parse.urlsplit(re.search(r"metrics are at (\S+)", told.decode())[1])
        self.assertEqual(url.hostname, "127.0.0.1")
        self.assertTrue(self.server.wait(self.held))
        answer, text = self.get(url)
        self.assertEqual((answer.status, answer.headers["Content-Type"]),
                         (200, "text/plain; version=0.0.4; charset=utf-8"))
        metrics = Metrics(self, text)
        self.check(metrics, [0, 0, 1, 0], [0, 1, 0, 0], 1)
        self.assertEqual(metrics.of("rlmd_batch_attempts_total", **self.BATCH, tenant="acme",
                                    outcome="succeeded"), 1)
        self.assertEqual(metrics.of("rlmd_batch_attempt_duration_seconds_count", **self.BATCH), 1)
        self.check_documented(metrics)
        for path, method, status in (("/metrics?x=1", "HEAD", 200), ("/healthz", "GET", 200),
                                     ("/", "GET", 404), ("/metrics", "POST", 405)):
            answer, text = self.get(url, path, method)
            self.assertEqual((answer.status, text == ""), (status, method == "HEAD"), path)
        self.check_hosts(url)
        self.check_abuse(url)
        self.ready.append(True)
        self.assertEqual(process.wait(), 0)

    def check_documented(self, metrics):
        """Each name that is told stands in the table, with its type."""
        root = pathlib.Path(__file__).resolve().parents[2]
        told = (root / "docs/batch.md").read_text("utf-8")
        for name, kind in metrics.families.items():
            self.assertIn(f"| `{name}` | {kind} |", told)

    def check_hosts(self, url):
        """A page of somebody whose name leads here must not read it; numbers cannot be his."""
        for hosts, status in ((["127.0.0.1:9464"], 200), (["[::1]:9464"], 200), (["10.1.2.3"], 200),
                              (["localhost"], 200), (["LocalHost:1"], 200), ([os.uname().nodename], 200),
                              ([], 200), (["evil.example"], 421), (["evil.example:9464"], 421),
                              (["127.0.0.1.evil.example"], 421), (["localhost.evil.example:80"], 421),
                              (["x@127.0.0.1"], 421), ([""], 421), (["127.0.0.1:80:80"], 421),
                              (["127.0.0.1", "evil.example"], 400), (["evil.example", "127.0.0.1"], 421)):
            for path in ("/metrics", "/healthz"):
                lines = "".join(f"hOst: {host}\r\n" for host in hosts)
                with socket.create_connection((url.hostname, url.port)) as connection:
                    connection.sendall(f"GET {path} HTTP/1.1\r\nAccept: */*\r\n{lines}\r\n".encode())
                    told = connection.makefile("rb").read()
                self.assertEqual(told.split()[1], str(status).encode(), hosts)
                self.assertEqual(b"rlmd_batch" in told or b"\nok" in told, status == 200)

    def check_abuse(self, url):
        """A client that says nothing holds up nobody, and one that says too much is sent away."""
        place = (url.hostname, url.port)
        with contextlib.ExitStack() as stack:
            idle = [stack.enter_context(socket.create_connection(place)) for _ in range(5)]
            for said, status in ((b"x" * 9000, b"400"), (b"GET /metrics\r\n\r\n", b"400"),
                                 (b"GET /metrics HTTP/9\r\n\r\n", b"400"), (b"\r\n\r\n", b"400")):
                idle[0].close()
                idle[0] = stack.enter_context(socket.create_connection(place))
                idle[0].sendall(said)
                self.assertEqual(idle[0].makefile("rb").readline().split()[1], status, said[:20])
            self.assertEqual(self.get(url)[0].status, 200)

    def test_in_a_file(self):
        """Whole whenever it is read, also by others, and in the end as it ended."""
        path = self.dir / "rlmd.prom"
        process = self.command("--metrics=rlmd.prom", begin=True)
        self.read_until(process.stderr.fileno(), rb"1 of 2 .*\n")
        Metrics(self, path.read_text("utf-8"))
        process.send_signal(signal.SIGTERM)
        self.read_until(process.stderr.fileno(), rb"no job is begun any more")
        self.ready.append(True)
        _, err = process.communicate()
        self.assertEqual(process.returncode, 143, err)
        metrics = Metrics(self, path.read_text("utf-8"))
        self.check(metrics, [0, 0, 1, 0], [0, 0, 1, 0], 0)
        self.assertEqual(metrics.of("rlmd_batch_draining", **self.BATCH), 1)
        self.assertTrue(path.stat().st_mode & 0o044 or os.umask(os.umask(0)) & 0o044)
        self.assertEqual(list(self.dir.glob(".rlmd-*")), [])

    def test_where_they_cannot_be(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            for place, told in ((f":{taken.getsockname()[1]}", "Address already in use"),
                                ("localhost:80", "an address in numbers"),
                                ("nowhere/x.prom", "No such file or directory")):
                outcome = self.command(f"--metrics={place}")
                self.assertEqual(outcome.status, 2, outcome.err)
                self.assertIn(told, outcome.err)
        self.assertEqual(self.server.requests, [])


class ReportTest(BatchTest):
    def test_nothing_is_hidden(self):
        """For people also with -q, and for programs as one object."""
        self.server = self.serve("openai")
        self.server.script("refuse", Reply(error="auth"))
        self.server.script(None, final())
        self.jobs({"custom_id": "a", "task": "t", "tenant": "acme"},
                  {"custom_id": "b", "task": "t", "tenant": "acme", "context_file": "missing"},
                  {"custom_id": "c", "task": "refuse", "tenant": "zeta"},
                  {"custom_id": "d", "task": "refuse", "tenant": "zeta"}, "{}")
        outcome = self.command("-q", "-j1", "--json", "--skip-bad-lines")
        self.assertEqual(outcome.status, 3, outcome.err)
        lines = outcome.err.splitlines()
        self.assertEqual(len(lines), 3, outcome.err)
        self.assertIn("rlmd: error: 1 job failed (1 input): results.jsonl says why", lines[0])
        self.assertIn("rlmd: error: tenant 'zeta': 2 jobs are pending, as the key was refused", lines[1])
        self.assertIn("rlmd: error: 1 line is no job", lines[2])
        report = outcome.result
        told = {key: report[key] for key in ("batch", "success", "exitStatus", "jobs", "succeeded",
                                             "degraded", "failed", "pending", "badLines", "kinds", "error")}
        self.assertEqual(told, {"batch": "jobs.jsonl", "success": False, "exitStatus": 3, "jobs": 4,
                                "succeeded": 1, "degraded": 0, "failed": 1, "pending": 2, "badLines": 1,
                                "kinds": {"input": 1}, "error": None})
        acme, zeta = report["tenants"]
        self.assertEqual((acme["tenant"], acme["succeeded"], acme["failed"], acme["stopped"]),
                         ("acme", 1, 1, None))
        self.assertEqual((zeta["tenant"], zeta["pending"], zeta["stopped"]), ("zeta", 2, "key"))
        self.assertIn("401", zeta["why"])

    def test_all_is_well(self):
        self.server = self.serve("openai").script(None, final())
        self.jobs({"custom_id": "a", "task": "t"})
        outcome = self.command("-q", "--json")
        self.assertEqual((outcome.status, outcome.err), (0, ""))
        self.assertTrue(outcome.result["success"])
        self.assertEqual(outcome.result["tenants"][0]["tenant"], None)

    def test_no_sandbox(self):
        """Nothing was begun, and that is said, too."""
        self.server = self.serve("openai")
        python = pathlib.Path(self.write("python", "#!/bin/sh\nkill -9 $$\n"))
        python.chmod(0o755)
        self.jobs({"custom_id": "a", "task": "t"})
        outcome = self.command("--json", "--python", str(python))
        self.assertEqual(outcome.status, 7, outcome.err)
        self.assertEqual(outcome.result["error"]["kind"], "sandbox")
        self.assertEqual((outcome.result["success"], outcome.result["pending"]), (False, 1))
        self.assertIn("1 job is pending: the same command goes on with it", outcome.err)
        self.assertEqual(self.server.requests, [])


if __name__ == "__main__":
    unittest.main()

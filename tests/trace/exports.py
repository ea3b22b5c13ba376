"""A collector of spans; and a run with turns, calls, sub-runs and an error, for the tests of what other programs get of it."""

import http.server
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "system"))
from harness import GuardedTest, block, query, turn  # noqa: E402

SCRIPT = [
    turn(block("print(llm_query('secret words'))", "print(batch_rlm_query(['part a', 'part b']))",
               "1/0"), 0, depth=0),
    turn("FINAL(secret answer)", 1, depth=0),
    {**turn(block("print(batch_llm_query(['secret words'] * 20))", "FINAL('secret part')"),
            depth=1), "repeat": True},
    {**query("a secret reply"), "repeat": True},
]


class ExportTest(GuardedTest):
    def run_it(self, *arguments, **environment):
        """The events of a run with a trace."""
        outcome = self.rlmd("exec", "-p", "replay", "--replay", self.script(*SCRIPT), "--trace",
                            "t.jsonl", *arguments, "--", "the task",
                            env=self.environment(**environment))
        self.assertEqual(outcome.status, 0, outcome.err)
        return outcome

    def trace(self, *arguments, status=0, file="t.jsonl", **environment):
        outcome = self.rlmd("trace", file, *arguments, env=self.environment(**environment))
        self.assertEqual(outcome.status, status, outcome.err)
        return outcome


class Collector(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests, self.statuses, self.hangs = [], [], threading.Event()
        self.hangs.set()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def close(self):
        self.hangs.set()
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], BrokenPipeError):  # the client did not wait
            super().handle_error(request, client_address)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        collector = self.server
        collector.requests.append((self.path, dict(self.headers.items()), text))
        collector.hangs.wait()
        status = collector.statuses.pop(0) if collector.statuses else 200
        self.send_response(status)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

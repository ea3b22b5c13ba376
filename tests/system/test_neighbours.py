"""Supervisors in containers beside each other, which share a cgroup tree and no pids: L4 holds.

The one that lives has an empty cgroup for a moment, for its template and its worker were killed
while it waits for the model; another one starts in another pid namespace, and sweeps.
"""

import http.server
import json
import os
import pathlib
import signal
import subprocess
import threading
import time
import unittest

import leaks
import patience
from harness import RLMD, GuardedTest, block
from test_left_over import cgroups_of

SPACES = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]


class Neighbours(GuardedTest):
    def setUp(self):
        super().setUp()
        tried = subprocess.run([*SPACES, "true"], stderr=subprocess.PIPE)
        if tried.returncode:
            self.skipTest("no other pid namespace can be made here: " + tried.stderr.decode())

    def serve(self, *texts):
        """Answers with each in turn; the last one waits for an event. Gives its URL and both events."""
        asked, go = threading.Event(), threading.Event()
        rest = list(texts)

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                text = rest.pop(0)
                if not rest:
                    asked.set()
                    go.wait(patience.hung())
                body = json.dumps({"choices": [{"message": {"content": text}, "finish_reason": "stop"}],
                                   "usage": {"prompt_tokens": 1, "completion_tokens": 1}}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        for undo in (thread.join, server.server_close, server.shutdown, go.set):
            self.addCleanup(undo)
        return f"http://127.0.0.1:{server.server_port}/v1", asked, go

    def await_that(self, condition):
        deadline = time.monotonic() + patience.hung()
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def kill_children(self, pid):
        for (child, _), (parent, state, _) in leaks.processes().items():
            if parent == pid and state not in "ZX":
                os.kill(child, signal.SIGKILL)

    def test_the_living_keep_their_cgroups(self):
        url, asked, go = self.serve(block("x = 6"), block("FINAL(6 * 7)"))
        key = self.write("key", "sk-neighbours-0123456789")
        os.chmod(key, 0o600)
        process = self.start("exec", "--json", "-q", "-p", "openai", "--base-url", url, "--no-stream",
                             "--key-file", key, "-m", "a-model", "--", "the task")
        self.assertTrue(asked.wait(patience.hung()))
        mine = cgroups_of({process.pid})
        if not mine:
            self.skipTest("no cgroup may be made here")
        self.kill_children(process.pid)
        self.await_that(lambda: not any(pathlib.Path(path, "cgroup.procs").read_text() for path in mine))
        doctor = subprocess.run([*SPACES, RLMD, "doctor", "--json"], env=self.environment(), cwd=self.dir,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(doctor.returncode, 0, doctor.stderr)
        self.assertEqual(cgroups_of({process.pid}), mine)
        go.set()
        out, err = process.communicate(timeout=patience.hung())
        self.assertEqual(process.returncode, 0, err)
        result = json.loads(out)
        self.assertEqual(result["output"], "42")
        self.assertIn("pids_cgroup", result["sandbox"]["layers"])
        self.assertEqual(cgroups_of({process.pid}), [])


if __name__ == "__main__":
    unittest.main()

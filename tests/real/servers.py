"""Real servers on loopback, of what tools/real-servers installed; and how tests ask them.

The suite `real` is optional: without $RLMD_REAL_SERVERS, which `tools/test --suite real` sets, its
tests are skipped. The model is small and runs on the processor, so that what it says is not judged
beyond "Paris".
"""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "system"))
import patience  # noqa: E402
from harness import SystemTest  # noqa: E402

PLACE = os.environ.get("RLMD_REAL_SERVERS", "")
NOT_RUN = "`tools/test --suite real` installs the real servers and a model (1.5 GB), and runs it"
WEIGHTS = "qwen2.5-coder-1.5b-instruct.gguf"
MODEL = "qwen2.5-coder-1.5b"
KEY = "sk-of-this-test"
WINDOW = 8192           # tokens
QUESTION = "What is the capital of France? Answer with the name of the city alone."
LONG = "All work and no play makes a dull text. " * 3000    # more tokens than WINDOW


def wanted(otherwise=NOT_RUN):
    """For setUpModule(): what is said where the suite was not asked for."""
    if not PLACE:
        raise unittest.SkipTest(otherwise)


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Server:
    """A program that serves HTTP on a port of loopback, until stop()."""

    def __init__(self, command, environment, log):
        self.port = free_port()
        self.log = pathlib.Path(log)
        with open(self.log, "wb") as file:
            self.process = subprocess.Popen(
                [str(each).replace("{port}", str(self.port)) for each in command],
                stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=environment,
                start_new_session=True)

    def url(self, path=""):
        return f"http://127.0.0.1:{self.port}{path}"

    def status(self, path):
        """The HTTP status of a GET, or 0 where nobody listens yet."""
        if self.process.poll() is not None:
            raise AssertionError(f"{self.log} ended:\n{self.log.read_text()[-3000:]}")
        try:
            with urllib.request.urlopen(self.url(path), timeout=patience.hung()) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0

    def wait(self, path, *statuses):
        """Until `path` is answered with one of these."""
        patience.wait_until(lambda: self.status(path) in statuses,
                            lambda: f"{path}: {self.log.read_text()[-3000:]}")
        return self

    def stop(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, number)
            except ProcessLookupError:
                break
            try:
                self.process.wait(patience.hung())
            except subprocess.TimeoutExpired:
                continue
        self.process.wait()


class RealTest(SystemTest):
    """Its classes start their servers once; a test asks them by `rlmd plan` or `rlmd exec`."""

    @classmethod
    def room(cls):
        """A directory for what a class's servers write."""
        place = tempfile.mkdtemp(prefix="rlmd-real-")
        cls.addClassCleanup(shutil.rmtree, place, ignore_errors=True)
        return pathlib.Path(place)

    @classmethod
    def serve(cls, name, command, path="", statuses=(), **variables):
        """Starts a server until the class ends. It is waited for until `path` answers so."""
        room = cls.room()
        environment = {"PATH": os.environ["PATH"], "HOME": str(room), "TMPDIR": str(room),
                       "LANG": "C.UTF-8", **variables}
        server = Server(command, environment, room / f"{name}.log")
        cls.addClassCleanup(server.stop)
        return server.wait(path, *statuses) if statuses else server

    @classmethod
    def llama(cls, *statuses):
        """llama.cpp's server with the model, waited for until it answers with one of these."""
        command = [pathlib.Path(PLACE, "llama-cpp/bin/python"),
                   HERE / "llama_server.py", pathlib.Path(PLACE, WEIGHTS),
                   MODEL, "{port}", WINDOW]
        return cls.serve("llama", command, "/v1/models", statuses)

    def given(self, server, provider, *arguments, model=MODEL):
        """The options and the environment that lead the program to a server."""
        base = server.url("/v1" if provider == "openai" else "")
        name = provider.upper()
        environment = self.environment(**{f"{name}_BASE_URL": base, f"{name}_API_KEY": KEY})
        seconds = f"{patience.hung():.0f}s"
        return (["-p", provider, "-m", model, "--max-time", seconds, *arguments], environment)

    def call(self, server, provider, *arguments, question=QUESTION, **more):
        """One call of the model, without a run around it: its result, and the whole object."""
        arguments, environment = self.given(server, provider, *arguments, **more)
        plan = self.write("plan.json", json.dumps({
            "timeoutPerOp": int(patience.hung() * 1000),
            "operations": [{"id": "it", "input": question}]}))
        outcome = self.rlmd("plan", *arguments, plan, env=environment)
        self.assertTrue(outcome.out.startswith('{"results":'), outcome.err + outcome.out[:2000])
        return outcome.result["results"]["it"], outcome

    def answers(self, server, provider):
        """A plain question, streamed and whole: the answer, and tokens that the server counted."""
        counted = []
        for option in ([], ["--no-stream"]):
            with self.subTest(provider=provider, option=option):
                result, outcome = self.call(server, provider, *option)
                self.assertEqual(result["status"], "succeeded", result)
                self.assertIn("Paris", result["response"])
                self.assertNotIn("estimated", " ".join(outcome.result["warnings"]))
                usage = outcome.result["usage"]
                self.assertFalse(usage["estimated"])
                self.assertGreater(usage["outputTokens"], 0)
                counted.append(usage["inputTokens"])
        self.assertEqual(len(set(counted)), 1, counted)
        self.assertGreater(counted[0], 10)

    def fails(self, server, provider, kind, *arguments, **more):
        """A call that fails with that kind; gives what it says."""
        result, _ = self.call(server, provider, *arguments, **more)
        self.assertEqual(result["error"]["kind"], kind, result)
        return result["error"]["message"]

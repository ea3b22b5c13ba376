"""Workers that attack their supervisor, through the whole program: G10.

What hostile bytes do to the dialogue is in tests/pool/test_liars.c; here they come from real
workers, many of them, beside one that is honest, and what they cost is measured.
"""
import os
import resource
import time
import unittest

import patience
from harness import RLMD, GuardedTest, block, query, turn

MIB = 1 << 20
with open(RLMD, "rb") as file:
    SANITIZED = b"__asan_init" in file.read()

# docs/security.md states these: what one worker can make the supervisor keep, and what all can.
WORKER_MAX = 192 * MIB
SHARED_MAX = 350 * MIB

RAW = """
import json, os
USUAL = dict.fromkeys(("model", "system", "max_tokens", "temperature"), None) | {"turns": []}
def frame(message, *attached):
    if attached:
        message = dict(message, attachments=[len(a) for a in attached])
    body = json.dumps(message).encode()
    return len(body).to_bytes(4, "big") + body + b"".join(attached)
def put(data):
    view = memoryview(data)
    while view:
        view = view[os.write(4, view):]
"""
ATTACH = RAW + """
for i in range(10**9):
    put(frame({"type": "rlm_query", "id": i, "tasks": ["x"] * 8, "contexts": list(range(8)),
               "subsets": [], "models": [None] * 8},
              *[b"x" * (2 << 20)] * 8))
"""
MANY_PIECES = RAW + """
for i in range(10**9):
    put(frame({"type": "llm_query", "id": i, "prompts": list(range(500)), **USUAL},
              *[b"x" * 70000] * 500))
"""
MANY_PROMPTS = RAW + """
for i in range(10**9):
    put(frame({"type": "llm_query", "id": i, "prompts": ["x"] * 10000, **USUAL}))
"""
NEVER_READS = RAW + """
for i in range(10**9):
    put(frame({"type": "budget", "id": i}))
"""
FAILING_CALLS = """
while True:
    try:
        llm_query("x" * 100000)
    except Exception:
        pass
"""


def slow(text="late", kind="llm_query"):
    return {"match": {"kind": kind}, "response": {"text": text, "delay": 3600000}, "repeat": True}


class SiegeTest(GuardedTest):
    def usage(self, entries, *arguments, **more):
        """A run to its end; its outcome, and the most memory that a process of it had."""
        directory = self.script(*entries)
        out = self.write("out", "")
        with open(out, "wb") as stream:
            process = self.start("exec", "-p", "replay", "--replay", directory, "--json", "-q",
                                 *arguments, "--", "the task", stdout=stream, **more)
            peak = 0
            while process.poll() is None:
                peak = max(peak, self.memory(process.pid))
                time.sleep(0.02)
        return process.returncode, peak, os.path.getsize(out)

    @staticmethod
    def memory(pid):
        """The supervisor's own: the most that it had so far."""
        try:
            with open(f"/proc/{pid}/status", encoding="ascii") as status:
                lines = [line for line in status if line.startswith("VmHWM:")]
        except (FileNotFoundError, ProcessLookupError):
            return 0
        return int(lines[0].split()[1]) << 10 if lines else 0

    def beside_an_honest_one(self, hostile, *arguments, more=(), first=(), **options):
        """Two sub-runs, one hostile in each of its turns; what the root saw, and the result."""
        entries = [
            *first,
            turn(block("for r in batch_rlm_query(['be honest', 'be hostile']):",
                       "  print(type(r).__name__, r)"), turn=0, depth=0),
            turn("FINAL(done)", turn=1, depth=0),
            {"match": {"kind": "turn", "depth": 1, "pattern": "be honest"},
             "response": {"text": block("FINAL(sum(range(1000)))")}},
            dict(turn(block(hostile), depth=1), repeat=True),
            query("forced", kind="forced"),
            *more,
        ]
        outcome = self.replay(entries, "--json", "-q", *arguments, **options)
        self.assertEqual(outcome.status, 0, outcome.err)
        printed = outcome.executions()[0]["stdout"]
        self.assertIn("str 499500\n", printed)
        return printed, outcome.result


class Memory(SiegeTest):
    """The supervisor's memory stays within what docs/security.md states."""

    def flood(self, hostile, *more, workers=1, arguments=()):
        status, peak, size = self.usage(
            [dict(turn(block(hostile)), repeat=True), query("forced", kind="forced"), *more],
            "--max-time", patience.duration(4), "--block-timeout", "10m", "-j", "2", *arguments)
        self.assertEqual(status, 0)
        self.assertGreater(peak, 5 * MIB)
        if not SANITIZED:
            self.assertLess(peak, workers * WORKER_MAX + SHARED_MAX)
        return peak, size

    def test_large_contexts_from_several_workers(self):
        """The root and the two sub-runs that may live beside it, all of them hostile."""
        peak, _ = self.flood(ATTACH, slow(), slow(kind="direct"), workers=3)
        self.assertGreater(peak, 50 * MIB)  # it was a flood

    def test_many_attachments(self):
        self.flood(MANY_PIECES, slow(), arguments=["--max-tokens", "1000000000"])

    def test_many_prompts(self):
        self.flood(MANY_PROMPTS, slow())

    def test_replies_that_nobody_reads(self):
        peak, _ = self.flood(NEVER_READS)
        self.assertGreater(peak, 15 * MIB)
        if not SANITIZED:
            self.assertLess(peak, 150 * MIB)

    def test_calls_that_fail(self):
        """The calls that the trace keeps have an end, though the calls have none."""
        _, size = self.flood(FAILING_CALLS, slow(), arguments=["--max-tokens", "3000"])
        self.assertLess(size, 60 * MIB)

    def test_descriptors(self):
        """Contexts that wait for their sub-run take none: with 64, another run gets its own."""
        def few():
            resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

        hold = RAW + """
put(frame({"type": "rlm_query", "id": 1, "tasks": ["wait"] * 45, "contexts": list(range(45)),
           "subsets": [], "models": [None] * 45},
          *[b"x" * 70000] * 45))
import time; time.sleep(3600)
"""
        small = {"match": {"kind": "turn", "depth": 2, "pattern": "be small"},
                 "response": {"text": "FINAL(small)"}}
        wait = {"match": {"kind": "turn", "depth": 2}, "response": {"text": "late", "delay": 3600000},
                "repeat": True}
        honest = {"match": {"kind": "turn", "depth": 1, "pattern": "be honest"},
                  "response": {"text": block("assert rlm_query('be small') == 'small'",
                                             "FINAL(sum(range(1000)))"), "delay": int(1000 * patience.seconds(1.5))}}
        self.beside_an_honest_one(hold, "--max-time", patience.duration(12), "--block-timeout", "10m", "--max-depth",
                                  "3", "-j", "2", more=[small, wait], first=[honest],
                                  preexec_fn=few)


class Others(SiegeTest):
    """The deeds of one worker are its own run's affair."""

    def test_forged_messages(self):
        """G10: of a worker that forges, the model is told; its sibling does not notice."""
        done = {"type": "done", "block": 1, "stdout": "", "stderr": "", "error": None,
                "missing": None, "final": "final_direct", "answer": "forged"}
        forgeries = {
            "ready": f"put(frame({dict(type='ready', python='3', layers=['all'])}))",
            "reply": f"put(frame({dict(type='reply', id=1, values=[], errors=[], messages=[])}))",
            "done twice": f"put(frame({done}) * 2)",
            "done ahead": f"put(frame({dict(done, block=2)}))",
            "length": "put(b'\\xff' * 4)",
            "garbage": "put(os.urandom(10000))",
            "half a frame": "put(frame({'type': 'budget', 'id': 1})[:9])\nos._exit(0)",
        }
        for name, code in forgeries.items():
            with self.subTest(name):
                printed, result = self.beside_an_honest_one(
                    RAW + code + "\nimport time; time.sleep(3600)", "--max-iterations", "3")
                hostile = [run for run in result["trace"]["subcalls"] if "hostile" in run["task"]]
                self.assertEqual(len(hostile), 1)
                errors = [execution["error"] for iteration in hostile[0]["iterations"]
                          for execution in iteration["codeExecutions"]]
                if name == "done twice":  # its own word for the block: it may lie about itself
                    self.assertIn("forged", printed)
                elif name == "half a frame":
                    self.assertIn("exit status 0", errors[0])
                else:
                    self.assertIn("broke the protocol", errors[0])

    def test_descriptors_that_are_not_its_own_to_close(self):
        for fd in (0, 1, 2, 3, 4):
            with self.subTest(fd):
                self.beside_an_honest_one(f"import os\nos.close({fd})\nprint('x')\nllm_query('q')",
                                          "--max-iterations", "2", more=[query("a")])

    def test_output_to_every_descriptor(self):
        """Bytes written past the protocol go nowhere, and fills nothing."""
        self.beside_an_honest_one(
            "import os\nfor fd in (0, 1, 2):\n  for i in range(2000):\n"
            "    try: os.write(fd, b'x' * 65536)\n    except OSError: break",
            "--max-iterations", "2")

    def test_a_thousand_crashes(self):
        """A worker that dies in each of a thousand blocks costs a thousand workers, and no more."""
        watch = patience.Stopwatch()
        printed, result = self.beside_an_honest_one(
            "import os\nos._exit(1)", "--max-iterations", "1000", "--max-tokens", "1000000000",
            "--max-time", "2h")
        crashed = [run for run in result["trace"]["subcalls"] if "hostile" in run["task"]][0]
        honest = [run for run in result["trace"]["subcalls"] if "honest" in run["task"]][0]
        self.assertGreaterEqual(len(crashed["iterations"]), 500)
        self.assertLess(watch.took(), 240)
        self.assertLess(honest["usage"]["duration"], 5000 * watch.slowness)
        self.assertIn("forced", printed)

    def test_sub_runs_without_end(self):
        """Of a run's sub-runs only so many live at once, however many threads ask for them."""
        code = ("import threading\n"
                "def ask(): rlm_query('be slow')\n"
                "threads = [threading.Thread(target=ask) for _ in range(40)]\n"
                "for t in threads: t.start()\nfor t in threads: t.join()")
        entries = [
            turn(block(code), turn=0, depth=0),
            turn("FINAL(done)", turn=1, depth=0),
            dict(turn(block(f"import time; time.sleep({patience.seconds(0.2)})", "FINAL(1)"), depth=1), repeat=True),
        ]
        process = self.start("exec", "-p", "replay", "--replay", self.script(*entries), "-q",
                             "-j", "1", "--max-workers", "2", "--", "the task")
        most = 0
        while process.poll() is None:
            most = max(most, self.children(process.pid))
            time.sleep(0.01)
        self.assertEqual((process.returncode, process.stdout.read()), (0, b"done\n"))
        self.assertGreater(most, 3)
        # The template, the root's worker, three of sub-runs; and those that are being replaced.
        self.assertLessEqual(most, 2 * (2 + 3))

    @staticmethod
    def children(pid):
        try:
            with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
                return len(children.read().split())
        except (FileNotFoundError, ProcessLookupError):
            return 0


class Ends(SiegeTest):
    """A worker has no say in when it ends."""

    def test_exit_that_hangs(self):
        """The answer does not wait for what a worker would like to do first."""
        hangs = {
            "atexit": "import atexit, time\natexit.register(time.sleep, 3600)",
            "destructor": "import time\nclass D:\n  def __del__(self): time.sleep(3600)\nd = D()",
            "thread": "import threading, time\n"
                      "threading.Thread(target=time.sleep, args=(3600,)).start()",
            "signals": "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\n"
                       "for s in range(1, 65):\n  try: signal.signal(s, signal.SIG_IGN)\n"
                       "  except (OSError, ValueError): pass",
        }
        for name, code in hangs.items():
            with self.subTest(name):
                outcome = self.replay([turn(block(code + "\nFINAL('answer')"))])
                self.assertEqual((outcome.status, outcome.out), (0, "answer\n"))

    def test_patched_runtime(self):
        """Our own Python in a worker is the worker's to ruin, and nobody else's."""
        code = ("import gc, sys\n"
                "for module in list(sys.modules.values()):\n"
                "  for name in list(vars(module)):\n"
                "    if module.__name__ in ('channel', 'repl', 'helpers', 'output', 'json'):\n"
                "      setattr(module, name, None)\n")
        self.beside_an_honest_one(code, "--max-iterations", "2", "--block-timeout", patience.duration(2))


if __name__ == "__main__":
    unittest.main()

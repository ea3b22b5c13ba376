"""Runs in runs in runs: in order, with few workers, and gone at once when somebody ends them."""

import json
import os
import pathlib
import re
import signal
import threading
import time
import unittest

import leaks
import patience
from harness import GuardedTest, SystemTest, block, query, turn
from model import Reply
from providers import ProviderTest

NUMBERS = " ".join(map(str, range(512)))

# Five levels; the first and the fourth split their context into eight, the last adds up.
SPLIT = """
words = context.split()
parts = [' '.join(words[i::8]) for i in range(8)]
FINAL(sum(map(int, batch_rlm_query([{'task': 'add up', 'context': p} for p in parts]))))
"""
ADDING_UP = [
    turn(block(SPLIT), depth=0),
    dict(turn(block("FINAL(rlm_query('add up', context))"), depth=1), repeat=True),
    dict(turn(block("FINAL(rlm_query('add up'))"), depth=2), repeat=True),
    dict(turn(block(SPLIT), depth=3), repeat=True),
    # It waits, so that all five levels are there when somebody looks.
    dict(turn(block("import time\ntime.sleep(0.03)", "FINAL(sum(map(int, context.split())))"), depth=4),
         repeat=True),
]
AMPLE = ["--max-cost", "0", "--max-tokens", "1000000000000", "--max-depth", "5"]


def dying(pid):
    """Whether it was killed already, or is exiting: what takes its place may begin beside it."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text(errors="replace")
        status = pathlib.Path(f"/proc/{pid}/status").read_text(errors="replace")
    except OSError:
        return True
    pending = re.findall(r"(?:Sig|Shd)Pnd:\s*([0-9a-f]+)", status)
    killed = any(int(mask, 16) >> (signal.SIGKILL - 1) & 1 for mask in pending)
    return killed or bool(int(stat[stat.rindex(")") + 2 :].split()[6]) & 4)  # PF_EXITING


def below(pid):
    """How many processes that live descend from this one."""
    children = {}
    for process, (parent, state, _) in leaks.processes().items():
        if state not in "ZX":
            children.setdefault(parent, []).append(process[0])
    found, queue = [], [pid]
    while queue:
        more = children.get(queue.pop(), [])
        found += more
        queue += more
    return sum(not dying(each) for each in found)


class Watch(threading.Thread):
    """The most processes that a program had below it at once, while the block lasts."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.most, self.over = pid, 0, threading.Event()

    def run(self):
        while not self.over.wait(0.005):
            self.most = max(self.most, below(self.pid))

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        self.over.set()
        self.join()


class Recursion(GuardedTest):
    def begin(self, entries, *arguments, context=None, form="--json", **more):
        options = ["--provider", "replay", "--replay", self.script(*entries)]
        if context is not None:
            options += ["-c", self.write("context.txt", context)]
        return self.start("exec", *options, form, *AMPLE, *arguments, "--", "the task", **more)

    def test_five_levels_of_eight_with_few_workers(self):
        """One worker at a time is enough for any tree, and each further one bounds the processes."""
        for workers in (1, 2):
            with self.subTest(max_workers=workers):
                process = self.begin(ADDING_UP, "--max-workers", workers, "-j", "1",
                                     context=NUMBERS)
                with Watch(process.pid) as watch:
                    out, err = process.communicate(timeout=patience.hung())
                result = self.result_of(process, out, err)
                self.assertEqual(result["output"], str(sum(range(512))))
                self.assertEqual(result["usage"]["subcalls"], 8 + 8 + 8 + 64)
                self.assertEqual(result["usage"]["maxDepthReached"], 4)
                template = 1
                self.assertGreaterEqual(watch.most, template + 5)
                self.assertLessEqual(watch.most, template + 1 + (workers + 1) * 4)

    def result_of(self, process, out, err):
        self.assertEqual(process.returncode, 0, err.decode() + out.decode()[:2000])
        return json.loads(out)

    def finish(self, process):
        return self.result_of(process, *process.communicate(timeout=patience.hung()))

    def test_a_context_is_shared_and_a_slice_is_moved_once(self):
        """Four runs have the whole or the slice, and the supervisor holds each of them once."""
        if os.geteuid():
            self.skipTest("only root may look at the descriptors of what is not dumpable")
        entries = [
            turn(block("FINAL(rlm_query('whole'))"), depth=0),
            turn(block("FINAL(rlm_query('slice', context[1:]))"), depth=1),
            turn(block("FINAL(rlm_query('the same slice'))"), depth=2),
            turn(block(f"import time\nprint(time.sleep({patience.seconds(4)}))\nFINAL(len(context))"), depth=3),
        ]
        size = 8 << 20
        arguments = ["--block-timeout", "10h", "--max-time", "10h"]
        process = self.begin(entries, *arguments, context="x" * size)
        patience.wait_until(lambda: below(process.pid) >= 1 + 4, "four workers")
        time.sleep(patience.seconds(0.5))  # what the last one was told is on its way no more
        held = {}
        for entry in os.scandir(f"/proc/{process.pid}/fd"):
            if os.readlink(entry.path).startswith("/memfd:"):
                stat = os.stat(entry.path)
                held.setdefault(stat.st_size, []).append(stat.st_ino)
        self.assertEqual((len(held[size]), len(held[size - 1])), (1, 1), held)
        self.assertEqual(sum(len(files) for of, files in held.items() if of >= size - 1), 2)
        self.assertEqual(self.finish(process)["output"], str(size - 1))

    def test_results_keep_their_order(self):
        """ENG-29: the last task ends first; some fail in every way there is, and lose no other."""
        tasks = ["slow", "refused", "dies", "raises", "guesses", "quick"]

        def run(task, text, **more):
            match = {"kind": "turn", "depth": 1, "pattern": "TASK: " + task}
            return {"match": match, "response": {"text": text, **more}, "repeat": True}

        entries = [
            turn(
                block(
                    f"for r in batch_rlm_query({tasks}):",
                    "    print(bool(r), str(r).splitlines()[-1][:30])",
                ),
                depth=0,
                turn=0,
            ),
            run("slow", block("FINAL('first')"), delay=700),
            {
                "match": {"kind": "turn", "depth": 1, "pattern": "TASK: refused"},
                "error": {"kind": "refused", "message": "no"},
            },
            run("dies", block("import os; os._exit(1)")),
            run("raises", block("1/0") + "\nFINAL(raised)"),
            run("guesses", block("1")),
            run("quick", "FINAL(last)"),
            query("a guess", kind="forced"),
            turn("FINAL(done)", depth=0, turn=1),
        ]
        result = self.finish(self.begin(entries, "--max-iterations", "4"))
        (execution,) = result["trace"]["iterations"][0]["codeExecutions"]
        printed = execution["stdout"].splitlines()
        self.assertEqual(printed[0], "True first", execution)
        self.assertEqual(printed[1][:5], "False")
        self.assertEqual(printed[2:], ["True a guess", "True raised", "True a guess", "True last"])
        self.assertEqual([sub["task"] for sub in result["trace"]["subcalls"]], tasks)

    def test_a_sub_run_that_loops_for_ever(self):
        """Its blocks are ended, and in the end it: the caller goes on with what the others found."""
        entries = [
            turn(block("print(batch_rlm_query(['loop', 'fine']))"), depth=0, turn=0),
            {
                "match": {"kind": "turn", "depth": 1, "pattern": "TASK: loop"},
                "response": {"text": block("while True: pass")},
                "repeat": True,
            },
            dict(turn("FINAL(found)", depth=1), repeat=True),
            query("nothing", kind="forced"),
            turn("FINAL(done)", depth=0, turn=1),
        ]
        arguments = ["--block-timeout", patience.duration(0.5), "--max-iterations", "4", "--max-workers", "1"]
        result = self.finish(self.begin(entries, *arguments))
        (execution,) = result["trace"]["iterations"][0]["codeExecutions"]
        self.assertEqual(execution["stdout"], "['nothing', 'found']\n")
        self.assertIn("1 degraded answer: the sub-RLM's answer was forced", execution["stderr"])
        self.assertEqual(len(result["trace"]["subcalls"][0]["iterations"]), 2)


class End(ProviderTest):
    def serve_recursion(self):
        """Three sub-runs, each in a sub-run of its own that waits for three answers."""
        server = self.serve("openai")

        def reply(request):
            first = request.messages[1][1]
            if request.last_user.startswith("slow"):
                return Reply(text="late", delay=3600)
            if "TASK: outer" in first:
                return Reply(text=block("FINAL(rlm_query('inner'))"))
            if "TASK: inner" in first:
                return Reply(text=block("batch_llm_query(['slow 1', 'slow 2', 'slow 3'])"))
            if request.turn == 0:
                return Reply(text=block("batch_rlm_query(['outer'] * 3)"))
            return Reply(text="FINAL(words)")

        return server.script(None, reply)

    def test_a_signal_ends_all_at_once(self):
        """Transfers are closed and workers gone before anything else happens."""
        for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            with self.subTest(signal=number.name):
                server = self.serve_recursion()
                prices = self.prices(m=(1000, 2000))
                process = self.start(
                    *self.arguments(server, *prices, *AMPLE[2:], "-j", "16", "--downgrade", "0"),
                    env=self.environment(**server.environment()),
                )
                asked = lambda server: sum(r.last_user[:4] == "slow" for r in server.requests)
                self.assertTrue(server.wait(lambda server: asked(server) == 9), asked(server))
                self.assertGreaterEqual(below(process.pid), 1 + 1 + 3 + 3)
                watch = patience.Stopwatch()
                process.send_signal(number)
                left = lambda server: sum(
                    not (r.disconnected or r.finished) for r in server.requests
                    if r.last_user.startswith("slow")
                )
                self.assertTrue(server.wait(lambda server: not left(server)))
                patience.wait_until(lambda: below(process.pid) <= 2, "the end of the workers")
                self.assertLess(watch.took(), 1)  # which else would be an hour
                out, err = process.communicate(timeout=patience.hung())
                self.assertEqual(process.returncode, status, err)


if __name__ == "__main__":
    unittest.main()

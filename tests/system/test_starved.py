"""Memory that is short once, wherever: the process ends with "out of memory" and SIGABRT, or what
was asked fails with an error, or all is as ever. Never is a request sent that lacks a part, never
does anything stand still, and nothing crashes.

Eight allocations of each kind are tried, and more until one has ended the process; RLMD_STARVE says
how many, or "all", which takes hours."""

import itertools
import json
import os
import pathlib
import random
import re
import signal
import unittest

import patience
from harness import BUILD, SystemTest, block
from model import ModelServer, Reply

STARVE = os.path.join(BUILD, "tests", "system", "libstarve.so")
HOST = os.path.join(BUILD, "tests", "system", "starved_host")
TRIES = os.environ.get("RLMD_STARVE", "8")
LARGE = 3000  # bytes: what a prompt takes, or a piece of it
CONTEXT = "a line of the input\n" * 900
HEADERS = ("authorization", "content-type", "user-agent", "accept")


def answer(request):
    """By what is asked, whoever comes first."""
    if not request.system or "REPL" not in request.system and "```" not in request.system:
        return Reply(text="said")
    if request.turn == 0:
        return Reply(text=block("print(llm_query('what is it? ' + context[:9000]))"))
    return Reply(text="FINAL(done)")


def asked(request):
    """All of a request that depends on us, but for what is left: time, and tokens, of which an
    attempt that broke takes some."""
    head = [(name, request.headers.get(name)) for name in HEADERS]
    body = re.sub(rb"[0-9.]+(ms|s|m|h)([0-9]+(s|m))?\b", b"T", request.body)
    body = re.sub(rb"Left: cost unlimited, [0-9]+ tokens", b"Left: N tokens", body)
    body = re.sub(rb", time T", b"", body)  # told once it gets short
    return repr((request.path, head, body))


class Starved(SystemTest):
    def setUp(self):
        super().setUp()
        self.context = self.write("context.txt", CONTEXT)
        self.server = ModelServer("openai").start()
        self.addCleanup(self.server.stop)
        self.server.script(None, answer)

    def try_it(self, at, least, begin):
        """The words of the process, its requests, and what the shim told."""
        told = pathlib.Path(self.dir, "told")
        told.unlink(missing_ok=True)
        first = len(self.server.requests)
        outcome = begin(STARVE_AT=str(at), STARVE_LEAST=str(least), STARVE_TOLD=str(told),
                        LD_PRELOAD=STARVE)
        lines = told.read_text().split("\n") if told.exists() else []
        return outcome, [asked(each) for each in self.server.requests[first:]], lines

    def check(self, at, least, begin, succeeded, usual):
        outcome, requests, told = self.try_it(at, least, begin)
        where = f"allocation {at} of at least {least} bytes ({told}): status {outcome.status}\n" \
                f"{outcome.out[-1500:]}\n{outcome.err[-1500:]}"
        self.assertLessEqual(set(requests), usual, where)
        if outcome.status == -signal.SIGABRT:
            self.assertIn("rlmd: out of memory\n", outcome.err, where)
            return "aborted"
        self.assertGreaterEqual(outcome.status, 0, where)
        if succeeded(outcome):
            self.assertEqual(set(requests), usual, where)
            return "succeeded"
        self.assertRegex(outcome.out + outcome.err, "(?i)error|memory|rlmd: ", where)
        return "failed"

    def starve(self, begin, succeeded):
        usual = None
        for _ in range(2):  # or what is compared differs by itself
            outcome, requests, _ = self.try_it(0, 1, begin)
            self.assertTrue(succeeded(outcome), outcome.out + outcome.err)
            self.assertIn(set(requests), (usual, set(requests) if usual is None else None))
            usual = set(requests)
        self.assertTrue(any(CONTEXT[:9000].replace("\n", "\\\\n") in each for each in usual))
        seen = {}
        for least in (LARGE, 1):
            told = self.try_it(0, least, begin)[2]
            count = next(int(line.split()[1]) for line in told if line.startswith("counted"))
            self.assertGreater(count, 10)
            tries = count if TRIES == "all" else int(TRIES)
            for tried, at in enumerate(random.Random(count).sample(range(1, count + 1), count)):
                if tried >= tries and (least > 1 or "aborted" in seen):
                    break
                with self.subTest(at=at, least=least):
                    end = self.check(at, least, begin, succeeded, usual)
                    seen[end] = seen.get(end, 0) + 1
        return seen

    def test_a_program(self):
        arguments = ("exec", "-p", "openai", "-m", "gpt-test", "--json", "-c", self.context,
                     "--max-time", patience.duration(60), "--", "the task")

        def begin(**more):
            return self.rlmd(*arguments, env=self.environment(**self.server.environment(), **more))

        def succeeded(outcome):
            return outcome.status == 0 and outcome.result["output"] == "done"

        self.assertIn("aborted", self.starve(begin, succeeded))

    def test_a_batch(self):
        """Each from nothing: what is left of one would be gone on with."""
        jobs = self.write("jobs.jsonl", "".join(
            json.dumps({"custom_id": name, "task": "the task", "context_file": self.context}) + "\n"
            for name in "ab"))
        numbers = itertools.count()

        def begin(**more):
            self.results = os.path.join(self.dir, f"results-{next(numbers)}.jsonl")
            return self.rlmd("batch", "-p", "openai", "-m", "gpt-test", "-j", "1", "-o", self.results,
                             "--max-time", patience.duration(60), jobs,
                             env=self.environment(**self.server.environment(), **more))

        def succeeded(outcome):
            if outcome.status != 0:
                return False
            lines = map(json.loads, pathlib.Path(self.results).read_text().splitlines())
            self.assertEqual({line["custom_id"]: line["output"] for line in lines},
                             {"a": "done", "b": "done"})
            return True

        self.assertIn("aborted", self.starve(begin, succeeded))

    def test_a_host(self):
        def begin(**more):
            return self.rlmd(self.server.url, self.context, program=HOST,
                             env=self.environment(**more))

        def succeeded(outcome):
            return outcome.status == 0 and outcome.out == "output done\n" * 3

        self.assertIn("aborted", self.starve(begin, succeeded))


if __name__ == "__main__":
    unittest.main()

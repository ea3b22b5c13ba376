"""rlmd batch, killed again and again: believed in the morning all the same.

Three hundred jobs of three tenants, against a server that fails now and then, and SIGKILLs at
moments of chance: of one process with a file, of four with a server of PostgreSQL, which is killed
as well. The model's server keeps the books: what it was asked, and by which job.
"""

import collections
import json
import random
import re
import signal
import time
import unittest

import patience
import postgres
from model import Reply
from providers import code
from test_batch import BatchTest

JOBS = 300
TENANTS = ("ada", "bob", "cyd")
KILLS = 50
AT_ONCE = 6
CALLS = 3           # of a job that is never interrupted
PRICES = (1_000_000, 5_000_000)  # pico-dollars a token: input, output
LOW, HIGH = 0.5, 50              # dollars: less than all jobs cost, and more
FAULTS = (          # what one request in so many gets in the place of an answer
    (60, Reply(error="overloaded")),
    (70, Reply(error="rate_limit", headers={"Retry-After": "0"})),
    (90, Reply(status=502, body=b"<html>Bad Gateway</html>", content_type="text/html")),
)


class Books:
    """The questions and answers of each job."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.answered = collections.Counter()

    def reply(self, request):
        for one_in, fault in FAULTS:
            if not self.random.randrange(one_in):
                return fault
        job = re.search(r"job (\d+)", request.first_turn or request.last_user).group(1)
        if "part of" in request.last_user:
            stage, reply = "part", Reply(text=f"answer {job}")
        elif request.turn == 0:
            stage, reply = "first", code(f"part = llm_query('part of job {job}')", "print(part)")
        else:
            # A worker that died took its variables along.
            stage, reply = "last", code("if 'part' not in globals():",
                                        f"    part = llm_query('part of job {job}')",
                                        f"FINAL(part + ' of {job}')")
        self.answered[job, stage] += 1
        return reply


class TortureTest(BatchTest):
    ARGUMENTS = ("-j", AT_ONCE, "--max-parallel", AT_ONCE, "--max-attempts", KILLS)

    def setUp(self):
        super().setUp()
        self.books = Books(seed=14)
        self.server = self.serve("openai", prices=PRICES).script(None, self.books.reply)
        self.jobs(*({"custom_id": f"j{i}", "task": f"Do job {i}.", "tenant": TENANTS[i % 3],
                     "context": f"the text of job {i}"} for i in range(JOBS)))

    def check_results(self):
        results = self.results()
        self.assertEqual(set(results), {f"j{i}" for i in range(JOBS)})
        for i in range(JOBS):
            self.assertEqual(results[f"j{i}"]["output"], f"answer {i} of {i}")
            self.assertEqual(results[f"j{i}"]["tenant"], TENANTS[i % 3])


class KillTest(TortureTest):
    def arguments(self, dollars):
        return [*self.ARGUMENTS, *self.prices(m=PRICES), "--max-output-tokens=256",
                "--max-batch-cost", dollars]

    def run_until_killed(self, dollars, requests, wait):
        """Kills a batch after so many requests and a moment; gives its exit status."""
        process = self.command(*self.arguments(dollars), begin=True)
        asked = len(self.server.requests) + requests
        while process.poll() is None and not self.server.wait(
                lambda server: len(server.requests) >= asked, patience.POLL):
            pass
        time.sleep(wait)
        process.kill()
        _, err = process.communicate()
        self.assertIn(process.returncode, (-signal.SIGKILL, 6), err)
        return process.returncode

    def test_fifty_times(self):
        chance, limit = random.Random(50), LOW
        for _ in range(KILLS):
            # Mostly soon; some before anything is asked, some while results are written.
            status = self.run_until_killed(limit, chance.randrange(18), chance.random() / 20)
            self.assertLessEqual(self.server.billed_cost, limit * 10**12)
            if status == 6:
                self.assertEqual(limit, LOW)
                limit = HIGH
        self.assertEqual(limit, HIGH, "the limit was never reached")
        outcome = self.command(*self.arguments(HIGH))
        self.assertEqual(outcome.status, 0, outcome.err)
        self.check_results()
        self.assertLessEqual(sum(self.books.answered.values()), CALLS * JOBS + KILLS * AT_ONCE)


@unittest.skipIf(postgres.missing(), postgres.missing())
class NodesTest(TortureTest):
    NODES, KILLS, RESTARTS = 4, 24, 3

    def setUp(self):
        super().setUp()
        self.store = postgres.PostgresServer().start()
        self.addCleanup(self.store.remove)
        self.nodes = []

    def begin(self):
        """As many nodes as there are to be."""
        while len(self.nodes) < self.NODES:
            self.nodes.append(self.start(
                "work", "--store", self.store.url, "-p", "openai", "-m", "m", *self.ARGUMENTS,
                env=self.environment(**self.server.environment())))

    def end_one(self, chance):
        node = self.nodes.pop(chance.randrange(self.NODES))
        node.kill()
        _, err = node.communicate()
        if node.returncode > 0:  # it began while the store was away
            self.assertIn(b"cannot be reached", err)
        else:
            self.assertEqual(node.returncode, -signal.SIGKILL, err)

    def test_nodes_and_the_store_are_killed(self):
        chance = random.Random(4)
        self.nodes.append(self.command("--store", self.store.url, *self.ARGUMENTS, begin=True))
        self.server.wait(lambda server: server.requests)  # it has loaded them all
        for kill in range(self.KILLS):
            self.begin()
            asked = len(self.server.requests) + chance.randrange(1, 30)
            self.server.wait(lambda server: len(server.requests) >= asked)
            if kill % (self.KILLS // self.RESTARTS) == 0:
                self.store.stop("immediate")
                time.sleep(chance.random() / 10)
                self.store.start()
            self.end_one(chance)
        self.begin()
        for node in self.nodes:
            _, err = node.communicate()
            self.assertEqual(node.returncode, 0, err)
        outcome = self.command("--store", self.store.url, *self.ARGUMENTS)
        wrong = [result["error"] for result in self.results().values() if not result["success"]]
        self.assertEqual((outcome.status, wrong), (0, []), outcome.err)
        self.check_results()
        lost = self.KILLS * AT_ONCE
        self.assertLessEqual(sum(self.books.answered.values()), CALLS * JOBS + lost)


if __name__ == "__main__":
    unittest.main()

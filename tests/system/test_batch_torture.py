"""rlmd batch, killed again and again: believed in the morning all the same.

Three hundred jobs of three tenants, against a server that fails now and then, and fifty SIGKILLs at
moments of chance. The server keeps the books: what it was asked, and by which job.
"""

import collections
import json
import random
import re
import time
import unittest

from model import Reply
from test_batch import BatchTest
from providers import code

JOBS = 300
TENANTS = ("ada", "bob", "cyd")
KILLS = 50
AT_ONCE = 6
CALLS = 3           # of a job that is never interrupted
FAULTS = (          # what one request in so many gets in the place of an answer
    (60, Reply(error="overloaded")),
    (70, Reply(error="rate_limit", headers={"Retry-After": "0"})),
    (90, Reply(status=502, body=b"<html>Bad Gateway</html>", content_type="text/html")),
)


class Books:
    """What each job has asked, and been answered."""

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
            stage, reply = "last", code(f"FINAL(part + ' of {job}')")
        self.answered[job, stage] += 1
        return reply


class TortureTest(BatchTest):
    def setUp(self):
        super().setUp()
        self.books = Books(seed=14)
        self.server = self.serve("openai").script(None, self.books.reply)
        self.jobs(*({"custom_id": f"j{i}", "task": f"Do job {i}.", "tenant": TENANTS[i % 3],
                     "context": f"the text of job {i}"} for i in range(JOBS)))

    def run_until_killed(self, requests, wait):
        """Kills a batch after so many requests and a moment; False: it came to its end before."""
        process = self.command("-j", AT_ONCE, "--max-parallel", AT_ONCE, "--max-attempts", KILLS,
                               begin=True)
        asked = len(self.server.requests) + requests
        self.server.wait(lambda server: len(server.requests) >= asked
                         or process.poll() is not None)
        time.sleep(wait)
        process.kill()
        process.communicate()
        return process.returncode < 0

    def test_killed_fifty_times(self):
        chance, kills = random.Random(50), 0
        while kills < KILLS:
            # Mostly soon; some before anything is asked, some while results are written.
            self.assertTrue(self.run_until_killed(chance.randrange(18), chance.random() / 20),
                            f"it was at its end after {kills} kills")
            kills += 1
        outcome = self.command("-j", AT_ONCE, "--max-attempts", KILLS)
        self.assertEqual(outcome.status, 0, outcome.err)
        self.check_results()
        self.assertLessEqual(sum(self.books.answered.values()), CALLS * JOBS + KILLS * AT_ONCE)

    def check_results(self):
        results = self.results()
        self.assertEqual(set(results), {f"j{i}" for i in range(JOBS)})
        for i in range(JOBS):
            self.assertEqual(results[f"j{i}"]["output"], f"answer {i} of {i}")
            self.assertEqual(results[f"j{i}"]["tenant"], TENANTS[i % 3])


if __name__ == "__main__":
    unittest.main()

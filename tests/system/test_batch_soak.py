"""Many small jobs: a batch holds no more memory and no more descriptors after the last than early on.

RLMD_SOAK_JOBS=20000 takes minutes; as many as a test has time for are the default.
"""

import os
import pathlib
import unittest

from model import Reply
from providers import code
from test_batch import BatchTest

JOBS = int(os.environ.get("RLMD_SOAK_JOBS", 400))
AT_ONCE = 8
CALLS = 2                 # of a job
SAMPLES = 10              # early on and in the end, of which the highest count
GROWTH_OF_A_JOB = 400     # bytes: what is remembered of one that is over, and pages here and there
GROWTH = 3 << 20          # bytes: of the allocator, whatever it does
OPEN = 3 * AT_ONCE        # descriptors of jobs that end and begin


class SoakTest(BatchTest):
    @staticmethod
    def measure(pid):
        status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
        resident = int(status.split("VmRSS:")[1].split()[0]) << 10
        # Of a process that nobody may look into, the kernel shows these to root alone.
        return resident, 0 if os.geteuid() else len(os.listdir(f"/proc/{pid}/fd"))

    def most(self, pid, first, last):
        """Of some samples while jobs by these numbers are at work."""
        found = []
        for i in range(SAMPLES):
            requests = CALLS * (first + (last - first) * i // SAMPLES)
            self.assertTrue(self.server.wait(lambda server: len(server.requests) >= requests))
            found.append(self.measure(pid))
        return [max(each) for each in zip(*found)]

    def test_flat(self):
        self.server = self.serve("openai")
        self.server.script("a word", Reply(text="short"))
        self.server.script(None, code("FINAL(llm_query('a word'))"))
        self.jobs(*({"custom_id": f"j{i}", "task": f"Do job {i}.", "context": f"text {i}"}
                    for i in range(JOBS)))
        process = self.command("-j", AT_ONCE, "--max-parallel", AT_ONCE, begin=True)
        early, open_early = self.most(process.pid, JOBS // 5, JOBS * 2 // 5)
        late, open_late = self.most(process.pid, JOBS * 4 // 5, JOBS - AT_ONCE)
        _, err = process.communicate()
        self.assertEqual(process.returncode, 0, err)
        self.assertEqual(len(self.results()), JOBS)
        self.assertLess(open_late, open_early + OPEN)
        self.assertLess(late - early, GROWTH + JOBS * GROWTH_OF_A_JOB,
                        f"{early} bytes early on, {late} in the end")


if __name__ == "__main__":
    unittest.main()

"""rlmd.batch(): jobs of dicts or of a file, results that stay, and what fails."""

import json
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from test_client import PythonTest, rlmd  # noqa: E402
from model import ModelServer, Reply  # noqa: E402


class BatchTest(PythonTest):
    def setUp(self):
        super().setUp()
        self.server = ModelServer(provider="openai")
        self.server.script(lambda request: "fail" in request.first_turn, Reply(text="FINAL()"))
        self.server.script(None, lambda request: Reply(text="FINAL(größe 🙂)"))
        self.addCleanup(self.server.stop)
        self.server.start()
        os.environ.update(self.server.environment())
        self.options = {"provider": "openai", "model": "m", "max_iterations": 1}

    JOBS = [{"custom_id": f"ä{n}", "task": "a task", "context": "text 🙂"} for n in range(3)]

    def test_dicts(self):
        """Begun again, it asks nothing that it has had."""
        done = rlmd.batch(self.JOBS, "results.jsonl", jobs=2, temperature=0.5, **self.options)
        self.assertTrue(done.success)
        self.assertEqual((done["succeeded"], done["failed"], done.cost), (3, 0, 0.0))
        answers = dict(done.answers())
        self.assertEqual(sorted(answers), ["ä0", "ä1", "ä2"])
        self.assertEqual(set(answers.values()), {"größe 🙂"})
        self.assertIsInstance(answers["ä0"], rlmd.Answer)
        asked = len(self.server.requests)
        again = rlmd.batch(self.JOBS, "results.jsonl", jobs=2, temperature=0.5, **self.options)
        self.assertEqual(dict(again.answers()), answers)
        self.assertEqual(len(self.server.requests), asked)

    def test_a_job_that_fails_is_no_exception(self):
        jobs = [*self.JOBS, {"custom_id": "bad", "task": "fail"}]
        done = rlmd.batch(iter(jobs), pathlib.Path("r.jsonl"), **self.options)
        self.assertFalse(done.success)
        self.assertEqual((done["succeeded"], done["failed"]), (3, 1))
        failed = dict(done.answers())["bad"]
        self.assertIsInstance(failed, rlmd.BudgetError)
        self.assertIn("usage", failed.result)

    def test_a_file(self):
        path = pathlib.Path("jobs.jsonl")
        path.write_text("".join(json.dumps(job) + "\n" for job in self.JOBS))
        self.assertEqual(rlmd.batch(path, "r.jsonl", **self.options)["succeeded"], 3)

    def test_nothing_ran(self):
        with self.assertRaisesRegex(rlmd.InputError, "custom_id 'ä0' stands there twice"):
            rlmd.batch([self.JOBS[0], {**self.JOBS[0], "task": "b"}], "twice.jsonl", **self.options)
        with self.assertRaisesRegex(rlmd.UsageError, "nonsense"):
            rlmd.batch(self.JOBS, "r.jsonl", nonsense=1)
        with self.assertRaisesRegex(rlmd.UsageError, "socket"):
            rlmd.batch(self.JOBS, "r.jsonl", binary="unix:/tmp/x")
        with self.assertRaises(TypeError):
            rlmd.batch([{"custom_id": {1, 2}}], "r.jsonl", **self.options)
        self.assertEqual(self.server.requests, [])


if __name__ == "__main__":
    unittest.main()

"""rlmd batch: a line for each job, once, whatever happens to the process and to the file."""

import json
import os
import resource
import signal
import unittest

import patience
from model import Reply
from providers import ProviderTest, code, final


class BatchTest(ProviderTest):
    def jobs(self, *jobs, name="jobs.jsonl"):
        lines = [job if isinstance(job, str) else json.dumps(job) for job in jobs]
        return self.write(name, "".join(line + "\n" for line in lines))

    def command(self, *arguments, server=None, begin=False, limits=None):
        """A batch of jobs.jsonl, to its end or `begin` only; within `limits` of resources."""
        command = ["batch", "-o", "results.jsonl", "-p", "openai", "-m", "m", *arguments,
                   "jobs.jsonl"]
        env = self.environment(**(server or self.server).environment())
        if begin:
            return self.start(*command, env=env, preexec_fn=lambda: signal.signal(
                signal.SIGINT, signal.SIG_DFL))
        return self.rlmd(*command, env=env, preexec_fn=limits and (lambda: [
            resource.setrlimit(which, (most, most)) for which, most in limits.items()]))

    def results(self):
        lines = (self.dir / "results.jsonl").read_text("utf-8").splitlines()
        objects = [json.loads(line) for line in lines]
        found = {each["custom_id"]: each for each in objects}
        self.assertEqual(len(found), len(objects), "a custom_id has two lines")
        return found


class JobsTest(BatchTest):
    def test_each_gets_its_context_and_its_line(self):
        self.server = self.serve("openai").script(None, lambda request: code("FINAL(len(context))"))
        self.write("in/three.txt", "123")
        self.jobs({"custom_id": "a", "task": "t", "context_file": "in/three.txt", "tenant": "acme"},
                  {"custom_id": "b", "task": "t", "context_file": "in/three.txt"},
                  {"custom_id": "c", "task": "t", "context": "12345"},
                  {"custom_id": "d", "task": "t", "context_dir": "in"},
                  {"custom_id": "e", "task": "t", "context_file": "in/missing.txt"})
        outcome = self.command()
        self.assertEqual(outcome.status, 3, outcome.err)
        self.assertIn("5 jobs: 4 succeeded, 1 failed (1 input)", outcome.err)
        results = self.results()
        self.assertEqual(len(results), 5)
        self.assertEqual([results[id]["output"] for id in "abc"], ["3", "3", "5"])
        self.assertGreater(int(results["d"]["output"]), 3)
        self.assertEqual([results[id]["tenant"] for id in "ab"], ["acme", None])
        self.assertEqual(results["a"]["attempts"], 1)
        self.assertFalse(results["e"]["success"])
        self.assertIn("missing.txt", results["e"]["error"]["message"])
        asked = len(self.server.requests)
        self.assertEqual(self.command().status, 3, "what was done is done again")
        self.assertEqual(len(self.server.requests), asked)
        (self.dir / "results.jsonl").unlink()
        self.command()
        self.assertEqual(self.results(), results)

    def test_bad_lines(self):
        self.server = self.serve("openai").script(None, final())
        self.jobs({"custom_id": "a", "task": "t"}, '{"custom_id": "b"', {"custom_id": "c"})
        outcome = self.command()
        self.assertEqual(outcome.status, 8, outcome.err)
        self.assertIn("2 of 3 lines are no jobs", outcome.err)
        self.assertRegex(outcome.err, "jsonl:2: .*\n.*jsonl:3: ")
        self.assertEqual(self.server.requests, [])
        outcome = self.command("--skip-bad-lines")
        self.assertEqual(outcome.status, 3, outcome.err)
        self.assertEqual(list(self.results()), ["a"])

    def test_ids_that_stand_there_twice(self):
        self.server = self.serve("openai").script(None, final())
        self.jobs({"custom_id": "a", "task": "t"}, {"custom_id": "a", "task": "other"})
        outcome = self.command()
        self.assertEqual(outcome.status, 8, outcome.err)
        self.assertIn("'a' stands there twice", outcome.err)
        self.assertEqual(self.server.requests, [])
        self.jobs({"custom_id": "a", "task": "t"}, '{"task": "t", "custom_id": "a"}')
        outcome = self.command()
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertEqual(list(self.results()), ["a"])

    def test_a_changed_file(self):
        self.server = self.serve("openai").script(None, final())
        first, second = {"custom_id": "a", "task": "t"}, {"custom_id": "b", "task": "t"}
        self.jobs(first)
        self.assertEqual(self.command().status, 0)
        for jobs, told in (([{**first, "task": "u"}], "1 jobs are others now, the first is 'a'"),
                           ([first, second], "1 jobs are new, the first is 'b'")):
            self.jobs(*jobs)
            outcome = self.command()
            self.assertEqual(outcome.status, 2, outcome.err)
            self.assertIn(told, outcome.err)
        self.assertEqual(len(self.server.requests), 1)
        outcome = self.command("--add")
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertEqual(list(self.results()), ["a", "b"])
        before = (self.dir / "results.jsonl").read_bytes()
        for jobs in ([second], [second, second], [second, {"custom_id": "c", "task": "t"}]):
            for arguments in ([], ["--add"]):
                self.jobs(*jobs)
                outcome = self.command(*arguments)
                self.assertEqual(outcome.status, 2, outcome.err)
                self.assertIn("1 of its 2 jobs are gone", outcome.err)
        self.assertEqual((self.dir / "results.jsonl").read_bytes(), before)
        self.jobs(second, first)
        self.assertEqual(self.command().status, 0, "nothing was added")

    def test_stopped_while_jobs_are_loaded(self):
        """The first signal ends that at once: no job is at work yet."""
        self.server = self.serve("openai").script(None, final())
        os.mkfifo(self.dir / "jobs.jsonl")
        end = os.open(self.dir / "jobs.jsonl", os.O_RDWR)
        self.addCleanup(os.close, end)
        process = self.command(begin=True)
        for i in range(2000):  # the store has some of them, and a pipe is never read to its end
            os.write(end, json.dumps({"custom_id": f"job {i}", "task": "t"}).encode() + b"\n")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=patience.hung())
        self.assertEqual(process.returncode, 130, err)
        self.assertIn(b"stopped while jobs were loaded: none was begun", err)
        os.unlink(self.dir / "jobs.jsonl")
        self.jobs({"custom_id": "a", "task": "t"})
        outcome = self.command()
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertEqual(list(self.results()), ["a"])

    def test_what_makes_no_sense(self):
        self.jobs({"custom_id": "a", "task": "t"})
        for arguments, told in ((["jobs.jsonl"], "-o says"), (["-o", "r"], "0 were named"),
                                (["-o", "-", "jobs.jsonl"], "not to standard output"),
                                (["-o", "r", "-"], "not from standard input")):
            outcome = self.rlmd("batch", *arguments)
            self.assertEqual(outcome.status, 2, outcome.err)
            self.assertIn(told, outcome.err)


class FailureTest(BatchTest):
    def test_the_provider_is_back_later(self):
        self.server = self.serve("openai").replies(*[Reply(error="overloaded")] * 3)
        self.server.script(None, final())
        self.jobs({"custom_id": "a", "task": "t"})
        outcome = self.command()
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertGreater(len(self.server.requests), 3)

    def test_a_refused_key(self):
        self.server = self.serve("openai").replies(Reply(error="auth"))
        self.server.script(None, final())
        self.jobs({"custom_id": "a", "task": "t"}, {"custom_id": "b", "task": "t"})
        outcome = self.command("-j1")
        self.assertEqual(outcome.status, 4, outcome.err)
        self.assertIn("2 still pending", outcome.err)
        self.assertEqual(len(self.server.requests), 1)
        self.assertEqual(self.results(), {})
        outcome = self.command("-j1")
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertEqual(self.results()["a"]["attempts"], 1)

    def test_nobody_is_there(self):
        self.server = self.serve("openai").script(None, Reply(drop=True))
        self.jobs({"custom_id": "a", "task": "t"})
        outcome = self.command("--max-attempts=1")
        self.assertEqual(outcome.status, 5, outcome.err)
        self.assertEqual(self.results()["a"]["error"]["kind"], "network")


class EndTest(BatchTest):
    JOBS, AT_ONCE = 10, 3

    def setUp(self):
        super().setUp()
        self.server = self.serve("openai")
        self.server.script(lambda request: request.turn == 0, code("print(len(context))"))
        self.server.script(None, final())
        self.jobs(*({"custom_id": f"job {i}", "task": f"task {i}", "context": f"text {i}"}
                    for i in range(self.JOBS)))

    def check_all(self):
        results = self.results()
        self.assertEqual(set(results), {f"job {i}" for i in range(self.JOBS)})
        self.assertTrue(all(each["success"] for each in results.values()))

    def test_killed(self):
        kills = (3, 8, 13)
        for requests in kills:
            process = self.command("-j", self.AT_ONCE, begin=True)
            self.assertTrue(self.server.wait(lambda server: len(server.requests) >= requests))
            process.kill()
            process.communicate()
        with open(self.dir / "results.jsonl", "ab") as results:
            results.write(b'{"custom_id":"job ')
        outcome = self.command("-j", self.AT_ONCE)
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertIn("was taken away", outcome.err)
        self.check_all()
        self.assertLessEqual(len(self.server.requests),
                             2 * self.JOBS + len(kills) * self.AT_ONCE)

    def test_interrupted(self):
        """Once: those that were begun end. Twice: they wait for the next start."""
        ready = []
        self.server.rules.clear()
        self.server.script(None, final(until=lambda: bool(ready)))
        for signals in (2, 1):
            asked = len(self.server.requests)
            process = self.command("-j", self.AT_ONCE, begin=True)
            self.assertTrue(self.server.wait(
                lambda server: len(server.requests) == asked + self.AT_ONCE))
            process.send_signal(signal.SIGINT)
            line = process.stderr.readline()
            self.assertIn(b"no job is begun any more", line)
            if signals == 2:
                process.send_signal(signal.SIGINT)
            else:
                ready.append(True)
            _, err = process.communicate()
            self.assertEqual(process.returncode, 130, err)
            self.assertEqual(len(self.results()), 0 if signals == 2 else self.AT_ONCE)
        self.others_work()
        asked = len(self.server.requests)
        outcome = self.command("-j", self.AT_ONCE)
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertEqual(len(self.server.requests), asked)
        self.check_all()

    def others_work(self):
        env = self.environment(**self.server.environment())
        settings = ["-p", "openai", "-m", "m", "--store", "results.jsonl.store"]
        outcome = self.rlmd("work", *settings, "--batch", "another", env=env)
        self.assertEqual(outcome.status, 2, outcome.err)
        self.assertIn("has no batch 'another'", outcome.err)
        outcome = self.rlmd("work", *settings, env=env)
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertIn(f"{self.JOBS} jobs: {self.JOBS} succeeded", outcome.err)


if __name__ == "__main__":
    unittest.main()

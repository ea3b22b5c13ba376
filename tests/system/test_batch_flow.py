"""rlmd batch: what becomes of jobs that fail, and when jobs are begun."""

import json
import os
import pathlib
import resource
import signal
import sqlite3
import subprocess
import unittest

from harness import RLMD
from model import Reply
from providers import code, final
from test_batch import BatchTest

SANITIZED = b"__asan_init" in pathlib.Path(RLMD).read_bytes()
DEADLY = "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"


class DeadLettersTest(BatchTest):
    def test_a_worker_that_its_job_kills(self):
        """It fails, and its trace is beside the results, whatever its name is."""
        files = {"../d e": "%2E.%2Fd%20e.jsonl", ".": "%2E.jsonl", "\u00e9" * 40: None}
        self.server = self.serve("openai").script("live", final()).script(None, code(DEADLY))
        self.jobs({"custom_id": "good", "task": "live"},
                  *({"custom_id": id, "task": "die", "budget": {"maxIterations": 2}}
                    for id in files))
        outcome = self.command()
        self.assertEqual(outcome.status, 3, outcome.err)
        self.assertIn("1 succeeded, 3 failed (3 budget)", outcome.err)
        self.assertEqual({each["attempts"] for each in self.results().values()}, {1})
        traces = self.dir / "results.jsonl.traces"
        names = {path.name for path in traces.iterdir()}
        self.assertEqual(len(names), 3)
        self.assertLess({name for name in files.values() if name}, names)
        shown = self.rlmd("trace", traces / files["."])
        self.assertEqual(shown.status, 0, shown.err)
        self.assertIn("SIGKILL", shown.out)
        self.assertEqual(json.loads(shown.out)["task"], "die")

    def test_rlmd_ends_with_it(self):
        """A job that was at work when rlmd was killed is not begun for ever."""
        self.server = self.serve("openai").script(None, Reply(text="", until=lambda: False))
        self.jobs({"custom_id": "a", "task": "t"})
        process = self.command("--max-attempts=1", begin=True)
        self.assertTrue(self.server.wait(lambda server: server.requests))
        process.kill()
        process.communicate()
        outcome = self.command("--max-attempts=1")
        self.assertEqual(outcome.status, 3, outcome.err)
        self.assertEqual(len(self.server.requests), 1)
        result = self.results()["a"]
        self.assertEqual((result["error"]["kind"], result["attempts"]), ("worker", 1))
        self.assertIn("begun 1 times", result["error"]["message"])
        self.server.rules.clear()
        self.server.script(None, final())
        outcome = self.command("--max-attempts=1", "--rerun-failed")
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertTrue(self.results()["a"]["success"])


class EnoughTest(BatchTest):
    def test_fail_fast_and_halt(self):
        """What has failed before does not count at the next start."""
        self.server = self.serve("openai").script("good", final())
        self.server.script(None, Reply(error="bad_request"))
        words = "good bad good good bad bad bad good bad good".split()
        self.jobs(*({"custom_id": str(i), "task": word} for i, word in enumerate(words)))
        for arguments, ended, told in ((["--fail-fast"], 2, "1 of 2 jobs"),
                                       (["--halt=50%"], 7, "3 of 5 jobs")):
            outcome = self.command("-j1", *arguments)
            self.assertEqual(outcome.status, 3, outcome.err)
            self.assertIn(told, outcome.err)
            self.assertEqual(set(self.results()), set(map(str, range(ended))))
        outcome = self.command("-j1", "--halt=90%")
        self.assertEqual(outcome.status, 3, outcome.err)
        self.assertEqual(len(self.results()), len(words))
        traces = self.dir / "results.jsonl.traces"
        self.assertEqual(len(list(traces.iterdir())), words.count("bad"))
        self.server.rules.clear()
        self.server.script("bad", final("better")).script(None, Reply(error="bad_request"))
        outcome = self.command("--rerun-failed", "--sort")
        self.assertEqual(outcome.status, 0, outcome.err)
        results = self.results()
        self.assertEqual(list(results), list(map(str, range(len(words)))))
        self.assertEqual([each["output"] for each in results.values()],
                         [{"good": "ok", "bad": "better"}[word] for word in words])
        self.assertEqual({each["attempts"] for each in results.values()}, {1})
        self.assertEqual(list(traces.iterdir()), [])
        for arguments in (["--halt=0"], ["--halt=101%"], ["--halt=1x"],
                          ["--halt=1%", "--fail-fast"]):
            self.assertEqual(self.command(*arguments).status, 2)


class PaceTest(BatchTest):
    def test_no_memory(self):
        """One job at a time always runs."""
        self.server = self.serve("openai").script(None, final())
        self.jobs(*({"custom_id": str(i), "task": "t"} for i in range(4)))
        outcome = self.command("-j4", "--reserve-memory=1000T")
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertIn("too little memory", outcome.err)
        self.assertEqual(self.server.peak, 1)

    def test_a_provider_that_is_busy(self):
        """Those at work have found out; no others begin, to wait each for itself."""
        at_once = 2
        self.server = self.serve("openai").script(
            None, Reply(error="rate_limit", headers={"Retry-After": "1000"},
                        until=lambda: len(self.server.requests) >= at_once))
        self.jobs(*({"custom_id": str(i), "task": "t", "budget": {"maxTime": 600000}}
                    for i in range(6)))
        process = self.command("-j", at_once, "-vv", begin=True)
        lines = []
        for line in process.stderr:
            lines.append(line.decode())
            if "limits the rate, or is busy" in lines[-1]:
                process.send_signal(signal.SIGINT)
        process.wait()
        told = "".join(lines)
        self.assertEqual(process.returncode, 130, told)
        self.assertIn("6 still pending", told)
        self.assertEqual(len(self.server.requests), at_once)
        self.assertNotIn("call_held", told)


class ShardTest(BatchTest):
    def test_shards_of_one_store_and_contexts_of_a_revision(self):
        """Each does its share; what a revision has is the repository's of the jobs file."""
        def git(*words):
            subprocess.run(("git", "-C", self.dir / "in", "-c", "user.name=n", "-c", "user.email=e",
                            *words), check=True, capture_output=True)
        self.server = self.serve("openai").script(
            None, lambda request: code("FINAL(len(context))"))
        self.write("in/file", "12345")
        git("init", "-q")
        git("add", ".")
        git("commit", "-qm", "one")
        self.write("in/file", "1")
        ids = [f"job {i}" for i in range(6)]
        self.jobs(*({"custom_id": id, "task": "t", "context_dir": "git:HEAD:file"} for id in ids),
                  name="in/jobs.jsonl")
        for i in ("1/2", "2/2", "3/2"):
            outcome = self.rlmd("batch", "-o", f"part{i[0]}", "-p", "openai", "-m", "m",
                                "--journal=s", f"--shard={i}", "in/jobs.jsonl",
                                env=self.environment(**self.server.environment()))
            self.assertEqual(outcome.status, 2 if i[0] == "3" else 0, outcome.err)
        parts = [(self.dir / f"part{i}").read_text().splitlines() for i in (1, 2)]
        self.assertTrue(all(parts), "a share has nothing")
        self.assertEqual(self.rlmd("merge", "-o", "results.jsonl", "part1", "part2").status, 0)
        results = self.results()
        self.assertEqual(set(results), set(ids))
        self.assertEqual({each["output"] for each in results.values()}, {"22"})  # with its name above it
        self.assertEqual(len(self.server.requests), len(ids))


class BadInputTest(BatchTest):
    def test_what_is_there_is_no_batch_of_ours(self):
        """Nothing is touched of a store or results that are not this batch's."""
        self.server = self.serve("openai").script(None, final())
        jobs = [{"custom_id": f"job {i}", "task": "t"} for i in range(3)]
        self.jobs(*jobs)
        self.assertEqual(self.command().status, 0)
        path = self.dir / "results.jsonl"
        asked, results = len(self.server.requests), path.read_bytes()
        for other, told in (({"custom_id": "new", "task": "t"}, "which no job has"),
                            ({"custom_id": "job 0", "task": "u"}, "which was another job")):
            self.jobs(other)
            outcome = self.command("--store", f"store of {other['task']}")
            self.assertEqual(outcome.status, 8, outcome.err)
            self.assertIn(told, outcome.err)
        self.jobs(*jobs)
        self.write("noise", "this is no database " * 1000)
        with sqlite3.connect(self.dir / "later") as later:
            later.execute("PRAGMA application_id = 0x726c6d64")
            later.execute("PRAGMA user_version = 1000")
        with sqlite3.connect(self.dir / "theirs") as theirs:
            theirs.execute("CREATE TABLE data (id integer)")
        for store, told in (("theirs", "of another program"), ("noise", "damaged, or is no store"), ("later", "version 1000 of its schema")):
            before = (self.dir / store).read_bytes()
            outcome = self.command("--store", store)
            self.assertEqual(outcome.status, 2, outcome.err)
            self.assertIn(told, outcome.err)
            self.assertEqual((self.dir / store).read_bytes(), before)
        self.assertEqual(path.read_bytes(), results)
        self.assertEqual(len(self.server.requests), asked)

    def test_a_full_disk(self):
        """It says so, and with more room it goes on: nothing is lost, and nothing paid again."""
        full = []
        self.server = self.serve("openai").script(
            None, final("x" * 2000, until=lambda: bool(full)))
        self.jobs(*({"custom_id": f"job {i}", "task": "t"} for i in range(60)))
        process = self.command("-j2", begin=True)
        self.assertTrue(self.server.wait(lambda server: server.requests))
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (200000, 200000))
        full.append(True)
        _, err = process.communicate()
        self.assertEqual(process.returncode, 1, err)
        self.assertIn(b"no room is left where the store is", err)
        asked = len(self.server.requests)
        self.assertLess(asked, 60)
        outcome = self.command("-j2")
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertEqual(len(self.results()), 60)
        self.assertLessEqual(len(self.server.requests), 60 + 2)  # what was in flight

    @unittest.skipIf(SANITIZED, "a sanitizer keeps what was freed")
    def test_a_large_file(self):
        """It is read as a stream: what is read does not stay in memory."""
        peaks = []
        for lines in (1, 500):
            with open(self.dir / "jobs.jsonl", "w", encoding="utf-8") as jobs:
                for i in range(lines):
                    job = {"custom_id": f"job {i}", "task": "t", "context": "x" * 100000}
                    jobs.write(json.dumps(job) + "\n")
                jobs.write("no job\n")
            process = self.start("batch", "-o", f"results {lines}", "jobs.jsonl",
                                 stderr=subprocess.DEVNULL, env=self.environment())
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(process.returncode, 8)
            peaks.append(usage.ru_maxrss << 10)  # at least that of this test
        self.assertLess(peaks[1] - peaks[0], lines * 100000 // 4, peaks)


if __name__ == "__main__":
    unittest.main()

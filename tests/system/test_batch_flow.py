"""rlmd batch: what becomes of jobs that fail, and when jobs are begun."""

import json
import os
import pathlib
import resource
import signal
import sqlite3
import subprocess
import threading
import time
import unittest

import patience
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
        for asked in (1, 2):  # at first it might not have been alone
            process = self.command("--max-attempts=1", begin=True)
            self.assertTrue(self.server.wait(lambda server: len(server.requests) >= asked))
            process.kill()
            process.communicate()
        outcome = self.command("--max-attempts=1")
        self.assertEqual(outcome.status, 3, outcome.err)
        self.assertEqual(len(self.server.requests), 2)
        result = self.results()["a"]
        self.assertEqual((result["error"]["kind"], result["attempts"]), ("worker", 1))
        self.assertIn("begun 1 times", result["error"]["message"])
        self.server.rules.clear()
        self.server.script(None, final())
        outcome = self.command("--max-attempts=1", "--rerun-failed")
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertTrue(self.results()["a"]["success"])


class DegradedTest(BatchTest):
    def reply(self, request):
        """One wants a turn more than it has, one a sub-run."""
        if "forced" in request.first_turn and request.turn == 0:
            return code("print(1)")
        if "sub" in request.first_turn and request.turn == 0:
            return code("print(rlm_query('part'))")
        return final("good")

    def test_they_are_counted_and_asked_anew(self):
        self.server = self.serve("openai").script(None, self.reply)
        self.jobs(*({"custom_id": name, "task": f"{name} it"} for name in ("plain", "sub", "forced")))
        few = ["--max-iterations=1", "--downgrade=100"]
        metrics = self.dir / "metrics"
        for _ in range(2):  # the second time it begins with what the store has
            outcome = self.command("--json", "--metrics=metrics", "--max-iterations=2",
                                   "--downgrade=100")
            self.assertEqual(outcome.status, 0, outcome.err)
            self.assertIn('rlmd_batch_degraded_jobs{batch="jobs.jsonl",tenant=""} 1',
                          metrics.read_text())
        self.assertEqual((outcome.result["succeeded"], outcome.result["degraded"]), (3, 1))
        self.assertIn("1 job succeeded with a forced or degraded answer: 'rlmd batch "
                      "--rerun-degraded' asks anew", outcome.err)
        store = ["--store", "sqlite:results.jsonl.store"]
        self.assertIn(" 3 succeeded (1 degraded), 0 failed;", self.rlmd("status", *store).out)
        batch, = json.loads(self.rlmd("status", *store, "--json").out)["batches"]
        self.assertEqual([each["degraded"] for each in (batch, *batch["tenants"])], [1, 1])
        outcome = self.command("--json", *few, "--rerun-degraded")
        self.assertEqual((outcome.result["succeeded"], outcome.result["degraded"]), (3, 1),
                         outcome.err)
        plain = self.results()["plain"]
        asked = len(self.server.requests)
        outcome = self.command("--metrics=metrics", "--rerun-degraded", "--rerun-failed")
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertRegex(outcome.err, r"3 succeeded, 0 failed")
        self.assertLessEqual(len(self.server.requests), asked + 3)
        self.assertEqual(self.results()["plain"], plain)
        self.assertIn('rlmd_batch_degraded_jobs{batch="jobs.jsonl",tenant=""} 0',
                      metrics.read_text())

    def test_a_lost_store(self):
        """An answer that the results file shows to be forced is so in the new store, too."""
        self.server = self.serve("openai").script(None, self.reply)
        self.jobs(*({"custom_id": name, "task": f"{name} it"} for name in ("plain", "forced")))
        self.assertEqual(self.command("--max-iterations=1").status, 0)
        for file in self.dir.glob("results.jsonl.store*"):
            file.unlink()
        asked = len(self.server.requests)
        outcome = self.command("--json")
        self.assertEqual((outcome.status, outcome.result["degraded"]), (0, 1), outcome.err)
        self.assertEqual(len(self.server.requests), asked)
        outcome = self.command("--json", "--rerun-degraded")
        self.assertEqual((outcome.status, outcome.result["degraded"]), (0, 0), outcome.err)
        self.assertEqual(self.results()["forced"]["stopReason"], "final")


class PoisonTest(BatchTest):
    """A job that has rlmd killed whenever it is at work."""
    TASKS = ("zebra", "poison", "yak", "xerus")

    def setUp(self):
        super().setUp()
        self.process, self.together = None, 4
        self.server = self.serve("openai")
        self.server.script("poison", Reply(text="", until=self.strike))
        self.server.script(None, Reply(text="", until=lambda: False))

    def tasks(self, since=0):
        return [next(task for task in self.TASKS if task in request.last_user)
                for request in self.server.requests[since:]]

    def strike(self):
        if self.process and len(self.server.requests) >= self.together:
            self.process.kill()
        return False

    def run_until_killed(self, *arguments):
        """The jobs that were asked for meanwhile."""
        asked = len(self.server.requests)
        self.process = self.command(*arguments, begin=True)
        _, err = self.process.communicate(timeout=patience.hung())
        self.assertEqual(self.process.returncode, -signal.SIGKILL, err)
        return self.tasks(since=asked)

    def test_its_neighbours_live(self):
        self.jobs(*({"custom_id": task, "task": task} for task in self.TASKS))
        arguments = ["-j4", "--max-attempts=2"]
        self.assertEqual(sorted(self.run_until_killed(*arguments)), sorted(self.TASKS))
        self.server.rules.pop()
        self.server.script(None, final())
        self.assertEqual(self.run_until_killed(*arguments), ["zebra", "poison"])
        self.assertEqual(self.run_until_killed(*arguments), ["poison"])
        asked = len(self.server.requests)
        outcome = self.command(*arguments)
        self.assertEqual(outcome.status, 3, outcome.err)
        self.assertEqual(self.tasks(since=asked), ["yak", "xerus"])
        results = self.results()
        poison = results.pop("poison")
        self.assertEqual((poison["error"]["kind"], poison["attempts"]), ("worker", 2))
        self.assertIn("begun 2 times", poison["error"]["message"])
        self.assertEqual({id: (each["success"], each["attempts"]) for id, each in results.items()},
                         {id: (True, 1) for id in ("zebra", "yak", "xerus")})


    def running(self):
        status = json.loads(self.rlmd("status", "--store", "sqlite:results.jsonl.store", "--json").out)
        return status["batches"][0]["running"]

    def test_one_that_waits_to_be_alone(self):
        """It is given back when the batch is told to end, and done by the next start."""
        names = ("zebra", "yak")
        released = threading.Event()
        self.server.rules.clear()
        self.server.script(None, final(until=released.is_set))
        self.jobs(*({"custom_id": name, "task": name} for name in names))
        for asked in (2, 3):  # both at once, and then one of them
            process = self.command("-j2", begin=True)
            self.assertTrue(self.server.wait(lambda server: len(server.requests) >= asked))
            while self.running() < 2:
                time.sleep(0.01)
            if asked == 2:
                process.kill()
                process.communicate()
        process.send_signal(signal.SIGTERM)
        while self.running() > 1:
            time.sleep(0.01)
        released.set()
        _, err = process.communicate()
        self.assertEqual(process.returncode, 128 + signal.SIGTERM, err)
        self.assertEqual(set(self.results()), {"zebra"})
        outcome = self.command("-j2")
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertEqual({id: each["attempts"] for id, each in self.results().items()},
                         {name: 1 for name in names})


class EnoughTest(BatchTest):
    def test_fail_fast_and_halt(self):
        """Failures of before do not count at the next start."""
        self.server = self.serve("openai").script("good", final())
        self.server.script(None, Reply(error="bad_request"))
        words = "good bad good good bad bad bad good bad good".split()
        self.jobs(*({"custom_id": str(i), "task": word} for i, word in enumerate(words)))
        for arguments, ended, told in ((["--halt=1"], 2, "1 of 2 jobs"),
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
        for arguments in (["--halt=0"], ["--halt=101%"], ["--halt=1x"], ["--halt=0%"]):
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

    def test_few_descriptors(self):
        """The machine's want is no job's failure: fewer are at work at once."""
        self.server = self.serve("openai")
        self.server.script(lambda request: request.turn == 0, code("print(len(context))"))
        self.server.script(None, final())
        self.jobs(*({"custom_id": f"job {i}", "task": f"task {i}", "context": "x" * 48 * (i + 1)}
                    for i in range(40)))
        for files in (48, 64, 128):
            for left in self.dir.glob("results.jsonl*"):
                left.unlink()
            outcome = self.command("-j32", limits={resource.RLIMIT_NOFILE: files})
            self.assertEqual(outcome.status, 0, outcome.err)
            self.assertIn(f"for a process may have {files} open files (ulimit -n)", outcome.err)
            results = self.results()
            self.assertEqual(len(results), 40)
            self.assertEqual({each["attempts"] for each in results.values()}, {1})

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
                                "--store=s", f"--shard={i}", "in/jobs.jsonl",
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
        for others, told in (([{"custom_id": "new", "task": "t"}], "which no job has"),
                             ([{**job, "task": "u"} for job in jobs], "which was another job")):
            self.jobs(*others)
            outcome = self.command("--store", f"store of {others[0]['task']}")
            self.assertEqual(outcome.status, 8, outcome.err)
            self.assertIn(told, outcome.err)
        self.jobs(*jobs)
        self.write("noise", "this is no database " * 1000)
        with sqlite3.connect(self.dir / "later") as later:
            later.execute("PRAGMA application_id = 0x726c6d64")
            later.execute("PRAGMA user_version = 1000")
        with sqlite3.connect(self.dir / "theirs") as theirs:
            theirs.execute("CREATE TABLE data (id integer)")
        for store, status, told in (("theirs", 2, "of another program"),
                                    ("noise", 8, "damaged, or is no store"),
                                    ("later", 2, "version 1000 of its schema")):
            before = (self.dir / store).read_bytes()
            outcome = self.command("--store", store)
            self.assertEqual(outcome.status, status, outcome.err)
            self.assertIn(told, outcome.err)
            self.assertEqual((self.dir / store).read_bytes(), before)
        self.assertEqual(path.read_bytes(), results)
        self.assertEqual(len(self.server.requests), asked)

    def test_the_jobs_file_is_not_for_results(self):
        """Nothing is asked, and not a byte of it changes: neither by its name nor by a link."""
        self.server = self.serve("openai").script(None, final())
        jobs = pathlib.Path(self.jobs({"custom_id": "a", "task": "t"}))
        jobs.write_bytes(jobs.read_bytes().rstrip(b"\n"))
        before = jobs.read_bytes()
        os.symlink("jobs.jsonl", self.dir / "symbolic")
        os.link(jobs, self.dir / "hard")
        os.link(jobs, self.dir / "r.store")
        env = self.environment(**self.server.environment())
        for arguments in (["-o", "jobs.jsonl"], ["-o", "symbolic"], ["-o", "./hard"], ["-o", "r"],
                          ["-o", "r", "--store", "hard"], ["-o", "r", "--store=sqlite:symbolic"],
                          ["--submit", "--store", "hard"]):
            outcome = self.rlmd("batch", "-p", "openai", "-m", "m", *arguments, "jobs.jsonl",
                                env=env)
            self.assertEqual(outcome.status, 2, arguments)
            self.assertIn("is the jobs file itself", outcome.err)
            self.assertEqual(jobs.read_bytes(), before)
        self.assertEqual(self.server.requests, [])
        self.assertEqual(self.command().status, 0)
        for name in ("jobs.jsonl", "hard", "symbolic"):
            for command in (["results", "--store=results.jsonl.store"], ["merge", "results.jsonl"]):
                outcome = self.rlmd(*command, "-o", name)
                self.assertIn(outcome.status, (2, 8), outcome.err)
                self.assertRegex(outcome.err, "no line of results|has no results")
                self.assertEqual(jobs.read_bytes(), before)

    def test_lost_stores_cost_nothing(self):
        """Jobs that the results file has are done, in whatever way the store was lost."""
        self.server = self.serve("openai").script(
            lambda request: "job 2" in request.last_user, Reply(error="content_filter"))
        self.server.script(None, final())
        self.jobs(*({"custom_id": f"job {i}", "task": f"job {i}"} for i in range(4)))
        self.assertEqual(self.command().status, 3)
        store, results = self.dir / "results.jsonl.store", self.dir / "results.jsonl"
        lines, asked = results.read_bytes(), len(self.server.requests)
        for lose in (store.unlink, lambda: store.write_bytes(b""),
                     lambda: store.rename(self.dir / "moved")):
            lose()
            refused = self.command("--rerun-failed")
            self.assertEqual(refused.status, 2, refused.err)
            self.assertIn("4 jobs that are not over in the store: start once without",
                          refused.err)
            outcome = self.command("--halt=1", "--max-batch-cost=1", *self.prices(m=(1, 1)))
            self.assertEqual(outcome.status, 3, outcome.err)
            self.assertIn("4 results that the store does not know", outcome.err)
            self.assertIn("3 succeeded, 1 failed", outcome.err)
            self.assertEqual(results.read_bytes(), lines)
            self.assertEqual(len(self.server.requests), asked, "paid again")
            self.assertNotIn("does not know", self.command().err)
        store.unlink()
        kept = lines.splitlines(True)[:2]
        results.write_bytes(b"".join(kept))
        self.assertEqual(self.command("--sort").status, 3)
        self.assertEqual(len(self.server.requests), asked + 2, "what was not there")
        self.assertEqual(self.command("--rerun-failed").status, 3)
        self.assertEqual(len(self.server.requests), asked + 3)

    def test_results_that_others_changed(self):
        """Before the end it is looked whether the file has what the store has."""
        held = []
        self.server = self.serve("openai").script(
            lambda request: "job 3" in request.last_user, final(until=lambda: bool(held)))
        self.server.script(None, final("x"))
        self.jobs(*({"custom_id": f"job {i}", "task": f"job {i}"} for i in range(4)))
        path, other = self.dir / "results.jsonl", self.dir / "other"
        changes = ((path.unlink, 0, "was taken away"),
                   (lambda: path.write_bytes(b""), 0, "was changed"),
                   (lambda: (other.write_bytes(b"x"), other.rename(path)), 1, "is another file"))
        for change, status, told in changes:
            for left in self.dir.glob("results.jsonl*"):
                left.unlink()
            process = self.command("-j1", begin=True)
            patience.wait_until(lambda: path.exists() and path.read_bytes().count(b"\n") == 3,
                                "three results")
            change()
            held.append(True)
            _, err = process.communicate()
            held.clear()
            self.assertEqual(process.returncode, status, err)
            self.assertIn(told.encode(), err)
            if status == 0:
                self.assertEqual(len(self.results()), 4)
        path.unlink()
        self.assertEqual(self.command().status, 0)
        path.write_bytes(path.read_bytes().replace(b'"output":"x"', b'"output":"y"', 1))
        outcome = self.command()
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertIn("1 of its lines said something else", outcome.err)
        self.assertEqual({each["output"] for each in self.results().values()}, {"x", "ok"})

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

"""rlmd work: several machines at the jobs of one store, whatever becomes of machines and store."""

import json
import os
import signal
import subprocess
import threading
import time
import unittest

import patience
import postgres
from harness import BUILD
from model import Reply
from providers import ProviderTest, code, final


COMMITS = "SELECT sum(xact_commit) FROM pg_stat_database"
CLOCK = os.path.join(BUILD, "tests", "system", "libjumping_clock.so")


@unittest.skipIf(postgres.missing(), postgres.missing())
class NodesTest(ProviderTest):
    """One server of PostgreSQL for all; each test has batches of its own."""

    JOBS = 6

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.store = postgres.PostgresServer().start()
        cls.addClassCleanup(cls.store.remove)

    def setUp(self):
        super().setUp()
        self.server = self.serve("openai")
        self.name = self.id().rsplit(".", 1)[-1]
        self.ready = False

    def submit(self, *jobs, status=0):
        jobs = jobs or [{"custom_id": f"job {i}", "task": f"task {i}"} for i in range(self.JOBS)]
        self.write("in/jobs.jsonl", "".join(json.dumps(job) + "\n" for job in jobs))
        outcome = self.rlmd("batch", "--store", self.store.url, "--batch", self.name, "--submit",
                            "in/jobs.jsonl")
        self.assertEqual(outcome.status, status, outcome.err)
        return outcome

    def words(self, *arguments):
        return ["work", "-p", "openai", "-m", "m", "--store", self.store.url,
                "--batch", self.name, *arguments]

    def env(self, **more):
        return self.environment(**{**self.server.environment(), **more})

    def work(self, *arguments, **env):
        return self.rlmd(*self.words(*arguments), env=self.env(**env))

    def begin(self, *arguments, **env):
        process = self.start(*self.words(*arguments), env=self.env(**env))
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.communicate()

    def asked(self, count):
        self.assertTrue(self.server.wait(lambda server: len(server.requests) >= count))

    def results(self, status=0):
        """The files of the machine with the jobs file in the end."""
        outcome = self.rlmd("batch", "-p", "openai", "-m", "m", "--store", self.store.url,
                            "--batch", self.name, "-o", "results.jsonl", "in/jobs.jsonl",
                            env=self.env())
        self.assertEqual(outcome.status, status, outcome.err)
        lines = (self.dir / "results.jsonl").read_text("utf-8").splitlines()
        objects = [json.loads(line) for line in lines]
        found = {each["custom_id"]: each for each in objects}
        self.assertEqual(len(found), len(objects), "a custom_id has two lines")
        return found

    def ask(self, sql):
        return self.store.ask(sql)

    def test_elsewhere(self):
        """A machine that knows nothing of the jobs file; paths are of where that is."""
        self.server.script(None, lambda request: code("FINAL(len(context))"))
        self.write("in/three.txt", "123")
        self.submit({"custom_id": "a", "task": "t", "context_file": "three.txt"},
                    {"custom_id": "b", "context_dir": "git:HEAD", "task": "t"}, status=8)
        outcome = self.submit({"custom_id": "a", "task": "t", "context_file": "three.txt"},
                              {"custom_id": "b", "context": "12345", "task": "t"})
        self.assertIn("2 jobs, 2 of them new", outcome.err)
        self.assertEqual(self.server.requests, [])
        outcome = self.submit({"task": "t", "context_file": "three.txt", "custom_id": "a"},
                              {"custom_id": "b", "context": "12345", "task": "t"})
        self.assertIn("2 jobs, 0 of them new", outcome.err)
        outcome = self.work()
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertIn("2 jobs: 2 succeeded", outcome.err)
        asked = len(self.server.requests)
        self.assertEqual({id: each["output"] for id, each in self.results().items()},
                         {"a": "3", "b": "5"})
        self.assertEqual(len(self.server.requests), asked)

    def test_results_of_others_come_meanwhile(self):
        """Into the file of a machine whose own job goes on; nobody tells it of each."""
        late = threading.Event()
        self.addCleanup(late.set)
        self.server.script("task 0", Reply(text="FINAL(late)", until=late.is_set))
        self.server.script(None, Reply(text="FINAL(well)"))
        self.submit()
        owner = self.start("batch", "-p", "openai", "-m", "m", "--store", self.store.url, "--batch",
                           self.name, "-j1", "-o", "results.jsonl", "in/jobs.jsonl", env=self.env())
        self.addCleanup(self.end, owner)
        self.asked(1)
        begun = self.begin("-j2")
        file = self.dir / "results.jsonl"
        patience.wait_until(lambda: file.read_bytes().count(b"\n") == self.JOBS - 1, "others' results")
        late.set()
        self.assertEqual((owner.wait(), begun.wait()), (0, 0))
        self.assertEqual(len(self.results()), self.JOBS)

    def test_transactions(self):
        """A claim, an exchange and an end for a job of one turn; further ones are by the second."""
        jobs = 60
        self.server.script(None, Reply(text="FINAL(well)"))
        self.submit(*({"custom_id": str(i), "task": "t"} for i in range(jobs)))
        before, begun = int(self.ask(COMMITS)), time.monotonic()
        self.assertEqual(self.work("-j8").status, 0)
        took = time.monotonic() - begun
        self.assertLess(int(self.ask(COMMITS)) - before, 3 * jobs + 40 + 10 * took)

    def test_a_poison_job(self):
        """Machines that one job takes down, time and again, lose no other."""
        names = ("zebra", "poison", "yak", "xerus", "vole", "shrew")
        nodes, killed = [None, None], set()

        def strike(i):
            """Once for each process, when it has asked for that job."""
            def reply(request):
                process = nodes[i]

                def kill():
                    if process.pid not in killed:
                        killed.add(process.pid)
                        process.kill()
                    return False
                return Reply(text="", until=kill)
            return reply

        servers = [self.serve("openai") for _ in nodes]
        for i, server in enumerate(servers):
            server.script("poison", strike(i)).script(None, final())
        self.submit(*({"custom_id": name, "task": name} for name in names))
        while True:
            for i, server in enumerate(servers):
                if not nodes[i] or nodes[i].returncode == -signal.SIGKILL:
                    nodes[i] = self.begin("-j3", "--max-attempts=2", "--lease=3s", **server.environment())
            for node in nodes:
                node.communicate()
            if all(node.returncode != -signal.SIGKILL for node in nodes):
                break
        self.assertEqual({node.returncode for node in nodes}, {0})
        self.assertIn(len(killed), (2, 3))  # the first may have been beside others
        results = self.results(status=3)
        poison = results.pop("poison")
        self.assertEqual((poison["error"]["kind"], poison["attempts"]), ("worker", 2))
        self.assertEqual({name: (each["success"], each["attempts"]) for name, each in results.items()},
                         {name: (True, 1) for name in names if name != "poison"})

    def test_a_machine_that_is_frozen(self):
        """Others take its jobs when the lease is over; when it is back it writes nothing."""
        self.server.script(None, final("the frozen one's", until=lambda: self.ready))
        self.submit()
        frozen = self.begin("-j", self.JOBS, "--lease=1s")
        self.asked(self.JOBS)
        frozen.send_signal(signal.SIGSTOP)
        self.server.rules.clear()
        self.server.script(None, final("the other's"))
        outcome = self.work("-j", self.JOBS, "--lease=60s")
        self.assertEqual(outcome.status, 0, outcome.err)
        self.ready = True
        frozen.send_signal(signal.SIGCONT)
        _, err = frozen.communicate()
        self.assertEqual(frozen.returncode, 0, err)
        outputs = {each["output"] for each in self.results().values()}
        self.assertEqual(outputs, {"the other's"})
        self.assertEqual(len(self.server.requests), 2 * self.JOBS)

    def test_results_and_status(self):
        """From any machine: what is there by now, then the rest, and never the password."""
        def fail(request):
            return final() if "task 0" in request.first_turn else Reply(error="auth")

        self.server.script(None, fail)
        self.submit()
        store = ["--store", self.store.url.replace("rlmd@", "rlmd:geheim@"), "--batch", self.name]
        outcome = self.rlmd("work", "-p", "openai", "-m", "m", "-j1", *store, env=self.env())
        self.assertNotIn("geheim", outcome.err)
        outcome = self.rlmd("results", *store, "-o", "r.jsonl")
        self.assertEqual(outcome.status, 6, outcome.err)
        self.assertIn(f"{self.JOBS} jobs: 1 succeeded, 0 failed, {self.JOBS - 1} still pending",
                      outcome.err)
        outcome = self.rlmd("status", *store)
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertIn(f"{self.name}: {self.JOBS} jobs: {self.JOBS - 1} pending, 0 running, "
                      "1 succeeded, 0 failed; $", outcome.out)
        self.assertIn("stopped: openai", outcome.out)
        self.server.rules.clear()
        self.server.script(None, final(until=lambda: self.ready))
        node = self.begin("-j1", "--wait", LD_PRELOAD=CLOCK)  # its clock leaps years
        self.asked(3)
        batch, = json.loads(self.rlmd("status", *store, "--json").out)["batches"]
        self.assertEqual((batch["batch"], batch["running"], batch["breakers"]), (self.name, 1, []))
        self.assertEqual([(each["pid"], each["jobs"]) for each in batch["nodes"]],
                         [(node.pid, 1)])
        self.assertIn(batch["nodes"][0]["leaseSeconds"], range(1, 61))
        self.ready = True
        self.asked(1 + self.JOBS)
        status = 6
        while status == 6:
            status = self.rlmd("results", *store, "-o", "r.jsonl", "--sort").status
        self.assertEqual(status, 0)
        lines = [json.loads(line) for line in (self.dir / "r.jsonl").read_text().splitlines()]
        self.assertEqual([each["custom_id"] for each in lines],
                         [f"job {i}" for i in range(self.JOBS)])
        node.terminate()
        _, err = node.communicate()
        self.assertEqual(node.returncode, 143, err)
        # A killed machine whose jobs are over, and whose lease of money nobody has ended yet.
        self.ask("INSERT INTO rlmd.account (batch, day, tenant, limit_cost, limit_tokens)"
                 f" SELECT id, 0, 'lost', 1, 1 FROM rlmd.batch WHERE name = '{self.name}'")
        for name, until in ("killed", "0"), ("alive", "9000000000000000"):
            self.ask("INSERT INTO rlmd.lease (account, node, cost, tokens, until)"
                     f" SELECT id, '{name}:1:x', 1, 1, {until} FROM rlmd.account WHERE tenant = 'lost'")
        self.addCleanup(self.ask, "DELETE FROM rlmd.lease; DELETE FROM rlmd.account")
        batch, = json.loads(self.rlmd("status", *store, "--json").out)["batches"]
        self.assertEqual([each["host"] for each in batch["nodes"]], ["alive"])
        outcome = self.rlmd("results", "--store", self.store.url, "-o", "r", "--batch", "strange")
        self.assertEqual(outcome.status, 2, outcome.err)
        self.assertIn("has no batch 'strange'; it has '", outcome.err)

    def test_results_of_a_batch_that_the_store_does_not_know(self):
        """Others would begin its jobs, and pay again for what is in the file."""
        self.server.script(None, final())
        self.submit()
        found = self.results()
        asked, before = len(self.server.requests), (self.dir / "results.jsonl").read_bytes()
        self.name += " again"
        outcome = self.rlmd("batch", "-p", "openai", "-m", "m", "--store", self.store.url,
                            "--batch", self.name, "-o", "results.jsonl", "in/jobs.jsonl",
                            env=self.env())
        self.assertEqual(outcome.status, 2, outcome.err)
        self.assertIn("the store knows no batch", outcome.err)
        self.assertEqual(len(found), self.JOBS)
        self.assertEqual(self.work().status, 2, "nothing was loaded")
        self.assertEqual(len(self.server.requests), asked)
        self.assertEqual((self.dir / "results.jsonl").read_bytes(), before)

    def test_the_password_is_not_shown(self):
        """Not in the list of processes, nor in an error about the address."""
        self.server.script(None, final(until=lambda: self.ready))
        self.submit()
        url = self.store.url.replace("rlmd@", "rlmd:geheim@")
        node = self.start("work", "-p", "openai", "-m", "m", "--batch", self.name, "--store", url,
                          env=self.env())
        self.addCleanup(self.end, node)
        self.asked(1)
        shown = subprocess.run(["ps", "-o", "args=", "-p", str(node.pid)], capture_output=True,
                               text=True, check=True).stdout
        self.assertIn("rlmd:******@", shown)
        self.ready = True
        _, err = node.communicate()
        self.assertEqual((node.returncode, b"geheim" in err), (0, False), err)
        for bad in ("postgresql://u:ge@heim@h/d", "postgresql://u:ge/heim@h/d",
                    "postgre://u:geheim@h/d", "postgresql://u:ge%zzheim@h/d",
                    "postgresql://h:x/d?password=geheim",
                    "postgresql://u:geheim@/d?host=/nowhere"):
            outcome = self.rlmd("status", "--store", bad)
            self.assertNotEqual(outcome.status, 0)
            self.assertNotIn("heim", outcome.err)

    def test_the_server_is_away(self):
        """Calls in flight end and are counted, no other job is begun, and all goes on."""
        self.server.script(None, final(until=lambda: self.ready))
        self.submit()
        node = self.begin("-j2")
        self.asked(2)
        self.store.stop("immediate")
        self.assertIn(b"no job is begun", node.stderr.readline())
        self.ready = True
        self.assertTrue(self.server.wait(lambda server: not server.in_flight))
        self.assertEqual(len(self.server.requests), 2)
        self.store.start()
        _, err = node.communicate()
        self.assertEqual(node.returncode, 0, err)
        self.assertIn(b"can be reached again", err)
        self.assertEqual({each["attempts"] for each in self.results().values()}, {1})
        self.assertEqual(len(self.server.requests), self.JOBS)


if __name__ == "__main__":
    unittest.main()

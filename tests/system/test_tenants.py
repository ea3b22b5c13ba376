"""rlmd batch: tenants, who share what there is and nothing else."""

import json
import os
import signal
import time
import unittest

import kernel
from model import Reply
from providers import code, final
from test_batch import BatchTest
from test_parallel import is_query

GO_ON = "--require=L1"  # also on machines that have no more


class TenantsTest(BatchTest):
    def tenants(self, **settings):
        """rlmd.conf, with a key for each that is its name's."""
        lines = []
        for name, more in settings.items():
            path = self.write(f"{name}.key", self.key(name) + "\n")
            os.chmod(path, 0o600)
            lines += [f"[tenant {name}]", f"key-file = {path}", *more]
        self.write("rlmd.conf", "".join(line + "\n" for line in lines))

    @staticmethod
    def key(name):
        return f"sk-the-key-of-{name}-0123456789"

    def command(self, *arguments, **more):
        return super().command("--config=rlmd.conf", GO_ON, *arguments, **more)

    def asked_by(self, name):
        return [each for each in self.server.requests if each.key == self.key(name)]


class SharesTest(TenantsTest):
    def test_weights(self):
        """Of calls that are served seven at once each has its share, within a tenth."""
        self.tenants(one=["weight = 1"], two=["weight = 2"], four=["weight = 4"])
        self.server = self.serve("openai")
        seen = []

        def reply(request):
            if not is_query(request):
                return code("batch_llm_query(['q'] * 80)")
            seen.append(request)
            number = len(seen)
            return Reply(text="a", until=lambda: len(seen) >= (number + 6) // 7 * 7)

        self.server.script(None, reply)
        self.jobs(*({"custom_id": f"{name}{i}", "task": "t", "tenant": name}
                    for name in ("one", "two", "four") for i in range(2)))
        process = self.command("-j6", "--max-parallel=7", "--max-tokens=100000000", begin=True)

        def window(server):
            begun = {each.key for each in seen}
            self.first = getattr(self, "first", None) or (len(begun) == 3 and len(seen) + 7)
            return self.first and len(seen) >= self.first + 140

        self.assertTrue(self.server.wait(window))
        self.end(process)
        keys = [each.key for each in seen[self.first:self.first + 140]]
        for name, share in (("one", 20), ("two", 40), ("four", 80)):
            self.assertAlmostEqual(keys.count(self.key(name)), share, delta=share / 10)

    def test_beside_those_who_do_harm(self):
        """One whose key is throttled for ever, one whose jobs never end or take all memory: a
        third's job is begun, and each of its calls is served, while these are at it."""
        self.tenants(throttled=["weight = 9"], poison=["worker-memory = 64M"], good=[])
        self.server = self.serve("openai")

        def reply(request):
            if request.key == self.key("throttled"):
                return Reply(error="rate_limit", headers={"Retry-After": "3000"})
            if request.key == self.key("poison"):
                return code("while True: pass" if "loop" in request.first_turn
                            else "x = bytearray(1 << 32)")
            return final("there") if request.turn else code("print(llm_query('q'))")

        self.server.script(None, reply)
        self.jobs(*({"custom_id": f"t{i}", "task": "t", "tenant": "throttled"} for i in range(8)),
                  *({"custom_id": f"p{i}", "task": task, "tenant": "poison"}
                    for i, task in enumerate(["loop", "hog"] * 4)),
                  {"custom_id": "good", "task": "t", "tenant": "good"})
        process = self.command("-j4", "--max-parallel=2", "--max-workers=2",
                               "--block-timeout=1000s", begin=True)
        self.assertTrue(self.server.wait(lambda server: len(self.asked_by("good")) == 3))
        self.assertLessEqual(len(self.asked_by("throttled")), 4)
        results = self.dir / "results.jsonl"
        while process.poll() is None and b"\n" not in results.read_bytes():
            time.sleep(0.02)
        self.assertEqual(self.results()["good"]["output"], "there")
        process.send_signal(signal.SIGINT)
        self.assertTrue(any(b"once more" in line for line in process.stderr))
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(), 130)


    def test_caps(self):
        """Two calls a minute, one at once: the third is not begun while another's are all served."""
        self.tenants(slow=["calls-per-minute = 2", "max-parallel = 1"], fast=[])
        self.server = self.serve("openai")

        def reply(request):
            if is_query(request):
                return Reply(text="a")
            return final() if request.turn else code("batch_llm_query(['q'] * 40)")

        self.server.script(None, reply)
        self.jobs(*({"custom_id": name, "task": "t", "tenant": name} for name in ("slow", "fast")))
        process = self.command("-j2", begin=True)
        self.assertTrue(self.server.wait(lambda server: len(self.asked_by("slow")) == 2 and
                                         len(self.asked_by("fast")) == 42))
        self.assertEqual(len(self.asked_by("slow")), 2)
        self.end(process)


    def test_nothing_may_be_spent(self):
        """Models that cost nothing are not kept from a tenant whose cap is 0; others are."""
        self.tenants(poor=["max-cost = 0"])
        self.server = self.serve("openai", prices=(0, 0)).script(None, final())
        jobs = [{"custom_id": f"job {i}", "task": "t", "tenant": "poor"} for i in range(3)]
        self.jobs(*jobs)
        outcome = self.command("-j1", *self.prices(m=(0, 0), dear=(1, 1)))
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertEqual(len(self.server.requests), 3)
        self.jobs(*jobs, {"custom_id": "dear", "task": "t", "tenant": "poor", "model": "dear"})
        outcome = self.command("-j1", "--add", *self.prices(m=(0, 0), dear=(1, 1)))
        self.assertEqual(outcome.status, 6, outcome.err)
        self.assertIn("1 still pending", outcome.err)
        self.assertEqual(len(self.server.requests), 3)


class OwnTest(TenantsTest):
    def test_keys_data_cache_and_results(self):
        """Nothing of one is in what another's workers, key or result saw; the cache is each's."""
        self.tenants(a=["models = m, n*"], b=["models = m"], c=[])
        self.server = self.serve("openai").script(None, lambda request: (
            Reply(text="same") if is_query(request) else
            code("try: llm_query('no', model='other')",
                 "except Exception as error: print(error)",
                 "FINAL(llm_query('the same') + context)")))
        for name in "ab":
            self.write(f"{name}/data", f"canary-{name}-1")
        self.jobs(*({"custom_id": f"{name}{i}", "task": "t", "tenant": name,
                     "context_file": f"{name}/data"} for name in "ab" for i in range(2)),
                  {"custom_id": "c", "task": "t", "tenant": "b", "model": "nano"},
                  {"custom_id": "d", "task": "t", "tenant": "b", "model": "a.openai/m"},
                  {"custom_id": "e", "task": "t", "tenant": "a", "model": "openai/nano"},
                  {"custom_id": "f", "task": "t", "tenant": "a", "model": "anthropic/nano"},
                  {"custom_id": "g", "task": "t", "tenant": "c"})
        outcome = self.command("-j1", "-v", "--cache=cache")
        self.assertEqual(outcome.status, 3, outcome.err)
        results = self.results()
        for name, other in ("ab", "ba"):
            asked = self.asked_by(name)
            self.assertEqual(len([each for each in asked
                                  if is_query(each) and each.model == "m"]), 1)
            self.assertNotIn("other", {each.model for each in asked})
            told = json.dumps([each.body.decode() for each in asked] +
                              [results[f"{name}{i}"] for i in range(2)])
            self.assertIn(f"canary-{name}-1", told)
            self.assertNotIn(f"canary-{other}", told)
            self.assertEqual(results[f"{name}1"]["output"], f"samecanary-{name}-1")
            for path in self.dir.rglob("*"):
                if path.is_file() and path.suffix != ".key":
                    self.assertNotIn(self.key(name).encode(), path.read_bytes(), path)
            self.assertNotIn(self.key(name), outcome.err + outcome.out)
        asked = [(each.model, each.last_user) for each in self.server.requests
                 if is_query(each) and each.key == self.key("c")]
        self.assertEqual(asked, [("other", "no"), ("m", "the same")], "its models have no limit")
        self.assertIn("may not use model 'nano': its models are m",
                      results["c"]["error"]["message"])
        self.assertIn("no key", results["d"]["error"]["message"])
        self.assertTrue(results["e"]["success"], results["e"])
        self.assertIn("no key", results["f"]["error"]["message"])

    def test_a_refused_key_is_one_tenants(self):
        self.tenants(a=[], b=[])
        self.server = self.serve("openai").script(
            lambda request: request.key == self.key("a"), Reply(error="auth"))
        self.server.script(None, final())
        self.jobs(*({"custom_id": f"{name}{i}", "task": "t", "tenant": name}
                    for name in "ab" for i in range(2)))
        outcome = self.command("-j1")
        self.assertEqual(outcome.status, 3, outcome.err)
        self.assertIn("tenant 'a': ", outcome.err)
        self.assertIn("2 still pending", outcome.err)
        self.assertEqual(sorted(self.results()), ["b0", "b1"])
        self.assertEqual(len(self.asked_by("a")), 1)

    def test_files(self):
        """A tenant's jobs are about what is in its directory, whatever links say."""
        self.tenants(a=[], b=[f"root = {self.dir}/b"])
        self.server = self.serve("openai").script(None, lambda request: code("FINAL(context)"))
        self.write("jobs/in/x", "inside")
        self.write("b/x", "of b")
        self.write("secret", "canary")
        os.symlink(self.dir / "secret", self.dir / "jobs" / "link")
        os.symlink("in/x", self.dir / "jobs" / "fine")
        good = {"g0": ("a", "in/x"), "g1": ("a", "fine"), "g2": ("b", f"{self.dir}/b/x")}
        bad = {"b0": ("a", "../secret"), "b1": ("a", "link"), "b2": ("a", "/etc/hostname"),
               "b3": ("b", "in/x"), "b4": ("a", "in/../../secret"), "b5": ("a", "../nowhere")}
        self.jobs(*({"custom_id": id, "task": "t", "tenant": tenant, "context_file": path}
                    for id, (tenant, path) in {**good, **bad}.items()),
                  {"custom_id": "b6", "task": "t", "tenant": "a", "context_dir": "git:HEAD"},
                  name="jobs/jobs.jsonl")
        os.symlink("jobs/jobs.jsonl", self.dir / "jobs.jsonl")
        outcome = self.rlmd("batch", "-o", "results.jsonl", "-p", "openai", "-m", "m", GO_ON,
                            "--config=rlmd.conf", "jobs/jobs.jsonl",
                            env=self.environment(**self.server.environment()))
        self.assertEqual(outcome.status, 3, outcome.err)
        results = self.results()
        self.assertEqual({id: results[id]["output"] for id in good},
                         {"g0": "inside", "g1": "inside", "g2": "of b"})
        for id in [*bad, "b6"]:
            self.assertIn("may be about files in", results[id]["error"]["message"], id)
        (self.dir / "results.jsonl").unlink()
        (self.dir / "results.jsonl.store").unlink()
        self.jobs({"custom_id": "b0", "task": "t", "tenant": "a", "context_file": "secret"},
                  {"custom_id": "b1", "task": "t", "tenant": "b", "context_file": "secret"})
        self.command("--allow-outside")
        self.assertEqual({each["output"] for each in self.results().values()}, {"canary"})


class RequiredTest(TenantsTest):
    def jobs_of(self, *names):
        self.server = self.serve("openai").script(None, final())
        self.jobs(*({"custom_id": name, "task": "t", "tenant": name} for name in names))

    def poor(self, *arguments):
        return self.rlmd("batch", "-o", "results.jsonl", "-p", "openai", "-m", "m",
                         "--config=rlmd.conf", *arguments, "jobs.jsonl",
                         env=self.environment(**self.server.environment()),
                         preexec_fn=kernel.without(kernel.UNSHARE, *kernel.LANDLOCK))

    def test_several_need_more_than_one(self):
        self.tenants(a=[], b=[])
        self.jobs_of("a")
        self.assertEqual(self.poor().status, 0)
        self.jobs_of("a", "b")
        outcome = self.poor("--add")
        self.assertEqual(outcome.status, 0, "one has jobs left")
        (self.dir / "results.jsonl.store").unlink()
        (self.dir / "results.jsonl").unlink()
        outcome = self.poor()
        self.assertEqual(outcome.status, 7, outcome.err)
        self.assertIn("2 tenants need isolation L3", outcome.err)
        outcome = self.poor("--require=L1")
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertRegex(outcome.err, "warning: .*several tenants .*as --require allows")
        self.assertRegex(outcome.err, "tenants were apart by L[12] only")

    def test_what_one_requires(self):
        """Its jobs wait; others' do not."""
        self.tenants(a=["require = L3"], b=[])
        self.jobs_of("a", "b")
        outcome = self.poor("--require=L1")
        self.assertEqual(outcome.status, 3, outcome.err)
        self.assertRegex(outcome.err, "tenant 'a': isolation L[12] is less than")
        self.assertEqual(list(self.results()), ["b"])
        self.assertEqual(self.poor("--require=L1").status, 3)
        (self.dir / "results.jsonl.store").unlink()
        (self.dir / "results.jsonl").unlink()
        self.jobs_of("a")
        self.assertEqual(self.poor("--require=L1").status, 7)
        self.write("rlmd.conf", "")
        outcome = self.poor("--require=L3")
        self.assertEqual(outcome.status, 7)
        self.assertRegex(outcome.err, "error: isolation L[12] is less than the L3 that is required")
        self.assertEqual(self.poor("--python=nowhere").status, 2)

    def test_unknown_tenants(self):
        self.tenants(a=[], b=[])
        self.jobs_of("a", "c", "b")
        outcome = self.command()
        self.assertEqual(outcome.status, 8, outcome.err)
        self.assertRegex(outcome.err, "jsonl:2: .*there is no tenant 'c'; there are a, b")
        self.assertEqual(self.server.requests, [])

    def test_lines_without_a_tenant(self):
        """They are nobody's where there are tenants, but where the command says whose."""
        self.tenants(a=[], b=[])
        self.server = self.serve("openai").script(None, final())
        self.jobs({"custom_id": "own", "task": "t", "tenant": "b"}, {"custom_id": "no", "task": "t"})
        outcome = self.command()
        self.assertEqual(outcome.status, 8, outcome.err)
        self.assertRegex(outcome.err, "jsonl:2: tenant: is missing; .*--default-tenant NAME")
        self.assertEqual(self.server.requests, [])
        outcome = self.command("--default-tenant=c")
        self.assertEqual(outcome.status, 2, outcome.err)
        self.assertRegex(outcome.err, "--default-tenant: there is no tenant 'c'; there are a, b")
        outcome = self.command("--default-tenant=a")
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertEqual({id: each["tenant"] for id, each in self.results().items()},
                         {"own": "b", "no": "a"})
        self.assertEqual(len(self.asked_by("a")), 1)
        self.assertEqual(len(self.asked_by("b")), 1)
        outcome = self.command("--default-tenant=b")
        self.assertEqual(outcome.status, 2, outcome.err)
        self.assertIn("1 jobs are others now, the first is 'no'", outcome.err)

    def test_jobs_of_nobody_in_a_store(self):
        """The jobs were loaded where no tenants are known; a machine that has some does not pay for them."""
        self.server = self.serve("openai").script(None, final())
        self.jobs({"custom_id": "no", "task": "t"}, {"custom_id": "other", "task": "t",
                                                     "tenant": "z"})
        loaded = self.rlmd("batch", "--submit", "--store=common", "jobs.jsonl")
        self.assertEqual(loaded.status, 0, loaded.err)
        self.tenants(a=[])
        outcome = self.rlmd("work", "--store=common", "-p", "openai", "-m", "m",
                            "--config=rlmd.conf", GO_ON,
                            env=self.environment(**self.server.environment()))
        self.assertEqual(outcome.status, 4, outcome.err)
        self.assertIn("name no tenant, and rlmd.conf has some", outcome.err)
        self.assertIn("tenant 'z': there is no tenant 'z'; there are a", outcome.err)
        self.assertEqual(self.server.requests, [])


if __name__ == "__main__":
    unittest.main()

"""rlmd batch under limits on money: what the server bills is within them, whatever is killed."""

import collections
import dataclasses
import random
import re
import unittest

from model import Reply
from providers import code
from test_batch import BatchTest

PRICES = (1_000_000, 5_000_000)  # pico-dollars a token: input, output
DOLLAR = 10**12
TENANTS = ("ada", "bob", "cyd")


class MoneyTest(BatchTest):
    JOBS, AT_ONCE = 12, 6  # jobs of each tenant
    LOW = {"ada": "max-cost = 0.016", "bob": "max-tokens = 20000", "cyd": "max-cost-per-day = 0.02"}
    HIGH = {"ada": "max-cost = 9", "bob": "max-tokens = 9M", "cyd": "max-cost-per-day = 9"}
    MOST = {"ada": (16 * DOLLAR // 1000, 0), "bob": (0, 20000), "cyd": (20 * DOLLAR // 1000, 0)}

    def setUp(self):
        super().setUp()
        self.server = self.serve("openai", prices=PRICES)
        self.held_from, self.released = None, True
        self.server.script(None, self.reply)
        self.jobs(*({"custom_id": f"{tenant}{i}", "task": f"Do it for {tenant}.", "tenant": tenant,
                     "context": f"text {i}"} for i in range(self.JOBS) for tenant in TENANTS))

    def reply(self, request):
        """From some request on, none is answered before a process is killed."""
        reply = code("print(len(context))") if request.turn == 0 else code("FINAL('done')")
        if self.held_from is not None and request.index >= self.held_from:
            reply = dataclasses.replace(reply, until=lambda: self.released)
        return reply

    def batch(self, limits, *arguments, **how):
        sections = "".join(f"[tenant {tenant}]\n{lines}\n" for tenant, lines in limits.items())
        return self.command("--config", self.write("rlmd.conf", sections), *self.prices(m=PRICES),
                            "--max-output-tokens=256", "-j", self.AT_ONCE, *arguments, **how)

    def billed(self):
        """By tenant: pico-dollars and tokens. What is in flight will be as dear as the dearest."""
        bills = collections.defaultdict(list)
        for request in list(self.server.requests):
            tenant = re.search(r"Do it for (\w+)", request.first_turn + request.last_user).group(1)
            bills[tenant].append((self.server.cost_of(request),
                                  request.billed_input + request.billed_output))
        dearest = [max((bill[kind] for all in bills.values() for bill in all), default=0)
                   for kind in (0, 1)]
        return {tenant: [sum(bill[kind] or dearest[kind] for bill in all) for kind in (0, 1)]
                for tenant, all in bills.items()}

    def check_bills(self, when):
        billed = self.billed()
        for tenant, most in self.MOST.items():
            for kind, name in enumerate(("pico-dollars", "tokens")):
                self.assertLessEqual(billed.get(tenant, (0, 0))[kind], most[kind] or DOLLAR,
                                     f"{name} of {tenant} {when}")

    def check_results(self, jobs):
        results = self.results()
        self.assertEqual(len(results), jobs)
        self.assertTrue(all(result["success"] for result in results.values()))

    def check_all_with_more(self):
        """Jobs that wait for money are done once there is more, and no answer is paid twice."""
        asked = len(self.server.requests)
        outcome = self.batch(self.HIGH)
        self.assertEqual(outcome.status, 0, outcome.err)
        self.check_results(self.JOBS * len(TENANTS))
        return len(self.server.requests) - asked

    def test_limits_are_reached(self):
        outcome = self.batch(self.LOW)
        self.assertEqual(outcome.status, 6, outcome.err)
        self.check_bills("in the end")
        self.assertEqual(self.forced(), [], "answers that would be thrown away")
        done = collections.Counter(result["tenant"] for result in self.results().values())
        pending = self.JOBS * len(TENANTS) - sum(done.values())
        self.check_results(sum(done.values()))
        self.assertRegex(outcome.err, rf"0 failed, {pending} still pending")
        for tenant, words in (("ada", r"\$0\.016 of this batch, is reached"),
                              ("bob", "20000 tokens of this batch, is reached"),
                              ("cyd", r"\$0\.02 a day, is reached")):
            self.assertRegex(outcome.err, f"the limit of tenant '{tenant}'.*, {words}")
            self.assertGreater(done[tenant], 0)
        asked = len(self.server.requests)
        self.assertEqual(self.batch(self.LOW).status, 6)
        self.check_bills("when it was tried again")
        self.assertEqual(len(self.server.requests), asked, "the store knows what a job costs")
        self.assertLessEqual(self.check_all_with_more(), 2 * pending)

    def test_the_limit_of_the_batch(self):
        outcome = self.batch({}, "--max-batch-cost=0.03", "--max-batch-tokens=1M")
        self.assertEqual(outcome.status, 6, outcome.err)
        self.assertRegex(outcome.err, r"the limit of this batch, \$0\.03, is reached: .* a higher "
                         "--max-batch-cost")
        self.assertLessEqual(self.server.billed_cost, 30 * DOLLAR // 1000)
        self.assertGreater(self.server.billed_cost, 20 * DOLLAR // 1000)
        self.check_all_with_more()

    def forced(self):
        """The requests for a forced answer."""
        return [request for request in self.server.requests
                if request.last_user.startswith("No code runs any more: ")]

    def test_the_limit_of_a_job_forces_its_answer(self):
        """Also below a cap of the batch, which has enough."""
        self.server.script("No code runs any more", Reply("what I have"))
        self.server.rules.insert(0, self.server.rules.pop())
        self.jobs({"custom_id": "a", "task": "Do it for ada.", "budget": {"maxIterations": 1}})
        outcome = self.command(*self.prices(m=PRICES), "--max-batch-cost=9")
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertEqual(len(self.forced()), 1)
        self.assertEqual(self.results()["a"]["output"], "what I have")

    def check_a_cap(self, jobs, cap, least):
        """A job that a cap cuts is pending, with no forced answer; with a higher one it is done."""
        self.jobs(*({"custom_id": f"ada{i}", "task": "Do it for ada.", "context": f"text {i}"}
                    for i in range(jobs)))
        outcome = self.command(*self.prices(m=PRICES), "-j", 4, f"--max-batch-cost={cap}")
        self.assertEqual(outcome.status, 6, outcome.err)
        self.assertRegex(outcome.err, "the limit of this batch, .* is reached: jobs stay pending")
        self.assertEqual(self.forced(), [], "answers that would be thrown away")
        self.assertLessEqual(self.server.billed_cost, cap * DOLLAR)
        done = self.results()
        self.assertGreaterEqual(len(done), least, outcome.err)
        self.assertLess(len(done), jobs)
        outcome = self.command(*self.prices(m=PRICES), "-j", 4, "--max-batch-cost=9")
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertEqual(len(self.results()), jobs)
        for result in self.results().values():
            self.assertEqual((result["output"], result["stopReason"]), ("done", "final"))
        return done

    def test_a_cap_for_some(self):
        self.check_a_cap(30, 0.04, 9)

    def test_a_cap_for_none(self):
        self.assertEqual(self.check_a_cap(7, 0.002, 0), {})

    def test_a_guess_is_no_answer(self):
        """One that the model was to confirm, when the cap ended its job: the job is pending."""
        guess = Reply("```python\nprint(1)\n```\nFINAL(a guess)", usage=(3200, 256))
        self.server.script(None, lambda request: Reply("FINAL(done)") if request.turn else guess)
        self.server.rules.insert(0, self.server.rules.pop())
        self.jobs({"custom_id": "a", "task": "Do it for ada.", "context": "text"})
        for cap in range(1, 100):  # until there is enough for one turn
            outcome = self.command(*self.prices(m=PRICES), "--max-output-tokens=256",
                                   f"--max-batch-cost={cap / 5000}")
            self.assertEqual(outcome.status, 6, outcome.err)
            if self.server.requests:
                break
        self.assertEqual((len(self.server.requests), self.results()), (1, {}))
        outcome = self.command(*self.prices(m=PRICES), "--max-batch-cost=9")
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertEqual(self.results()["a"]["output"], "done")

    def test_two_machines(self):
        """A node that works on others' jobs keeps to the limits that they said."""
        process = self.batch(self.LOW, begin=True)
        self.assertTrue(self.server.wait(lambda server: server.requests))
        arguments = ["work", "--store", "sqlite:results.jsonl.store", "--batch", "jobs.jsonl",
                     "-p", "openai", "-m", "m", "-j", self.AT_ONCE, "--max-output-tokens=256"]
        other = self.rlmd(*arguments, *self.prices(m=PRICES),
                          env=self.environment(**self.server.environment()))
        _, err = process.communicate()
        self.assertEqual(process.returncode, 6, err)
        self.assertEqual(other.status, 6, other.err)
        self.check_bills("by two of them")
        self.check_all_with_more()

    def test_a_limit_of_its_own(self):
        """A job that had enough but for itself has failed."""
        self.jobs({"custom_id": "a", "task": "Do it for ada.", "tenant": "ada",
                   "budget": {"maxTokens": 100}})
        outcome = self.batch(self.HIGH)
        self.assertEqual(outcome.status, 3, outcome.err)
        self.assertEqual(self.results()["a"]["error"]["kind"], "budget")
        self.assertEqual(self.server.requests, [])

    def test_killed(self):
        """Whatever is in flight when it is killed was paid, though nothing says so."""
        chance = random.Random(4)
        for kill in range(4):
            self.released = False
            self.held_from = len(self.server.requests) + chance.randrange(9)
            process = self.batch(self.LOW, begin=True)
            while process.poll() is None and not self.server.wait(
                    lambda server: len(server.requests) > self.held_from, timeout=0.1):
                continue
            process.kill()
            process.communicate()
            self.released = True
            self.check_bills(f"after {kill + 1} kills")
        self.held_from = None
        self.assertEqual(self.batch(self.LOW).status, 6)
        self.check_bills("in the end")
        self.check_all_with_more()


if __name__ == "__main__":
    unittest.main()

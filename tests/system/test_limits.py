"""Limits of every kind, sane and not: what cannot be kept is refused before anything is asked, and
what is accepted is kept to the last unit."""

import json
import os
import re
import resource
import unittest

import leaks
import patience
from harness import SystemTest, block, query, turn
from model import Reply
from providers import ProviderTest, code, final, pico

COUNTS = {  # and what each takes at least and at most
    "max-tokens": (1, 10**12),
    "max-iterations": (1, 100000),
    "max-depth": (0, 16),
    "max-calls": (1, 10**9),
    "max-subruns": (0, 10**9),
    "max-workers": (1, 10**6),
    "max-parallel": (1, 10**6),
    "downgrade": (0, 100),
}
NO_COUNT = ("-1", "+1", "1.5", "1e9", "inf", "nan", "NaN", "1,000", "0x1", "1x", "many", "20%")
NO_COST = ("-1", "-0.01", "inf", "nan", "1,50", "$5", "5 USD", "0x5", "1.2.3", "e5", "five")
NO_TIME = ("-5s", "5 parsecs", "inf", "nan", "1e3", "5w", "1m30", "s", "0x5")
ANSWER = dict(turn("FINAL(ok)"), repeat=True)
ENDLESS = dict(turn(block("print(1)")), repeat=True)


def is_leader(pid):
    try:
        return os.getsid(pid) == pid
    except ProcessLookupError:
        return True  # gone


class Refused(SystemTest):
    """One clear error, exit status 2, nothing on standard output, nothing asked."""

    def refused(self, words, *arguments, **environment):
        outcome = self.replay([], *arguments, env=self.environment(**environment))
        with self.subTest(arguments=arguments, environment=environment):
            self.assertEqual((outcome.status, outcome.out), (2, ""), outcome.err)
            error = outcome.err.splitlines()[0]
            self.assertRegex(error, r"^rlmd: error: ")
            self.assertIn(words, error)

    def everywhere(self, name, value, words):
        """On the command line, in the environment and in a file."""
        self.refused(f"--{name}: {words}", f"--{name}={value}")
        variable = "RLMD_" + name.upper().replace("-", "_")
        self.refused(f"{variable}: {words}", **{variable: value})
        file = self.write("rlmd.conf", f"# limits\n{name} = {value}\n")
        self.refused(f"{file}:2: {name}: {words}", "--config", file)

    def test_counts(self):
        for name, (least, most) in COUNTS.items():
            allowed = f"is no whole number from {least} to {most}"
            for value in NO_COUNT:
                self.refused(f"'{value}' {allowed}; write digits, or 100k for 100000", f"--{name}={value}")
            for value in (most + 1, 2**63, 2**64 + 1, 10**30):
                self.refused(f"'{value}' {allowed}", f"--{name}={value}")
            self.everywhere(name, "1.5", f"'1.5' {allowed}; write digits, or 100k for 100000")
            for value in ("", " 1", "1 "):
                self.refused(f"'{value}' {allowed}", f"--{name}={value}")

    def test_zero_is_not_no_limit(self):
        for name, (least, most) in COUNTS.items():
            if least:
                words = f"'0' is no whole number from {least} to {most}; 0 would allow nothing"
                self.everywhere(name, "0", words)
        self.everywhere("max-time", "0", "'0' is not from 1ms to 720h; 0 would allow nothing")

    def test_costs(self):
        for value in NO_COST:
            self.refused(f"'{value}' is no amount of US dollars; write 5", f"--max-cost={value}")
        for value in ("9000000.01", "1e7", "1e400", "9" * 400):
            self.refused("is more than 9000000 US dollars", f"--max-cost={value}")
        for value in ("0.0000000000001", "1e-13", "1.0000000000001", "1e-400"):
            self.refused("has more than 12 decimals", f"--max-cost={value}")
        self.everywhere("max-cost", "-1", "'-1' is no amount of US dollars")

    def test_times(self):
        for value in NO_TIME:
            self.refused(f"'{value}' is no duration; write 90", f"--max-time={value}")
        for value in ("0s", "0.0001ms", "721h", "9" * 300 + "h"):
            self.refused("is not from 1ms to 720h", f"--max-time={value}")
        self.everywhere("max-time", "-1", "'-1' is no duration")


class Cost(ProviderTest):
    def refused(self, server, status, *arguments, **environment):
        outcome = self.ask(server, *arguments, status=status, **environment)
        self.assertEqual(server.requests, [])
        return outcome

    def test_nothing_to_spend_and_a_free_model(self):
        """LIB-25: --max-cost 0 is for local models."""
        server = self.serve("ollama", code("print(llm_query('q'))"), Reply(text="said"), final())
        result = self.ask(server, "--max-cost", "0").result
        self.assertEqual((result["output"], result["usage"]["cost"]), ("ok", 0))
        self.assertEqual(len(server.requests), 3)

    def test_nothing_to_spend_and_a_model_with_a_price(self):
        """LIB-25: refused before anything is sent, saying what to do; what it would cost may be
        asked."""
        server = self.serve("openai", final())
        prices = self.prices(m=(1, 1))
        self.refused(server, 0, *prices, "--max-cost", "0", "--dry-run")
        outcome = self.refused(server, 6, *prices, "--max-cost", "0")
        self.assertIn(" max-cost 0 allows only what is free: choose a local model", outcome.err)
        result = outcome.result
        self.assertEqual((result["error"]["kind"], result["stopReason"]), ("budget", "max_cost"))

    def test_nothing_to_spend_and_a_free_model_that_calls_a_dear_one(self):
        """LIB-25: what is free goes on beside what is not."""
        server = self.serve(
            "openai", code("try: llm_query('q')\nexcept BudgetExceeded as e: print(e)"), final()
        )
        prices = self.prices(m=(0, 0), dear=(1, 1))
        outcome = self.ask(server, *prices, "--max-cost", "0", "--subcall-model", "dear")
        self.assertIn("Cost budget exhausted", outcome.executions()[0]["stdout"])
        self.assertEqual(len(server.requests), 2)

    def test_a_limit_and_a_model_of_unknown_price(self):
        """LIB-20: refused before any call, wherever the limit was asked for; what the message
        proposes is accepted."""
        server = self.serve("openai", final())
        given = [{"RLMD_MAX_COST": "0.5"}, {}, {}]
        file = self.write("rlmd.conf", "max-cost = 0.5\n")
        asked = [[], ["--max-cost", "0.5"], ["--config", file]]
        for environment, arguments in zip(given, asked):
            outcome = self.refused(server, 2, *arguments, **environment)
            self.assertIn("the price of model 'm' is not known", outcome.err)
            self.assertEqual(outcome.result["error"]["kind"], "usage")
        proposed = re.search(r" price-table a file like (\{.*\}\})", outcome.err)
        table = self.write("prices.json", proposed.group(1))
        self.assertEqual(json.loads(proposed.group(1)).keys(), {"m"})
        result = self.ask(server, "--max-cost", "0.5", "--price-table", table).result
        self.assertGreater(result["usage"]["cost"], 0)

    def test_a_limit_and_a_second_model_of_unknown_price(self):
        server = self.serve("openai", final())
        prices = self.prices(m=(1, 1))
        outcome = self.refused(
            server, 2, *prices, "--max-cost", "1", "--subcall-model", "never-heard-of"
        )
        self.assertIn("'never-heard-of' is not known", outcome.err)

    def test_no_limit_and_a_model_of_unknown_price(self):
        """LIB-20: the limit that nobody asked for is lifted, with a warning; the others hold."""
        server = self.serve("openai", final(), final())
        result = self.ask(server).result
        self.assertFalse(result["usage"]["costComplete"])
        self.assertEqual(sum("price of model 'm'" in text for text in result["warnings"]), 1)
        self.fails(server, 6, "budget", "--max-tokens", "300")
        self.assertEqual(len(server.requests), 1)

    def test_the_smallest_amounts(self):
        """A pico-dollar is an amount, and too little for anything that costs."""
        server = self.serve("openai", final())
        outcome = self.refused(
            server, 6, *self.prices(m=(1, 1)), "--max-cost", "0.000000000001"
        )
        self.assertIn("$0.00 of $0.000000000001", outcome.err)
        self.assertEqual(outcome.result["stopReason"], "max_cost")

    def test_the_last_decimal_counts(self):
        """The most that a first call may cost is enough, and a pico-dollar less is not."""
        prices = self.prices(m=(1, 0))
        server = self.serve("openai")
        server.script(None, final())
        least, enough = 0, 100000  # pico-dollars, as every token of input costs one
        while enough - least > 1:
            middle = (least + enough) // 2
            asked = len(server.requests)
            outcome = self.rlmd(
                *self.arguments(server, *prices, f"--max-cost=0.{middle:012}"),
                env=self.environment(**server.environment()),
            )
            least, enough = (least, middle) if outcome.status == 0 else (middle, enough)
            self.assertEqual(len(server.requests) - asked, outcome.status == 0)
        self.assertTrue(100 < enough < 100000, enough)

    def test_huge_limits(self):
        """The largest of all that are accepted together do not overflow anything."""
        asking = code("print(budget())\nprint(llm_query('q'))")
        server = self.serve("openai", asking, Reply(text="said"), final())
        arguments = ["--max-cost", "9000000", "--max-time", "720h", "--grace", "1h"]
        for name, (_, most) in COUNTS.items():
            if name not in ("max-workers", "max-parallel"):  # the machine has a say there
                arguments += [f"--{name}", str(most)]
        result = self.ask(server, *self.prices(m=(1000000, 2000000)), *arguments).result
        billed = sum(r.billed_input * 1000000 + r.billed_output * 2000000 for r in server.requests)
        self.assertEqual(pico(result["usage"]["cost"]), billed)
        self.assertEqual(result["warnings"], [])


class Machine(ProviderTest):
    """Of workers and calls at once there may be as many as the machine can have."""

    def limited(self, name, count, soft, hard, status=2):
        """With so many descriptors."""
        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

        server = self.serve("openai", final())
        return self.ask(server, f"--{name}", str(count), status=status, preexec_fn=limit)

    def ask(self, server, *arguments, status=0, **more):
        outcome = self.rlmd(*self.arguments(server, *arguments),
                            env=self.environment(**server.environment()), **more)
        self.assertEqual(outcome.status, status, outcome.err + outcome.out[:2000])
        return outcome

    def test_descriptors(self):
        """The limit in the way is named, and what is said to be possible is."""
        for name, most in (("max-workers", 28), ("max-parallel", 112)):
            with self.subTest(name):
                outcome = self.limited(name, most + 1, 128, 128)
                self.assertIn(f"({name}) are more than there can be here: at most {most}, for a "
                              "process may have 128 open files (ulimit -n)", outcome.err)
                self.limited(name, most, 128, 128, status=0)

    def test_the_hard_limit_counts(self):
        self.limited("max-workers", 100, 64, 512, status=0)

    def test_what_no_machine_has(self):
        """No number of ours stands in the way of what is less than that."""
        server = self.serve("openai", final(), final())
        err = self.ask(server, "--max-workers", "1000000", status=2).err
        self.assertRegex(err, r"1000000 workers at once \(max-workers\) are more than there can be here: "
                              r"at most \d+, for .* \d+ \w+")
        most = re.search(r"at most (\d+)", err).group(1)
        self.assertGreater(int(most), 256)
        self.ask(server, "--max-workers", most)
        self.ask(server, "--max-parallel", "2000")


class Counts(SystemTest):
    def limited(self, entries, *arguments):
        outcome = self.replay(entries, "--json", *arguments)
        return outcome, outcome.result

    def test_one_token(self):
        outcome, result = self.limited([ANSWER], "--max-tokens", "1")
        self.assertEqual((outcome.status, result["stopReason"]), (6, "max_tokens"))
        self.assertEqual(result["usage"]["tokens"], 0)

    def test_one_millisecond(self):
        outcome, result = self.limited([ANSWER], "--max-time", "1ms")
        self.assertEqual((outcome.status, result["stopReason"]), (6, "max_time"))

    def test_one_iteration(self):
        entries = [ENDLESS, query("as far as I came", kind="forced")]
        outcome, result = self.limited(entries, "--max-iterations", "1")
        self.assertEqual((outcome.status, result["output"]), (0, "as far as I came"))
        self.assertEqual(result["stopReason"], "max_iterations")
        self.assertEqual(result["usage"]["iterations"], 1)

    def test_calls(self):
        """All of a run's calls count, of whatever kind; the forced answer is still given."""
        entries = [
            turn(
                block(
                    "for i in range(4):",
                    "    try: print(llm_query('q'))",
                    "    except BudgetExceeded as e: print(e)",
                ),
                turn=0,
            ),
            query("said"),
            ENDLESS,
            query("as far as I came", kind="forced"),
        ]
        outcome, result = self.limited(entries, "--max-calls", "3")
        self.assertEqual(
            outcome.executions()[0]["stdout"].split("\n")[:4],
            ["said", "said", "Max calls reached", "Max calls reached"],
        )
        self.assertEqual((outcome.status, result["stopReason"]), (0, "max_calls"))
        self.assertEqual(result["usage"]["llmCalls"], 4)  # with the forced one

    def test_one_call(self):
        outcome, result = self.limited([ANSWER], "--max-calls", "1")
        self.assertEqual((outcome.status, result["output"]), (0, "ok"))

    def test_calls_of_sub_runs_count(self):
        entries = [
            turn(block("print(rlm_query('t'))"), depth=0, turn=0),
            dict(turn(block("llm_query('q')"), depth=1), repeat=True),
            query("said"),
            query("as far as I came", kind="forced"),
            dict(query("as far as I came", kind="forced")),
            turn("FINAL(done)", depth=0, turn=1),
        ]
        _, result = self.limited(entries, "--max-calls", "6")
        self.assertEqual(result["stopReason"], "max_calls")
        self.assertLessEqual(result["usage"]["llmCalls"], 8)  # and one forced answer a run

    def test_sub_runs(self):
        for most, started in ((0, 0), (2, 2)):
            with self.subTest(most):
                entries = [
                    turn(block("for i in range(3): print(rlm_query('t'))"), depth=0, turn=0),
                    dict(turn("FINAL(deep)", depth=1), repeat=True),
                    query("so be it", kind="direct"),
                    turn("FINAL(done)", depth=0, turn=1),
                ]
                outcome, result = self.limited(entries, "--max-subruns", str(most))
                self.assertEqual(result["output"], "done")
                self.assertEqual(result["usage"]["subcalls"], started)
                (execution,) = outcome.executions()
                printed = "deep\n" * started + "so be it\n" * (3 - started)
                self.assertEqual(execution["stdout"], printed)
                self.assertRegex(
                    execution["stderr"],
                    f"{3 - started} degraded answers?: .*Max sub-runs reached",
                )

    def test_depths(self):
        """LIB-22: a sub-run exists at depth d where d < maxDepth; 16 is the most."""
        entries = [
            dict(turn(block("FINAL(rlm_query('t'))")), repeat=True),
            query("directly", kind="direct"),
        ]
        most = ["--max-tokens", "1000000000000", "--max-time", "720h", "--max-cost", "0"]
        for depth, reached in ((0, 0), (1, 0), (2, 1), (16, 15)):
            with self.subTest(depth):
                outcome, result = self.limited(entries, *most, "--max-depth", str(depth))
                self.assertEqual(outcome.status, 0, outcome.err)
                self.assertEqual(result["output"], "directly")
                told = [w for w in result["warnings"] if "Max depth reached" in w]
                self.assertEqual(len(told), 1)
                self.assertEqual(result["usage"]["maxDepthReached"], reached)
                self.assertEqual(result["usage"]["subcalls"], reached)


class BetweenBlocks(ProviderTest):
    @staticmethod
    def workers_of(pid):
        """The program's children but the template, whose session they are in."""
        every = leaks.processes().items()
        children = {child for (child, _), (parent, state, _) in every
                    if parent == pid and state not in "ZX"}
        return [child for child in children if not is_leader(child)]

    def test_threads_that_a_block_leaves(self):
        """G8: they may compute as long as a block; then their worker is ended, and the model is told
        why. Its answer waits for that here."""
        pids = []
        spin = "threading.Thread(target=lambda: all(zero == 0 for zero in iter(int, 1))).start()"
        over = code("print('alive')", until=lambda: not self.workers_of(pids[0]))
        server = self.serve("openai", code("import threading", spin), over, final())
        arguments = self.arguments(server, "--block-timeout", "3s", "--max-time", "1h")
        process = self.start(*arguments, env=self.environment(**server.environment()))
        pids.append(process.pid)
        # A busy machine lets it spin slowly.
        _, err = process.communicate(timeout=5 * patience.hung())
        self.assertEqual(process.returncode, 0, err)
        told = server.requests[2].last_user
        self.assertIn("threads that a block had left running", told)
        self.assertIn("join or stop threads", told)


if __name__ == "__main__":
    unittest.main()

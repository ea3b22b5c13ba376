"""How much of a small budget can be spent: what is reserved and never billed nobody could use.

The server bills honestly: it cuts what max_tokens does not allow, and counts what it was sent, of
words that tokenizers count as it does, four characters each. The model goes on for as long as it
may, so that all of these runs end for their budget.
"""

import itertools
import json
import unittest

import patience
from harness import block
from model import Reply, count_tokens
from providers import ProviderTest, pico

PRICES = (3000000, 15000000)  # pico-dollars a token, in and out
FORCED = "No code runs any more"
LEAST = 0.9  # of the budget


def honest(text, request):
    """As much of it as the limit allows."""
    text = text[: 4 * request.max_tokens]
    finish = "length" if count_tokens(text) == request.max_tokens else "stop"
    return Reply(text=text, finish=finish)


def is_query(request):
    return request.last_user.startswith("QUERY")


def is_sub_run(request):
    return "SUB-RLM at depth" in request.system


def step(tokens, *lines):
    """A turn with about so many tokens."""
    return block("# " + "one two " * (tokens // 2), *lines)


def turns(request):
    return step(300, "print('two ' * 100)")


def long_turns(request):
    return step(1500, "print('two ' * 100)")


def queries(request):
    if is_query(request):
        return "one two " * 525
    return block("for i in range(1000): llm_query('QUERY ' + 'one ' * 200)")


def short_queries(request):
    if is_query(request):
        return "one two " * 105
    return block("for i in range(1000): llm_query('QUERY ' + 'one ' * 200)")


def batches(request):
    if is_query(request):
        return "one two " * 525
    return block("batch_llm_query(['QUERY ' + 'one ' * 200] * 64)")


def sub_runs(request):
    if not is_sub_run(request):
        return block("for i in range(100): rlm_query('a part')")
    return "FINAL(part)" if request.turn > 1 else step(200, "print('two ' * 50)")


def batches_of_sub_runs(request):
    if not is_sub_run(request):
        return block("batch_rlm_query(['a part'] * 8)")
    return "FINAL(part)" if request.turn > 1 else step(200, "print('two ' * 50)")


def of_all_kinds(request):
    if is_query(request):
        return "one two " * 262
    if is_sub_run(request):
        return "FINAL(part)" if request.turn > 1 else step(200, "llm_query('QUERY ' + 'one ' * 200)")
    lines = ("llm_query('QUERY ' + 'one ' * 100)", "batch_llm_query(['QUERY ' + 'one ' * 200] * 3)")
    return step(100, *lines, "rlm_query('a part')", "batch_rlm_query(['a part'] * 3)")


SHAPES = (turns, long_turns, queries, short_queries, batches, sub_runs, batches_of_sub_runs,
          of_all_kinds)


class Spending(ProviderTest):
    parallel = "8"

    def run_shape(self, says, *limit):
        def reply(request):
            if FORCED in request.last_user:
                return honest("the forced words " * 10, request)
            return honest(says(request), request)

        server = self.serve("openai", prices=PRICES).script(None, reply)
        arguments = ["--max-iterations", "1000", "-j", self.parallel, *self.prices(m=PRICES)]
        result = self.ask(server, *arguments, *limit).result
        return server, result

    def worth(self, says, calls):
        """The price of so many calls where nothing is scarce: pico-dollars and tokens."""
        server, _ = self.run_shape(says, "--max-cost", "1000", "--max-tokens", "100000000",
                                   "--max-calls", str(calls))
        asked = server.requests[:calls]
        tokens = sum(request.billed_input + request.billed_output for request in asked)
        return sum(map(server.cost_of, asked)), tokens

    def check(self, says, calls, option):
        cost, tokens = self.worth(says, calls)
        limit = f"{cost / 1e12:.12f}" if option == "--max-cost" else str(tokens)
        ample = {"--max-cost": "1000", "--max-tokens": "100000000"}
        ample[option] = limit
        server, result = self.run_shape(says, *itertools.chain(*ample.items()))
        self.assertEqual(result["stopReason"], option[2:].replace("-", "_"))
        self.assertFalse(result["usage"]["estimated"])
        if option == "--max-cost":
            spent = server.billed_cost / cost
        else:
            spent = sum(server.billed_tokens) / tokens
        self.assertLessEqual(spent, 1)
        self.assertGreaterEqual(spent, LEAST, json.dumps(result["usage"]))

    def check_of_few_and_of_many(self, option):
        """Few calls one after the other, since what is left after the last depends on the order."""
        for calls, self.parallel in ((20, "1"), (40, self.parallel)):
            for says in SHAPES:
                with self.subTest(calls=calls, shape=says.__name__):
                    self.check(says, calls, option)

    def test_of_money(self):
        self.check_of_few_and_of_many("--max-cost")

    def test_of_ten_calls(self):
        """One after the other, since what is left after the last may depend on the order."""
        self.parallel = "1"
        for says in SHAPES:
            with self.subTest(shape=says.__name__):
                self.check(says, 10, "--max-cost")

    def test_of_tokens(self):
        self.check_of_few_and_of_many("--max-tokens")


class Limit(ProviderTest):
    """The value sent as max_tokens, and what becomes of a reply that it has cut."""

    LONG = "word " * 4000  # 5,000 tokens

    def serve_answers(self, *answers):
        """A block with a call for each, of which every one but the last is of 100 tokens."""
        texts = iter(answers)

        def reply(request):
            if is_query(request):
                return honest(self.texts[request.last_user], request)
            if request.turn or FORCED in request.last_user:
                return honest("FINAL_VAR(lengths)", request)
            return honest(block(*self.code), request)

        self.texts = {f"QUERY {i}": text for i, text in enumerate(texts)}
        self.code = ["lengths = [len(llm_query(f'QUERY {i}')) for i in range(%d)]" % len(answers)]
        return self.serve("openai", prices=PRICES).script(None, reply)

    def limits(self, server):
        return [request.max_tokens for request in server.requests if is_query(request)]

    def asked(self, server, *limit):
        result = self.ask(server, *self.prices(m=PRICES), *limit).result
        self.assertEqual(pico(result["usage"]["cost"]), server.billed_cost)
        return result

    def test_a_full_budget_asks_for_a_whole_window(self):
        server = self.serve_answers("short " * 60, "short " * 60, self.LONG)
        result = self.asked(server, "--max-cost", "5")
        self.assertEqual(self.limits(server), [8192] * 3)
        self.assertEqual(result["output"], str([360, 360, len(self.LONG)]))

    def test_a_small_one_for_what_replies_take(self):
        """And a long answer is not lost: it is asked for again, with all that there is."""
        server = self.serve_answers("short " * 60, "short " * 60, self.LONG)
        result = self.asked(server, "--max-cost", "0.15")
        first, second, cut, whole = self.limits(server)
        self.assertGreater(first, 4096)
        self.assertLessEqual(second, 2048)
        self.assertEqual(cut, second)
        self.assertGreater(whole, 5000)
        self.assertEqual(result["output"], str([360, 360, len(self.LONG)]))
        self.assertEqual(result["usage"]["llmCalls"], 5)
        calls = result["trace"]["llmCalls"]
        self.assertEqual(len(calls), 3)
        self.assertEqual(calls[-1]["outputTokens"], cut + 5000)

    def test_a_turn_is_asked_for_again_too(self):
        def reply(request):
            if request.turn < 3:
                return honest(block("print(1)"), request)
            return honest(f"FINAL({self.LONG})", request)

        server = self.serve("openai", prices=PRICES).script(None, reply)
        result = self.asked(server, "--max-cost", "0.15")
        self.assertTrue(result["output"] == self.LONG.strip())
        self.assertEqual((result["usage"]["iterations"], len(server.requests)), (4, 5))
        self.assertLess(server.requests[-2].max_tokens, 5000)

    def test_what_cannot_be_paid_for_twice_is_handed_on_cut(self):
        server = self.serve_answers("short " * 60, "short " * 60, self.LONG)
        result = self.asked(server, "--max-cost", "0.02")
        self.assertLessEqual(server.billed_cost, 2 * 10**10)
        self.assertEqual(len(self.limits(server)), 3)
        last = result["trace"]["llmCalls"][2]
        self.assertEqual(last["outputTokens"], self.limits(server)[-1])
        self.assertTrue(self.LONG.startswith(last["response"]))

    def test_an_error_of_the_second_attempt_leaves_the_first(self):
        server = self.serve_answers("short " * 60, "short " * 60, self.LONG)
        again = lambda r: r.last_user == "QUERY 2" and r.max_tokens > 2048
        server.rules.insert(0, [again, Reply(error="bad_request"), float("inf")])
        result = self.asked(server, "--max-cost", "0.15")
        lengths = json.loads(result["output"])
        self.assertEqual(lengths[:2], [360, 360])
        self.assertEqual(lengths[2], 4 * self.limits(server)[2])  # bytes: what came, no more
        self.assertLess(lengths[2], len(self.LONG))

    def test_a_parallel_batch_shares_a_small_budget(self):
        """Once it is known what replies take, they are asked for beside each other."""
        code = block("llm_query('QUERY')", "batch_llm_query(['QUERY again'] * 6)")
        server = self.serve("openai", prices=PRICES)
        server.script("again", Reply(stall_after=0))
        server.script("^QUERY$", Reply(text="short " * 60))
        server.script(None, Reply(text=code))
        arguments = [*self.prices(m=PRICES), "--max-cost", "0.1", "-j", "8"]
        self.start(
            *self.arguments(server, *arguments), env=self.environment(**server.environment())
        )
        self.assertTrue(server.wait(lambda server: server.in_flight == 6, patience.hung()))

    def test_a_batch_waits_rather_than_being_cut(self):
        """While others may give something back, nothing is sent with too little."""

        def reply(request):
            if is_query(request):
                return honest("one two " * 525, request)
            if request.turn or FORCED in request.last_user:
                return honest("FINAL(done)", request)
            return honest(block("llm_query('QUERY')", "batch_llm_query(['QUERY'] * 4)"), request)

        server = self.serve("openai", prices=PRICES).script(None, reply)
        self.asked(server, "--max-cost", "0.1", "-j", "4")
        sizes = [request.billed_output for request in server.requests if is_query(request)]
        self.assertEqual(sizes, [count_tokens("one two " * 525)] * 5)


if __name__ == "__main__":
    unittest.main()

"""Providers' reports of the use of a call: missing, broken, absurd. It is never a reason to lose the
answer, the count or the budget; what cannot be true is estimated, marked and told."""

import itertools
import unittest

from model import Reply
from providers import ProviderTest, code, final, pico

PRICES = (2000000, 3000000)  # pico-dollars a token, input and output
DOUBT = "was not believable"

# Input and output as they stand in the JSON; None: not there at all.
MISSING = [
    (None, None),
    ("null", "null"),
    ("0", "0"),
    ("null", "7"),
    ("7", None),
    (None, "7"),
]
ABSURD = [
    ("-1", "7"),
    ("7", "-1"),
    ("1000000000000000000", "7"),
    ("7", "9223372036854775808"),
    ("-9223372036854775809", "7"),
    ("1e400", "-1e400"),
    ("1e300", "7"),
    ('"7"', "7"),
    ("7", "1.5"),
    ("7", "[7]"),
    ("true", "{}"),
]

COUNTS = {
    "openai": ("prompt_tokens", "completion_tokens"),
    "anthropic": ("input_tokens", "output_tokens"),
    "ollama": ("prompt_eval_count", "eval_count"),
}


def members(provider, counts):
    pairs = zip(COUNTS[provider], counts)
    return ",".join(f'"{name}":{count}' for name, count in pairs if count is not None)


def event(data):
    return "data: %s\n\n" % data


def openai(text, usage):
    usage = '"usage":%s' % usage
    finish = '"finish_reason":"stop"'
    whole = '{"choices":[{"message":{"content":"%s"},%s}],%s}' % (text, finish, usage)
    stream = [
        '{"choices":[{"delta":{"content":"%s"},%s}]}' % (text, finish),
        '{"choices":[],%s}' % usage,
        "[DONE]",
    ]
    return whole, "".join(map(event, stream))


def anthropic(text, usage):
    part = '{"type":"text","text":"%s"}' % text
    stop = '"stop_reason":"end_turn"'
    whole = '{"type":"message","content":[%s],%s,"usage":%s}' % (part, stop, usage)
    stream = [
        '{"type":"message_start","message":{"content":[],"usage":%s}}' % usage,
        '{"type":"content_block_delta","delta":{"type":"text_delta","text":"%s"}}' % text,
        '{"type":"message_delta","delta":{%s},"usage":%s}' % (stop, usage),
        '{"type":"message_stop"}',
    ]
    return whole, "".join(map(event, stream))


def ollama(text, fields):
    fields = "," + fields if fields else ""
    message = '"message":{"content":"%s"}' % text
    end = '"done":true%s' % fields
    return "{%s,%s}" % (message, end), '{%s,"done":false}\n{%s}\n' % (message, end)


def answer(provider, usage, stream, text):
    """An answer whose usage is these JSON members, or this JSON value."""
    if provider == "ollama":
        bodies = ollama(text, usage)
    else:
        usage = usage if usage in ("null", "7", "[]") else "{%s}" % usage
        bodies = {"openai": openai, "anthropic": anthropic}[provider](text, usage)
    kind = "application/x-ndjson" if provider == "ollama" else "text/event-stream"
    return Reply(
        body=bodies[stream].encode(), content_type=kind if stream else "application/json"
    )


class UsageTest(ProviderTest):
    def asked(self, provider, stream, *usages):
        """A run that makes one call for each usage; gives its result, and checks what holds for
        all: every answer is there, every token is paid for at its price."""
        server = self.serve(provider)
        for i, usage in enumerate(usages):
            server.script(rf"^call {i}\.$", answer(provider, usage, stream, f"answer {i}"))
        server.replies(
            code(f"for i in range({len(usages)}): print(llm_query(f'call {{i}}.'))"), final()
        )
        form = [] if stream else ["--no-stream"]
        result = self.ask(server, *self.prices(m=PRICES), *form).result
        calls = result["trace"]["llmCalls"]
        expected = [f"answer {i}" for i in range(len(usages))]
        self.assertEqual([call["response"] for call in calls], expected)
        self.assertEqual(len(server.requests), len(usages) + 2)
        total = result["usage"]
        price = PRICES if provider != "ollama" else (0, 0)
        paid = total["inputTokens"] * price[0] + total["outputTokens"] * price[1]
        self.assertEqual(pico(total["cost"]), paid)
        self.assertEqual(total["tokens"], total["inputTokens"] + total["outputTokens"])
        return result

    def doubts(self, result):
        return sum(DOUBT in text for text in result["warnings"])

    def test_counts(self):
        """Of each provider, streamed and whole: what is missing is estimated and marked, what
        cannot be is told too, once."""
        for provider, stream in itertools.product(COUNTS, (True, False)):
            for rows in (MISSING, ABSURD):
                with self.subTest(provider=provider, stream=stream, rows=rows):
                    usages = [members(provider, row) for row in rows]
                    result = self.asked(provider, stream, *usages)
                    for call in result["trace"]["llmCalls"]:
                        self.assertTrue(1 <= call["inputTokens"] <= 200, call)
                        self.assertTrue(1 <= call["outputTokens"] <= 20, call)
                    self.assertTrue(result["usage"]["estimated"])
                    self.assertEqual(self.doubts(result), rows is ABSURD)

    def test_usage_that_is_no_object(self):
        for provider, stream in itertools.product(("openai", "anthropic"), (True, False)):
            with self.subTest(provider=provider, stream=stream):
                result = self.asked(provider, stream, "null", "7", "[]")
                self.assertTrue(all(c["inputTokens"] > 0 for c in result["trace"]["llmCalls"]))
                self.assertTrue(result["usage"]["estimated"])
                self.assertEqual(self.doubts(result), 0)

    def test_believable_parts_are_kept(self):
        """One broken count does not take the others with it."""
        for provider, stream in itertools.product(COUNTS, (True, False)):
            with self.subTest(provider=provider, stream=stream):
                rows = (("77", None), ("-7", "77"))
                result = self.asked(provider, stream, *(members(provider, row) for row in rows))
                first, second = result["trace"]["llmCalls"]
                self.assertEqual((first["inputTokens"], second["outputTokens"]), (77, 77))

    def test_more_read_from_the_cache_than_there_was(self):
        """The larger number counts, at the full price."""
        details = ',"prompt_tokens_details":{"cached_tokens":5000}'
        for stream in (True, False):
            result = self.asked("openai", stream, members("openai", ("10", "7")) + details)
            self.assertEqual(result["trace"]["llmCalls"][0]["inputTokens"], 5000)
            self.assertEqual(result["usage"]["cachedTokens"], 0)
            self.assertTrue(result["usage"]["estimated"])
            self.assertEqual(self.doubts(result), 1)

    def test_a_cost_that_cannot_be(self):
        """A provider's own price for a call is no way around the budget: ours holds."""
        counts = members("openai", ("10", "7"))
        costs = ("-1", "1e30", "1e400", '"free"')
        result = self.asked("openai", False, *(f'{counts},"cost":{cost}' for cost in costs))
        for call in result["trace"]["llmCalls"]:
            self.assertEqual(pico(call["cost"]), 10 * PRICES[0] + 7 * PRICES[1])
        self.assertEqual(self.doubts(result), 1)


class PurseTest(ProviderTest):
    """The budget holds, whatever a provider counts."""

    reply = None

    def spend(self, server, *arguments):
        if self.reply:
            server.replies(*[code("print(%d)" % i, **self.reply) for i in range(60)])
        return self.rlmd(
            *self.arguments(
                server, *self.prices(m=PRICES), "--max-iterations", "60", *arguments
            ),
            env=self.environment(**server.environment()),
        )

    def test_without_any_usage_it_holds(self):
        """A server that counts nothing is not asked for ever."""
        self.reply = {"usage": False}
        for provider in COUNTS:
            with self.subTest(provider):
                server = self.serve(provider)
                result = self.spend(server, "--max-tokens", "30000").result
                self.assertEqual(result["stopReason"], "max_tokens")
                self.assertTrue(result["usage"]["estimated"])
                self.assertLessEqual(result["usage"]["tokens"], 30000)
                self.assertLess(len(server.requests), 60)

    def test_output_beyond_max_tokens(self):
        """Billed beyond max_tokens: told once, reported, and reserved for from then on."""
        for provider in COUNTS:
            with self.subTest(provider):
                server = self.serve(provider)

                def reply(asked):  # no request has more tokens than bytes
                    return code("print(1)", usage=(len(asked.body) // 4, 2 * asked.max_tokens))

                server.script(None, reply)
                result = self.spend(server, "--max-tokens", "150000").result
                usage, warnings = result["usage"], result["warnings"]
                self.assertGreater(usage["overrunTokens"], 4000)
                self.assertEqual("overrunCost" in usage, provider != "ollama")
                self.assertEqual(sum("more output than max_tokens" in w for w in warnings), 1)
                billed = sum(r.billed_input + r.billed_output for r in server.requests)
                self.assertEqual(usage["tokens"], billed)
                self.assertLessEqual(billed, 150000)
                self.assertFalse(usage["estimated"])

    def test_an_overdrawn_budget_is_closed(self):
        """A bill in spite of the limit is the last: not even an answer is forced."""
        self.reply = {"usage": (2000, 90000)}
        server = self.serve("openai")
        outcome = self.spend(server, "--max-tokens", "40000")
        self.assertEqual(outcome.status, 6, outcome.err)
        self.assertEqual(len(server.requests), 1)
        self.assertEqual(outcome.result["usage"]["tokens"], 92000)
        self.assertGreater(outcome.result["usage"]["overrunTokens"], 50000)

    def test_nothing_more_than_reserved_is_no_overrun(self):
        self.reply = {"usage": (900, 10)}
        server = self.serve("openai")
        usage = self.spend(server, "--max-iterations", "3").result["usage"]
        self.assertNotIn("overrunTokens", usage)
        self.assertNotIn("overrunCost", usage)


if __name__ == "__main__":
    unittest.main()

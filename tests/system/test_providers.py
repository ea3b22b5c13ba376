"""Requests, answers and bills of the three providers, over HTTP, by the real program."""

import unittest

from model import PROVIDERS, Reply, count_tokens, dumps
from providers import CLOUD, ProviderTest, code, final, pico

PATHS = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages", "ollama": "/api/chat"}
MAX_TOKENS = {"openai": "max_completion_tokens", "anthropic": "max_tokens", "ollama": "options"}
UNASKED = {
    "temperature",
    "top_p",
    "max_tokens",
    "response_format",
    "stop",
    "seed",
    "think",
    "thinking",
}
WINDOW = 8192
WINDOWS = (  # as OpenAI and vLLM have said it, by version, and SGLang
    "This model's maximum context length is 8192 tokens. However, you requested {all} tokens ({prompt} in the "
    "messages, {most} in the completion). Please reduce the length of the messages or completion.",
    "'max_tokens' or 'max_completion_tokens' is too large: {most}. This model's maximum context length is 8192 "
    "tokens and your request has {prompt} input tokens ({most} > 8192 - {prompt}). None",
    "You passed {least} input tokens and requested {most} output tokens. However, the model's context length is "
    "only 8192 tokens, resulting in a maximum input length of 0 tokens.",
    "This model's maximum context length is 8192 tokens. However, you requested {most} output tokens and your "
    "prompt contains at least {least} input tokens, for a total of at least 8193 tokens.",
    "Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a total of "
    "{all} tokens: {prompt} tokens from the input messages and {most} tokens for the completion.",
)
SYSTEM_REFUSED = (
    (400, "Unsupported value: 'messages[0].role' does not support 'system' with this model."),
    (400, "System role not supported"),
    (500, "System role not supported at row 1, column 65"),
    (400, "Conversation roles must alternate user/assistant/user/assistant/..."),
)
OUTPUTS = (
    ("openai", "max_tokens is too large: {most}. This model supports at most 4096 completion tokens, whereas "
     "you provided {most}."),
    ("openai", "`max_tokens` must be less than or equal to `4096`, the maximum value for `max_tokens` is less "
     "than the `context_window` for this model"),
    ("anthropic", "max_tokens: {most} > 4096, which is the maximum allowed number of output tokens for m"),
)
TEXT = 'caf\u00e9 \u20ac \U0001f600 "q" \\ 1:2,3{}[]'


class Answers(ProviderTest):
    def test_streamed_and_whole(self):
        """LIB-17 to LIB-20: the text arrives unharmed, the usage is the provider's, both ways."""
        for provider in PROVIDERS:
            for option in ([], ["--no-stream"]):
                with self.subTest(provider=provider, option=option):
                    server = self.serve(provider, final(TEXT, usage=(120, 31)))
                    result = self.ask(server, *option).result
                    (request,) = server.requests
                    self.assertEqual((request.path, request.json["model"]), (PATHS[provider], "m"))
                    self.assertIs(request.json["stream"], not option)
                    self.assertEqual(result["output"], TEXT)
                    usage = result["usage"]
                    tokens = (usage["inputTokens"], usage["outputTokens"])
                    self.assertEqual(tokens, server.billed_tokens)
                    self.assertFalse(usage["estimated"])

    def test_split_at_every_byte(self):
        """A4: no character, line or event needs to come in one piece."""
        for provider in PROVIDERS:
            with self.subTest(provider=provider):
                server = self.serve(
                    provider, final(TEXT, usage=(12, 3), thinking=TEXT, piece_size=1)
                )
                result = self.ask(server).result
                self.assertEqual((result["output"], result["usage"]["tokens"]), (TEXT, 15))

    def test_whole_answer_to_a_request_for_a_stream(self):
        """Some compatible servers never stream."""
        for provider in CLOUD:
            with self.subTest(provider=provider):
                server = self.serve(provider, final(whole=True, usage=(12, 3)))
                self.assertEqual(self.ask(server).result["usage"]["tokens"], 15)

    def test_a_stream_that_nobody_asked_for(self):
        """Some gateways always stream."""
        for provider in CLOUD:
            with self.subTest(provider=provider):
                server = self.serve(provider, final(TEXT, streamed=True, usage=(12, 3)))
                result = self.ask(server, "--no-stream").result
                self.assertFalse(server.requests[0].stream)
                self.assertEqual(result["output"], TEXT)

    def test_noise_in_a_stream(self):
        """A4: comments, events of no known kind, CR LF and fields of no known name mean nothing."""
        noise = (
            b': OPENROUTER PROCESSING\r\n\r\nevent: news\r\ndata: {"type":"news"}\r\n\r\n'
            b'id: 7\r\nretry: 1\r\ndata: {"choices":[{"delta":{"content":"FINAL(ok)"}}],'
            b'"obfuscation":"xx"}\r\n\r\n: bye\r\n\r\ndata: [DONE]\r\n\r\n'
        )
        server = self.serve("openai", Reply(body=noise, content_type="text/event-stream"))
        self.assertEqual(self.ask(server).result["output"], "ok")

    def test_reasoning_is_kept_apart_and_never_run(self):
        """A4: a thinking block, also as Anthropic's first, is neither answer nor code."""
        thought = "I could\n```repl\nprint('thought')\n```\nFINAL(a thought)"
        for provider in PROVIDERS:
            for option in ([], ["--no-stream"]):
                with self.subTest(provider=provider, option=option):
                    server = self.serve(
                        provider,
                        code("print('said')", thinking=thought),
                        final("an answer", thinking=thought),
                    )
                    outcome = self.ask(server, *option)
                    self.assertEqual([e["stdout"] for e in outcome.executions()], ["said\n"])
                    self.assertEqual(outcome.result["output"], "an answer")
                    first = outcome.result["trace"]["iterations"][0]["response"]
                    self.assertIn(thought, first["thinking"])
                    self.assertNotIn("thought", first["content"])
                    self.assertNotIn(b"thought", server.requests[1].body)

    def test_cut_answer(self):
        """ENG-1: of an answer cut by its length no half block runs, and the model is told."""
        for provider in PROVIDERS:
            with self.subTest(provider=provider):
                cut = Reply(text="```repl\nprint('half", finish="length")
                server = self.serve(provider, cut, final())
                self.assertEqual(self.ask(server).executions(), [])
                self.assertIn("length limit", server.requests[1].last_user)

    def test_refusals(self):
        """The model's and the filter's end the run with exit status 10 and without a retry."""
        refusal = Reply(text="I'd rather not", finish="refusal")
        filtered = Reply(text="", finish="content_filter")
        cases = [
            ("openai", refusal),
            ("anthropic", refusal),
            ("openai", filtered),
            ("openai", Reply(error="content_filter")),
        ]
        for provider, reply in cases:
            for option in ([], ["--no-stream"]) if not reply.error else ([],):
                with self.subTest(provider=provider, reply=reply, option=option):
                    server = self.serve(provider, reply, final())
                    result = self.ask(server, *option, status=10).result
                    self.assertEqual(result["stopReason"], "refused")
                    self.assertEqual(result["error"]["kind"], "refused")
                    self.assertEqual(len(server.requests), 1)


class Requests(ProviderTest):
    def test_a_conversation_only_grows(self):
        """A9: each request's bytes begin with those of the one before, so that caches serve."""
        turns = [code(f"print('turn {i}', budget()['iterations'])") for i in range(4)]
        for provider in PROVIDERS:
            with self.subTest(provider=provider):
                server = self.serve(provider, *turns, final())
                self.ask(server)
                self.assertEqual(len(server.requests), 5)
                for before, after in zip(server.requests, server.requests[1:]):
                    self.assertEqual(after.messages[: len(before.messages)], before.messages)
                    shared = before.body[: before.body.rindex(b'],"')]
                    self.assertTrue(after.body.startswith(shared + b","), after.body)

    def test_what_is_sent(self):
        """A3: the output is limited, and nothing stands in a request that some model refuses."""
        for provider in PROVIDERS:
            with self.subTest(provider=provider):
                server = self.serve(provider, code("llm_query('q')"), Reply(text="a"), final())
                self.ask(server, "--subcall-model", "small")
                self.assertEqual([r.model for r in server.requests], ["m", "small", "m"])
                for request in server.requests:
                    self.assertGreater(request.max_tokens, 0)
                    self.assertIn(MAX_TOKENS[provider], request.json)
                    self.assertFalse(set(request.json) & (UNASKED - {MAX_TOKENS[provider]}))
                    roles = [role for role, _ in request.messages]
                    self.assertEqual(roles[:2], ["system", "user"])
                    self.assertNotIn("developer", roles)

    def test_anthropic(self):
        """LIB-19: the version of the API; what a conversation sends again is to be cached."""
        server = self.serve("anthropic", code("llm_query('q')"), Reply(text="a"), final())
        self.ask(server)
        turn, query, again = server.requests
        self.assertEqual(turn.headers["anthropic-version"], "2023-06-01")
        self.assertEqual(
            [message["role"] for message in again.json["messages"]], ["user", "assistant", "user"]
        )
        self.assertEqual(turn.json["cache_control"], {"type": "ephemeral"})
        self.assertEqual(turn.json["system"][0]["cache_control"], {"type": "ephemeral"})
        self.assertNotIn(b"cache_control", query.body)

    def test_ollama_window(self):
        """LIB-18, A10: the window is asked for and grows with the prompt; nothing is cut."""
        server = self.serve("ollama", code("llm_query('x ' * 30000)"), Reply(text="a"), final())
        self.ask(server)
        windows = [request.json["options"]["num_ctx"] for request in server.requests]
        for request, window in zip(server.requests, windows):
            self.assertIs(request.json["truncate"], False)
            self.assertGreater(window, request.max_tokens + len(request.body) // 4)
        self.assertGreater(windows[1], windows[0])

    def test_ollama_cut_a_prompt_in_silence(self):
        """A10: a count of tokens that is far too small is told as what it is."""
        server = self.serve(
            "ollama", code("llm_query('word ' * 20000)"), Reply(text="a", usage=(4096, 1)), final()
        )
        warnings = self.ask(server).result["warnings"]
        self.assertEqual(len(warnings), 1, warnings)
        self.assertRegex(warnings[0], "cut a prompt.*larger context window")

    def test_where_the_server_is(self):
        """LIB-18, LIB-20: OLLAMA_HOST as its server reads it, base URLs as people write them."""
        cases = [
            ("ollama", {"OLLAMA_HOST": "127.0.0.1:%d"}, []),
            ("ollama", {"OLLAMA_HOST": "0.0.0.0:%d"}, []),
            ("ollama", {"OLLAMA_HOST": ":%d"}, []),
            ("ollama", {"OLLAMA_HOST": "127.0.0.1:1"}, ["--base-url", "http://127.0.0.1:%d/"]),
            ("openai", {"OPENAI_BASE_URL": "http://127.0.0.1:%d/v1/"}, []),
            ("anthropic", {"ANTHROPIC_BASE_URL": "http://127.0.0.1:%d/v1"}, []),
        ]
        for provider, environment, option in cases:
            with self.subTest(environment=environment, option=option):
                server = self.serve(provider, final())

                def fill(text, port=str(server.port)):
                    return text.replace("%d", port)

                filled = {name: fill(value) for name, value in environment.items()}
                self.ask(server, *map(fill, option), **filled)
                self.assertEqual(server.requests[0].path, PATHS[provider])

    def too_large(self, provider, fits, words):
        """A server that refuses requests for which `fits` is false; its words get the numbers."""
        def reply(request):
            prompt = sum(count_tokens(text) for _, text in request.messages)
            if not fits(prompt, request.max_tokens):
                said = words.format(prompt=prompt, most=request.max_tokens,
                                    all=prompt + request.max_tokens,
                                    least=WINDOW - request.max_tokens + 1)
                error = {"type": "invalid_request_error", "message": said}
                return Reply(status=400, body=dumps({"type": "error", "error": error}))
            if request.turn:
                return final()
            is_turn = "TASK:" in request.last_user or "Turn 1" in request.last_user
            return code("print(llm_query('x')); print(rlm_query('y'))") if is_turn else final("z")

        server = self.serve(provider)
        server.script(None, reply)
        return server

    def test_a_small_window(self):
        """The window is read out of the first refusal, and kept to from then on; the model is told of
        pieces that fit it."""
        for words in WINDOWS:
            with self.subTest(words=words):
                server = self.too_large("openai", lambda prompt, most: prompt + most <= WINDOW, words)
                self.ask(server)
                asked = [request.max_tokens for request in server.requests]
                refused = [request for request in server.requests if not request.billed_output]
                self.assertEqual(asked[0], WINDOW)
                self.assertLess(max(asked[1:]), WINDOW)
                self.assertEqual(len(refused), 1, asked)
                self.assertGreater(min(asked), 1000)
                below = next(request for request in server.requests if "SUB-RLM" in request.system)
                self.assertIn("1600 tokens at a time", below.first_turn + below.system)

    def test_a_model_of_short_answers(self):
        """The most output that a model has, in the same way."""
        for provider, words in OUTPUTS:
            with self.subTest(provider=provider, words=words):
                server = self.too_large(provider, lambda prompt, most: most <= 4096, words)
                self.ask(server)
                asked = [request.max_tokens for request in server.requests]
                self.assertEqual((asked[0], set(asked[1:])), (8192, {4096}))

    def test_a_window_that_the_prompt_fills(self):
        """No request for less output would help: it is told once, with the server's own words."""
        server = self.too_large("openai", lambda prompt, most: False, WINDOWS[0])
        error = self.fails(server, 8, "context_overflow", task="word " * 9000)
        self.assertIn("maximum context length is 8192", error["message"])

    def test_refused_parameters(self):
        """A3: one more request for each lesson, and none for later calls to that model."""
        cases = [
            ("openai", "max_completion_tokens", "max_completion_tokens"),
            ("anthropic", "cache_control", "cache_control"),
        ]
        for provider, error, field in cases:
            with self.subTest(provider=provider):
                server = self.serve(provider)
                server.script(lambda r, field=field: field.encode() in r.body, Reply(error=error))
                server.replies(code("print(llm_query('q'))"), Reply(text="a"), final())
                self.assertEqual(self.ask(server).executions()[0]["stdout"], "a\n")
                sent = [field.encode() in request.body for request in server.requests]
                self.assertEqual(sent, [True, False, False, False])

    def test_a_system_prompt_that_is_refused(self):
        """Its text then stands in front of the first message of the user's, in every later request."""
        for status, words in SYSTEM_REFUSED:
            with self.subTest(words=words):
                server = self.serve("openai")
                error = Reply(status=status, body=dumps({"error": {"message": words}}))
                server.script(lambda request: request.messages[0][0] == "system", error)
                server.replies(code("print(llm_query('q'))"), Reply(text="a"), final())
                self.assertEqual(self.ask(server).executions()[0]["stdout"], "a\n")
                refused, *answered = server.requests
                self.assertEqual(len(answered), 3)
                for request in answered:
                    roles = [role for role, _ in request.messages]
                    self.assertEqual(roles[::2], ["user"] * len(roles[::2]))
                    self.assertNotIn("user", roles[1::2])
                told, first = refused.system, refused.text(1)
                self.assertEqual(answered[0].text(0), f"{told}\n\n{first}")
                self.assertTrue(answered[2].text(0).startswith(told))

    def test_a_parameter_that_stays_refused(self):
        """A server that likes neither name of the limit is asked once by each."""
        server = self.serve("openai")
        server.script(
            lambda r: "max_completion_tokens" in r.json, Reply(error="max_completion_tokens")
        )
        server.script(lambda r: "max_tokens" in r.json, Reply(error="max_tokens"))
        error = self.fails(server, 1, "bad_request")
        self.assertIn("max_completion_tokens", error["message"])
        self.assertLessEqual(len(server.requests), 3)


class Bill(ProviderTest):
    ROOT = (546875, 10000001, 54687, 683593, 1093750)
    SMALL = (150001, 600007, 75003, 150001, 150001)

    def run_both(self, provider, option):
        """A root and a sub-call, through every kind of cache that the provider has."""
        hour = {"written_1h": 17} if provider == "anthropic" else {}
        server = self.serve(
            provider,
            code(
                "llm_query('q')", usage=(5003, 211), cached=1009, written=307, reasoning=101, **hour
            ),
            Reply(text="a", usage=(701, 13), cached=97),
            final(usage=(6007, 23), cached=5003, written=401),
            prices={"m": self.ROOT, "small": self.SMALL},
        )
        table = self.prices(m=self.ROOT, small=self.SMALL)
        option = [*option, "--subcall-model", "small", "--max-cost", "1"]
        return server, self.ask(server, *table, *option).result

    def test_cost_to_the_pico_dollar(self):
        """A7, LIB-21: what the provider bills, cached and written tokens at their prices."""
        full = 5003 - 1009 - 307
        by_hand = {
            "openai": full * 546875 + 1009 * 54687 + 307 * 683593 + 211 * 10000001,
            "anthropic": (full - 17) * 546875
            + 1009 * 54687
            + 307 * 683593
            + 17 * 1093750
            + 211 * 10000001,
        }
        for provider in CLOUD:
            for option in ([], ["--no-stream"]):
                with self.subTest(provider=provider, option=option):
                    server, result = self.run_both(provider, option)
                    trace, usage = result["trace"], result["usage"]
                    self.assertEqual(
                        pico(trace["iterations"][0]["response"]["cost"]), by_hand[provider]
                    )
                    self.assertEqual(
                        pico(trace["llmCalls"][0]["cost"]),
                        (701 - 97) * 150001 + 97 * 75003 + 13 * 600007,
                    )
                    self.assertEqual(pico(usage["cost"]), server.billed_cost)
                    tokens = (usage["inputTokens"], usage["outputTokens"])
                    self.assertEqual(tokens, server.billed_tokens)
                    self.assertEqual(usage["cachedTokens"], 1009 + 97 + 5003)
                    self.assertTrue(usage["costComplete"])

    def test_cost_of_parallel_sub_runs(self):
        """A7: every call of every sub-run is in the root's bill, once."""
        prices = (3000001, 15000007)
        server = self.serve("openai", prices=prices)
        server.script(
            lambda r: "part " in r.last_user and r.turn == 0,
            code("x = llm_query('leaf')", "FINAL(x)"),
        )
        server.script("leaf", Reply(text="l", usage=(31, 7)))
        server.replies(code("batch_rlm_query(['part %d' % i for i in range(6)])"), final())
        result = self.ask(server, *self.prices(m=prices)).result
        self.assertEqual(len(server.requests), 14)
        self.assertEqual(pico(result["usage"]["cost"]), server.billed_cost)
        self.assertEqual(result["usage"]["subcalls"], 6)

    def test_cost_by_the_provider_itself(self):
        """A7: OpenRouter says what it takes; that wins over a table."""
        body = dumps(
            {
                "choices": [{"message": {"content": "FINAL(ok)"}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 10, "completion_tokens": 2, "cost": 0.000123456789},
            }
        )
        server = self.serve("openai", Reply(body=body))
        usage = self.ask(server, "--no-stream", *self.prices(m=(1, 1))).result["usage"]
        self.assertEqual((pico(usage["cost"]), usage["costComplete"]), (123456789, True))

    def test_unknown_price(self):
        """LIB-20, A7: never guessed; without a limit a warning, with one no call."""
        server = self.serve("openai", final())
        outcome = self.ask(server)
        self.assertEqual(outcome.err.count("price of model 'm' is not known"), 1, outcome.err)
        self.assertEqual(outcome.err.count("price-table"), 1, outcome.err)
        told = [warning for warning in outcome.result["warnings"] if "price" in warning]
        self.assertEqual(len(told), 1, told)
        usage = outcome.result["usage"]
        self.assertEqual((usage["cost"], usage["costComplete"]), (0, False))
        error = self.fails(server, 2, "usage", "--max-cost", "1")
        self.assertIn("price-table", error["message"])
        self.assertEqual(len(server.requests), 1)

    def test_unknown_price_of_a_named_model(self):
        """LIB-20: one that only a block names is warned of too, once, at the end."""
        server = self.serve(
            "openai",
            code("print(batch_llm_query(['a', 'b'], model='other'))"),
            Reply(text="x"),
            Reply(text="y"),
            final(),
        )
        outcome = self.ask(server)
        told = [warning for warning in outcome.result["warnings"] if "price" in warning]
        self.assertEqual(len(told), 2, told)
        self.assertEqual(outcome.err.count("price of model 'm'"), 1, outcome.err)
        self.assertEqual(outcome.err.count("price of model 'other'"), 1, outcome.err)

    def test_unknown_price_of_the_sub_calls(self):
        """LIB-20: the model that sub-calls use counts as well."""
        server = self.serve("openai")
        self.fails(
            server,
            2,
            "usage",
            *self.prices(m=(1, 1)),
            "--subcall-model",
            "other",
            "--max-cost",
            "1",
        )
        self.assertEqual(server.requests, [])

    def test_nothing_may_be_spent(self):
        """LIB-18, LIB-25: a local model answers at no cost, one with a price is not asked."""
        server = self.serve("ollama", code("print(llm_query('q'))"), Reply(text="a"), final())
        usage = self.ask(server, "--max-cost", "0").result["usage"]
        self.assertEqual((usage["cost"], usage["costComplete"]), (0, True))
        server = self.serve("openai", final())
        error = self.fails(server, 6, "budget", "--max-cost", "0", *self.prices(m=(1, 1)))
        self.assertIn("allows only what is free", error["message"])
        self.assertEqual(server.requests, [])

    def test_no_usage(self):
        """A4: what was not reported is estimated, and marked so."""
        for provider in PROVIDERS:
            with self.subTest(provider=provider):
                server = self.serve(provider, final(usage=False))
                usage = self.ask(server, *self.prices(m=(1000, 1000))).result["usage"]
                self.assertTrue(usage["estimated"])
                self.assertGreater(usage["inputTokens"], 500)
                cost = 0 if provider == "ollama" else 1000 * usage["tokens"]
                self.assertEqual(pico(usage["cost"]), cost)


if __name__ == "__main__":
    unittest.main()

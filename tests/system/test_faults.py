"""Providers that throttle, refuse, break off, stall or talk nonsense, and what is done then."""

import dataclasses
import email.utils
import json
import pathlib
import re
import socket
import time
import unittest

import patience
from harness import RLMD
from model import PROVIDERS, Answer, Reply, dumps
from providers import CLOUD, WHOLE, ProviderTest, code, final, pico

MIB = 1 << 20
# Of any process of a run: less than an answer of 100 MB. A sanitizer keeps what was freed.
SANITIZED = b"__asan_init" in pathlib.Path(RLMD).read_bytes()
MEMORY = (1000 if SANITIZED else 80) * MIB

CATCH = """
try:
    llm_query('q')
except LLMError as error:
    print(error.kind, error)
"""
SOON = {"retry-after-ms": "1"}  # for tests of something else than the wait


class Retries(ProviderTest):
    def waited(self, server, *arguments):
        """Runs a task that needs two requests, and gives the seconds between them."""
        self.assertEqual(self.ask(server, *arguments).result["output"], "ok")
        self.assertEqual(len(server.requests), 2)
        return server.requests[1].time - server.requests[0].time

    def test_waits(self):
        """A6: as long as the server says, else half a second less up to a quarter."""
        backoff = (0.37, 1.2)
        minute = {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "0m0.8s"}
        cases = [
            ("openai", Reply(error="rate_limit", headers={"retry-after-ms": "900"}), (0.9, 1.7)),
            ("openai", Reply(error="rate_limit", headers={"Retry-After": "1"}), (1, 1.8)),
            ("openai", Reply(error="rate_limit", headers=minute), (0.8, 1.6)),
            ("anthropic", Reply(error="rate_limit", headers={"retry-after": "1.2"}), (1.2, 2)),
            ("openai", Reply(error="rate_limit"), backoff),
            ("anthropic", Reply(error="overloaded"), backoff),
            ("openai", Reply(error="overloaded"), backoff),
            ("openai", Reply(error="server_error"), backoff),
            ("ollama", Reply(error="overloaded"), backoff),
            ("ollama", Reply(status=502, body=b""), backoff),
            ("openai", Reply(error="bad_request", headers={"x-should-retry": "true"}), backoff),
        ]
        watch = patience.Stopwatch()
        for provider, reply, (least, most) in cases:
            with self.subTest(provider=provider, error=reply.error, headers=reply.headers):
                # Clocks of whole milliseconds: one may be missing.
                waited = 0.002 + self.waited(self.serve(provider, reply, final()))
                watch.took()
                self.assertTrue(least <= waited <= least + (most - least) * watch.slowness, waited)

    def test_wait_until_a_date(self):
        """A6: a date has whole seconds, so the wait for one in two is between one and two."""

        def throttle(_):
            date = email.utils.formatdate(time.time() + 2, usegmt=True)
            return Reply(error="rate_limit", headers={"Retry-After": date})

        server = self.serve("openai").script(None, throttle, times=1).script(None, final())
        watch = patience.Stopwatch()
        waited = self.waited(server)
        watch.took()
        self.assertTrue(0.9 <= waited <= 2 + 0.6 * watch.slowness, waited)

    def test_gives_up(self):
        """After two retries, with the provider's own words, exit status 5."""
        server = self.serve("anthropic").script(None, Reply(error="server_error"))
        error = self.fails(server, 5, "overloaded")
        self.assertEqual((len(server.requests), error["httpStatus"]), (3, 500))
        self.assertIn("gave up after 3 attempts", error["message"])

    def test_does_not_wait_in_vain(self):
        """A6: not beyond the run's time; and says so."""
        cases = [
            ({"Retry-After": "300"}, [], "time is over"),
            ({"x-ratelimit-reset-tokens": "6m0s"}, [], "time is over"),
            ({"Retry-After": "90"}, ["--max-time", "60"], "time is over"),
        ]
        for headers, option, reason in cases:
            with self.subTest(headers=headers):
                reply = Reply(error="rate_limit", headers=headers)
                server = self.serve("openai").script(None, reply)
                watch = patience.Stopwatch()
                self.assertIn(reason, self.fails(server, 5, "throttled", *option)["message"])
                self.assertLess(watch.took(), 5)
                self.assertEqual(len(server.requests), 1)

    def test_the_server_forbids_a_retry(self):
        """x-should-retry: false is obeyed."""
        server = self.serve(
            "openai", Reply(error="server_error", headers={"x-should-retry": "false"})
        )
        self.fails(server, 5, "overloaded")
        self.assertEqual(len(server.requests), 1)

    def test_hopeless(self):
        """A5: what no retry can mend is asked once, and the status says whose business it is."""
        payment = Reply(status=402, body=b'{"error":{"code":402,"message":"Insufficient credits"}}')
        cases = [
            ("auth", 4, CLOUD),
            ("permission", 4, CLOUD),
            ("billing", 4, CLOUD),
            ("not_found", 2, PROVIDERS),
            ("bad_request", 1, PROVIDERS),
            (payment, 4, ["openai"]),
        ]
        for error, status, providers in cases:
            reply = error if isinstance(error, Reply) else Reply(error=error)
            kind = {"permission": "auth"}.get(reply.error, reply.error) or "billing"
            for provider in providers:
                with self.subTest(provider=provider, error=reply):
                    server = self.serve(provider, reply, final())
                    self.fails(server, status, kind)
                    self.assertEqual(len(server.requests), 1)

    def test_an_unpaid_bill_ends_all_calls(self):
        """A5: the rest of a batch is not tried, and the run ends."""
        server = self.serve("openai", code("batch_llm_query(['q'] * 20)")).script(
            None, Reply(error="billing")
        )
        self.fails(server, 4, "billing", "-j", "1")
        self.assertEqual(len(server.requests), 2)

    def test_a_call_out_of_a_block(self):
        """The code sees an exception of the right kind, and the run goes on."""
        caught = code(CATCH)
        server = self.serve("openai", caught, Reply(error="content_filter"), final())
        told = self.ask(server).executions()[0]["stdout"]
        self.assertRegex(told, "^refused .*content management policy")


class Overflow(ProviderTest):
    NUMBERS = {"openai": ("8192", "9000"), "anthropic": ("208310", "200000"), "ollama": ("300",)}

    def test_in_a_block(self):
        """An exception with the numbers, so that the model can cut its text; no retry."""
        caught = code(CATCH)
        for provider, numbers in self.NUMBERS.items():
            with self.subTest(provider=provider):
                server = self.serve(provider, caught, Reply(error="context_overflow"), final())
                told = self.ask(server).executions()[0]["stdout"]
                for number in ("context_overflow", *numbers):
                    self.assertIn(number, told)
                self.assertEqual(len(server.requests), 3)

    def test_at_the_root(self):
        """Exit status 8, with the numbers."""
        for provider, numbers in self.NUMBERS.items():
            with self.subTest(provider=provider):
                server = self.serve(provider, Reply(error="context_overflow"))
                message = self.fails(server, 8, "context_overflow")["message"]
                for number in numbers:
                    self.assertIn(number, message)
                self.assertEqual(len(server.requests), 1)


    def test_words_of_gateways_and_local_servers(self):
        """LiteLLM's, llama.cpp's, LM Studio's and vLLM's: the same, whatever else they say."""
        for status, message in (
            (400, "litellm.ContextWindowExceededError: litellm.BadRequestError: Context Window "
                  "exceeded for given call."),
            (400, "request (9412 tokens) exceeds the available context size (8192 tokens), try "
                  "increasing it"),
            (500, "Context size has been exceeded."),
            (400, "The decoder prompt (length 5951) is longer than the maximum model length of 4096."),
        ):
            with self.subTest(message=message):
                body = json.dumps({"error": {"message": message, "type": None, "code": str(status)}})
                server = self.serve("openai", Reply(status=status, body=body.encode()))
                self.assertIn(message, self.fails(server, 8, "context_overflow")["message"])
                self.assertEqual(len(server.requests), 1)

    def test_an_unknown_model_of_a_gateway(self):
        """LiteLLM says so with status 400: what is wrong is the model's name."""
        words = ("/chat/completions: Invalid model name passed in model=m. Call `/v1/models` to view "
                 "available models for your key.")
        for message in (words, {"error": words}, str({"error": words})):
            with self.subTest(message=message):
                body = json.dumps({"error": {"message": message, "type": "None", "code": "400"}})
                server = self.serve("openai", Reply(status=400, body=body.encode()))
                told = self.fails(server, 2, "not_found")["message"]
                self.assertIn("Invalid model name passed in model=m", told)
                self.assertIn("check the model's name", told)


class Broken(ProviderTest):
    def test_down(self):
        """A server that does not listen: what was tried, and what to look at."""
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            url = "http://127.0.0.1:%d" % closed.getsockname()[1]
            server = self.serve("ollama")
            message = self.fails(server, 5, "network", "--base-url", url)["message"]
        self.assertIn(url, message)
        self.assertIn("is the server running?", message)

    def test_nonsense(self):
        """HTML, half a JSON, nothing: tried once more, then told with its first words."""
        half = Reply.truncated_json()
        cases = [
            (Reply.html(), "<!DOCTYPE html>"),
            (half, '"choices"'),
            (Reply.empty(), "empty"),
            (Reply(body=b"{}"), "{}"),
            (Reply(body=b"\xff\xfe\0\x1b[2J"), ""),
        ]
        for provider in PROVIDERS:
            for reply, words in cases:
                with self.subTest(provider=provider, body=reply.body):
                    reply.headers = SOON
                    server = self.serve(provider).script(None, reply)
                    message = self.fails(server, 5, "bad_reply")["message"]
                    self.assertIn(words, message)
                    self.assertIn("base URL", message)
                    self.assertNotIn("\x1b", message)
                    self.assertEqual(len(server.requests), 2)

    def test_nonsense_once(self):
        """The second try may be fine."""
        server = self.serve("openai", Reply.html(), final())
        self.assertEqual(self.ask(server).result["output"], "ok")

    def test_page_of_a_gateway(self):
        """An error's HTML is told by its title."""
        server = self.serve("openai").script(None, Reply.html(502))
        message = self.fails(server, 5, "overloaded")["message"]
        self.assertIn("502: Sign in", message)
        self.assertNotIn("<", message)

    def test_redirect_is_not_followed(self):
        """A key is for one host: a redirect is an error that names its status."""
        other = self.serve("openai", final())
        away = {"Location": other.url + "/chat/completions"}
        server = self.serve("openai", Reply(status=302, body=b"", headers=away))
        self.assertIn("302", self.fails(server, 2, "not_found")["message"])
        self.assertEqual(other.requests, [])

    def test_cut(self):
        """An answer that breaks off is asked for again; what it may have cost is counted."""
        for provider in PROVIDERS:
            for option in ([], ["--no-stream"]):
                with self.subTest(provider=provider, option=option):
                    cut = Reply(text="FINAL(" + "wrong " * 50, cut_after=200, headers=SOON)
                    server = self.serve(provider, cut, final(usage=(1000, 5)))
                    result = self.ask(server, *option, *self.prices(m=(1000, 1000))).result
                    usage = result["usage"]
                    self.assertEqual((result["output"], len(server.requests)), ("ok", 2))
                    self.assertTrue(usage["estimated"])
                    self.assertGreater(usage["inputTokens"], 1000)
                    cost = 0 if provider == "ollama" else 1000 * usage["tokens"]
                    self.assertEqual(pico(usage["cost"]), cost)

    def test_cut_for_good(self):
        """After five retries the error says what happened, and how often."""
        server = self.serve("openai").script(
            None, Reply(text="x" * 1000, cut_after=500, headers=SOON)
        )
        message = self.fails(server, 5, "network")["message"]
        self.assertIn("gave up after 6 attempts", message)

    def test_cut_again_and_again(self):
        """A server that restarts: streams that break off, or end with an error, are waited for."""
        for how in ({"cut_after": 200}, {"stream_error": "overloaded"}):
            with self.subTest(how=how):
                cut = Reply(text="FINAL(" + "wrong " * 50, headers=SOON, **how)
                server = self.serve("openai", *[cut] * 5, final())
                result = self.ask(server).result
                self.assertEqual((result["output"], len(server.requests)), ("ok", 6))

    def test_an_end_that_nobody_says(self):
        """A stream that told finish and usage is whole: without [DONE], or its last blank line."""
        for provider, end in (("openai", b"data: [DONE]"), ("anthropic", b"event: message_stop")):
            for gone in (b"", b"\n", b"\n\n"):
                for form in ("complete", "cut"):
                    with self.subTest(provider=provider, gone=gone, form=form):
                        server = self.serve(provider)
                        server.script(None, lambda r: self.without(r, end, gone, form))
                        result = self.ask(server).result
                        self.assertEqual((result["output"], len(server.requests)), ("ok", 1))
                        self.assertFalse(result["usage"]["estimated"])
                        self.assertEqual(result["usage"]["outputTokens"], 7)

    @staticmethod
    def without(request, end, gone, form):
        """A stream up to `end`, less what is `gone`: in a body of its own, or broken off there."""
        reply = final(usage=(1000, 7))
        body = Answer(request, reply).stream()
        size = body.index(end)
        assert body[:size].endswith(gone)
        size -= len(gone)
        if form == "cut":
            reply.cut_after = size
            return reply
        return Reply(body=body[:size], content_type="text/event-stream")

    def test_an_end_that_never_comes(self):
        """Nor is an open connection waited for when finish and usage were told."""
        for provider, end in (("openai", b"data: [DONE]"), ("anthropic", b"event: message_stop")):
            with self.subTest(provider=provider):
                server = self.serve(provider)
                server.script(None, lambda r: dataclasses.replace(
                    final(), stall_after=Answer(r, final()).stream().index(end)))
                result = self.ask(server, "--max-time", patience.duration(60)).result
                self.assertEqual((result["output"], len(server.requests)), ("ok", 1))
                self.assertFalse(result["usage"]["estimated"])

    def test_talk_behind_the_end(self):
        """An answer that has ended is there, though its stream goes on without a pause."""
        for provider in PROVIDERS:
            with self.subTest(provider=provider):
                server = self.serve(provider)
                server.script(None, lambda r: Reply(
                    body=Answer(r, final()).stream() + b": still here\n" * (1 << 19),
                    content_type="text/event-stream", piece_size=4096, piece_delay=0.02))
                result = self.ask(server, "--max-time", patience.duration(10)).result
                self.assertEqual((result["output"], len(server.requests)), ("ok", 1))
                self.assertTrue(server.wait(lambda s: s.requests[0].disconnected))

    def test_error_in_a_stream(self):
        """A4: an error after status 200 is of its own class, and half an answer is none."""
        broken = Reply(text="FINAL(wrong)", stream_error="overloaded", headers=SOON)
        for provider in PROVIDERS:
            with self.subTest(provider=provider):
                server = self.serve(provider, broken, final())
                result = self.ask(server).result
                self.assertEqual((result["output"], len(server.requests)), ("ok", 2))
                self.assertTrue(result["usage"]["estimated"])
        server = self.serve("anthropic").script(None, broken)
        self.fails(server, 5, "overloaded")

    def test_stall(self):
        """A silent server holds a run no longer than its time, before and within an answer."""
        stalls = [Reply(text="FINAL(x)", delay=3600), Reply(text="FINAL(x)", stall_after=20)]
        for provider, reply in zip(PROVIDERS, stalls + stalls[1:]):
            for option in ([], ["--no-stream"]):
                with self.subTest(provider=provider, option=option):
                    server = self.serve(provider).script(None, reply)
                    watch = patience.Stopwatch()
                    result = self.ask(server, "--max-time", "1s", *option, status=6).result
                    self.assertLess(watch.took(), 3)
                    self.assertEqual(result["error"]["kind"], "budget")
                    self.assertEqual(result["stopReason"], "max_time")
                    self.assertTrue(server.wait(lambda s: not s.in_flight), "still connected")

    def test_stall_after_the_end(self):
        """An answer that is complete is taken, though its connection hangs."""
        body = WHOLE["ollama"] % b"FINAL(ok)" + b"\n"
        server = self.serve("ollama", Reply(body=body + b" " * 9, stall_after=len(body)))
        self.ask(server)  # which would wait for minutes


class Huge(ProviderTest):
    """An answer of 100 MB is refused as soon as it is seen to be too large, and never held."""

    def measure(self, server, *arguments, status):
        """Runs a task, checks the memory that its processes needed; gives what was printed."""
        with open(self.dir / "out", "wb") as out:
            process = self.start(
                *self.arguments(server, *arguments),
                stdout=out,
                stderr=out,
                env=self.environment(**server.environment()),
            )
        # Not ru_maxrss: that begins with what this process had when it started the program.
        most = 0
        while process.poll() is None:
            most = max(most, self.peak(process.pid))
            time.sleep(patience.POLL)
        told = (self.dir / "out").read_text()
        self.assertEqual(process.returncode, status, told[-2000:])
        self.assertGreater(most, 0)
        self.assertLess(most, MEMORY)
        return told

    @staticmethod
    def peak(pid):
        """The most bytes of memory that a process has had since it began its program; 0 at its end."""
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            found = re.search(r"VmHWM:\s+(\d+) kB", file.read())
        return int(found.group(1)) * 1024 if found else 0

    def check(self, provider, reply, *arguments, status=5):
        server = self.serve(provider).script(None, reply)
        told = self.measure(server, *arguments, status=status)
        self.assertEqual(len(server.requests), 1)
        return told

    def test_a_line_without_end(self):
        """A stream of one line."""
        for provider in PROVIDERS:
            with self.subTest(provider=provider):
                self.assertIn("longer than 4 MiB", self.check(provider, Reply.huge()))

    def test_whole(self):
        """A body that was not streamed."""
        for provider in PROVIDERS:
            with self.subTest(provider=provider):
                reply = Reply(body=b" " * MIB, repeat_body=100)
                self.assertIn("too large", self.check(provider, reply, "--no-stream"))

    def test_millions_of_values(self):
        """To read them would take seconds, in which nothing else is looked at: they are counted."""
        for provider in PROVIDERS:
            answer = b'{"x":[' + b"0," * MIB + b"0]," + (WHOLE[provider] % b"FINAL(x)")[1:]
            event = (b"" if provider == "ollama" else b"data: ") + answer + b"\n\n"
            replies = {
                ("--no-stream",): Reply(body=answer),
                (): Reply(body=event, content_type="text/event-stream"),
            }
            for option, reply in replies.items():
                with self.subTest(provider=provider, option=option):
                    told = self.check(provider, reply, *option)
                    self.assertIn("more than 100000 values", told)

    def test_a_stream_of_what_is_of_no_use(self):
        """Tool calls that nobody offered, and a refusal, are output too: they are cut like text."""
        word = "word " * 100
        tool = {"tool_calls": [{"index": 0, "function": {"arguments": word}}]}
        for delta, status in ((tool, 6), ({"refusal": word}, 10)):
            with self.subTest(delta=list(delta)):
                body = b"data: " + dumps({"choices": [{"delta": delta}]}) + b"\n\n"
                reply = Reply(body=body, repeat_body=200000, content_type="text/event-stream")
                server = self.serve("openai").script(None, reply)
                result = self.ask(server, "--max-tokens", "20000", status=status).result
                self.assertTrue(result["usage"]["estimated"])
                self.assertGreater(result["usage"]["outputTokens"], server.requests[0].max_tokens)
                self.assertIn("sent more output than max_tokens", "".join(result["warnings"]))

    def test_a_stream_of_text(self):
        """Each event is small, and all of them are far more than was asked for: it is cut there."""
        word = "".join(f"word{number} " for number in range(200))
        event = {
            "openai": b"data: " + dumps({"choices": [{"delta": {"content": word}}]}) + b"\n\n",
            "anthropic": b"data: "
            + dumps({"type": "content_block_delta", "delta": {"text": word}})
            + b"\n\n",
            "ollama": dumps({"message": {"content": word}, "done": False}) + b"\n",
        }
        for provider in PROVIDERS:
            with self.subTest(provider=provider):
                endless = Reply(
                    body=event[provider] * 2000, repeat_body=100, content_type="text/event-stream"
                )
                server = self.serve(provider, code("r = llm_query('q')", "print(len(r))", "print(r[-50:])"))
                server.script(r"\Aq\Z", endless, times=1).script(None, final())
                told = self.measure(server, "--jsonl", status=0)
                events = [json.loads(line) for line in told.splitlines() if line[:1] == "{"]
                result = events[-1]
                self.assertTrue(result["success"])
                self.assertTrue(server.wait(lambda server: server.requests[1].disconnected))
                self.assertEqual(len(server.requests), 3)
                asked = server.requests[1].max_tokens
                call = next(e for e in events if e["event"] == "llm_call")
                self.assertGreater(call["outputTokens"], asked)
                self.assertLess(call["outputTokens"], 2.5 * asked)
                self.assertTrue(result["usage"]["estimated"])
                warning = [w for w in result["warnings"] if "more output than max_tokens" in w]
                self.assertEqual(len(warning), 1, result["warnings"])
                self.assertIn("cut off", warning[0])

    def test_error_body(self):
        """Of an error only the beginning is read, even if it never ends."""
        reply = Reply(status=400, body=b"words " * 100000, repeat_body=170)
        self.assertIn("words words", self.check("openai", reply, status=1))
        endless = Reply(status=400, body=b"words " * 100000, stall_after=100000)
        self.assertIn("words words", self.check("openai", endless, status=1))

    def test_headers(self):
        """Headers without end break the connection, not the program."""
        headers = {f"x-{i}": "y" * 1000 for i in range(2000)}
        server = self.serve("openai").script(None, final(headers=headers))
        self.measure(server, status=5)


if __name__ == "__main__":
    unittest.main()

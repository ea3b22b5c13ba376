"""A provider that is busy is waited for, as long as the time allows, and everybody can see it."""

import json
import signal
import unittest

import patience
from model import ERRORS, PROVIDERS, Reply
from providers import ProviderTest, code, final

# Bodies as the servers send them.
LOADING = {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}
LITELLM_BUSY = {"error": {
    "message": "litellm.RateLimitError: No deployments available for selected model, Try again in "
               "1 seconds.", "type": "throttling_error", "param": None, "code": "429"}}
OLLAMA_BUSY = {"error": "Server overloaded, please retry shortly (ref: aaa65c70)"}
SOON = {"retry-after-ms": "5"}


def busy(status=503, body=LOADING, **more):
    headers = {**SOON, **more.pop("headers", {})}
    return Reply(status=status, body=json.dumps(body).encode(), headers=headers, **more)


class Waiting(ProviderTest):
    def waits(self, outcome):
        return [event for event in outcome.events if event["event"] == "waiting"]

    def test_a_model_that_is_being_loaded(self):
        """Many more attempts than the three of other failures; each wait is an event and seen."""
        server = self.serve("openai", *[busy()] * 12, final("42"))
        outcome = self.ask(server, "--jsonl")
        self.assertEqual(outcome.events[-1]["output"], "42")
        waits = self.waits(outcome)
        self.assertEqual(len(waits), 12)
        for event in waits:
            self.assertEqual((event["reason"], event["httpStatus"], event["model"], event["kind"]),
                             ("it is being loaded", 503, "m", "turn"))
            self.assertEqual(event["next"], 5)
        self.assertEqual([event["waited"] for event in waits],
                         sorted(event["waited"] for event in waits))
        self.assertRegex(outcome.err, r"waiting for m: it is being loaded, \d+s so far, "
                                      r"asked again in 5ms")
        usage = outcome.events[-1]["usage"]
        self.assertEqual((usage["llmCalls"], usage["estimated"]), (1, False))

    def test_whoever_says_it(self):
        """Throttling and overload as each server words them."""
        cases = [("openai", 429, LITELLM_BUSY, "its rate is limited"),
                 ("openai", 503, {"error": {"message": "The server is currently overloaded"}},
                  "it is overloaded"),
                 ("openai", 500, {"error": {"message":
                     "litellm.InternalServerError: OpenAIException - Loading model"}},
                  "it is being loaded"),
                 ("ollama", 503, OLLAMA_BUSY, "it is overloaded"),
                 ("ollama", 503, ERRORS["ollama"]["rate_limit"][1], "its rate is limited"),
                 ("anthropic", *ERRORS["anthropic"]["overloaded"], "it is overloaded"),
                 ("anthropic", *ERRORS["anthropic"]["rate_limit"], "its rate is limited")]
        for provider, status, body, reason in cases:
            with self.subTest(provider=provider, body=body):
                server = self.serve(provider, *[busy(status, body)] * 5, final())
                outcome = self.ask(server, "--jsonl")
                self.assertEqual([event["reason"] for event in self.waits(outcome)], [reason] * 5)

    def test_other_failures_are_not_waited_for(self):
        """A server that is broken, no server, a page of a proxy: three attempts, as ever."""
        broken = {"error": {"message": "error loading model /models/x.gguf", "type": "server_error"}}
        for reply in (busy(500, broken), busy(502, {"error": "bad gateway"})):
            server = self.serve("openai", *[reply] * 4)
            error = self.fails(server, 5, "overloaded")
            self.assertIn("gave up after 3 attempts", error["message"])
            self.assertEqual(len(server.requests), 3)

    def test_calls_and_sub_runs(self):
        """Whatever a block asks for waits alike, and costs nothing by it."""
        server = self.serve("openai", code("print(llm_query('x'), rlm_query('y'))"),
                            *[busy()] * 6, Reply(text="one"), *[busy()] * 6, final("two"), final())
        outcome = self.ask(server, "--jsonl")
        self.assertEqual([event["kind"] for event in self.waits(outcome)],
                         ["llm_query"] * 6 + ["turn"] * 6)
        runs = {event["run"] for event in self.waits(outcome)}
        self.assertEqual(len(runs), 2)
        usage = outcome.events[-1]["usage"]
        self.assertEqual((usage["inputTokens"], usage["outputTokens"]), server.billed_tokens)
        self.assertEqual(usage["llmCalls"], 4)

    def test_it_ends_with_the_time(self):
        """A wait that the time does not allow is not begun; the error says what was in the way."""
        server = self.serve("openai", *[busy(headers={"retry-after-ms": "3600000"})] * 2)
        error = self.fails(server, 5, "overloaded")
        self.assertIn("Loading model", error["message"])
        self.assertIn("the call's time is over before the wait of 3600000 ms", error["message"])
        self.assertEqual(len(server.requests), 1)

    def test_it_ends_with_the_time_of_the_run(self):
        """A model that is loaded for ever: the run ends in time, and says why it has no answer."""
        server = self.serve("openai", *[busy(headers={"retry-after-ms": "50"})] * 20000)
        allowed = patience.duration(1)
        error = self.fails(server, 6, "budget", "--max-time", allowed)
        self.assertIn("no answer could be forced", error["message"])
        # On a machine that stands still the last call has no time left to be sent, or even begun.
        self.assertRegex(error["message"], "Loading model|its time was over|"
                         "time for the call was over before openai could be asked")
        self.assertGreater(len(server.requests), 3)

    def test_a_provider_that_always_says_at_once(self):
        """It is not asked hundreds of times a second."""
        server = self.serve("openai", *[busy(headers={"retry-after-ms": "1"})] * 22, final())
        outcome = self.ask(server, "--jsonl")
        self.assertEqual([event["next"] for event in self.waits(outcome)], [1] * 20 + [1000] * 2)

    def test_interrupted(self):
        """Ctrl-C does not wait for the model; a second one ends everything at once."""
        server = self.serve("openai", busy(headers={"retry-after-ms": "100000"}), final("so far"))
        process = self.start(*self.arguments(server),
                             env=self.environment(**server.environment()))
        for line in process.stderr:
            if b"waiting for m" in line:
                break
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=patience.hung())
        self.assertEqual(process.returncode, 130, err)
        self.assertEqual(json.loads(out)["output"], "so far")

    def test_quiet(self):
        server = self.serve("openai", *[busy()] * 4, final())
        self.assertEqual(self.ask(server, "-q").err, "")

    def test_a_plan_s_time_out_counts(self):
        server = self.serve("ollama", *[busy(headers={"retry-after-ms": "100000"})] * 2)
        plan = self.write("plan.json", json.dumps({
            "operations": [{"id": "a", "type": "Query", "mode": "llm", "input": "x"}],
            "timeoutPerOp": 300}))
        outcome = self.rlmd("plan", "-p", "ollama", "-m", "m", "--", plan,
                            env=self.environment(**server.environment()))
        self.assertNotEqual(outcome.status, 0)
        self.assertIn("time", json.dumps(outcome.result).lower())
        self.assertEqual(len(server.requests), 1)

    def test_a_recording_has_the_answer_only(self):
        """The waits are no part of it: its replay has none, and comes to the same."""
        for provider in PROVIDERS:
            with self.subTest(provider=provider):
                server = self.serve(provider, *[busy()] * 5, code("print(1)"), final("42"))
                directory = str(self.dir / provider)
                first = self.ask(server, "--record", directory)
                again = self.rlmd("exec", "-p", provider, "-m", "m", "--json", "--replay", directory,
                                  "--", "the task")
                self.assertEqual(again.status, 0, again.err)
                self.assertEqual(again.result["output"], first.result["output"])
                self.assertNotIn("waiting", again.err)


class SlowModels(ProviderTest):
    """The time of a call is what the forced answer needs. Of the time that a run has each reply takes
    a fifth here, whatever the machine: a tenth, as is kept for a fast model, would not do."""

    UNIT = 0.4

    def slow(self, unit):
        """A server that is slow with each step of a run that never ends, and with its last answer."""
        def reply(request):
            forced = "No code runs any more" in request.last_user
            if "TASK: recurse" in request.messages[1][1] and request.turn == 0:
                return code("print('SUB', rlm_query('sub'))")
            if "TASK: recurse" in request.messages[1][1]:
                return final("done")
            step = code("print(1)", f"# {request.turn}").text
            return Reply(text="what there is" if forced else step, delay=2 * unit,
                         usage=(1000, 100))

        return self.serve("ollama").script(None, reply)

    def test_the_forced_answer_has_time(self):
        unit = patience.seconds(self.UNIT)
        server = self.slow(unit)
        result = self.ask(server, "--max-time", f"{int(10000 * unit)}ms").result
        self.assertEqual(result["trace"]["answerSource"], "forced")
        self.assertEqual((result["output"], result["stopReason"]), ("what there is", "max_time"))
        self.assertIn("Time budget exhausted", result["warnings"])
        # No call is cut off: what was asked for was answered, and the answer is the last.
        self.assertEqual([request.finished for request in server.requests],
                         [True] * len(server.requests))
        self.assertIn("No code runs any more", server.requests[-1].last_user)
        self.assertIn(len(server.requests), (3, 4))

    def test_it_is_asked_for_no_more_than_comes_in_time(self):
        """A hundred tokens took two units: what is left allows some hundreds, not thousands."""
        unit = patience.seconds(self.UNIT)
        server = self.slow(unit)
        self.ask(server, "--max-time", f"{int(10000 * unit)}ms")
        self.assertEqual({request.max_tokens for request in server.requests[:-1]}, {8192})
        self.assertLess(server.requests[-1].max_tokens, 1000)

    def test_a_sub_run_too(self):
        """It has its own share of the time, and keeps what its own turns show to be needed."""
        unit = patience.seconds(self.UNIT)
        server = self.slow(unit)
        result = self.ask(server, "--max-time", f"{int(24000 * unit)}ms", task="recurse").result
        self.assertEqual(result["output"], "done")
        (sub,) = result["trace"]["subcalls"]
        self.assertEqual((sub["answerSource"], sub["finalAnswer"]), ("forced", "what there is"))
        self.assertTrue(all(request.finished for request in server.requests))

    def test_a_fast_model_keeps_no_more_than_before(self):
        """Turns go on for as long as they fit: many of them."""
        unit = patience.seconds(1)
        replies = iter(range(100000))
        server = self.serve("ollama").script(None, lambda request: (
            Reply(text="what there is") if "No code runs any more" in request.last_user
            else code("import time", f"time.sleep({unit / 20})", f"# {next(replies)}")))
        self.ask(server, "--max-time", f"{int(3000 * unit)}ms", "--max-iterations", "1000")
        self.assertGreater(len(server.requests), 5)


class Repetition(ProviderTest):
    """A model that says the same without end is cut where that began, and told."""

    HEAD = "Let me look at the data.\n"
    PIECE = "The answer is 42. Let me check again.\n"

    def rambling(self, text, **more):
        """Its server would say nothing more after a while, for ever."""
        return Reply(text=text, pieces=100, stall_after=30000, **more)

    def content(self, result, index=0):
        return result["trace"]["iterations"][index]["response"]["content"]

    def test_a_turn(self):
        for provider in PROVIDERS:
            with self.subTest(provider=provider):
                server = self.serve(provider, self.rambling(self.HEAD + self.PIECE * 1000),
                                    final("42"))
                result = self.ask(server).result
                self.assertEqual(result["output"], "42")
                self.assertEqual(self.content(result), self.HEAD + self.PIECE)
                self.assertIn("model 'm' repeated itself without end: its reply was cut where that "
                              "began", result["warnings"])
                self.assertIn("length", server.requests[1].last_user)
                # Words that came are counted, though they are not kept.
                self.assertTrue(result["usage"]["estimated"])
                self.assertGreater(result["usage"]["outputTokens"], 1000)

    def test_in_thoughts(self):
        server = self.serve("ollama", self.rambling("", thinking=self.PIECE * 1000), final("42"))
        self.assertEqual(self.ask(server).result["output"], "42")

    def test_behind_long_thoughts(self):
        """They have no part in how soon it is noticed."""
        thoughts = "".join(f"Step {i} leads to {i * i}.\n" for i in range(500))
        reply = Reply(text=self.PIECE * 300, thinking=thoughts, pieces=100)
        result = self.ask(self.serve("ollama", reply, final("42"))).result
        self.assertEqual((result["output"], self.content(result)), ("42", self.PIECE))

    def test_in_code(self):
        """Half a block does not run."""
        text = "```repl\nprint('begun')\n" + "print(context[:500])\n" * 1000
        server = self.serve("ollama", self.rambling(text), final("42"))
        self.assertEqual(self.ask(server).executions(), [])

    def test_a_call(self):
        """The block is told that the answer is not all of it."""
        server = self.serve("ollama", code("a = llm_query('x')", "print(len(a), a.degraded, a.reason)"),
                            self.rambling(self.PIECE * 1000), final("42"))
        told = self.ask(server).executions()[0]["stdout"]
        self.assertEqual(told, f"{len(self.PIECE)} True cut at its length limit\n")

    def test_a_model_with_a_price(self):
        """It is left alone: what was billed for half an answer nobody could know."""
        text = self.HEAD + self.PIECE * 300
        server = self.serve("openai", Reply(text=text, pieces=100), final())
        result = self.ask(server, *self.prices(m=(1, 1))).result
        self.assertEqual(self.content(result), text)
        self.assertFalse(result["usage"]["estimated"])

    def test_whole(self):
        """An answer that was not streamed has been made, but need not be said again; if it was cut at all."""
        text = self.HEAD + self.PIECE * 300
        server = self.serve("ollama", Reply(text=text, finish="length"), Reply(text=text), final())
        result = self.ask(server, "--no-stream").result
        self.assertEqual(self.content(result), self.HEAD + self.PIECE)
        self.assertEqual(self.content(result, 1), text)

    def test_what_may_be_meant(self):
        """Lists, tables, rulers, zeros: all of it arrives."""
        texts = [
            "".join(f"- item {i}\n" for i in range(1, 1500)),
            "| a | b |\n" + "".join(f"| {i * i % 97} | 0 |\n" for i in range(600)),
            "-" * 80 + "\n" + "A" * 3000 + "\n" + "=" * 3000,
            "x.append(0)\n" * 300 + "and so on\n",
        ]
        for text in texts:
            with self.subTest(text=text[:20]):
                server = self.serve("ollama", Reply(text=text, pieces=300), final())
                result = self.ask(server).result
                self.assertEqual(self.content(result), text)
                self.assertNotIn("repeated itself", " ".join(result["warnings"]))


if __name__ == "__main__":
    unittest.main()

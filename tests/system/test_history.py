"""A conversation that outgrows the model's window: what is kept, what is summed up, what is said."""

import json
import re
import unittest

from harness import block
from model import Reply, count_tokens
from providers import ProviderTest, final

WINDOW = 24000  # tokens; half of it is the share of the conversation, a quarter the aim
NOTE = "The conversation became too long"


def size(request):
    return sum(count_tokens(text) for _, text in request.messages)


def is_prefix(before, after):
    return after.messages[: len(before.messages)] == before.messages


class History(ProviderTest):
    def window(self, tokens=WINDOW):
        row = {"input_cost_per_token": 0, "output_cost_per_token": 0, "max_input_tokens": tokens}
        return ["--price-table", self.write("window.json", json.dumps({"m": row}))]

    def long_run(self, turns=24, **more):
        """A model that prints 6,000 characters a turn, and keeps a number of each turn."""
        texts = [
            block(f"kept{i} = {i}", f"print('begin-{i} ' + 'word ' * 1200 + 'end-{i}')")
            for i in range(1, turns)
        ]
        texts.append(block("print('sum', " + "+".join(f"kept{i}" for i in range(1, turns)) + ")"))
        server = self.serve("openai", *(Reply(text=text) for text in texts), final())
        return server, self.ask(server, "--jsonl", *self.window(), *more.get("arguments", ()))

    def test_older_turns_are_summed_up_and_variables_keep_the_data(self):
        """ENG-10: what is said fits the window whatever was printed; the session goes on."""
        server, outcome = self.long_run()
        requests = server.requests
        self.assertEqual(len(requests), 25)
        for request in requests:
            self.assertLess(size(request), WINDOW * 55 // 100)
            head = request.messages[:3]
            self.assertEqual(head, requests[-1].messages[: len(head)])
            roles = [role for role, _ in request.messages[1:]]
            self.assertEqual(roles, (["user", "assistant"] * len(roles))[: len(roles)])
        self.assertIn(f"sum {sum(range(1, 24))}", requests[-1].last_user)
        executions = [e for e in outcome.events if e["event"] == "code"]
        self.assertEqual({e["error"] for e in executions}, {None})

    def test_it_is_rare_and_the_prefix_holds_between(self):
        """Prompt caches hit again after it; and each time the last turns stay byte for byte."""
        server, outcome = self.long_run()
        pairs = list(zip(server.requests, server.requests[1:]))
        cuts = [pair for pair in pairs if not is_prefix(*pair)]
        self.assertGreaterEqual(len(cuts), 2)
        self.assertLess(len(cuts), len(pairs) / 3)
        for before, after in cuts:
            self.assertLess(size(after), WINDOW * 40 // 100)
            summary = after.messages[3][1]
            self.assertTrue(summary.startswith("[note] " + NOTE))
            kept = after.messages[4:-2]  # between the summary and what is new
            self.assertEqual(kept, before.messages[len(before.messages) - len(kept) :])

    def test_the_summary_tells_what_was_lost(self):
        """Turn by turn: the code's first lines, the outputs' sizes and beginnings."""
        server, _ = self.long_run()
        summary = server.requests[-1].messages[3][1]
        last = int(re.search(r"outputs of turns 1 to (\d+)", summary).group(1))
        self.assertGreater(last, 5)
        for turn in range(last - 1, last + 1):
            self.assertIn(f"Turn {turn}\n", summary)
            self.assertRegex(summary, rf"lines of code: 2: kept{turn} = {turn} \| print\('begin-{turn}")
            self.assertRegex(summary, rf"output, 60\d\d bytes: begin-{turn} word")
        self.assertNotIn(f"end-{last}\n", summary)
        self.assertLess(count_tokens(summary), WINDOW // 10)
        self.assertIn("variables, imports and functions", summary)

    def test_it_is_told_once_and_traced_each_time(self):
        server, outcome = self.long_run()
        cuts = [e for e in outcome.events if e["event"] == "compaction"]
        self.assertGreaterEqual(len(cuts), 2)
        for cut in cuts:
            self.assertLess(cut["tokensAfter"], cut["tokensBefore"])
            self.assertLess(cut["turns"], cut["index"])
        warnings = outcome.events[-1]["warnings"]
        self.assertEqual(sum("outgrew" in warning for warning in warnings), 1)

    def test_a_short_conversation_is_left_alone(self):
        server = self.serve("openai", Reply(text=block("print('x' * 6000)")), final())
        outcome = self.ask(server, "--jsonl")
        self.assertNotIn("compaction", [e["event"] for e in outcome.events])
        self.assertTrue(is_prefix(*server.requests))

    def test_a_lost_session_stands_in_the_summary(self):
        """The data are not there: so that is not said."""
        texts = [block("import os\nos._exit(3)")]
        texts += [block(f"print('{i} ' * 2500)") for i in range(8)]
        server = self.serve("openai", *(Reply(text=text) for text in texts), final())
        self.ask(server, *self.window())
        summary = server.requests[-1].messages[3][1]
        self.assertIn("the session was lost", summary)

    def test_one_output_beyond_the_window_is_cut(self):
        """The last turn alone is too much: its head and tail are told."""
        code = "print('begin', 'one ' * 12000, 'end')"
        server = self.serve("openai", Reply(text=block(code)), final())
        self.ask(server, *self.window())
        told = server.requests[1].last_user
        self.assertLess(count_tokens(told), WINDOW * 25 // 100)
        self.assertRegex(told, r"begin one(?s:.*)characters omitted(?s:.*)end\n")

    def test_answers_asked_for_are_a_part_of_the_window(self):
        server = self.serve("openai", final())
        self.ask(server, *self.window(8000))
        self.assertEqual(server.requests[0].max_tokens, 2000)

    def test_a_local_model_has_a_window_of_its_own(self):
        """Of an unknown size: 32,768 tokens, and the server is asked for no more."""
        texts = [block(f"print('{i}', 'one ' * 6000)") for i in range(9)]
        server = self.serve("ollama", *(Reply(text=text) for text in texts), final())
        self.ask(server, "--max-tokens", "100000000")
        for request in server.requests:
            self.assertLessEqual(request.json["options"]["num_ctx"], 32768)
        self.assertIn(NOTE, server.requests[-1].messages[3][1])


class Told(ProviderTest):
    """A server of one's own tells how much its models take, before anything is refused."""

    VLLM = {"object": "list", "data": [{"id": "m", "owned_by": "vllm", "max_model_len": 6000}]}
    LLAMA = {"data": [{"id": "other.gguf", "meta": {"n_ctx": 6000, "n_ctx_train": 40960}}]}

    def test_the_first_request_fits(self):
        for models in (self.VLLM, self.LLAMA):
            server = self.serve("openai", Reply(text=block("print(1)")), final())
            server.models = models
            outcome = self.ask(server)
            self.assertEqual((outcome.status, server.lists_asked), (0, 1), outcome.err)
            first = server.requests[0]
            self.assertLessEqual(first.max_tokens + size(first), 6000)
            self.assertEqual(len(server.requests), 2)

    def test_the_advice_on_pieces_follows(self):
        """The size of a piece that a call can take is told by the window."""
        characters = []
        for window, tokens in ((20000, 4000), (60000, 12000), (120000, 24000)):
            server = self.serve("openai", Reply(text=block("print(1)")), final())
            server.models = {"data": [{"id": "m", "max_model_len": window}]}
            self.ask(server, "-c", self.write("long.txt", "x " * 50000))
            told = re.search(r"up to (\d+) tokens at a time, here some (\d+) characters",
                             server.requests[0].system)
            self.assertEqual(int(told[1]), tokens, window)
            characters.append(int(told[2]))
        self.assertLess(characters[0] * 2, characters[1])
        self.assertLess(characters[1] * 1.5, characters[2])

    def test_what_is_no_list_changes_nothing(self):
        warnings = []
        for models in (None, b"", b"<html>", b"[" * 100000, {"data": []}, {"data": [{"id": "m"}]},
                       {"data": [{"id": "m", "max_model_len": 10 ** 30}]}):
            server = self.serve("openai", final())
            server.models = models
            outcome = self.ask(server)
            warnings.append(outcome.result["warnings"])
            self.assertEqual(warnings[-1], warnings[0])
            self.assertEqual(len(server.requests), 1)
            self.assertEqual(outcome.result["usage"]["llmCalls"], 1)

    def test_nothing_is_asked_for_a_dry_run(self):
        server = self.serve("openai", final())
        self.rlmd("exec", "--dry-run", "-p", "openai", "-m", "m", "task",
                  env=self.environment(**server.environment()))
        self.assertEqual((server.lists_asked, len(server.requests)), (0, 0))


class Overflow(ProviderTest):
    """A window smaller than was thought: the provider says so, and is asked for less."""

    def test_a_turn_is_said_in_fewer_words(self):
        for provider in ("openai", "anthropic", "ollama"):
            with self.subTest(provider=provider):
                server = self.serve(
                    provider,
                    Reply(text=block("print('begin', 'x ' * 10000)")),
                    Reply(error="context_overflow"),
                    final(),
                )
                outcome = self.ask(server)
                first, refused, shorter = server.requests
                self.assertLess(size(shorter), size(refused) / 2)
                self.assertEqual(shorter.messages[:-1], refused.messages[:-1])
                self.assertIn("characters omitted", shorter.last_user)
                self.assertEqual(outcome.result["usage"]["iterations"], 2)

    def test_older_turns_go_first(self):
        texts = [block(f"print('{i} ' * 3000)") for i in range(6)]
        server = self.serve(
            "openai",
            *(Reply(text=text) for text in texts),
            Reply(error="context_overflow"),
            final(),
        )
        self.ask(server)
        refused, shorter = server.requests[-2:]
        self.assertIn(NOTE, shorter.messages[3][1])
        self.assertLess(size(shorter), size(refused) / 2)

    def test_it_is_not_tried_for_ever(self):
        server = self.serve("openai", Reply(text=block("print('x ' * 10000)")))
        server.script(None, Reply(error="context_overflow"))
        self.fails(server, 8, "context_overflow")
        self.assertEqual(len(server.requests), 4)

    def test_a_first_request_that_is_too_long_cannot_be_helped(self):
        server = self.serve("openai", Reply(error="context_overflow"))
        self.fails(server, 8, "context_overflow")
        self.assertEqual(len(server.requests), 1)

    def test_a_forced_answer_is_asked_for_in_short(self):
        server = self.serve(
            "openai",
            Reply(text=block("print('seen')")),
            Reply(error="context_overflow"),
            Reply(text="the answer"),
        )
        outcome = self.ask(server, "--max-iterations", "1")
        self.assertEqual(outcome.result["output"], "the answer")
        self.assertEqual(len(server.requests[-1].messages), 2)
        self.assertIn("seen", server.requests[-1].last_user)


if __name__ == "__main__":
    unittest.main()

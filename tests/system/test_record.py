"""--record keeps what was said, --replay says it again without a network."""

import json
import os
import pathlib
import random
import re
import unittest

from model import PROVIDERS, ModelServer, Reply
from providers import ProviderTest, code, final


class RecordTest(ProviderTest):
    def setUp(self):
        super().setUp()
        self.kept = self.dir / "kept"

    def record(self, server, *arguments, **more):
        return self.ask(server, "--record", str(self.kept), *arguments, **more)

    def again(self, *arguments, provider="replay", status=0, task="the task", **environment):
        """The same from the recording; every address in the environment leads nowhere."""
        addresses = ("OLLAMA_HOST", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL")
        nowhere = dict.fromkeys(addresses, "http://127.0.0.1:1")
        outcome = self.rlmd(
            "exec",
            "-p",
            provider,
            "-m",
            "m",
            "--json",
            "--replay",
            str(self.kept),
            *arguments,
            "--",
            task,
            env=self.environment(**nowhere, **environment),
        )
        self.assertEqual(outcome.status, status, outcome.err + outcome.out[:2000])
        return outcome

    def same(self, first, second):
        """But for times, ids, the provider's own name, and the number of events: waits are some."""
        changing = ("duration", "ms", "provider", "queuedMs", "seq", "startedAt", "startedMs")

        def plain(result):
            def without(members):
                return {key: value for key, value in members.items() if key not in changing}

            text = re.sub(r"time \d+m\d+s", "time", json.dumps(result))
            text = re.sub(r"takes about \S+, a sub-RLM [\d.]+m?s", "takes its time", text)
            ids = [result["trace"]["id"]] + [sub["id"] for sub in result["trace"]["subcalls"]]
            for number, each in enumerate(ids):
                text = text.replace(each, f"run {number}")
            return json.loads(text, object_hook=without)

        self.assertEqual(plain(first.result), plain(second.result))


class Clocks(RecordTest):
    """Answers to code in which a clock has a part are given again."""

    def check(self, *blocks):
        replies = [code(text) for text in blocks]

        def reply(request):
            if request.last_user.startswith("TASK") or "Turn" in request.last_user:
                return replies[request.turn] if request.turn < len(replies) else final("x")
            return Reply(text="words", usage=(10, 2), delay=0.02)

        self.kept = self.dir / f"kept {len(list(self.dir.iterdir()))}"
        prices = (1000000, 2000000)
        table = self.prices(m=prices)
        with ModelServer("openai", prices=prices) as server:
            server.script(None, reply)
            first = self.record(server, *table)
        self.same(first, self.again(*table, provider="openai"))
        return first

    def test_a_block_that_prints_what_is_left(self):
        """The turn after it is asked in the same words, milliseconds and all."""
        first = self.check("print(budget())", "print(budget()['time_ms'], budget()['time_ms'])")
        printed = [each["stdout"] for each in first.executions()]
        self.assertRegex(printed[0], r"'time_ms': \d+")
        names = list(self.kept.iterdir())
        self.assertEqual(len(names), 3 + 3)
        for name in names:
            self.assertEqual(name.stat().st_mode & 0o777, 0o600)

    def test_a_block_that_prints_what_a_plan_took(self):
        self.check(
            "print(run_plan([{'id': 'a', 'input': 'p'}, {'id': 'b', 'input': 'q'}]))",
            "print([run_plan([{'id': 'a', 'input': 'r'}]) for each in 'ab'])",
        )

    def test_a_recording_without_it(self):
        """One of an older version, or a script: what is true now is told."""
        entries = [{"match": {"kind": "turn", "turn": 0}, "response":
                    {"text": "```repl\nFINAL(type(budget()['time_ms']))\n```"}}]
        self.assertEqual(self.replay(entries).out, "<class 'int'>\n")


class Replay(RecordTest):
    def test_same_answer_without_a_connection(self):
        """Turns, calls, sub-runs, thinking, usage and cost are those of the first time."""
        prices = (546875, 10000001)
        for provider in PROVIDERS:
            with self.subTest(provider=provider):
                self.kept = self.dir / provider
                table = self.prices(m=prices)
                turn = code(
                    "print(llm_query('one'), rlm_query('sub'))",
                    thinking="h\u00e9 \U0001f600",
                    usage=(900, 30),
                )
                with ModelServer(provider, prices=prices) as server:
                    server.replies(
                        turn, Reply(text="a \u20ac", usage=(30, 2)), final("s"), final("x")
                    )
                    first = self.record(server, *table)
                self.assertEqual(len(list(self.kept.iterdir())), 4)
                self.same(first, self.again(*table, provider=provider))
                self.assertEqual(first.executions()[0]["stdout"], "a \u20ac s\n")
                self.assertEqual(len(server.requests), 4)

    def test_slow_answers(self):
        """The time that is left stands in a prompt, and is no part of what identifies it."""
        server = self.serve("ollama", code("print(1)", delay=1.2), final())
        self.same(self.record(server), self.again())

    def test_another_budget(self):
        """The rest of the budget stands in prompts and lowers max_tokens, and identifies no request."""
        table = self.prices(m=(1000000, 2000000))
        server = self.serve("openai", code("print(llm_query('q'))"), Reply(text="a"), final())
        first = self.record(server, *table, "--max-cost", "5", "--max-iterations", "20")
        again = self.again(*table, "--max-cost", "0.02", "--max-tokens", "15000",
                           "--max-iterations", "9", provider="openai")
        self.assertEqual(again.result["output"], first.result["output"])

    def test_same_prompt_several_times(self):
        """Each occurrence has its own answer, in the order in which they were asked."""
        server = self.serve(
            "ollama",
            code("print([llm_query('q') for _ in range(3)])"),
            Reply(text="a"),
            Reply(text="b"),
            Reply(text="c"),
            final(),
        )
        self.same(self.record(server), self.again())

    def test_failures_are_kept(self):
        """An error out of the recording is the same exception."""
        server = self.serve(
            "openai",
            code("try: llm_query('q')\nexcept LLMError as e: print(e.kind, e)"),
            Reply(error="context_overflow"),
            final(),
        )
        first = self.record(server)
        self.assertIn("context_overflow", first.executions()[0]["stdout"])
        self.same(first, self.again(provider="openai"))

    def test_a_failed_run(self):
        """Refusal and exit status too."""
        server = self.serve("openai", Reply(error="content_filter"))
        first = self.record(server, status=10).result["error"]
        second = self.again(provider="openai", status=10).result["error"]
        self.assertEqual(second["message"], first["message"])

    def test_after_a_retry(self):
        """The call's answer counts, not how often it was tried."""
        server = self.serve(
            "openai", Reply(error="overloaded", headers={"retry-after-ms": "1"}), final()
        )
        self.same(self.record(server), self.again(provider="openai"))

    def test_no_key_is_needed(self):
        """The provider's own address would need one."""
        server = self.serve("anthropic", final())
        self.record(server)
        outcome = self.rlmd(
            "exec", "-p", "anthropic", "-m", "m", "--replay", str(self.kept), "the task"
        )
        self.assertEqual((outcome.status, outcome.out), (0, "ok\n"), outcome.err)

    def test_streams_and_whole_answers_are_one(self):
        """How an answer was carried is no part of what was asked."""
        server = self.serve("openai", final())
        self.same(self.record(server, "--no-stream"), self.again(provider="openai"))


class Identical(RecordTest):
    """With -j 8, from another directory: the same bytes but for what docs/trace.md calls times."""

    TURNS = [
        code("print(batch_llm_query([f'q{i % 5}' for i in range(16)]))",
             "print([str(each) for each in batch_rlm_query([f'sub {i % 2}' for i in range(4)])])"),
        code("from concurrent.futures import ThreadPoolExecutor",
             "with ThreadPoolExecutor(8) as pool:",
             "    print(list(pool.map(llm_query, [f't{i}' for i in range(8)])))",
             "print(race_query(['slow a', 'slow b', 'fast c']))"),
        code("print(run_plan([{'id': str(i), 'input': f'p{i}', 'dependsOn': [str(i - 3)] if i > 2 else []}",
             "                for i in range(9)])['results']['8']['response'])"),
        code("print(budget()['time_ms'], context[:30])"),
    ]

    def reply(self, request):
        """Never twice the same, and in any order."""
        last = request.last_user
        self.count += 1
        late = random.random() * 0.05
        if "TASK: sub" in request.text(1) + last:
            return (final(f"sub {self.count}", delay=late) if request.turn
                    else code("print(batch_llm_query(['a', 'b', 'a']))", delay=late))
        if "\nTurn " in last:
            return self.TURNS[request.turn] if request.turn < len(self.TURNS) else final("the end")
        if last.startswith("slow"):
            return Reply(text="late", delay=3600)
        return Reply(text=f"{last}: {self.count}", delay=late, usage=(10, 3))

    def run_in(self, place, *arguments, env):
        place.mkdir(parents=True)
        for i in range(3):
            (place / f"{i}.txt").write_text(f"line {i}\n" * 10)
        outcome = self.rlmd("exec", "-p", "openai", "-m", "m", "--json", "-j", "8",
                            *self.prices(m=(1000000, 2000000)), "-c", str(place), *arguments, "--",
                            "the task", env=env)
        self.assertEqual(outcome.status, 0, outcome.err + outcome.out[:2000])
        same = re.sub(r'"(duration|ms|queuedMs|seq|startedMs)":\d+', r'"\1":0', outcome.out)
        return re.sub(r'"startedAt":"[^"]*"', "", same)

    def test_everything_at_once(self):
        self.count = 0
        with ModelServer("openai", prices=(1000000, 2000000)) as server:
            server.script(None, self.reply)
            first = self.run_in(self.dir / "one", "--record", str(self.kept),
                                env=self.environment(**server.environment()))
        for place in ("two", "three/far/away"):
            again = self.run_in(self.dir / place, "--replay", str(self.kept),
                                env=self.environment(OPENAI_BASE_URL="http://127.0.0.1:1"))
            self.assertEqual(again, first)

    def test_keys_are_not_in_it(self):
        server = self.serve("openai", code("print(llm_query('k'))"), Reply(text="a"), final())
        self.record(server, OPENAI_API_KEY="sk-very-secret-0123456789")
        for path in self.kept.iterdir():
            self.assertNotIn("sk-very-secret", path.read_text())


class Miss(RecordTest):
    def test_says_where_it_differs(self):
        """From the request that was recorded in its place: the message, the line, and both texts."""
        server = self.serve("ollama", code("print('one\\ntwo', len(context))"), final())
        self.record(server, "-c", self.write("context", "abc"))
        error = self.again("-c", self.write("context", "abcd"), status=1).result["error"]
        self.assertIn("is another one than", error["message"])
        self.assertRegex(error["message"], r"message 2 \(user\), line \d+: '.*4.*' was '.*3")
        error = self.again("-c", str(self.dir / "context"), "--temperature", "0.5", status=1)
        self.assertIn("temperature 0.5 was none", error.result["error"]["message"])

    def test_says_what_to_do(self):
        """A request that was never recorded: exit status 1, what was asked, and how to go on."""
        server = self.serve("ollama", code("print(1)"), final())
        self.record(server)
        error = self.again(status=1, task="another task").result["error"]
        self.assertEqual(error["kind"], "replay")
        for words in (str(self.kept), "kind turn", "depth 0, turn 0", "again (record)"):
            self.assertIn(words, error["message"])

    def test_in_a_block(self):
        """A changed prompt of a call out of a block does not go unnoticed either."""
        server = self.serve(
            "ollama", code("print(llm_query(str(len(context))))"), Reply(text="a"), final()
        )
        context = self.write("context", "abc")
        self.record(server, "-c", context)
        os.remove(next(path for path in self.kept.iterdir() if '"llm_query"' in path.read_text()))
        outcome = self.again("-c", context, status=1)
        self.assertIn("(record)", outcome.err)

    def test_nothing_there(self):
        """A directory that is missing, empty or no directory is bad input."""
        empty, file = self.dir / "empty", pathlib.Path(self.write("file", "x"))
        empty.mkdir()
        for self.kept in (self.dir / "missing", empty, file):
            with self.subTest(directory=self.kept):
                self.assertIn(str(self.kept), self.again(status=8).err)

    def test_a_damaged_recording(self):
        """Cut or edited to nonsense: which file, and what is wrong with it."""
        server = self.serve("ollama", final())
        self.record(server)
        (path,) = self.kept.iterdir()
        whole = path.read_text()
        half, odd = whole[: len(whole) // 2], whole.replace('"stop"', '"halt"')
        for text in (half, odd, "[]", '{"response":{"text":1}}'):
            with self.subTest(text=text[-40:]):
                path.write_text(text)
                self.assertIn(path.name[:20], self.again(status=8).err)


class Directory(RecordTest):
    def test_for_the_owner_only(self):
        """Prompts are private: nobody else may read them."""
        server = self.serve("ollama", final())
        self.record(server)
        self.assertEqual(self.kept.stat().st_mode & 0o777, 0o700)
        self.assertEqual([path.stat().st_mode & 0o777 for path in self.kept.iterdir()], [0o600])

    def test_cannot_be_written(self):
        """As with -o it is a wrong command line, said before the first call."""
        server = self.serve("ollama", final())
        nowhere, file = pathlib.Path("/nodir/x"), pathlib.Path(self.write("file", "x"))
        for path, words in ((nowhere, "No such file or directory"), (file, "it is no directory")):
            with self.subTest(path=path):
                self.kept = path
                error = self.record(server, status=2).result["error"]
                self.assertEqual(error, {"kind": "usage", "message": f"cannot record in {path}: {words}"})
        self.assertEqual(server.requests, [])


if __name__ == "__main__":
    unittest.main()

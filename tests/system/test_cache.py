"""--cache: what was asked and answered before is taken from a directory, at no cost."""

import hashlib
import json
import os
import pathlib
import re
import subprocess
import time
import unittest

from model import Reply
from providers import ProviderTest, code, final

ENTRY = re.compile(r"[0-9a-f]{64}-\d+")

# The model looks at every file of its context by a call of its own, and answers with all of them.
REVIEW = ("answers = batch_llm_query(['what is in ' + path + '?\\n' + text\n"
          "                           for path, text in context.files.items()])",
          "FINAL('|'.join(answers))")


class CacheTest(ProviderTest):
    def setUp(self):
        super().setUp()
        self.cache = self.dir / "cache"

    def server(self, provider="openai", reply=None, **more):
        """One that makes a review, however often it is asked for one."""
        server = self.serve(provider, **more)
        asked = []

        def answer(request):
            asked.append(request.last_user)
            if "Turn 1 of" in request.last_user:
                return code(*REVIEW, usage=(900, 90))
            return reply(request) if reply else Reply(text=f"answer {len(asked)}", usage=(100, 10))

        return server.script(None, answer)

    def entries(self):
        return sorted(path for path in self.cache.iterdir() if ENTRY.fullmatch(path.name))

    def tree(self, count=6, **changed):
        for i in range(count):
            self.write(f"tree/{i}.txt", changed.get(f"f{i}", f"text {i}\n" * 40))
        return "-c", self.dir / "tree"

    def once(self, server, *arguments, **more):
        """Asks, with the cache; how often the server was asked for it, and the outcome."""
        before = len(server.requests)
        table = self.prices(m=(1000000, 2000000), n=(1000000, 2000000))
        outcome = self.ask(server, "--cache", self.cache, *table, *arguments, **more)
        return len(server.requests) - before, outcome


class Hits(CacheTest):
    def test_a_second_time_costs_nothing(self):
        """The same answer of every provider, told as such in usage, trace and summary."""
        for provider in ("openai", "anthropic", "ollama"):
            with self.subTest(provider=provider):
                self.cache = self.dir / f"cache-{provider}"
                server = self.server(provider)
                asked, first = self.once(server, *self.tree())
                self.assertEqual((asked, first.result["usage"]["llmCalls"]), (7, 7))
                self.assertNotIn("cachedCalls", first.result["usage"])
                asked, second = self.once(server, *self.tree(), "-v")
                usage = second.result["usage"]
                self.assertEqual(asked, 0, second.err)
                self.assertEqual(second.result["output"], first.result["output"])
                self.assertEqual((usage["cachedCalls"], usage["llmCalls"]), (7, 7))
                self.assertEqual((usage["cost"], usage["tokens"]), (0, 0))
                self.assertTrue(usage["costComplete"])
                self.assertFalse(usage["estimated"])
                trace = second.result["trace"]
                self.assertEqual([turn["cached"] for turn in trace["iterations"]], [True])
                self.assertEqual([call["cached"] for call in trace["llmCalls"]], [True] * 6)
                self.assertIn("7 calls (7 from the cache)", second.err)
                self.assertIn("answered before, from the cache", second.err)

    def test_an_answer_of_megabytes(self):
        """It is recorded, kept and found in several turns of the loop, and is the same."""
        text = "".join(f'{i:x} "%\u00fc\n' for i in range(400000)) + "."
        digest = hashlib.sha256(text.encode()).hexdigest()
        server = self.serve("openai")
        server.script("^give", Reply(text=text, usage=(10, 900000)))
        server.script(None, code("a = llm_query('give', max_tokens=9000000)", "import hashlib",
                                 "FINAL(hashlib.sha256(a.encode()).hexdigest())"))
        table = {"m": {"input_cost_per_token": 0, "output_cost_per_token": 0,
                       "max_input_tokens": 20000000, "max_output_tokens": 10000000}}
        large = ["--max-tokens", "1000000000", "--price-table",
                 self.write("prices.json", json.dumps(table))]
        record = ["--record", self.dir / "recording"]
        for requests in (2, 0):
            before = len(server.requests)
            outcome = self.ask(server, "--cache", self.cache, *large, *record)
            self.assertEqual(outcome.result["output"], digest)
            self.assertEqual(len(server.requests) - before, requests)
            record = []
        outcome = self.rlmd("exec", "--json", "-p", "replay", "--replay", self.dir / "recording",
                            "-m", "m", *large, "the task")
        self.assertEqual(outcome.result["output"], digest, outcome.err)

    def test_one_changed_file_of_a_tree(self):
        """It is asked for again, with the turn that told of it; the others are not."""
        server = self.server()
        asked, _ = self.once(server, *self.tree(12))
        self.assertEqual(asked, 13)
        asked, second = self.once(server, *self.tree(12, f5="something else\n" * 7))
        self.assertLessEqual(asked, 2)
        self.assertEqual(second.result["usage"]["cachedCalls"], 13 - asked)
        queries = [r.last_user for r in server.requests[13:] if r.last_user.startswith("what is")]
        self.assertEqual(len(queries), 1)
        self.assertIn("5.txt", queries[0])

    def test_a_second_review(self):
        """`rlmd review` of a tree with one changed file pays for little more than that file."""
        lines = ("import json", "parts = batch_llm_query(['look for mistakes in ' + path + '\\n' + text",
                 "    for path, text in context.files.items()])",
                 "FINAL(json.dumps({'findings': [finding for part in parts",
                 "                               for finding in json.loads(part)]}))")
        found = {"rule": "x", "severity": "error", "confidence": 1, "message": "Wrong.",
                 "path": "3.txt", "quote": "text 3", "line": 1, "patch": None}
        server = self.serve("openai")
        server.script("^look for mistakes in 3", Reply(text=json.dumps([found])))
        server.script("^look for", Reply(text="[]"))
        server.script(None, code(*lines))
        environment = self.environment(**server.environment())
        counts = []
        for changed in ({}, {"f5": "something else\n" * 7}, {"f5": "something else\n" * 7}):
            self.tree(12, **changed)
            before = len(server.requests)
            outcome = self.rlmd("review", "-p", "openai", "-m", "m", "--quick", "--cache", self.cache,
                                "--json", *self.prices(m=(1000000, 2000000)), self.dir / "tree",
                                env=environment)
            self.assertEqual(outcome.status, 3, outcome.err)
            self.assertEqual([each["line"] for each in outcome.result["review"]["findings"]], [1])
            counts.append(len(server.requests) - before)
        self.assertEqual(counts[0], 13)
        self.assertLessEqual(counts[1], 2)
        self.assertEqual(counts[2], 0)

    def test_under_another_budget_and_another_clock(self):
        """The rest of cost, tokens, turns and time is no part of what is looked for."""
        server = self.server(reply=lambda request: Reply(text="words", delay=0.05))
        self.once(server, *self.tree(), "--max-cost", "3")
        asked, outcome = self.once(server, *self.tree(), "--max-cost", "0.001", "--max-tokens",
                                   "3000", "--max-iterations", "7", "--max-time", "200s")
        self.assertEqual(asked, 0, outcome.err)

    def test_a_budget_that_is_too_small_for_any_call(self):
        """Nothing is reserved for what costs nothing."""
        server = self.server()
        table = self.prices(m=(1000000, 2000000))
        self.once(server, *self.tree())
        asked, _ = self.once(server, *self.tree(), "--max-cost", "0.000001")
        self.assertEqual(asked, 0)
        self.ask(server, *table, *self.tree(), "--max-cost", "0.000001", status=6)

    def test_the_same_asked_twice_wants_two_answers(self):
        """Samples stay samples; the second time each has its own."""
        server = self.serve("openai", code("print(batch_llm_query(['q'] * 3), llm_query('q'))"),
                            *[Reply(text=f"sample {i}") for i in range(4)], final())
        asked, first = self.once(server)
        self.assertEqual(asked, 6)
        asked, second = self.once(server)
        self.assertEqual(asked, 0)
        self.assertEqual(first.executions()[0]["stdout"], second.executions()[0]["stdout"])
        self.assertEqual(len(set(re.findall(r"sample \d", first.executions()[0]["stdout"]))), 4)

    def test_plans(self):
        plan = self.write("plan.json", json.dumps({"strategy": "Parallel", "operations": [
            {"id": "a", "type": "Query", "input": "one"}, {"id": "b", "type": "Query", "input": "two"}]}))
        server = self.serve("openai", Reply(text="x"), Reply(text="x"))
        for cached in (0, 2):
            outcome = self.rlmd("plan", "-p", "openai", "-m", "m", "--cache", self.cache, plan,
                                env=self.environment(**server.environment()))
            self.assertEqual(outcome.status, 0, outcome.err)
            self.assertEqual(outcome.result["usage"].get("cachedCalls", 0), cached)
        self.assertEqual(len(server.requests), 2)


class Misses(CacheTest):
    def twice(self, change, *arguments, **more):
        """How often the server is asked after `change`."""
        server = self.server()
        self.once(server, *self.tree(2), **more)
        change()
        return self.once(server, *self.tree(2), *arguments, **more)[0]

    def test_old_ones(self):
        self.assertEqual(self.twice(lambda: None, "--cache-age", "7d"), 0)
        self.assertEqual(self.twice(lambda: None, "--cache-age", "1ms"), 3)

    def test_another_model_and_other_settings(self):
        for change in (["-m", "n"], ["--temperature", "0.5"], ["--max-output-tokens", "700"]):
            with self.subTest(change=change):
                self.cache = self.dir / ("cache" + change[0] + change[1])
                self.assertEqual(self.twice(lambda: None, *change), 3)

    def test_another_key_and_another_server(self):
        """A key's owner finds what he paid for himself, and nobody else does."""
        server, other = self.server(), self.server()
        for key, asked in (("sk-first-0123456789", 3), ("sk-other-0123456789", 3),
                           ("sk-first-0123456789", 0)):
            self.assertEqual(self.once(server, *self.tree(2), OPENAI_API_KEY=key)[0], asked)
        self.assertEqual(self.once(other, *self.tree(2), OPENAI_API_KEY="sk-first-0123456789")[0], 3)

    def test_no_key_and_no_prompt_is_in_it(self):
        key = "sk-secret-0123456789abcdef"
        server = self.server(reply=lambda request: Reply(text="it is " + key))
        self.once(server, *self.tree(2), OPENAI_API_KEY=key)
        kept = b"".join(path.name.encode() + path.read_bytes() for path in self.entries())
        self.assertEqual(len(self.entries()), 3)
        self.assertNotIn(key.encode(), kept)
        self.assertNotIn(b"text 1", kept)

    def test_torn_forged_and_foreign_entries(self):
        """Each is asked for again, and replaced by a good one."""
        def each(change):
            def do():
                for path in self.entries():
                    change(path)
            return do

        def forge(path):
            path.write_bytes(path.read_bytes().replace(b"answer", b"forged"))

        def swap(path):
            path.write_bytes(self.entries()[0].read_bytes() if path != self.entries()[0] else b"")

        def link(path):
            os.rename(path, self.dir / path.name)
            path.symlink_to(self.dir / path.name)

        def fifo(path):
            path.unlink()
            os.mkfifo(path)

        for change in (forge, swap, link, fifo,
                       lambda path: path.write_bytes(path.read_bytes()[:-9]),
                       lambda path: path.write_bytes(b""),
                       lambda path: path.write_bytes(path.read_bytes() + b"x"),
                       lambda path: path.chmod(0o666)):
            with self.subTest(change=change):
                self.cache = pathlib.Path(self.write(f"{id(change)}/x", "")).parent
                (self.cache / "x").unlink()
                self.cache.chmod(0o700)
                server = self.server()
                self.once(server, *self.tree(2))
                self.assertEqual(len(self.entries()), 3)
                each(change)()
                asked, outcome = self.once(server, *self.tree(2))
                self.assertGreaterEqual(asked, 2)
                self.assertNotIn("forged", outcome.out)
                asked = self.once(server, *self.tree(2))[0]
                self.assertEqual(asked, 0)

    def test_what_is_no_answer_is_not_kept(self):
        """Failures, refusals, and answers that were cut or are empty."""
        bad = (Reply(text="half an", finish="length"), Reply(text="no", finish="refusal"),
               Reply(error="bad_request"), Reply(text=""))
        for reply in bad:
            with self.subTest(reply=reply):
                self.cache = self.dir / f"cache {bad.index(reply)}"
                server = self.serve(
                    "openai", code("try: print(llm_query('q'))\nexcept LLMError as e: print(e)"))
                server.script("^q$", reply)
                server.script(None, final())
                self.ask(server, "--cache", self.cache)
                self.assertEqual(len(self.entries()), 2)


    def test_turns_that_led_nowhere_are_forgotten(self):
        """Of a review without findings in their form: who tries again has another try."""
        server = self.serve("openai")
        server.script(None, Reply(text="FINAL(I like it)"))
        self.tree(2)
        counts = []
        for _ in range(2):
            before = len(server.requests)
            outcome = self.rlmd("review", "-p", "openai", "-m", "m", "--quick", "--cache", self.cache,
                                *self.prices(m=(1000000, 2000000)), self.dir / "tree",
                                env=self.environment(**server.environment()))
            self.assertEqual(outcome.status, 9, outcome.err)
            counts.append(len(server.requests) - before)
        self.assertGreater(counts[0], 1)
        self.assertEqual(counts[1], counts[0])
        self.assertEqual(self.entries(), [])


class Directory(CacheTest):
    def test_it_is_made_for_its_owner_alone(self):
        self.once(self.server(), *self.tree(2))
        self.assertEqual(self.cache.stat().st_mode & 0o777, 0o700)
        for path in self.entries():
            self.assertEqual(path.stat().st_mode & 0o777, 0o600)

    def refused(self, status, text):
        outcome = self.rlmd("exec", "-p", "openai", "-m", "m", "--cache", self.cache, "task",
                            env=self.environment(OPENAI_API_KEY="x" * 20))
        self.assertEqual(outcome.status, status, outcome.err)
        self.assertIn(text, outcome.err)

    def test_what_others_may_write_is_refused(self):
        self.cache.mkdir()
        for mode in (0o777, 0o770, 0o702):
            self.cache.chmod(mode)
            self.refused(8, f"chmod 700 {self.cache}")

    def test_what_is_none_is_refused(self):
        self.cache.symlink_to(self.dir)
        self.refused(8, "a directory and no link")
        self.cache.unlink()
        self.cache.write_text("")
        self.refused(8, "a directory and no link")
        self.cache = self.dir / "none" / "cache"
        self.refused(8, "cannot make the cache")

    @unittest.skipUnless(os.geteuid() == 0, "only root can give a directory away")
    def test_somebody_elses_is_refused(self):
        self.cache.mkdir(mode=0o755)
        os.chown(self.cache, 12345, 12345)
        self.refused(8, "belongs to uid 12345")

    def test_the_least_recently_used_go_first(self):
        """Of entries that are too many, and none of what is no entry."""
        answer = "x" * 20000
        server = self.server(reply=lambda request: Reply(text=answer, usage=(10, 10)))
        self.once(server, *self.tree(6))
        self.write("cache/notes.txt", "y" * 100000)
        self.write("cache/.new-1-2", "left over")
        os.utime(self.cache / ".new-1-2", (time.time() - 7200,) * 2)
        large = [path for path in self.entries() if path.stat().st_size > 20000]
        self.assertEqual(len(large), 6)
        for age, path in enumerate(large):
            os.utime(path, (time.time() - 1000 * (age + 1),) * 2)
        # One more exchange, in a cache of 64 KiB: two of the large ones and some small ones fit.
        self.ask(self.serve("openai", final("new")), "--cache", self.cache, "--cache-size", "64K")
        self.assertEqual([path.exists() for path in large], [True] * 3 + [False] * 3)
        self.assertLessEqual(sum(path.stat().st_size for path in self.entries()), 65536)
        self.assertTrue((self.cache / "notes.txt").exists())
        self.assertFalse((self.cache / ".new-1-2").exists())

    def test_a_hit_is_a_use(self):
        server = self.server()
        self.once(server, *self.tree(1))
        for path in self.entries():
            os.utime(path, (time.time() - 5000,) * 2)
        self.once(server, *self.tree(1))
        for path in self.entries():
            self.assertLess(time.time() - path.stat().st_mtime, 4000)

    def test_several_processes_at_once(self):
        """Each has whole answers, whatever the others write and sweep meanwhile."""
        server = self.server(reply=lambda request: Reply(text="a" * 3000, usage=(10, 10)))
        arguments = self.arguments(server, "--cache", self.cache, "--cache-size", "64K",
                                   *self.prices(m=(1, 1)), *self.tree(20))
        environment = self.environment(**server.environment())
        processes = [self.start(*arguments, env=environment) for _ in range(4)]
        outputs = set()
        for process in processes:
            out, err = process.communicate()
            self.assertEqual(process.returncode, 0, err)
            self.assertNotIn(b"warning", err)
            outputs.add(json.loads(out)["output"])
        self.assertEqual(outputs, {"|".join(["a" * 3000] * 20)})
        self.assertLessEqual(sum(path.stat().st_size for path in self.entries()), 65536)
        self.assertEqual([path.name for path in self.cache.iterdir() if path.name[0] == "."], [])


class Recordings(CacheTest):
    def test_a_recording_has_what_came_from_the_cache(self):
        """And replays it to the same result, cache or none."""
        server = self.server()
        self.once(server, *self.tree(2))
        asked, first = self.once(server, *self.tree(2), "--record", self.dir / "kept")
        self.assertEqual(asked, 0)
        self.cache.chmod(0o777)  # it is not looked at
        for more in ([], ["--cache", self.cache]):
            again = self.rlmd("exec", "-p", "openai", "-m", "m", "--json", *self.tree(2), *more,
                              *self.prices(m=(1000000, 2000000), n=(1000000, 2000000)),
                              "--replay", self.dir / "kept", "--", "the task")
            self.assertEqual(again.status, 0, again.err)
            usage, before = again.result["usage"], first.result["usage"]
            self.assertEqual({**usage, "duration": 0}, {**before, "duration": 0})


if __name__ == "__main__":
    unittest.main()

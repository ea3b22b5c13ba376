"""Permits to compute: runs that wait for models leave their permit to others."""

import json
import resource
import unittest

from model import Reply
from providers import ProviderTest, code, final
from test_parallel import is_query

AMPLE = ["--max-tokens", "1000000000", "--downgrade", "0", "--max-workers", "1"]
MANY = 12


class Overlap(ProviderTest):
    """With --max-workers 1."""

    def hold(self, block, sub_run, many=MANY):
        """The root runs the block; no answer to a query, or to the first turn of a sub-run, comes
        before as many as that have been asked for."""
        server = self.serve("openai")
        seen = {"queries": 0, "turns": 0}

        def held(kind, reply):
            seen[kind] += 1
            reply.until = lambda: seen[kind] >= many
            return reply

        def reply(request):
            if is_query(request):
                return held("queries", Reply(text=f"<{request.last_user}>"))
            if "TASK: sub" in request.messages[1][1]:
                return held("turns", code(*sub_run))
            return final("done") if request.turn else code(*block)

        return server.script(None, reply)

    def stdout(self, server, *arguments):
        outcome = self.ask(server, *AMPLE, "-j", str(MANY), *arguments)
        (execution, *_) = outcome.executions()
        self.assertIsNone(execution["error"], execution)
        return execution["stdout"]

    def test_runs_that_wait_for_models(self):
        """Each waits for its own turn, and then for its call, beside all others."""
        server = self.hold([f"print(batch_rlm_query(['sub'] * {MANY}))"], ["FINAL(llm_query('q'))"])
        self.assertEqual(self.stdout(server), f"{['<q>'] * MANY}\n")
        self.assertEqual(server.peak, MANY)

    def test_operations_of_a_plan(self):
        """The same where a plan orders runs and calls."""
        half = MANY // 2
        server = self.hold(
            [f"plan = [dict(id=f'r{{i}}', input='sub', mode='rlm') for i in range({half})]",
             f"plan += [dict(id=f'c{{i}}', input='q') for i in range({half})]",
             f"print(sorted(r['response'] for r in run_plan(plan, max_parallel={MANY})"
             "['results'].values()))"],
            ["FINAL(llm_query('q'))"], many=half)
        self.assertEqual(self.stdout(server), f"{['<q>'] * MANY}\n")

    def test_threads_and_tasks(self):
        """Each thread, and each coroutine, hears its answer, whatever the others wait for."""
        server = self.hold(
            ["import asyncio, threading",
             "told = []",
             "def ask(call, text): told.append(call(text))",
             "threads = [threading.Thread(target=ask, args=a) for a in",
             "           [(llm_query, 'a'), (rlm_query, 'sub'), (llm_query, 'b')]]",
             "for t in threads: t.start()",
             "told += await asyncio.gather(*(asyncio.to_thread(llm_query, c) for c in 'cd'))",
             "for t in threads: t.join()",
             "print(sorted(told))"],
            ["FINAL(llm_query('e') + llm_query('f'))"], many=1)
        self.assertEqual(self.stdout(server), "['<a>', '<b>', '<c>', '<d>', '<e><f>']\n")


class Many(ProviderTest):
    CALLS = 1200

    def test_as_many_as_a_plan_wants(self):
        """No call is answered before all of them are in flight."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard < 2 * self.CALLS:
            self.skipTest(f"a process may have only {hard} open files (ulimit -Hn)")
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (2 * self.CALLS, hard))
        server = self.serve("openai")
        seen = []

        def reply(request):
            seen.append(request.last_user)
            return Reply(text=f"<{request.last_user}>", until=lambda: len(seen) >= self.CALLS)

        server.script(None, reply)
        plan = {"maxParallel": self.CALLS, "strategy": "Parallel", "timeoutPerOp": 3600000,
                "operations": [{"id": f"o{i}", "input": f"q{i}"} for i in range(self.CALLS)]}
        outcome = self.rlmd(
            "plan", "-p", server.provider, "-m", "m", "--max-tokens", "1000000000", "-q",
            self.write("plan.json", json.dumps(plan)),
            env=self.environment(**server.environment()))
        self.assertEqual(outcome.status, 0, outcome.err)
        told = {name: each["response"] for name, each in outcome.result["results"].items()}
        self.assertEqual(told, {f"o{i}": f"<q{i}>" for i in range(self.CALLS)})
        self.assertEqual(server.peak, self.CALLS)


class Trees(ProviderTest):
    def test_one_permit_for_five_levels(self):
        """Each run of a tree makes calls of every kind, one after the other and at once."""
        server = self.serve("openai")

        def reply(request):
            if is_query(request):
                return Reply(text="1")
            if request.turn:
                return final("wrong")
            if "TASK: leaf" in request.messages[1][1]:
                return code("FINAL(llm_query('q'))")
            return code(
                "import threading",
                "below = 'leaf' if budget()['depth'] == 3 else 'node'",
                "told = [llm_query('q'), rlm_query(below)]",
                "def ask(call, text): told.append(call(text))",
                "threads = [threading.Thread(target=ask, args=a) for a in",
                "           [(llm_query, 'q'), (rlm_query, below)]]",
                "for t in threads: t.start()",
                "plan = [dict(id='a', input=below, mode='rlm'), dict(id='b', input='q')]",
                "told += [r['response'] for r in run_plan(plan)['results'].values()]",
                "for t in threads: t.join()",
                "FINAL(sum(map(int, told)))",
            )

        server.script(None, reply)
        outcome = self.ask(server, *AMPLE, "--max-depth", "5", "--max-calls", "100000")
        expected = 1
        for _ in range(4):
            expected = 3 + 3 * expected
        self.assertEqual(outcome.result["output"], str(expected))
        self.assertEqual(outcome.result["usage"]["maxDepthReached"], 4)
        self.assertEqual(outcome.result["usage"]["subcalls"], 3 + 9 + 27 + 81)


if __name__ == "__main__":
    unittest.main()

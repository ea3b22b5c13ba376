"""Blocks as models write them, through the real program: what runs, what is said, what teaches."""

import unittest

from harness import SystemTest
from model import Reply
from providers import ProviderTest, code, final

COUNT = 4  # calls in flight at once; each waits until all are there

TOGETHER = {
    "gather": "print(await asyncio.gather(*[llm_query(f'q{n}') for n in range(4)]))",
    "run": "async def main():\n    return await asyncio.gather(*[llm_query(f'q{n}') for n in range(4)])\n"
           "print(asyncio.run(main()))",
    "each in a function": "async def ask(n):\n    return await llm_query(f'q{n}')\n"
                          "print(await asyncio.gather(*(ask(n) for n in range(4))))",
    "tasks": "calls = []\nfor n in range(4):\n"
             "    calls.append(asyncio.create_task(llm_query(f'q{n}')))\n"
             "print([await call for call in calls])",
    "threads": "print(await asyncio.gather(*[asyncio.get_running_loop().run_in_executor("
               "None, llm_query, f'q{n}') for n in range(4)]))",
}


class Together(ProviderTest):
    def test_what_asyncio_gathers_is_asked_at_the_same_time(self):
        """Each answer comes when all are asked for: one after another none would ever come."""
        for name, lines in TOGETHER.items():
            with self.subTest(name):
                server = self.serve("openai")
                server.script("^q", lambda request, server=server: Reply(
                    text=f"<{request.last_user.strip()}>", until=lambda: server.peak >= COUNT))
                server.script(None, code("import asyncio\n" + lines), times=1)
                server.script(None, final())
                result = self.ask(server, "-j", str(COUNT)).result
                execution = result["trace"]["iterations"][0]["codeExecutions"][0]
                self.assertIsNone(execution["error"], execution["error"])
                self.assertEqual(execution["stderr"], "")
                self.assertEqual(execution["stdout"], "['<q0>', '<q1>', '<q2>', '<q3>']\n")

    def test_a_limit_of_the_budget_comes_where_it_is_awaited(self):
        server = self.serve("openai")
        server.script("^q", lambda request: Reply(text="a", usage=(10, 1)))
        server.script(None, code(
            "import asyncio",
            "r = await asyncio.gather(*[llm_query(f'q{n}') for n in range(3)],",
            "                         return_exceptions=True)",
            "print(sorted(type(each).__name__ for each in r))",
            "await llm_query('q3')"), times=1)
        server.script(None, final())
        result = self.ask(server, "--max-calls", "3").result
        execution = result["trace"]["iterations"][0]["codeExecutions"][0]
        self.assertEqual(execution["stdout"], "['BudgetExceeded', 'str', 'str']\n")
        self.assertIn("line 5, in <module>\n    await llm_query('q3')\n", execution["error"])
        self.assertIn("\nBudgetExceeded: ", execution["error"])


class Threads(SystemTest):
    def test_the_main_thread_has_its_own_number_not_the_templates(self):
        (execution,), _run = self.blocks(
            "import threading\n"
            "print(threading.main_thread().native_id == threading.get_native_id())")
        self.assertEqual(execution["stdout"], "True\n")


class Blocks(SystemTest):
    def run_blocks(self, *blocks):
        return self.blocks(*blocks)[0]

    def test_sealed_workers_have_loops(self):
        """Sleeps, queues, time limits and threads, in one loop a block."""
        executions = self.run_blocks(
            "import asyncio\n"
            "queue = asyncio.Queue()\n"
            "async def put():\n"
            "    for n in range(3): await queue.put(await asyncio.to_thread(str, n))\n"
            "task = asyncio.create_task(put())\n"
            "r = [await asyncio.wait_for(queue.get(), 3600) for n in range(3)]\n"
            "try: await asyncio.wait_for(asyncio.sleep(3600), 0.01)\n"
            "except asyncio.TimeoutError: r.append('late')\n"
            "r",
            "asyncio.run(asyncio.sleep(0, 'again'))",
            "await asyncio.sleep(0)\nlen(asyncio.all_tasks())",
        )
        self.assertEqual([(each["stdout"], each["stderr"], each["error"]) for each in executions],
                         [("['0', '1', '2', 'late']\n", "", None), ("'again'\n", "", None),
                          ("1\n", "", None)])

    def test_code_that_was_meant_runs(self):
        executions = self.run_blocks(
            "python\nprint(1)", ">>> x = 2\n>>> x\n2", "!pip install pandas\nprint(3)",
            "print(json.loads('4'))", "print(5)\nreturn\nprint('no')", "%%time\nprint(6)")
        self.assertEqual([each["stdout"] for each in executions],
                         ["1\n", "2\n", "3\n", "4\n", "5\n", "6\n"])
        self.assertEqual([each["error"] for each in executions], [None] * 6)
        for number, said in ((1, "1 line without a prompt"), (2, "nothing can be installed"),
                             (3, "imported for you: import json"), (4, "`return` outside")):
            self.assertIn(said, executions[number]["stderr"])

    def test_the_model_is_told_what_was_undone(self):
        executions, outcome = self.blocks("context = '''pasted'''\nllm_query = len", "context")
        self.assertIn("`context` is the input", executions[0]["stderr"])
        self.assertIn("`llm_query` is a function", executions[0]["stderr"])
        self.assertEqual(executions[1]["stdout"], "''\n")
        told = outcome.result["trace"]["iterations"][1]["prompt"]["content"]
        self.assertIn("`context` is the input", told)

    def test_errors_teach_and_tell_no_paths(self):
        executions = self.run_blocks(
            "context = '''\ncut", "json.loads('{')", "from json import nothing", "x = !ls",
            "import asyncio\nawait asyncio.gather(asyncio.sleep(0), llm_query(5))",
            "import traceback\ntry: json.loads('{')\nexcept ValueError: traceback.print_exc()")
        for each, said in zip(executions, ("already", "JSONDecodeError", "from 'json'", "no shell",
                                           "TypeError", "")):
            self.assertIn(said, each["error"] or "")
            self.assertNotRegex((each["error"] or "") + each["stderr"], r"/\w+/|frozen|\.py\b")
        self.assertIn("JSONDecodeError", executions[5]["stderr"])

    def test_a_text_that_speaks_of_such_things_is_left_alone(self):
        text = "'''python\n!ls\n>>> x\n%cd\nreturn\n'''"
        executions = self.run_blocks(f"x = {text}\nx", "query = 5\nquery")
        self.assertEqual(executions[0]["stdout"], repr(eval(text)) + "\n")
        self.assertEqual([each["stderr"] for each in executions], ["", ""])


if __name__ == "__main__":
    unittest.main()

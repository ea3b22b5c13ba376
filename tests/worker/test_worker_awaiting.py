"""Blocks that await, and what asyncio gathers of our functions: worker/awaiting.py."""

import time
import unittest

import patience
from supervisor import Worker

WAYS = {  # to ask three at the same time; each leaves the answers in `r`
    "gather, at the top": """
r = await asyncio.gather(*[llm_query(p) for p in 'abc'])""",
    "gather, in a function": """
async def main():
    return await asyncio.gather(*(llm_query(p) for p in 'abc'))
r = asyncio.run(main())""",
    "a function for each": """
async def ask(p):
    answer = await llm_query(p)
    return answer.strip()
async def main():
    return await asyncio.gather(*[ask(p) for p in 'abc'])
r = asyncio.run(main())""",
    "by way of a list": """
calls = [llm_query(p) for p in 'abc']
r = await asyncio.gather(*calls)""",
    "appended": """
async def main():
    calls = []
    for p in 'abc':
        calls.append(llm_query(p))
    return [await call for call in calls]
r = asyncio.run(main())""",
    "by way of variables": """
a, b = llm_query('a'), llm_query('b')
c = llm_query('c')
r = [await a, await b, await c]""",
    "a dictionary": """
calls = {p: llm_query(p) for p in 'abc'}
r = list(dict(zip(calls, await asyncio.gather(*calls.values()))).values())""",
    "map": """
r = await asyncio.gather(*map(llm_query, 'abc'))""",
    "tasks": """
tasks = [asyncio.create_task(llm_query(p)) for p in 'abc']
r = [await task for task in tasks]""",
    "wait_for": """
r = await asyncio.gather(*[asyncio.wait_for(llm_query(p), 1000) for p in 'abc'])""",
    "as_completed": """
r = sorted([await each for each in asyncio.as_completed([llm_query(p) for p in 'abc'])])""",
    "a semaphore": """
limit = asyncio.Semaphore(3)
async def ask(p):
    async with limit:
        return await llm_query(prompt=p)
r = await asyncio.gather(*[ask(p) for p in 'abc'])""",
    "threads": """
r = await asyncio.gather(*[asyncio.to_thread(llm_query, p) for p in 'abc'])"""
    if hasattr(__import__("asyncio"), "to_thread") else "",
    "other names": """
async def start(p): return await async_llm_query(p)
r = await asyncio.gather(async_llm_query('a'), allm_query('b'), start('c'))""",
    "other names of the plain ones": """
r = await asyncio.gather(llm('a'), sub_llm('b'), rlm('c'))""",
    "a function that gives it on": """
def start(p): return async_llm_query(p)
r = await asyncio.gather(*[start(p) for p in 'abc'])""",
    "sub-runs": """
r = await asyncio.gather(*[rlm_query(p) for p in 'abc'])""",
    "batches": """
r = sum(await asyncio.gather(*[llm_query_batched([p]) for p in 'abc']), [])""",
    "a loop's own method": """
loop = asyncio.new_event_loop()
async def main():
    return await asyncio.gather(*[llm_query(p) for p in 'abc'])
r = loop.run_until_complete(main())
loop.close()""",
    "a group": """
async with asyncio.TaskGroup() as group:
    tasks = [group.create_task(llm_query(p)) for p in 'abc']
r = [task.result() for task in tasks]""" if hasattr(__import__("asyncio"), "TaskGroup") else "",
}


class Awaiting(unittest.TestCase):
    def setUp(self):
        self.worker = Worker()
        self.addCleanup(self.worker.__exit__)

    def assert_shows(self, code, shown, stderr=""):
        done = self.worker.run(code)
        self.assertIsNone(done["error"], done["error"])
        self.assertEqual((done["stdout"], done["stderr"]), (shown, stderr))

    def receive_calls(self, count):
        calls = [self.worker.receive() for _number in range(count)]
        self.assertNotIn("done", [call["type"] for call in calls], calls)
        return calls

    def answer(self, calls):
        for call in calls:
            self.worker.reply(call["id"], self.worker.answer(call))


class Gathered(Awaiting):
    def test_all_are_asked_before_one_is_answered(self):
        for way, code in WAYS.items():
            with self.subTest(way):
                if not code:
                    continue  # newer than this Python
                self.worker.start_block("import asyncio" + code)
                self.answer(reversed(self.receive_calls(3)))
                done = self.worker.until("done")
                self.assertIsNone(done["error"], done["error"])
                self.assertEqual(done["stderr"], "")
                self.assert_shows("r", "['<a>', '<b>', '<c>']\n")

    def test_one_after_another_where_that_is_written(self):
        for code in ("[await llm_query(p) for p in 'ab']",
                     "async def f():\n    x = llm_query('a')\n    y = llm_query('b')\n"
                     "    return [x.upper().lower(), y + '']\nimport asyncio\nasyncio.run(f())",
                     "import asyncio\nasync def f():\n    x = llm_query('a')\n"
                     "    await asyncio.sleep(0)\n    return await g(x)\n"
                     "async def g(x): return [x[:], llm_query('b')]\nawait f()"):
            with self.subTest(code):
                self.worker.start_block(code)
                for prompt in "ab":
                    call = self.worker.receive()
                    self.assertEqual(call["prompts"], [prompt])
                    self.worker.serve(call)
                self.assertEqual(self.worker.until("done")["stdout"], "['<a>', '<b>']\n")

    def test_more_than_there_are_threads(self):
        self.assert_shows("import asyncio\n"
                          "r = await asyncio.gather(*[llm_query(str(n)) for n in range(250)])\n"
                          "r == [f'<{n}>' for n in range(250)]", "True\n")

    def test_threads_end_with_their_calls(self):
        self.worker.run("import asyncio\nawait asyncio.gather(*[llm_query(p) for p in 'abc'])")
        self.assert_shows("import threading\n"
                          "for thread in threading.enumerate():\n"
                          "    if thread is not threading.current_thread(): thread.join()\n"
                          "threading.active_count()", "1\n")


class Answers(Awaiting):
    def test_an_answer_can_be_awaited_again(self):
        self.assert_shows("x = llm_query('a')\ntype(x).__name__", "'str'\n")
        self.assert_shows("await x, await x", "('<a>', '<a>')\n")
        self.assert_shows("import asyncio\nawait asyncio.gather(x, llm_query('b'))",
                          "['<a>', '<b>']\n")

    def test_without_a_loop_the_function_waits(self):
        self.assert_shows("def f(): return llm_query('a').upper()\nf()", "'<A>'\n")
        self.assert_shows("import asyncio\nasync def main(): return await llm_query('a')\n"
                          "asyncio.run(main()), asyncio.run(llm_query('b'))", "('<a>', '<b>')\n")

        self.assert_shows("async_llm_query('a'), asyncio.run(async_llm_query('b'))", "('<a>', '<b>')\n")

    def test_functions_that_wait_for_nobody(self):
        self.assert_shows("await chunk_text('abc', 2, 0), await count_matches('context')",
                          "(['ab', 'c'], 1)\n")
        self.assert_shows("await find_line('context') is not None", "True\n")
        for name in ("FINAL", "SUBMIT"):
            done = self.worker.run(f"await {name}('the end')")
            self.assertEqual((done["error"], done["answer"]), (None, "the end"))

    def test_a_function_of_the_users_that_has_our_name(self):
        self.assert_shows("import asyncio\nasync def llm_query(p): return p * 2\n"
                          "await asyncio.gather(*[llm_query(p) for p in 'ab'])",
                          "['aa', 'bb']\n", self.note("llm_query"))
        self.assert_shows("async def f(llm_query): return await llm_query(2)\n"
                          "async def g(n): return n\nawait f(g)", "2\n")

    def note(self, name):
        return (f"[note] `{name}` is a function of this session and is that again in the next block:"
                " what this block put in its place is dropped. Use another name for yours\n")

    def test_errors_come_where_it_is_awaited(self):
        self.worker.answer = lambda call: [("budget", "no money")]
        self.assert_shows("import asyncio\n"
                          "r = await asyncio.gather(llm_query('a'), llm_query('b'), "
                          "return_exceptions=True)\n[type(e).__name__ for e in r]",
                          "['BudgetExceeded', 'BudgetExceeded']\n")
        done = self.worker.run("x = 1\nawait llm_query('a')")
        self.assertRegex(done["error"], r"^Traceback .*\n  File \"<block 2>\", line 2, in <module>\n"
                                        r"    await llm_query\('a'\)\n(    [\^~]*\n)?"
                                        r"BudgetExceeded: no money\n$")
        done = self.worker.run("await llm_query(5)")
        self.assertIn("must be a str", done["error"])

    def test_a_call_that_is_never_awaited_is_said(self):
        self.worker.start_block("import asyncio\nx = llm_query('a')\nif not x: await x\nx = None")
        self.answer(self.receive_calls(1))
        self.assertIn("'llm_query' was never awaited", self.worker.until("done")["stderr"])


class Top(Awaiting):
    def test_statements_at_the_top(self):
        self.assert_shows(
            "import asyncio, contextlib\n"
            "async def count():\n    for n in range(3): yield n\n"
            "@contextlib.asynccontextmanager\nasync def opened(): yield 7\n"
            "async for n in count(): print(n)\n"
            "async with opened() as seven: pass\n"
            "[n async for n in count()], seven", "0\n1\n2\n([0, 1, 2], 7)\n",
        )
        self.assert_shows("n, seven, _", "(2, 7, ([0, 1, 2], 7))\n")

    def test_a_block_that_awaits_only_at_its_end(self):
        self.assert_shows("import asyncio\nx = 5\nawait asyncio.sleep(0, x)", "5\n")
        self.assert_shows(">>> x = await asyncio.sleep(0, 6)\n>>> x\n>>> await asyncio.sleep(0)", "6\n")

    def test_leaving(self):
        self.assert_shows("await llm_query('a')\nexit()\nprint('no')", "",
                          "[exit() ended this block only; the session and its variables go on]\n")
        self.assert_shows("x = await llm_query('a')\nreturn x\nprint('no')", "'<a>'\n",
                          "[note] `return` outside of a function ended this block\n")

    def test_an_error_has_the_blocks_lines_alone(self):
        done = self.worker.run("import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    1/0\n"
                               "await asyncio.gather(f())")
        self.assertIn("line 5, in <module>", done["error"])
        self.assertIn("line 4, in f", done["error"])
        self.assertEqual(done["error"].count("File "), 2, done["error"])

    def test_await_in_a_plain_function_is_an_error(self):
        self.assertIn("Hint: make the function `async def`",
                      self.worker.run("def f(): await llm_query('a')")["error"])

    def test_no_loop_is_left_over(self):
        for code in ("await asyncio.sleep(0)", "asyncio.run(asyncio.sleep(0))",
                     "loop = asyncio.get_event_loop()\nloop.run_until_complete(asyncio.sleep(0))",
                     "task = asyncio.get_event_loop().create_task(asyncio.sleep(0))\n"
                     "await asyncio.sleep(0)\nawait task"):
            with self.subTest(code):
                done = self.worker.run("import asyncio\n" + code)
                self.assertIsNone(done["error"], done["error"])
                self.assert_shows("asyncio._get_running_loop() is None", "True\n")

    def test_what_was_not_awaited_is_said(self):
        done = self.worker.run("import asyncio\ntasks = [asyncio.create_task(asyncio.sleep(999))"
                               " for _ in 'ab']\nawait asyncio.sleep(0)")
        self.assertEqual(done["stderr"], "[note] not done at the end of the block, so cancelled: "
                                         "2 tasks. Await a task in the block that starts it\n")

    def test_of_an_interrupted_block_nothing_is_left(self):
        for code in ("await asyncio.sleep(999)", "asyncio.run(asyncio.sleep(999))",
                     "await asyncio.gather(*[llm_query(p) for p in 'ab'])",
                     "import time\nawait asyncio.to_thread(time.sleep, 999)",
                     "async def f():\n    async with asyncio.Lock(): await asyncio.Event().wait()\n"
                     "asyncio.run(f())"):
            with self.subTest(code), Worker() as self.worker:
                self.worker.start_block("import asyncio\nkept = 1\nbudget()\n" + code)
                self.worker.serve(self.worker.receive())
                late = self.receive_calls(2 if "llm_query" in code else 0)
                time.sleep(patience.seconds(0.05))
                self.worker.interrupt()
                done = self.worker.until("done")
                self.assertIn("KeyboardInterrupt: this block was interrupted", done["error"])
                self.assertEqual(done["error"].count("Traceback"), 1, done["error"])
                self.assertNotIn("/", done["error"])
                self.answer(late)
                self.assert_shows("await asyncio.sleep(0, kept), await llm_query('still')",
                                  "(1, '<still>')\n")


if __name__ == "__main__":
    unittest.main()

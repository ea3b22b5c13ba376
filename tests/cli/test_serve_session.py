"""Sessions of rlmd serve: living workers, one block after the other."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import client  # noqa: E402
from model import ModelServer, Reply  # noqa: E402


class Sessions(client.ServeTest):
    def session(self, **params):
        peer = self.open()
        session = peer.call("session.open", **params)["session"]
        return peer, lambda method, **more: peer.call(f"session.{method}", session=session, **more)

    def test_blocks(self):
        peer, call = self.session(contexts=[{"text": "a b c"}])
        done = call("execute", code="import sys\nx = context.split()\nprint(x)\nprint('e', file=sys.stderr)")
        self.assertEqual((done["stdout"], done["stderr"], done["error"], done["interrupted"]),
                         ("['a', 'b', 'c']\n", "e\n", None, False))
        self.assertIsInstance(done["durationMs"], int)
        self.assertEqual([(note["stream"], note["text"]) for note in peer.told("session.output")],
                         [("stdout", "['a', 'b', 'c']\n"), ("stderr", "e\n")])
        self.assertEqual(call("execute", code="x[0]")["stdout"], "'a'\n")
        for code, kind, message in (("{}['é']", "KeyError", "'é'"), ("1/", "SyntaxError", "invalid syntax"),
                                    ("raise ValueError", "ValueError", ""),
                                    ("llm_query('x')", "", "no model"),
                                    ("raise ValueError('a: b\\nc')", "ValueError", "")):
            with self.subTest(code=code):
                error = call("execute", code=code)["error"]
                self.assertIn(kind, error["traceback"])
                if "\\n" not in code:
                    self.assertIn(message, error["message"])
                    self.assertIn(kind, error["type"])
        self.assertEqual(self.close(peer), (0, ""))

    def test_models(self):
        """Calls and sub-runs of its code, within one budget; the client is the provider."""
        asked = []

        def model(request):
            asked.append(request)
            turn = "```python\nFINAL(str(len(context)))\n```"
            return {"text": turn if request["kind"] == "turn" else "blue",
                    "usage": {"inputTokens": 100, "outputTokens": 5, "cost": 0.25}}

        peer = self.open(model_request=model)
        session = peer.call("session.open", model="client",
                            options={"max-calls": 5, "max-cost": 10})["session"]

        def run(code):
            return peer.call("session.execute", session=session, code=code)

        self.assertEqual(run("print(llm_query('Which colour?'))")["stdout"], "blue\n")
        self.assertEqual((asked[0]["session"], asked[0]["kind"], asked[0]["depth"]),
                         (session, "subcall", 0))
        self.assertEqual(run("print(rlm_query('How long?', context='123'))")["stdout"], "3\n")
        self.assertEqual((asked[1]["session"], asked[1]["kind"], asked[1]["depth"]),
                         (session, "turn", 1))
        told = peer.call("session.status", session=session)
        self.assertEqual((told["busy"], told["gone"], told["tokens"], told["cost"]),
                         (False, False, 210, 0.5))
        self.assertEqual((told["left"]["calls"], told["left"]["cost"], told["left"]["timeMs"]),
                         (3, 9.5, None))
        self.assertEqual(told["running"], [])
        error = run("for i in range(4): print(llm_query(str(i)))")["error"]
        self.assertIn("budget", error["traceback"].lower())
        self.assertEqual(len(asked), 5)
        self.assertEqual(run("print(6 * 7)")["stdout"], "42\n")
        self.assertEqual(self.close(peer), (0, ""))

    def test_models_of_the_server(self):
        server = ModelServer(provider="ollama")
        server.script(reply=Reply(text="green"))
        with server:
            peer = self.open()
            session = peer.call("session.open", models=True, options={
                "provider": "ollama", "model": "mine", "base-url": server.url})["session"]
            done = peer.call("session.execute", session=session, code="llm_query('?')")
            self.assertEqual((done["stdout"], done["error"]), ("'green'\n", None))
            self.assertEqual(self.close(peer), (0, ""))

    def test_what_runs_is_told(self):
        """While its code waits for a model."""
        told = []

        def model(request):
            told.append(peer.call("session.status", session=session))
            return {"text": "blue"}

        peer = self.open(model_request=model)
        session = peer.call("session.open", model="client")["session"]
        peer.call("session.execute", session=session, code="llm_query('x')")
        (running,) = told[0]["running"]
        self.assertTrue(told[0]["busy"])
        self.assertEqual((running["kind"], running["depth"], running["waits"], running["model"]),
                         ("subcall", 0, False, "client"))
        self.assertEqual(self.close(peer), (0, ""))

    def test_output_comes_while_the_block_runs(self):
        """Lines, and what is flushed; each of them is there before the tool behind it is called."""
        seen = []

        def look(asked):
            seen.append("".join(note["text"] for note in peer.told("session.output")))

        peer = self.open(tool_call=look)
        session = peer.call("session.open", tools=[{"name": "look", "doc": "Is called."}])["session"]
        code = ("import sys\n"
                "print('one')\nlook()\n"
                "print('t', 'wo', sep='', end='')\nlook()\n"
                "sys.stdout.flush()\nlook()\n"
                "_ = sys.stderr.write('é🙂\\ud800\\n')\nlook()\n"
                "print('', 'end', sep='\\n', end='')")
        done = peer.call("session.execute", session=session, code=code)
        self.assertEqual(seen, ["one\n", "one\n", "one\ntwo", "one\ntwoé🙂\\ud800\n"])
        self.assertEqual(done["stdout"], "one\ntwo\nend")
        told = peer.told("session.output")
        self.assertEqual("".join(note["text"] for note in told if note["stream"] == "stdout"),
                         done["stdout"])
        self.assertEqual(self.close(peer), (0, ""))

    def test_output_without_end(self):
        """Of each block so many characters are told, whoever prints them, and the session lives."""
        peer, call = self.session(options={"max-output": 1000})
        blocks = ("for i in range(10 ** 5): print(i)",
                  "for i in range(10 ** 5): print(i, end='')",
                  "print('x' * 10 ** 7)",
                  "import threading\n"
                  "def much():\n    for i in range(3000): print(i)\n"
                  "threads = [threading.Thread(target=much) for _ in range(8)]\n"
                  "for t in threads: t.start()\nfor t in threads: t.join()",
                  "class Last:\n    def __del__(self): print('last')\n"
                  "for i in range(3000):\n    Last(); print(i)")
        for block in blocks:
            with self.subTest(block):
                peer.notes.clear()
                done = call("execute", code=block)
                self.assertIsNone(done["error"])
                text = "".join(note["text"] for note in peer.told("session.output"))
                self.assertEqual(len(text), 1000)
                if "thread" not in block and "Last" not in block:
                    self.assertEqual(text[:500], done["stdout"][:500])
        done = call("execute", code="while True: print('again and again')", timeoutMs=300)
        self.assertTrue(done["interrupted"])
        self.assertEqual(call("execute", code="print(2)")["stdout"], "2\n")
        self.assertEqual(self.close(peer), (0, ""))

    def test_code_that_tells_more_than_it_prints(self):
        """It finds how output is told; what it says then is bounded, too, and none between blocks."""
        peer, call = self.session(options={"max-output": 1000})
        call("execute", code="import sys, threading\ntell = sys.stdout._live._tell\n"
                             "for i in range(100): tell('x' * 500)")
        self.assertLessEqual(sum(len(note["text"]) for note in peer.told("session.output")), 8000)
        call("execute", code="gone = threading.Event()\n"
                             "def later():\n    gone.wait()\n    tell('later')\n"
                             "    told.set()\ntold = threading.Event()\n"
                             "threading.Thread(target=later).start()")
        peer.notes.clear()
        call("execute", code="gone.set(); told.wait(); print('here')")
        for bad in ("{}", '{"text": 7}', '{"stream": "x", "text": ""}'):
            call("execute", code="sys.stdout._live._tell.__closure__[0].cell_contents.__closure__[0]"
                                 f".cell_contents.call('function', {{'name': '<output>', "
                                 f"'arguments': {bad!r}}})")
        self.assertEqual(call("execute", code="print(2)")["stdout"], "2\n")
        self.assertEqual(self.close(peer), (0, ""))

    def test_variables(self):
        peer, call = self.session()
        for value in (None, True, 7, 0.5, "é🙂\0\n\"'\\", [1, [2]], {"a": {"é": None}}, "x" * 1000000):
            call("set", name="value", value=value)
            self.assertEqual(call("get", name="value"), {"found": True, "value": value})
        call("execute", code="other = {1}; import math; number = math.inf")
        self.assertEqual(call("get", name="other"), {"found": True, "text": "{1}"})
        self.assertIn("text", call("get", name="number"))
        self.assertEqual(call("get", name="nothing"), {"found": False})
        session = peer.told("session.output")
        self.assertEqual(session, [])
        for method, params in (("get", {"name": "a b"}), ("get", {}), ("set", {"name": "a"}),
                               ("set", {"name": "", "value": 1}), ("execute", {}), ("execute", {"code": 7})):
            with self.subTest(method=method, params=params):
                self.assertEqual(self.refused(peer, f"session.{method}", session="s1", **params).code, -32602)
        self.assertEqual(self.close(peer), (0, ""))

    def test_an_interrupt(self):
        peer = self.open(tool_call=lambda asked: None)
        session = peer.call("session.open", tools=[{"name": "here", "doc": "Is called."}])["session"]
        begun = peer.begin("session.execute", session=session, code="here()\nx = 1\nwhile True: pass")
        peer.wait(lambda: peer.asked)
        self.assertIn("at work", str(self.refused(peer, "session.execute", session=session, code="1")))
        peer.call("session.interrupt", session=session)
        done = peer.end(begun)
        self.assertTrue(done["interrupted"])
        self.assertEqual(done["error"]["type"], "KeyboardInterrupt")
        self.assertEqual(peer.call("session.execute", session=session, code="print(1)")["stdout"], "1\n")
        self.assertEqual(self.close(peer), (0, ""))

    def test_an_interrupt_at_once(self):
        """One that comes before the worker has read its code is not lost."""
        peer, call = self.session()
        for _ in range(5):
            begun = peer.begin("session.execute", session="s1", code="while True: pass")
            peer.call("session.interrupt", session="s1")
            self.assertTrue(peer.end(begun)["interrupted"])
        self.assertEqual(call("execute", code="print(2)")["stdout"], "2\n")
        self.assertEqual(self.close(peer), (0, ""))

    def test_an_interrupt_that_code_ignores(self):
        """The session is gone then, and the reason names no time, for none was over.

        The first signal ends the call, which nobody answers; later ones come while C computes."""
        peer = self.open()
        session = peer.call("session.open", tools=[{"name": "here", "doc": "Is called."}])["session"]
        code = "try:\n    here()\nexcept BaseException:\n    pass\nsum(range(10**15))"
        begun = peer.begin("session.execute", session=session, code=code)
        peer.wait(lambda: peer.asked)
        peer.call("session.interrupt", session=session)
        with self.assertRaises(client.Refused) as refused:
            peer.end(begun)
        self.assertEqual(str(refused.exception), "no interrupt ended the code")
        self.assertEqual(self.close(peer)[0], 0)

    def test_a_time(self):
        peer, call = self.session()
        done = call("execute", code="while True: pass", timeoutMs=50)
        self.assertTrue(done["interrupted"])
        self.assertEqual(call("execute", code="print(2)")["stdout"], "2\n")
        self.assertEqual(self.close(peer), (0, ""))

    def test_a_worker_that_dies(self):
        """The request under way fails, and all that follow; other sessions live."""
        peer, call = self.session()
        for code in ("import os; os._exit(3)", "print(1)"):
            refused = self.refused(peer, "session.execute", session="s1", code=code)
            self.assertEqual((refused.code, refused.kind), (-32000, "worker"))
        other = peer.call("session.open")["session"]
        self.assertEqual(peer.call("session.execute", session=other, code="print(1)")["stdout"], "1\n")
        self.assertEqual(call("close"), {})
        self.assertIn("no session", str(self.refused(peer, "session.close", session="s1")))
        status, words = self.close(peer)
        self.assertEqual(status, 0)
        self.assertRegex(words, "^rlmd: warning: the worker ended itself .exit status 3.*\\n$")

    def test_closed_at_work(self):
        peer = self.open()
        session = peer.call("session.open", tools=[{"name": "here", "doc": "Is called."}])["session"]
        begun = peer.begin("session.execute", session=session, code="here()")
        peer.wait(lambda: peer.asked)
        self.assertEqual(peer.call("session.close", session=session), {})
        with self.assertRaises(client.Refused) as refused:
            peer.end(begun)
        self.assertEqual(refused.exception.kind, "cancelled")
        peer.wait(lambda: peer.told("$/cancelRequest", id=peer.asked[0]["id"]))
        self.assertEqual(self.close(peer), (0, ""))


if __name__ == "__main__":
    unittest.main()

"""rlmd's walls inside other libraries; run by test_python_peers.py with a Python that has them."""

import os
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / part) for part in ("python/src", "tests", "tests/system")]
from model import ModelServer, Reply  # noqa: E402

FORBIDDEN = "open('/etc/passwd')"


class Dspy(unittest.TestCase):
    def setUp(self):
        import dspy
        import rlmd.dspy
        from dspy.primitives import code_interpreter
        self.dspy, self.Interpreter, self.its = dspy, rlmd.dspy.Interpreter, code_interpreter

    def test_the_protocol(self):
        with self.Interpreter(tools={"llm_query": lambda prompt: prompt.upper()}) as one:
            self.assertIsInstance(one, self.its.CodeInterpreter)
            self.assertEqual(one.execute("x = 1\nprint(x, y, llm_query('a'))", {"y": [1, "é"]}),
                             "1 [1, 'é'] A\n")
            self.assertEqual(one.execute("x + 1"), "2")
            self.assertIsNone(one.execute("z = 3"))
            one.tools["more"] = lambda n=1: n + 1
            self.assertEqual(one.execute("print(more(n=4), more())"), "5 2\n")
            for code, kind, words in (("1/0", self.its.CodeExecutionError, "ZeroDivisionError"),
                                      ("1/", SyntaxError, "invalid"), ("more(m=1)", self.its.CodeExecutionError, "m"),
                                      (FORBIDDEN, self.its.CodeExecutionError, "passwd")):
                with self.subTest(code=code):
                    with self.assertRaisesRegex(kind, words):
                        one.execute(code)
            self.assertEqual(one.execute("SUBMIT(7)"), self.its.FinalOutput({"output": 7}))
            one.output_fields = [{"name": "a"}, {"name": "b"}]
            self.assertEqual(one.execute("SUBMIT(1, b=2)"), self.its.FinalOutput({"a": 1, "b": 2}))
            with self.assertRaises(self.its.CodeExecutionError):
                one.execute("SUBMIT(1)")
            with self.assertRaises(self.its.CodeInterpreterError):
                one.execute("import os; os._exit(3)")
            with self.assertRaisesRegex(self.its.CodeInterpreterError, "has ended"):
                one.execute("1")

    def test_rlm(self):
        from dspy.utils.dummies import DummyLM
        self.dspy.configure(lm=DummyLM([
            {"reasoning": "look", "code": "print(len(context))"},
            {"reasoning": "ask", "code": "r = llm_query('how many? ' + context[:3])\nprint(r)"},
            {"response": "sub"}, {"reasoning": "done", "code": "SUBMIT(answer=str(len(context)))"}]))
        ask = self.dspy.RLM("context, question -> answer", interpreter_factory=self.Interpreter)
        told = ask(context="abcdef" * 1000, question="how long?")
        self.assertEqual(told.answer, "6000")
        self.assertIn("sub", told.trajectory[1]["output"])


class Smolagents(unittest.TestCase):
    def setUp(self):
        import rlmd.smolagents
        import smolagents

        @smolagents.tool
        def weather(city: str) -> str:
            """Weather.

            Args:
                city: The city.
            """
            return city + " is sunny"

        self.its, self.weather = smolagents, weather
        self.one = rlmd.smolagents.Executor()
        self.addCleanup(self.one.cleanup)

    def test_the_protocol(self):
        self.one.send_tools({"weather": self.weather})
        self.one.send_variables({"k": [1]})
        told = self.one("print(weather('Bonn'), k)\nk + [2]")
        self.assertEqual((told.output, told.logs, told.is_final_answer), ([1, 2], "Bonn is sunny [1]\n", False))
        told = self.one("final_answer({'a': 1})")
        self.assertEqual((told.output, told.is_final_answer), ({"a": 1}, True))
        for code in ("1/0", FORBIDDEN, "1/"):
            with self.assertRaises(RuntimeError):
                self.one(code)

    def test_an_agent(self):
        from smolagents.models import ChatMessage, Model

        class Scripted(Model):
            texts = ["w = weather(city='Bonn')\nprint(w)", "final_answer(w)"]

            def generate(self, messages, **more):
                text = f"Thought: x\n<code>\n{self.texts.pop(0)}\n</code>"
                return ChatMessage(role="assistant", content=text)

        agent = self.its.CodeAgent(tools=[self.weather], model=Scripted(), executor=self.one,
                                   max_steps=4, verbosity_level=0)
        self.assertEqual(agent.run("Weather in Bonn?"), "Bonn is sunny")


class Rlms(unittest.TestCase):
    def test_a_completion(self):
        import rlm
        import rlmd.rlms
        server = ModelServer(provider="openai")

        def reply(request):
            if "Say how many" in request.last_user:
                return Reply(text="6000 of them")
            if len(server.requests) == 1:
                return Reply(text="```repl\nprint(len(context), bonus)\nr = llm_query('Say how many')\n"
                                  f"print(r, double(4))\ntry:\n    {FORBIDDEN}\n"
                                  "except Exception as e: walls = type(e).__name__\n```")
            return Reply(text="```repl\nanswer['content'] = r + walls\nanswer['ready'] = True\n```")

        server.script(None, reply)
        self.addCleanup(server.stop)
        server.start()
        rlmd.rlms.install()
        ask = rlm.RLM(backend="openai", environment="local", custom_tools={"bonus": 7, "double": lambda n: 2 * n},
                      backend_kwargs={"model_name": "gpt-5-mini", "api_key": server.key, "base_url": server.url})
        told = ask.completion("abcdef" * 1000, root_prompt="how long?")
        self.assertEqual(told.response, "6000 of themPermissionError")
        words = str([request.messages for request in server.requests])
        self.assertIn("6000 7", words)
        self.assertIn("6000 of them 8", words)


class Recipes(unittest.TestCase):
    ROWS = "id,text\n1,it broke\n2,größe passt 🙂\n3,broke too\n"

    def run_recipe(self, name):
        pathlib.Path("reviews.csv").write_text(self.ROWS)
        with ModelServer(provider="openai") as server:
            server.script(None, lambda request: Reply(
                text="FINAL(yes)" if "broke" in request.first_turn else "FINAL(no)", usage=(10, 2)))
            done = subprocess.run(
                [sys.executable, ROOT / "examples/python" / name, "reviews.csv", "text", "A complaint?"],
                capture_output=True, text=True, env={
                    **os.environ, **server.environment(), "OPENAI_API_KEY": server.key,
                    "RLMD_MODEL": "gpt-5-mini", "PYTHONPATH": str(ROOT / "python/src")})
        self.assertEqual(done.stdout, "id,text,answer\n1,it broke,yes\n2,größe passt 🙂,no\n"
                         "3,broke too,yes\n", done.stderr)

    def test_dask(self):
        self.run_recipe("dask_column.py")

    def test_ray(self):
        self.run_recipe("ray_column.py")


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    unittest.main()

"""The package rlmd for Python, over the real program: tasks, streams, sessions, errors, ends."""

import asyncio
import concurrent.futures
import dataclasses
import io
import multiprocessing
import os
import pathlib
import signal
import subprocess
import sys
import threading
import types
import typing
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python/src"), str(ROOT / "tests"), str(ROOT / "tests/system"),
                str(ROOT / "tests/cli")]
import rlmd  # noqa: E402
from client import code, model  # noqa: E402
from harness import RLMD, SystemTest  # noqa: E402
from model import ModelServer, Reply  # noqa: E402
from rlmd import _server  # noqa: E402


def answers(*texts):
    """A provider: the texts, one a turn of each run, without a cost."""
    inner = model(*texts)
    return lambda messages, asked: {**inner(asked), "usage": {"inputTokens": 10, "outputTokens": 5}}


class PythonTest(SystemTest):
    def setUp(self):
        super().setUp()
        variables = mock.patch.dict(os.environ, self.environment(RLMD_BIN=str(RLMD)), clear=True)
        variables.start()
        self.addCleanup(variables.stop)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.dir)
        self.addCleanup(_server.close_all)


class Completion(PythonTest):
    LOOK = code("x = len(context)"), "FINAL_VAR(x)"

    def test_an_answer(self):
        answer = rlmd.RLM(answers(*self.LOOK)).completion("How long?", "é🙂")
        self.assertEqual(answer, "2")
        self.assertIsInstance(answer, str)
        self.assertTrue(answer.success)
        self.assertFalse(answer.forced)
        self.assertEqual((answer.usage.input_tokens, answer.usage["llm_calls"], answer.cost), (20, 2, 0))
        self.assertEqual((answer.stop_reason, answer.warnings), ("final", []))
        self.assertEqual(len(answer.trace["iterations"]), 2)
        self.assertIn("2 turns", answer._repr_html_())

    def test_over_http(self):
        """A provider by its name; the options are those of rlmd exec."""
        server = ModelServer(provider="openai")
        server.script(None, Reply(text="FINAL(well)", usage=(1000, 100)))
        self.addCleanup(server.stop)
        server.start()
        os.environ.update(server.environment())
        os.environ["OPENAI_API_KEY"] = server.key
        r = rlmd.RLM(provider="openai", model="gpt-5-mini", max_cost=0.5, temperature=0.5)
        answer = r.completion("?")
        self.assertEqual(answer, "well")
        self.assertAlmostEqual(answer.cost, 1000 * 0.25e-6 + 100 * 2e-6)
        self.assertEqual(server.requests[0].model, "gpt-5-mini")

    def test_contexts(self):
        r = rlmd.RLM(answers(code("print(1)"), "FINAL_VAR(context)"))
        (self.dir / "a.txt").write_text("of a file")
        long = "é\n" * 2_000_000
        for given, told in (("text", "text"), ("", ""), (b"\xffbytes", "\ufffdbytes"), (pathlib.Path("a.txt"), "of a file"),
                            (io.StringIO("open"), "open"), (io.BytesIO(b"open"), "open"), (long, long),
                            ([1, {"é": None}], '[\n 1,\n {\n  "é": null\n }\n]')):
            with self.subTest(str(given)[:20]):
                self.assertEqual(r.completion("?", given).rstrip("\n"), told.rstrip("\n"))
        r = rlmd.RLM(answers(code("x = a + b.strip()"), "FINAL_VAR(x)"))
        self.assertEqual(r.completion("?", contexts={"a": "one ", "b": pathlib.Path("a.txt")}), "one of a file")
        with self.assertRaisesRegex(TypeError, "a context is a str"):
            r.completion("?", object())
        with self.assertRaises(rlmd.InputError):
            r.completion("?", pathlib.Path("/nowhere"))
        with self.assertRaises(TypeError):
            r.completion(7)

    def test_git(self):
        for command in (["init", "-q", "."], ["add", "-A"],
                        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one"]):
            (self.dir / "a.txt").write_text("committed")
            subprocess.run(["git", *command], check=True)
        (self.dir / "a.txt").write_text("changed")
        r = rlmd.RLM(answers(code("print(1)"), "FINAL_VAR(context)"))
        self.assertEqual(r.completion("?", rlmd.Git("HEAD:a.txt")).split(), ["=====", "a.txt", "=====", "committed"])

    def test_tools(self):
        r = rlmd.RLM(answers(code("x = customer(7)['name'] + str(double(n=2))",
                                  "try: customer(number=0)",
                                  "except RuntimeError as error: x += str(error)"), "FINAL_VAR(x)"))

        @r.tool
        def customer(number: int) -> dict:
            """The customer of that number."""
            if not number:
                raise KeyError("none")
            return {"name": "Ada"}

        async def double(n: float = 1) -> float:
            """Twice as much."""
            await asyncio.sleep(0)
            return 2 * n

        self.assertEqual(r.completion("?", tools=[double]), "Ada4customer(): KeyError: 'none'")
        with self.assertRaisesRegex(TypeError, "docstring"):
            r.tool(lambda: None)
        with self.assertRaisesRegex(TypeError, "name each argument"):
            rlmd.RLM(tools=[print])

    def test_schemas(self):
        @dataclasses.dataclass
        class Host:
            name: str
            failures: typing.List[int] = dataclasses.field(default_factory=list)

        r = rlmd.RLM(answers("FINAL(seven)", 'FINAL({"name": "web", "failures": [7]})'))
        self.assertEqual(r.completion("?", schema=Host).parsed, Host("web", [7]))
        schema = {"type": "object", "required": ["name"]}
        self.assertEqual(r.completion("?", schema=schema).parsed["name"], "web")
        self.assertEqual(rlmd.RLM(answers("FINAL([1, 2])")).completion(
            "?", schema=typing.List[int]).parsed, [1, 2])
        with self.assertRaises(rlmd.SchemaError) as failed:
            rlmd.RLM(answers("FINAL(7)")).completion("?", schema=schema, max_iterations=2)
        self.assertGreater(failed.exception.result["usage"]["tokens"], 0)
        with self.assertRaises(TypeError):
            r.completion("?", schema=object)

    def test_a_check(self):
        r = rlmd.RLM(answers(code("print(1)"), "FINAL(one)", "FINAL(two)"))
        seen = []

        def check(answer):
            seen.append(answer)
            return None if answer == "two" else "Say two."

        self.assertEqual(r.completion("?", check=check), "two")
        self.assertEqual(seen, ["one", "two"])


class Failures(PythonTest):
    def test_kinds(self):
        def broken(messages, asked):
            raise ValueError("out")

        for provider, options, kind in (
                (broken, {}, rlmd.InternalError), (answers("x"), {"max_cots": 1}, rlmd.UsageError),
                ("nobody", {}, rlmd.UsageError), ("openai", {}, rlmd.AuthError),
                ("ollama", {"base_url": "http://127.0.0.1:9"}, rlmd.NetworkError)):
            with self.subTest(kind=kind.kind):
                with self.assertRaises(kind) as failed:
                    rlmd.RLM(provider, **options).completion("?")
                self.assertIsInstance(failed.exception, rlmd.Error)
                self.assertEqual(failed.exception.kind, kind.kind)

    def test_every_kind_has_its_class(self):
        header = (ROOT / "include/rlmd/rlmd.h").read_text()
        kinds = {name.lower() for name in __import__("re").findall(r"RLMD_ERROR_([A-Z_]+)[,;]", header)}
        self.assertEqual(kinds - {"none"}, {each for each in rlmd._errors.KINDS} - {"server"})

    def test_no_program(self):
        os.environ["RLMD_BIN"] = "/nowhere/rlmd"
        with self.assertRaisesRegex(rlmd.ServerError, "cannot be started.*RLMD_BIN"):
            rlmd.RLM().completion("?")
        del os.environ["RLMD_BIN"]
        os.environ["PATH"] = "/nowhere"
        with self.assertRaisesRegex(rlmd.ServerError, "no rlmd program was found.*Windows"):
            rlmd.RLM().completion("?")

    def test_the_program_of_the_runtime(self):
        """It comes before that of the PATH, and after what was named."""
        runtime = types.ModuleType("rlmd_runtime")
        runtime.PROGRAM = os.environ.pop("RLMD_BIN")
        with mock.patch.dict(sys.modules, {"rlmd_runtime": runtime}):
            self.assertEqual(rlmd._server.command(), [runtime.PROGRAM])
            self.assertEqual(rlmd._server.command("/bin/other"), ["/bin/other"])
            self.assertEqual(rlmd.RLM(answers("FINAL(yes)")).completion("?"), "yes")

    def test_a_program_that_says_nonsense(self):
        fake = self.write("fake", "#!/bin/sh\necho why >&2; echo so it goes\n")
        os.chmod(fake, 0o755)
        with self.assertRaisesRegex(rlmd.ServerError, "no message.*why"):
            rlmd.RLM(binary=fake).completion("?")

    def test_a_server_that_dies(self):
        """The call in flight raises; the next one starts another."""
        here = threading.Event()

        def kills(messages, asked):
            if not here.is_set():
                here.set()
                _server.shared()._link.kill()
            return "FINAL(well)"

        r = rlmd.RLM(kills)
        with self.assertRaisesRegex(rlmd.ServerError, "rlmd ended"):
            r.completion("?")
        self.assertEqual(r.completion("?"), "well")


class Together(PythonTest):
    def test_map(self):
        def provider(messages, asked):
            last = messages[-1]["content"]
            if "TASK: bad" in last:
                return {}
            return "FINAL_VAR(context)"

        r = rlmd.RLM(provider)
        self.assertEqual(r.map(["a", "b"] * 50, "ctx"), ["ctx"] * 100)
        with self.assertRaises(rlmd.Error):
            r.map(["a", "bad"], "ctx")
        got = r.map(["a", "bad", "b"], "ctx", return_exceptions=True)
        self.assertEqual((got[0], got[2]), ("ctx", "ctx"))
        self.assertIsInstance(got[1], rlmd.Error)

    def test_threads(self):
        r = rlmd.RLM(answers("FINAL_VAR(context)"))
        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            texts = [f"text {i}" for i in range(200)]
            self.assertEqual(list(pool.map(lambda text: r.completion("?", text), texts)), texts)

    def test_requests_before_the_caller_knows_of_its_job(self):
        """The answer to job.start may be read before the caller has looked at it."""
        r = rlmd.RLM(answers("FINAL(well)"))
        add = concurrent.futures.Future.add_done_callback

        def late(future, function):
            future.result()
            threading.Event().wait(0.02)
            add(future, function)

        with mock.patch.object(concurrent.futures.Future, "add_done_callback", late):
            server = _server.shared()
            job = rlmd._rlm.Job(server, {"task": "?", "options": {}}, rlmd._rlm.Toolbox(None),
                                answers("FINAL(well)"), None, None)
        self.assertEqual(job.result.result()["output"], "well")
        self.assertEqual(r.completion("?"), "well")

    def test_asyncio(self):
        r = rlmd.RLM(answers("FINAL_VAR(context)"))

        async def ask():
            return await asyncio.gather(*(r.acompletion("?", f"text {i}") for i in range(50)))

        self.assertEqual(asyncio.run(ask()), [f"text {i}" for i in range(50)])

    def test_a_task_that_is_cancelled(self):
        asked, over = threading.Event(), threading.Event()

        def waits(messages, request):
            asked.set()
            over.wait(60)
            return "FINAL(x)"

        async def ask():
            task = asyncio.ensure_future(rlmd.RLM(waits).acompletion("?"))
            await asyncio.get_running_loop().run_in_executor(None, asked.wait)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        asyncio.run(ask())
        over.set()

    def test_streams(self):
        r = rlmd.RLM(answers(code("print(llm_query('?'))"), "FINAL(well)"))

        def check(events):
            kinds = [event.type for event in events]
            self.assertEqual(kinds[-1], "end")
            self.assertLessEqual({"delta", "code", "output", "subcall"}, set(kinds))
            self.assertEqual(str(events[-1]), "well")
            self.assertIn("FINAL(well)", "".join(str(event) for event in events if event.type == "delta"))

        check(list(r.stream("?", "text")))

        async def ask():
            return [event async for event in r.stream("?", "text")]

        check(asyncio.run(ask()))

    def test_plans_and_reviews(self):
        r = rlmd.RLM(lambda messages, asked: messages[-1]["content"].upper())
        result = r.plan({"operations": [{"id": "one", "input": "a"}]})
        self.assertEqual(result["results"]["one"]["response"], "A")
        with self.assertRaises(rlmd.InputError):
            r.plan({})
        (self.dir / "a.c").write_text("int f(char *a)\n{\n\tfree(a);\n\tfree(a);\n}\n")
        finding = ('FINAL({"findings": [{"rule": "memory-safety", "severity": "error", "confidence": 0.9, '
                   '"message": "twice", "path": "a.c", "quote": "free(a);", "line": 1, "patch": null}]})')
        found = rlmd.RLM(answers(finding)).review(self.dir, quick=True)["review"]["findings"]
        self.assertEqual([each["line"] for each in found], [3])


class Sessions(PythonTest):
    def test_a_session(self):
        def add(a: int, b: int = 1) -> int:
            """The sum."""
            return a + b

        with rlmd.Session("a b c", tools=[add]) as session:
            done = session.run("x = context.split()\nprint(add(len(x)))")
            self.assertEqual((done.stdout, done.error, done.interrupted), ("4\n", None, False))
            self.assertEqual(session["x"], ["a", "b", "c"])
            session["y"] = {"é": [1, None]}
            self.assertEqual(session.run("y['é'][0]").stdout, "1\n")
            self.assertIn("ZeroDivisionError", session.run("1/0").error)
            self.assertTrue(session.run("while True: pass", timeout=0.05).interrupted)
            session.run("z = {1}")
            self.assertEqual(session["z"], "{1}")
            with self.assertRaises(KeyError):
                session["nothing"]
            with self.assertRaises(TypeError):
                session["y"] = object()
            self.assertIn("Error", session.run("open('/etc/passwd')").error)
            with self.assertRaises(rlmd.WorkerError):
                session.run("import os; os._exit(1)")
        session.close()

    def test_models(self):
        asked = []

        def model(messages, request):
            asked.append(request["kind"])
            return {"text": "blue", "usage": {"inputTokens": 9, "outputTokens": 1, "cost": 0.5}}

        with rlmd.Session("a b c", provider=model, max_calls=2, max_cost=3) as session:
            self.assertEqual(session.run("print(llm_query('?'))").stdout, "blue\n")
            told = session.status()
            self.assertEqual((told["cost"], told["left"]["cost"], told["left"]["calls"]), (0.5, 2.5, 1))
            self.assertIn("udget", session.run("llm_query('?'); llm_query('?')").error)
        self.assertEqual(asked, ["subcall", "subcall"])
        with rlmd.Session() as session:
            self.assertIn("no model", session.run("llm_query('?')").error)
            self.assertEqual(session.status(), {"busy": False, "gone": False})
        with self.assertRaises(rlmd.UsageError):
            rlmd.Session(models=True, provider="nobody")

    def test_many(self):
        sessions = [rlmd.Session() for _ in range(10)]
        with concurrent.futures.ThreadPoolExecutor(10) as pool:
            outs = list(pool.map(lambda i: sessions[i].run(f"print({i})").stdout, range(10)))
        self.assertEqual(outs, [f"{i}\n" for i in range(10)])
        for session in sessions:
            session.close()


PROGRAM = """
import sys, threading, rlmd
sys.path[:0] = {path!r}
def waits(messages, asked):
    print("asked", flush=True)
    threading.Event().wait(120)
try:
    rlmd.RLM(waits).completion("?")
except KeyboardInterrupt:
    print("interrupted", flush=True)
    print(rlmd.RLM(lambda messages, asked: "FINAL(well)").completion("?"), flush=True)
    import os
    os._exit(0)
"""


def in_child(queue):
    try:
        queue.put(str(rlmd.RLM(answers("FINAL(of the child)")).completion("?")))
        _server.close_all()
    except BaseException as error:
        queue.put(repr(error))


class Processes(PythonTest):
    def test_a_fork(self):
        """The child starts a server of its own; the parent's goes on."""
        r = rlmd.RLM(answers("FINAL(well)"))
        self.assertEqual(r.completion("?"), "well")
        session = rlmd.Session()
        context = multiprocessing.get_context("fork")
        queue = context.Queue()
        child = context.Process(target=in_child, args=(queue,))
        child.start()
        self.assertEqual(queue.get(timeout=60), "of the child")
        child.join()
        self.assertEqual(r.completion("?"), "well")
        self.assertEqual(session.run("print(1)").stdout, "1\n")

    def test_ctrl_c(self):
        """It raises in the call, and the server lives."""
        program = PROGRAM.format(path=[])
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True,
                                   env={**os.environ, "PYTHONPATH": str(ROOT / "python/src")},
                                   start_new_session=True)
        self.assertEqual(process.stdout.readline(), "asked\n")
        os.killpg(process.pid, signal.SIGINT)
        self.assertEqual(process.stdout.readline(), "interrupted\n")
        self.assertEqual(process.stdout.read(), "well\n")
        self.assertEqual(process.wait(), 0)
        process.stdout.close()

    def test_the_end_of_the_process_ends_the_server(self):
        program = ("import rlmd; from rlmd import _server\n"
                   "rlmd.RLM(lambda m, a: 'FINAL(x)').completion('?')\n"
                   "print(_server.shared()._link._process.pid)")
        done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True,
                              check=True, env={**os.environ, "PYTHONPATH": str(ROOT / "python/src")})
        self.assertFalse(os.path.exists(f"/proc/{int(done.stdout)}/fd"))


class AtASocket(PythonTest):
    """A server that others have, too."""

    def setUp(self):
        super().setUp()
        self.begin()

    def begin(self):
        self.path = self.dir / "socket"
        self.server = self.start("serve", "--listen", f"unix:{self.path}")
        self.assertIn(b"listening", self.server.stderr.readline())
        os.environ["RLMD_BIN"] = f"unix:{self.path}"

    def test_answers_and_sessions(self):
        asker = rlmd.RLM(answers(code("FINAL(context.upper())")))
        self.assertEqual(asker.completion("Shout.", "é"), "É")
        self.assertEqual(asker.map(["Shout."] * 40, context="a"), ["A"] * 40)
        with rlmd.Session("text") as session:
            self.assertEqual(session.run("print(context)").stdout, "text\n")
        _server.close_all()
        self.assertEqual(asker.completion("Shout.", "b"), "B")
        self.assertIsNone(self.server.poll())

    def test_files_are_the_servers_to_give(self):
        (self.dir / "text").write_text("of ours")
        with self.assertRaisesRegex(rlmd.InputError, "--root"):
            rlmd.RLM(answers("x")).completion("?", pathlib.Path("text"))

    def test_a_server_that_is_gone(self):
        asker = rlmd.RLM(lambda messages, request: os.kill(self.server.pid, signal.SIGKILL))
        with self.assertRaisesRegex(rlmd.ServerError, "has ended the connection"):
            asker.completion("?")
        self.server.wait()
        with self.assertRaisesRegex(rlmd.ServerError, "no server answers.*rlmd serve --listen"):
            asker.completion("?")
        self.begin()
        self.assertEqual(rlmd.RLM(answers(code("FINAL(6 * 7)"))).completion("?"), "42")


if __name__ == "__main__":
    unittest.main()

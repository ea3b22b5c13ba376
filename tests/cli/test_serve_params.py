"""Options, contexts and tools of jobs and sessions."""

import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import client  # noqa: E402


class Options(client.ServeTest):
    def test_they_go_over_those_of_the_server(self):
        """For one job: the next one has the server's again. Numbers, texts, switches, lists."""
        peer = self.open("--max-iterations", "1", "--stop", "A", "--temperature", "1",
                         model_request=client.model("no code", "FINAL(second)"))
        asked = lambda: peer.asked[-1]["params"]  # noqa: E731
        start = {"task": "?", "model": "client"}
        self.assertTrue(self.answered(peer, **start)["success"])
        self.assertEqual((asked()["kind"], asked()["temperature"], asked()["stop"]),
                         ("forced", 1, ["A"]))
        result = self.answered(peer, **start, options={
            "max-iterations": 5, "temperature": "0.5", "stop": ["B", "C"], "model": "mine",
            "max-output-tokens": None, "strict": True})
        self.assertEqual(result["output"], "second")
        self.assertEqual((asked()["kind"], asked()["temperature"], asked()["stop"], asked()["model"]),
                         ("turn", 0.5, ["B", "C"], "mine"))
        self.answered(peer, **start)
        self.assertEqual((asked()["kind"], asked()["stop"]), ("forced", ["A"]))
        self.assertEqual(self.close(peer), (0, ""))

    def test_refused(self):
        peer = self.open()
        for options, word in (({"max-cots": 1}, "did you mean 'max-cost'"), ([], "an object"),
                              ({"max-cost": -1}, "max-cost"), ({"max-cost": {}}, "a number"),
                              ({"max-depth": 1.5}, "max-depth"), ({"model": "a\0b"}, "a text"),
                              ({"output": "x"}, "output"), ({"json": True}, "json"),
                              ({"max-workers": 2}, "max-workers"), ({"stop": [[]]}, "stop")):
            with self.subTest(options=options):
                refused = self.refused(peer, "job.start", task="?", options=options)
                self.assertEqual((refused.code, refused.kind), (-32602, "usage"))
                self.assertIn(word, str(refused))
        self.assertEqual(self.close(peer), (0, ""))


class Contexts(client.ServeTest):
    def print(self, peer, code, **params):
        session = peer.call("session.open", **params)["session"]
        return peer.call("session.execute", session=session, code=code)["stdout"]

    def test_each_kind(self):
        self.write("notes.txt", "of a file\n")
        self.write("tree/a.c", "int a;\n")
        self.write("tree/b.py", "b = 1\n")
        for command in (["init", "-q", "."], ["add", "-A"],
                        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one"]):
            subprocess.run(["git", *command], cwd=self.dir, check=True, env=self.environment())
        self.write("notes.txt", "changed\n")
        peer = self.open()
        self.assertEqual(self.print(peer, "print(context)", contexts=[{"text": "é🙂"}]), "é🙂\n")
        self.assertEqual(self.print(peer, "print(x)", contexts=[{"text": "é", "name": "x"}]), "é\n")
        self.assertEqual(self.print(peer, "print(context)", contexts=[{"path": "notes.txt"}]),
                         "changed\n\n")
        self.assertEqual(self.print(peer, "print(a, b, len(c))", contexts=[
            {"text": "é", "name": "a"}, {"text": "", "name": "b"}, {"path": "notes.txt", "name": "c"}]), "é  8\n")
        self.assertEqual(self.print(peer, "print(list(context.files), old)",
                                    contexts=[{"path": "tree"}, {"git": "HEAD:notes.txt", "name": "old"}],
                                    options={"include": "*.c"}).split(" ")[0], "['a.c']")
        self.assertEqual(self.close(peer), (0, ""))

    def test_refused(self):
        peer = self.open()
        for contexts, word in (({}, "an array"), ([7], "an object"), ([{}], "one of text"),
                               ([{"text": "a", "path": "b"}], "one of text"), ([{"path": 7}], "one of"),
                               ([{"path": "-"}], "standard input"), ([{"blob": "b1"}], "no blob"),
                               ([{"text": "a"}, {"text": "b"}], "have names"),
                               ([{"text": "a", "name": "no name"}], "no name"),
                               ([{"path": "a"}] * 49, "at most")):
            with self.subTest(contexts=contexts):
                self.assertIn(word, str(self.refused(peer, "session.open", contexts=contexts)))
        refused = self.refused(peer, "session.open", contexts=[{"path": "/nowhere"}])
        self.assertEqual((refused.code, refused.kind), (-32000, "input"))
        self.write("large.txt", "x" * 3000)
        job = peer.call("job.start", task="?", model="client", contexts=[{"path": "large.txt"}],
                        options={"max-context": "1K"})["job"]
        result = peer.result(job)
        self.assertEqual((result["success"], result["error"]["kind"]), (False, "input"))
        self.assertEqual(set(result["usage"].values()), {0, 0.0, False, True})
        self.assertEqual(self.close(peer), (0, ""))


class Tools(client.ServeTest):
    TOOLS = [{"name": "look_up", "doc": "The customer of that number.",
              "schema": {"properties": {"number": {"type": "integer"}}, "required": ["number"]}}]

    def look_up(self, asked):
        self.assertEqual(asked["name"], "look_up")
        number = asked["arguments"]["number"]
        if number == 0:
            raise ValueError("there is no customer 0")
        return {"name": "Ada", "numbers": [number, None, 0.5], "é": "🙂"}

    def test_of_a_job_and_its_sub_runs(self):
        peer = self.open(tool_call=self.look_up, model_request=lambda asked: client.model(
            client.code("sub = rlm_query('sub')", "mine = look_up(7)['é']",
                        "try: look_up(0)", "except RuntimeError as e: mine += str(e)",
                        "x = mine + sub"), "FINAL_VAR(x)")(asked) if not asked["depth"] else client.model(
            client.code("x = str(look_up(number=3)['numbers'])"), "FINAL_VAR(x)")(asked))
        result = self.answered(peer, task="?", model="client", tools=self.TOOLS)
        self.assertEqual(result["output"], "🙂look_up(): there is no customer 0[3, None, 0.5]")
        told = [one["params"]["messages"][0]["content"] for one in peer.asked
                if one["method"] == "model.request"]
        for system in told:
            self.assertIn("look_up(number: integer): The customer of that number.", system)
        self.assertEqual(self.close(peer), (0, ""))

    def test_of_a_session(self):
        peer = self.open(tool_call=self.look_up)
        session = peer.call("session.open", tools=self.TOOLS)["session"]
        done = peer.call("session.execute", session=session, code="print(look_up(5))")
        self.assertEqual(done["stdout"], "{'name': 'Ada', 'numbers': [5, None, 0.5], 'é': '🙂'}\n")
        self.assertEqual(self.close(peer), (0, ""))

    def test_one_that_never_answers(self):
        """Its time is over: the code gets an error, the client is told that nobody waits."""
        peer = self.open()
        tools = [{**self.TOOLS[0], "timeoutMs": 20}]
        session = peer.call("session.open", tools=tools)["session"]
        done = peer.call("session.execute", session=session, code="look_up(5)")
        self.assertIn("did not answer within", done["error"]["message"])
        call = peer.asked[0]["id"]
        peer.wait(lambda: peer.told("$/cancelRequest", id=call))
        peer.send({"id": call, "result": 1})  # too late: passed over
        self.assertEqual(peer.call("session.execute", session=session, code="print(1)")["stdout"], "1\n")
        self.assertEqual(self.close(peer), (0, ""))

    def test_refused(self):
        peer = self.open()
        for tools, word in (({}, "an array"), ([7], "an object"), ([{"doc": "x"}], "a name"),
                            ([{"name": "no name"}], "no name"), ([{"name": "f", "doc": "x", "schema": []}], "schema"),
                            ([{"name": "f", "doc": "x"}] * 2, "f"), ([{"name": "llm_query", "doc": "x"}], "llm_query"),
                            ([{"name": "f"}], "needs words")):
            with self.subTest(tools=tools):
                self.assertIn(word, str(self.refused(peer, "session.open", tools=tools)))
        self.assertEqual(self.close(peer), (0, ""))


if __name__ == "__main__":
    unittest.main()

"""Jobs of rlmd serve: tasks, plans, reviews; their events, checks and ends."""

import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import client  # noqa: E402
import trace_schema  # noqa: E402

ANSWER = client.model(client.code("x = len(context)"), "FINAL_VAR(x)")


class Jobs(client.ServeTest):
    START = {"task": "How long?", "model": "client", "contexts": [{"text": "é🙂"}]}

    def test_the_result_is_that_of_exec(self):
        peer = self.open(model_request=ANSWER)
        result = self.answered(peer, **self.START)
        entries = [{"match": {"kind": "turn", "turn": 0}, "response": {"text": client.code("x = len(context)")}},
                   {"match": {"kind": "turn", "turn": 1}, "response": {"text": "FINAL_VAR(x)"}}]
        same = self.replay(entries, "--json", context="é🙂").result
        self.assertEqual(set(result), set(same))
        self.assertEqual((result["output"], result["success"]), ("2", True))
        self.assertEqual(result["usage"]["iterations"], same["usage"]["iterations"])
        words = "".join(note["text"] for note in peer.told("job.delta"))
        self.assertEqual(words, client.code("x = len(context)") + "FINAL_VAR(x)")
        self.assertEqual(peer.told("job.event"), [])
        self.assertEqual(self.close(peer), (0, ""))

    def test_events(self):
        peer = self.open(model_request=ANSWER)
        job = peer.call("job.start", **self.START, events=["*"])["job"]
        peer.result(job)
        events = [note["event"] for note in peer.told("job.event", job=job)]
        trace_schema.check(events)
        self.assertEqual([event["seq"] for event in events], list(range(len(events))))
        self.assertIn("result", {event["event"] for event in events})
        job = peer.call("job.start", **self.START, events=["iteration"])["job"]
        peer.result(job)
        self.assertEqual({note["event"]["event"] for note in peer.told("job.event", job=job)}, {"iteration"})
        self.assertEqual(self.close(peer), (0, ""))

    def test_a_schema(self):
        peer = self.open(model_request=client.model("FINAL(seven)", 'FINAL({"n": 7})'))
        result = self.answered(peer, **self.START, schema={"type": "object", "required": ["n"]})
        self.assertEqual(result["output"], '{"n": 7}')
        self.assertIn("schema", str(self.refused(peer, "job.start", **self.START, schema="x")))
        result = self.answered(peer, **self.START, schema={"type": "nothing"})
        self.assertEqual(result["error"]["kind"], "usage")
        self.assertEqual(self.close(peer), (0, ""))

    def test_answers_are_checked(self):
        def check(asked):
            if asked["answer"] == "one":
                return {"accept": False, "wrong": "Say two."}
            if asked["answer"] == "two":
                return {"accept": True}
            raise ValueError("the check is out")

        peer = self.open(answer_check=check, model_request=client.model(
            client.code("print(1)"), "FINAL(one)", "FINAL(two)"))
        result = self.answered(peer, **self.START, check=True)
        self.assertEqual((result["output"], result["success"]), ("two", True))
        self.assertIn("Say two.", str(peer.asked))
        self.assertEqual(self.close(peer), (0, ""))
        for answer in (check, lambda asked: {"accept": "yes"}, lambda asked: 7):
            peer = self.open(answer_check=answer, model_request=client.model(
                client.code("print(1)"), "FINAL(three)"))
            result = self.answered(peer, **self.START, check=True)
            self.assertEqual((result["success"], result["error"]["kind"]), (False, "internal"))
            self.assertEqual(self.close(peer), (0, ""))

    def test_interrupt_cancel_status(self):
        peer = self.open()
        job = peer.call("job.start", **self.START, options={"max-cost": 2})["job"]
        peer.wait(lambda: peer.asked)
        status = peer.call("job.status", job=job)
        self.assertEqual(set(status), {"turn", "depth", "callsInFlight", "tokens", "cost", "elapsedMs", "maxCost",
                                       "operations", "operationsEnded", "interrupted", "ended"})
        self.assertEqual((status["turn"], status["callsInFlight"], status["ended"], status["maxCost"]),
                         (1, 1, False, 2))
        peer.call("job.interrupt", job=job)
        peer.wait(lambda: len([one for one in peer.asked if one["method"] == "model.request"]) > 1)
        peer.send({"id": peer.asked[-1]["id"], "result": {"text": "FINAL(so far)"}})
        result = peer.result(job)
        self.assertEqual((result["output"], result["stopReason"]), ("so far", "interrupted"))
        self.assertTrue(peer.call("job.status", job=job)["ended"])
        for method in ("interrupt", "cancel"):
            self.assertEqual(peer.call(f"job.{method}", job=job), {})
            self.assertEqual(self.refused(peer, f"job.{method}", job="j99").code, -32602)
        job = peer.call("job.start", **self.START)["job"]
        peer.call("job.cancel", job=job)
        self.assertEqual(peer.result(job)["error"]["kind"], "cancelled")
        self.assertEqual(self.close(peer), (0, ""))

    def test_memory_that_comes_back(self):
        """A job that waits for memory begins once it is there, whatever the others do."""
        limit, left = 1200 << 20, 200 << 20  # a server keeps 256 MiB free
        join = self.cgroup_of_memory(limit)
        hold = subprocess.Popen(
            [sys.executable, "-c", "import sys; held = b'x' * int(sys.argv[1]); print(1, flush=True); input()",
             str(limit - left)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=join)
        self.addCleanup(hold.communicate)
        self.assertEqual(hold.stdout.readline(), b"1\n")
        peer = self.open(preexec_fn=join)
        first, second = (peer.call("job.start", **self.START)["job"] for _ in range(2))
        peer.wait(lambda: peer.asked)
        self.assertEqual(peer.call("job.status", job=second)["turn"], 0)
        hold.communicate(b"\n")
        peer.wait(lambda: len(peer.asked) == 2)
        for asked in peer.asked:
            peer.send({"id": asked["id"], "result": {"text": "FINAL(2)"}})
        for job in first, second:
            self.assertEqual(peer.result(job)["output"], "2")
        self.assertEqual(self.close(peer), (0, ""))

    def test_what_runs_and_what_is_left(self):
        peer = self.open()
        job = peer.call("job.start", **self.START, options={"max-cost": 2, "max-calls": 9})["job"]
        peer.wait(lambda: peer.asked)
        told = peer.call("job.activity", job=job)
        self.assertEqual([(each["kind"], each["turn"], each["waits"]) for each in told["running"]],
                         [("run", 1, False), ("turn", 1, False)])
        self.assertEqual({each["run"] for each in told["running"]},
                         {peer.asked[0]["params"]["run"]})
        self.assertEqual((told["left"]["calls"], told["left"]["subruns"]), (8, 1000))
        self.assertTrue(0 < told["left"]["timeMs"] <= 300000)
        peer.call("job.cancel", job=job)
        peer.result(job)
        self.assertEqual(peer.call("job.activity", job=job), {"left": None, "running": []})
        self.assertEqual(self.close(peer), (0, ""))

    def test_refused(self):
        peer = self.open()
        for params, word in (({}, "one of task"), ({"task": "?", "plan": {}}, "one of task"),
                             ({"task": 7}, "a text"), ({"task": ""}, "no task"), ({"task": " "}, "no word"),
                             ({"plan": []}, "an object"), ({"review": "."}, "an object"),
                             ({"task": "?", "model": "gpt"}, "client"), ({"task": "?", "events": "*"}, "an array"),
                             ({"task": "?", "events": [7]}, "names"), ({"task": "?", "options": 7}, "an object")):
            with self.subTest(params=params):
                refused = self.refused(peer, "job.start", **params)
                self.assertEqual(refused.code, -32602)
                self.assertIn(word, str(refused))
        refused = self.refused(peer, "job.start", plan={})
        self.assertEqual((refused.code, refused.kind), (-32000, "input"))
        self.assertEqual(self.close(peer), (0, ""))


class Plans(client.ServeTest):
    def test_a_plan(self):
        peer = self.open(model_request=lambda asked: {"text": asked["messages"][-1]["content"].upper()})
        result = self.answered(peer, model="client", plan={"operations": [
            {"id": "one", "input": "a"}, {"id": "two", "input": "b"}]})
        self.assertEqual(result["results"]["one"]["response"], "A")
        self.assertEqual(result["results"]["two"]["response"], "B")
        self.assertEqual({one["params"]["kind"] for one in peer.asked}, {"operation"})
        self.assertEqual(self.close(peer), (0, ""))


class Reviews(client.ServeTest):
    FINDING = ('FINAL({"findings": [{"rule": "memory-safety", "severity": "error", "confidence": 0.9, '
               '"message": "it is freed twice", "path": "a.c", "quote": "free(a);", "line": 1, "patch": null}]})')

    def git(self, *arguments):
        subprocess.run(["git", *arguments], cwd=self.dir, check=True, env=self.environment())

    def test_a_review(self):
        self.write("tree/a.c", "int f(char *a)\n{\n\tfree(a);\n\tfree(a);\n}\n")
        peer = self.open(model_request=client.model(self.FINDING))
        result = self.answered(peer, model="client", review={"path": "tree"}, options={"quick": True})
        self.assertTrue(result["success"])
        (finding,) = result["review"]["findings"]
        self.assertEqual((finding["path"], finding["line"]), ("a.c", 3))
        self.assertEqual(self.close(peer), (0, ""))

    def test_options_that_exclude_each_other(self):
        self.write("tree/a.c", "int a;\n")
        self.write("rules/mine.json", "{}")
        peer = self.open()
        for words, options, review in (
                ("--deep and --quick", {"deep": True, "quick": True}, {}),
                ("--rules and --add-rules", {"add-rules": "rules"}, {"rules": "rules"})):
            refused = self.refused(peer, "job.start", model="client", options=options,
                                   review={"path": "tree", **review})
            self.assertEqual(refused.code, -32602)
            self.assertIn(words, str(refused))
        self.assertEqual(self.close(peer), (0, ""))

    def test_findings_outlive_the_root(self):
        """The files were read one by one; the review across them gives no answer."""
        self.write("tree/a.c", "int f(char *a)\n{\n\tfree(a);\n}\n")

        def model(asked):
            first = asked["messages"][-1]["content"].startswith("You review one file")
            return {"text": self.FINDING[6:-1] if first else "I have looked at it."}

        peer = self.open(model_request=model)
        result = self.answered(peer, model="client", review={"path": "tree"},
                               options={"max-iterations": 2})
        self.assertEqual([each["line"] for each in result["review"]["findings"]], [3])
        self.assertIn("gave no answer", " ".join(result["warnings"]))
        self.assertEqual(self.close(peer), (0, ""))

    def test_of_changes_and_of_none(self):
        self.write("a.c", "int f(char *a)\n{\n}\n")
        self.git("init", "-q", ".")
        self.git("add", "a.c")
        self.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one")
        peer = self.open(model_request=client.model(self.FINDING))
        review = {"path": ".", "diff": "HEAD"}
        result = self.answered(peer, model="client", review=review)
        self.assertEqual((result["success"], result["review"]["findings"]), (True, []))
        self.assertEqual(peer.asked, [])
        self.write("a.c", "int f(char *a)\n{\n\tfree(a);\n}\n")
        result = self.answered(peer, model="client", review=review, options={"quick": True})
        self.assertEqual(len(result["review"]["findings"]), 1)
        self.assertEqual(self.close(peer), (0, ""))


if __name__ == "__main__":
    unittest.main()

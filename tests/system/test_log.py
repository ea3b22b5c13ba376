"""The log: each thing that happens to workers, the template and calls, provoked by the real thing.

As JSON lines all of standard error is read, with the ids that the trace has too; as text and for
journald what a person and a collector see. Whatever a stranger wrote stays within its line.
"""

import json
import os
import signal
import threading
import unittest

import kernel
import leaks
import patience
from harness import GuardedTest, block, query, turn
from model import Reply
from providers import ProviderTest, code, final
from test_left_over import cgroups_of

HANGS = "import time; time.sleep(3600)"


class Lines:
    """Standard error as it comes, a JSON object a line, each looked at once it is there."""

    def __init__(self, process):
        self.process, self.records, self.over = process, [], False
        self.arrived = threading.Condition()
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        for line in self.process.stderr:
            with self.arrived:
                self.records.append(json.loads(line))
                self.arrived.notify_all()
        with self.arrived:
            self.over = True
            self.arrived.notify_all()

    def find(self, event):
        return [record for record in self.records if record["event"] == event]

    def wait(self, event):
        """The first of that name."""
        with self.arrived:
            self.arrived.wait_for(lambda: self.over or self.find(event), patience.hung())
            return self.find(event)[0]

    def end(self):
        """All records, when the program has ended; its standard output has to be short."""
        out = self.process.stdout.read()
        status = self.process.wait(patience.hung())
        self.thread.join()
        return status, out


def records(outcome):
    return [json.loads(line) for line in outcome.err.splitlines()]


def one(test, found, event):
    chosen = [record for record in found if record["event"] == event]
    test.assertEqual(len(chosen), 1, (event, found))
    return chosen[0]


class Processes(ProviderTest):
    """A worker and the template, killed by their pids while a block waits for its call."""

    def setUp(self):
        super().setUp()
        self.go_on = threading.Event()
        self.addCleanup(self.go_on.set)

    def begin(self, then, *replies):
        """A run whose first block calls, which is answered after go_on; gives its lines."""
        server = self.serve("openai", code(f"llm_query('wait')\n{then}"))
        server.script("^wait$", Reply(text="x", until=self.go_on.is_set))
        server.replies(*replies, final("ok"), final("ok"))
        process = self.start("exec", "-p", "openai", "-vv", "--log-format", "json", "--json",
                             "task", env=self.environment(**server.environment()))
        return Lines(process)

    def test_a_worker_dies(self):
        lines = self.begin(HANGS, code("print(1)"))
        started = lines.wait("worker_started")
        lines.wait("response")
        os.kill(started["pid"], signal.SIGKILL)
        died = lines.wait("worker_died")
        self.go_on.set()
        status, out = lines.end()
        result = json.loads(out)
        self.assertEqual((status, result["output"]), (0, "ok"), lines.records)
        self.assertEqual((died["level"], died["subject"]), ("warning", "worker"))
        self.assertEqual((died["pid"], died["run"]), (started["pid"], result["trace"]["id"]))
        self.assertEqual((died["job"], died["signal"], died["error"]), (started["job"], 9, "worker"))
        self.assertIn("killed by signal 9 (SIGKILL)", died["message"])
        again = lines.find("worker_started")
        self.assertEqual(len(again), 2)
        self.assertNotEqual(again[1]["pid"], started["pid"])

    def test_the_template_dies(self):
        """The next worker comes from another one."""
        lines = self.begin("print(rlm_query('small', 'x'))")
        ready = lines.wait("template_ready")
        lines.wait("response")
        os.kill(ready["pid"], signal.SIGKILL)
        lost = lines.wait("template_lost")
        self.go_on.set()
        status, _ = lines.end()
        self.assertEqual(status, 0, lines.records)
        self.assertEqual((lost["level"], lost["pid"], lost["waiting"]), ("warning", ready["pid"], 0))
        self.assertIn("signal 9", lost["message"])
        restarted = lines.find("template_restarted")
        self.assertEqual(len(restarted), 1)
        self.assertNotEqual(restarted[0]["pid"], ready["pid"])
        runs = {record["run"] for record in lines.find("worker_started")}
        self.assertEqual(len(runs), 2)


class Calls(ProviderTest):
    def log(self, *replies, arguments=("-v",), provider="openai"):
        """The log and the result of a run whose requests are answered so."""
        server = self.serve(provider, *replies)
        outcome = self.rlmd("exec", "-p", provider, "--json", "--log-format", "json", *arguments, "task",
                            env=self.environment(**server.environment()))
        found = records(outcome)
        for record in found:
            self.assertNotIn(server.key, json.dumps(record))
        return found, outcome

    def check_ids(self, record, outcome):
        trace = outcome.result["trace"]
        self.assertEqual((record["run"], record["provider"]), (trace["id"], "openai"))
        self.assertRegex(record["job"], r"^[0-9a-f-]{36}$")
        self.assertIn("model", record)

    def test_a_provider_that_is_busy(self):
        for name, status in (("rate_limit", 429), ("overloaded", 503)):
            with self.subTest(error=name):
                busy = Reply(error=name, headers={"retry-after-ms": "20"})
                found, outcome = self.log(busy, busy, final("ok"))
                waits = [record for record in found if record["event"] == "call_waits"]
                self.assertEqual([each["attempt"] for each in waits], [1, 2])
                for each in waits:
                    self.check_ids(each, outcome)
                    self.assertEqual((each["level"], each["subject"]), ("info", "provider"))
                    self.assertEqual((each["http_status"], each["kind"], each["turn"]), (status, "turn", 0))
                    self.assertGreaterEqual(each["next_ms"], 20)
                    self.assertGreaterEqual(each["waited_ms"], 0)

    def test_an_attempt_that_failed(self):
        found, outcome = self.log(Reply(error="server_error", headers={"retry-after-ms": "1"}), final("ok"))
        retried = one(self, found, "call_retried")
        self.check_ids(retried, outcome)
        self.assertEqual((retried["http_status"], retried["attempt"]), (500, 1))
        self.assertIn("The server had an error", retried["message"])

    def test_a_stream_that_was_cut(self):
        found, outcome = self.log(Reply(text="FINAL(never read)", cut_after=200), final("ok"))
        cut = one(self, found, "call_cut")
        self.check_ids(cut, outcome)
        self.assertEqual((cut["attempt"], cut["bytes"], cut["error"]), (1, 200, "network"))
        self.assertIn("next_ms", cut)

    def test_a_call_that_failed_for_good(self):
        """Of a block, with its number; nobody says it a second time."""
        found, outcome = self.log(code("llm_query('a')\nllm_query('b')"), Reply(text="x"),
                                  Reply(error="bad_request"), final("ok"))
        failed = one(self, found, "call_failed")
        self.check_ids(failed, outcome)
        calls = outcome.result["trace"]["llmCalls"]
        self.assertEqual([call["index"] for call in calls if call.get("error")], [failed["call"]])
        self.assertEqual((failed["kind"], failed["error"], failed["http_status"]),
                         ("llm_query", "bad_request", 400))
        told = [record for record in found if "empty array" in record["message"]]
        self.assertEqual(told, [failed])

    def test_not_unless_asked_for(self):
        """By default, and more so with -q, no more is said than of a run without any of it."""
        soon = {"retry-after-ms": "1"}
        for arguments, told in (((), ["notice", "notice"]), (("-q",), [])):
            found, _ = self.log(Reply(error="server_error", headers=soon), final("ok"), arguments=arguments)
            self.assertEqual([record["event"] for record in found], told, found)

    def test_foreign_words(self):
        """In no format do they leave their line, or steer a terminal."""
        evil = "no\x1b[31m\nrlmd: error: forged\r\u202e"
        body = json.dumps({"error": {"message": evil, "type": "requests"}}).encode()
        bad = dict(status=500, body=body, headers={"retry-after-ms": "1"})
        for form in ("text", "json", "journald"):
            with self.subTest(form=form):
                server = self.serve("openai", Reply(**bad), final("ok"))
                outcome = self.rlmd("exec", "-p", "openai", "-v", "--log-format", form, "task",
                                    env=self.environment(**server.environment()))
                self.assertIn("forged", outcome.err)
                self.assertNotRegex(outcome.err, r"(?m)^rlmd: error|[\x1b\r\u202e]")
                if form == "json":
                    self.assertEqual(len(records(outcome)), len(outcome.err.splitlines()))
                    self.assertTrue(outcome.err.isascii())


class Forms(GuardedTest):
    ENTRIES = [turn(block("llm_query('nobody answers')"), turn=0), turn("FINAL(done)", turn=1)]

    def test_a_replay_that_misses(self):
        outcome = self.replay(self.ENTRIES, "-v", "--json", "--log-format", "json")
        missed = one(self, records(outcome), "replay_missed")
        self.assertEqual((missed["run"], missed["call"]), (outcome.result["trace"]["id"], 0))
        self.assertEqual(missed["error"], "replay")

    def test_text(self):
        err = self.replay(self.ENTRIES, "-v").err
        self.assertRegex(err, r"(?m)^rlmd: \[[0-9a-f]{8}\] no answer in .* \(kind=llm_query call=0 .*\)$")
        self.assertRegex(err, r"(?m)^rlmd: \[[0-9a-f]{8}\] turn 1: ")
        self.assertRegex(err, r"(?m)^rlmd: done in ")

    def test_journald(self):
        outcome = self.replay(self.ENTRIES, "-v", "--log-format", "journald")
        for line in outcome.err.splitlines():
            self.assertRegex(line, r"^<[3-7]>")
        self.assertRegex(outcome.err, r"(?m)^<6>\[[0-9a-f]{8}\] no answer in ")
        self.assertRegex(outcome.err, r"(?m)^<5>done in ")

    def test_errors_too(self):
        """All of standard error is in that format, also why nothing began."""
        outcome = self.replay(self.ENTRIES, "--log-format", "json", "-c", str(self.dir / "none"))
        self.assertEqual(outcome.status, 8)
        self.assertEqual([record["level"] for record in records(outcome)], ["error"])

    def test_levels(self):
        """-q is of errors alone, -v adds what explains, and -vv all."""
        levels = {}
        for arguments in ("-q", "--strict", "-v", "-vv"):
            outcome = self.replay(self.ENTRIES, arguments, "--log-format", "json")
            levels[arguments] = {record["level"] for record in records(outcome)}
        self.assertEqual(levels["-q"], set())
        self.assertEqual(levels["--strict"], {"notice"})
        self.assertEqual(levels["-v"], {"notice", "info"})
        self.assertEqual(levels["-vv"], {"notice", "info", "debug"})

    def test_a_setting(self):
        outcome = self.replay(self.ENTRIES, env=self.environment(RLMD_LOG_FORMAT="journald"))
        self.assertRegex(outcome.err, r"^<5>done in ")

    def test_a_plan_and_the_doctor(self):
        plan = self.write("plan.json", json.dumps({"operations": [{"id": "a", "input": "q"}]}))
        script = self.script(query("x", pattern="other"))
        outcome = self.rlmd("plan", "-p", "replay", "--replay", script, "-v", "--log-format", "json", plan)
        missed = one(self, records(outcome), "replay_missed")
        self.assertNotIn("run", missed)
        self.assertRegex(missed["job"], r"^[0-9a-f-]{36}$")
        outcome = self.rlmd("doctor", "--json", "-vv", "--log-format", "json", "-p", "replay",
                            "--replay", script)
        ready = [record["pid"] for record in records(outcome) if record["event"] == "template_ready"]
        self.assertEqual(len(set(ready)), 2, ready)  # for the attacks, and for the check of schemas


class Isolation(GuardedTest):
    def test_a_missing_layer(self):
        """A kernel without Landlock: the layer, what was refused, and how."""
        outcome = self.replay([turn("FINAL(done)")], "-v", "--json", "--log-format", "json",
                              preexec_fn=kernel.without(*kernel.LANDLOCK))
        absent = {record["layer"]: record for record in records(outcome) if record["event"] == "layer_absent"}
        told = {each["layer"]: each for each in outcome.result["sandbox"]["absent"]}
        self.assertIn("landlock", told)
        self.assertEqual(set(absent), set(told))
        record = absent["landlock"]
        self.assertEqual((record["errno"], record["step"]), ("ENOSYS", told["landlock"]["call"]))
        self.assertEqual((record["level"], record["subject"]), ("info", "sandbox"))

    def test_a_mode_that_is_refused(self):
        """A kernel without namespaces: lesser modes are tried, each refusal is told."""
        outcome = self.replay([turn("FINAL(done)")], "-v", "--json", "--log-format", "json",
                              preexec_fn=kernel.without(kernel.UNSHARE))
        refused = [record for record in records(outcome) if record["event"] == "mode_refused"]
        mode = outcome.result["sandbox"]["mode"]
        self.assertTrue(refused, records(outcome))
        self.assertNotIn(mode, [record["mode"] for record in refused])
        for record in refused:
            self.assertEqual(record["errno"], "ENOSYS")

    def killed(self):
        """The pid of a supervisor that was killed, and its cgroups."""
        process = self.start("exec", "-p", "replay", "--replay", self.script(turn(block(HANGS))), "-vv",
                             "--log-format", "json", "task")
        lines = Lines(process)
        lines.wait("worker_started")
        left = cgroups_of({process.pid})
        os.kill(process.pid, signal.SIGKILL)
        lines.end()
        if not left:
            self.skipTest("no cgroup can be made here")
        return process.pid, left

    def test_what_a_killed_one_left(self):
        swept = left = ()
        while not swept:
            if not any(map(os.path.exists, left)):  # another test's rlmd was the first
                pid, left = self.killed()
            # They are empty once all that was in them is reaped.
            found = records(self.replay([turn("FINAL(done)")], "-v", "--log-format", "json"))
            swept = [record["path"] for record in found if record["event"] == "leftovers_swept"
                     and leaks.supervisor_of(os.path.basename(record["path"])) == pid]
        self.assertLessEqual(set(swept), set(left))


if __name__ == "__main__":
    unittest.main()

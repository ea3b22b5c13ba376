"""The trace while it is written, and whole after whatever kills a part of the program."""

import contextlib
import datetime
import json
import os
import random
import resource
import signal
import time
import unittest
from pathlib import Path

import leaks
import patience
from harness import GuardedTest, Outcome, block, turn
from model import ModelServer, Reply

KILLS = 20
SUBCALLS = [
    turn(block("x = 1", "print(batch_rlm_query(['a', 'b', 'c']), llm_query('q'))"), 0, depth=0),
    turn(block("print(rlm_query('d'), x)"), 1, depth=0),
    turn("FINAL(done)", 2, depth=0),
    dict(turn(block("print(llm_query('q'))"), 0, depth=1), repeat=True),
    dict(turn("FINAL(part)", 1, depth=1), repeat=True),
    {"match": {"kind": "llm_query"}, "response": {"text": "x", "delay": 30}, "repeat": True},
]


def whole_events(path):
    """The events of all lines but one that was cut."""
    lines = path.read_bytes().split(b"\n") if path.exists() else [b""]
    return [json.loads(line) for line in lines[:-1]]


def session_of(pid):
    """The session that a process is in; None if it is gone meanwhile."""
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def shape(run):
    """A run in the tree of `rlmd trace`."""
    executions = [e for iteration in run["iterations"] for e in iteration["codeExecutions"]]
    counts = len(run["iterations"]), len(executions), len(run["llmCalls"])
    return run["id"], run["parentId"], run["task"], counts, [shape(s) for s in run["subcalls"]]


def shape_of_events(events):
    """The same, counted in the lines of the file."""
    runs = [event for event in events if event["event"] == "run"]

    def count(run, *names):
        return tuple(
            sum(e["event"] == name and e["run"] == run["run"] for e in events) for name in names
        )

    def build(run):
        below = [build(sub) for sub in runs if sub["parent"] == run["run"]]
        counts = count(run, "response", "code", "llm_call")
        return run["run"], run["parent"], run["task"], counts, below

    return build(runs[0])


class TraceTest(GuardedTest):
    def setUp(self):
        super().setUp()
        self.trace = self.dir / "trace"

    def begin(self, entries, *arguments, **more):
        options = ["-p", "replay", "--replay", self.script(*entries), "--trace", self.trace]
        return self.start("exec", *options, *arguments, "the task", **more)

    def finish(self, process):
        return Outcome(process, *process.communicate(timeout=patience.hung()))

    def await_events(self, *names):
        """Until the trace holds these events, in any order."""
        def are_there():
            told = [event["event"] for event in whole_events(self.trace)]
            return all(told.count(name) >= names.count(name) for name in names)

        patience.wait_until(are_there, names)

    def tree(self, path=None):
        shown = self.rlmd("trace", path or self.trace)
        self.assertEqual(shown.status, 0, shown.err)
        return json.loads(shown.out)

    def check_trace(self, path=None):
        """Its events, from which `rlmd trace` must make what they tell."""
        path = path or self.trace
        events = whole_events(path)
        self.assertEqual([event["seq"] for event in events], list(range(len(events))))
        if events:
            self.assertEqual(shape(self.tree(path)), shape_of_events(events))
        else:
            self.assertEqual(self.rlmd("trace", path).status, 8)
        return events

    @staticmethod
    def children(process):
        """The pids of the program's template, and of its workers from the oldest on."""
        found = [
            (int(start), pid)
            for (pid, start), (parent, state, _) in leaks.processes().items()
            if parent == process.pid and state not in "ZX"
        ]
        sessions = [(pid, session_of(pid)) for _, pid in sorted(found)]
        return ([pid for pid, session in sessions if session == pid],
                [pid for pid, session in sessions if session not in (pid, None)])


class Form(TraceTest):
    """Its version, its clock, and the calls in it."""

    def run_calls(self, *arguments, **reply):
        texts = block("print(llm_query('q'))"), "hey", "FINAL(done)"
        with ModelServer("openai").replies(*(Reply(text, **reply) for text in texts)) as server:
            outcome = self.rlmd("exec", "-p", "openai", "-m", "gpt-5-mini", "--trace", self.trace,
                                *arguments, "the task",
                                env=self.environment(**server.environment()))
        self.assertEqual(outcome.status, 0, outcome.err)
        return whole_events(self.trace)

    def test_the_first_event_says_which_form_and_since_when(self):
        before = datetime.datetime.now(datetime.timezone.utc)
        first, *others = self.run_calls()
        after = datetime.datetime.now(datetime.timezone.utc)
        self.assertEqual(first["formatVersion"], 1)
        version = self.rlmd("--version").out.split()[1]
        self.assertEqual(first["program"], f"rlmd {version}")
        self.assertTrue(first["startedAt"].endswith("Z"), first["startedAt"])
        started = datetime.datetime.fromisoformat(first["startedAt"].replace("Z", "+00:00"))
        milli = datetime.timedelta(milliseconds=1)
        self.assertTrue(before - milli <= started <= after, (before, started, after))
        self.assertFalse([e for e in others if "formatVersion" in e])
        self.assertEqual(self.tree()["startedAt"], first["startedAt"])

    def test_calls_have_provider_model_and_times(self):
        events = self.run_calls()
        calls = [e for e in events if e["event"] in ("response", "llm_call")]
        self.assertEqual(len(calls), 3)
        for call in calls:
            self.assertEqual((call["provider"], call["model"]), ("openai", "gpt-5-mini"))
            self.assertLessEqual(call["queuedMs"], call["startedMs"])
            self.assertLessEqual(call["startedMs"] + call["duration"], call["ms"])
        tree = self.tree()
        for call, event in zip([*tree["llmCalls"], *tree["iterations"]],
                               [calls[1], calls[0], calls[2]]):
            for name in ("provider", "queuedMs", "startedMs"):
                self.assertEqual(call[name], event[name])

    def test_a_call_in_line_is_queued_before_it_starts(self):
        """One call at once: the second starts where the first has ended."""
        script = [turn(block("print(batch_llm_query(['a', 'b']))"), 0), turn("FINAL(done)", 1),
                  {"match": {"kind": "llm_query"}, "response": {"text": "x", "delay": 50},
                   "repeat": True}]
        outcome = self.finish(self.begin(script, "--max-parallel", "1"))
        self.assertEqual(outcome.status, 0, outcome.err)
        first, second = [e for e in whole_events(self.trace) if e["event"] == "llm_call"]
        self.assertGreaterEqual(second["startedMs"], first["startedMs"] + first["duration"])
        self.assertLess(second["queuedMs"], second["startedMs"])

    def test_a_newer_form_is_refused_by_name(self):
        self.run_calls()
        first, *others = self.trace.read_text("utf-8").splitlines()
        newer = {**json.loads(first), "formatVersion": 2, "program": "rlmd 9.1.0"}
        self.trace.write_text("\n".join([json.dumps(newer), *others, ""]), "utf-8")
        shown = self.rlmd("trace", self.trace)
        self.assertEqual(shown.status, 8)
        for word in ("form 2", "rlmd 9.1.0", "form 1", "newer"):
            self.assertIn(word, shown.err)
        self.trace.unlink()  # the guard of all traces would refuse it, too

    def test_a_trace_of_before_is_read(self):
        self.run_calls()
        lines = [json.loads(line) for line in self.trace.read_text("utf-8").splitlines()]
        for event in lines:
            for name in ("formatVersion", "program", "startedAt", "provider", "queuedMs",
                         "startedMs"):
                event.pop(name, None)
        old = "".join(json.dumps(event, separators=(",", ":")) + "\n" for event in lines)
        shown = self.rlmd("trace", "-", input=old.encode("utf-8"))
        self.assertEqual(shown.status, 0, shown.err)
        self.assertEqual(shape(json.loads(shown.out)), shape_of_events(lines))


class Growing(TraceTest):
    def test_it_is_written_as_it_happens(self):
        """ENG-15, ENG-16: at every moment all lines but the last are whole and make a tree. Each
        reply waits until the lines before it were seen."""
        seen = set()
        texts = block("print(rlm_query('a'), llm_query('q'))"), "FINAL(part)", "x", "FINAL(done)"
        replies = [Reply(text, until=lambda count=count: len(seen) > count)
                   for count, text in enumerate(texts)]
        with ModelServer("openai").replies(*replies) as server:
            process = self.start("exec", "-p", "openai", "-m", "m", "--trace", self.trace, "the task",
                                 env=self.environment(**server.environment()))
            while process.poll() is None:
                if self.trace.exists():
                    snapshot = self.write("snapshot", self.trace.read_bytes())
                    seen.add(len(self.check_trace(Path(snapshot))))
            self.assertEqual(self.finish(process).out, "done\n")
        self.assertGreaterEqual(len(seen), len(texts), "it did not grow")
        self.assertEqual(self.check_trace()[-1]["event"], "result")

    def test_a_turn_is_told_before_its_block_has_run(self):
        process = self.begin([turn(block("import time; time.sleep(3600)"))])
        self.await_events("run", "response")
        (iteration,) = self.tree()["iterations"]
        self.assertEqual(iteration["codeExecutions"], [])
        self.assertIsNone(process.poll())

    def test_what_a_killed_run_had_used(self):
        """Of every beginning of a trace `rlmd trace` has the usage that its events add up to."""
        self.finish(self.begin(SUBCALLS))
        lines = self.trace.read_bytes().splitlines(keepends=True)
        events = whole_events(self.trace)
        whole = next(e for e in events if e["event"] == "end" and e["run"] == events[0]["run"])
        for count in range(1, len(lines)):
            cut = self.dir / "cut"
            cut.write_bytes(b"".join(lines[:count]) + lines[count][:9])
            usage, told = self.tree(cut)["usage"], events[:count]
            self.assertEqual(set(usage), set(whole["usage"]))
            if whole in told:
                self.assertEqual(usage, whole["usage"])
                continue
            calls = [e for e in told if e["event"] in ("response", "llm_call")]
            self.assertTrue(usage["estimated"])
            self.assertEqual(usage["duration"], told[-1]["ms"] - told[0]["ms"])
            self.assertEqual(usage["llmCalls"], len(calls))
            self.assertEqual(usage["iterations"], sum(e["event"] == "response" for e in calls))
            self.assertEqual(usage["subcalls"], sum(e["event"] == "run" for e in told) - 1)
            self.assertEqual(usage["maxDepthReached"], max(e.get("depth", 0) for e in told))
            self.assertEqual(usage["outputTokens"], sum(
                e["outputTokens"] if e["event"] == "llm_call" else e["response"]["tokens"]
                for e in calls))
            self.assertEqual(usage["tokens"], usage["inputTokens"] + usage["outputTokens"])
        for key in ("tokens", "inputTokens", "cost", "llmCalls", "iterations", "subcalls"):
            self.assertEqual(usage[key], whole["usage"][key], key)

    def test_its_tree_is_that_of_the_result(self):
        """LIB-7, ENG-17: failed calls, failed blocks and sub-runs are no exception."""
        error = {"kind": "refused", "message": "no"}
        failing = {"match": {"pattern": "bad"}, "error": error, "repeat": True}
        first = turn(
            block("batch_rlm_query(['bad', 'a']), batch_llm_query(['bad', '\\0é\\ud800'])", "1/0"),
            0, depth=0)
        outcome = self.finish(self.begin([failing, first, *SUBCALLS], "--json"))
        self.assertEqual(outcome.status, 0, outcome.err)
        expected = outcome.result["trace"]
        self.assertEqual(len(expected["subcalls"]), 3)
        self.assertEqual(self.tree(), expected)

    def test_runs_that_share_a_file(self):
        """The last one is shown, also where the one before was killed in the middle of a line."""
        for cut in (0, 1, 40):
            with self.subTest(cut=cut):
                self.assertEqual(self.finish(self.begin(SUBCALLS)).status, 0)
                os.truncate(self.trace, self.trace.stat().st_size - cut)
                outcome = self.finish(self.begin([turn("FINAL(2)")], "--json"))
                self.assertEqual(self.tree(), outcome.result["trace"])

    def test_what_is_no_trace(self):
        run = '{"event":"run","run":"a","parent":"a"}\n'
        for content in ("", "\n", "hello\n", "[]\n", "[" * 100 + "\n", '{"event":"end"}\n',
                        '{"event":"run"}\n', '{"event":"run","run":1}\n', run + "hello\n",
                        run + "hello\n" + run):
            with self.subTest(content):
                self.write("trace", content)
                shown = self.rlmd("trace", self.trace)
                self.assertEqual((shown.status, shown.out), (8, ""))
                self.assertRegex(shown.err, r"^rlmd: error: .*trace.*\n$")


class Unwritable(TraceTest):
    def test_where_it_cannot_be_opened_nothing_is_started(self):
        self.trace.mkdir()
        outcome = self.finish(self.begin(SUBCALLS))
        self.assertEqual((outcome.status, outcome.out), (2, ""))
        self.assertRegex(outcome.err, r"cannot write the trace to .*trace: Is a directory")

    def test_a_disk_that_fills_up_costs_the_rest_of_the_trace_only(self):
        """The lines before are whole; it is said once; the answer comes."""
        full = 64 << 20  # more than any memory file of the program's has
        with open(self.trace, "wb") as file:
            file.seek(full - 3001)
            file.write(b"\n")
        outcome = self.finish(
            self.begin(
                SUBCALLS,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (full, full)),
                restore_signals=False,  # SIGXFSZ stays ignored, and the write fails
            )
        )
        self.assertEqual((outcome.status, outcome.out), (0, "done\n"), outcome.err)
        self.assertEqual(outcome.err.count("is cut short"), 1)
        self.trace.write_bytes(self.trace.read_bytes()[full - 3000:])
        self.assertEqual(self.trace.stat().st_size, 3000)
        self.assertGreater(len(self.check_trace()), 1)

    def test_a_reader_that_goes_away(self):
        read, write = os.pipe()
        self.trace = f"/dev/fd/{write}"
        process = self.begin(SUBCALLS, pass_fds=[write])
        os.close(write)
        self.assertIn(b'"event":"run"', os.read(read, 4096))
        os.close(read)
        outcome = self.finish(process)
        self.assertEqual((outcome.status, outcome.out), (0, "done\n"), outcome.err)
        self.assertEqual(outcome.err.count("is cut short"), 1)


class Killed(TraceTest):
    def await_nobody(self, before):
        """G9: what the program had started is gone within a second of its death."""
        left = lambda: {p: name for p, name in leaks.descendants().items() if p not in before}
        patience.wait_until(lambda: not left(), left, idle=1)

    def test_at_any_moment(self):
        """LIB-15, ENG-15, G9: nothing survives SIGKILL but a trace that tells what happened."""
        started = time.monotonic()
        self.assertEqual(self.finish(self.begin(SUBCALLS)).status, 0)
        whole = time.monotonic() - started
        seed = random.randrange(1 << 32)
        dice = random.Random(seed)
        self.trace.unlink()
        out = self.dir / "out"
        before = leaks.descendants()
        for number in range(KILLS):
            moment = dice.uniform(0, whole)
            with self.subTest(seed=seed, number=number, moment=moment):
                process = self.begin(SUBCALLS, "-o", out)
                time.sleep(moment)
                process.kill()
                process.wait()
                self.await_nobody(before)
                self.check_trace()
                self.assertEqual(list(self.dir.glob(".*")), [])
                if out.exists():
                    self.assertEqual(out.read_text(), "done\n")
            # A file that replaces another has a second name for a moment (base/atomic_file.h).
            for path in self.trace, out:
                path.unlink(missing_ok=True)

    def test_the_template(self):
        """A template that dies is replaced when the next worker is needed; living workers stay."""
        entries = [
            turn(block("x = 1", "llm_query('wait')", "print(rlm_query('part'), x)"), 0, depth=0),
            turn("FINAL(done)", 1, depth=0),
            turn(block("FINAL('from a new template')"), depth=1),
            {"match": {"kind": "llm_query"}, "response": {"text": "x", "delay": int(1000 * patience.seconds(1))}},
        ]
        process = self.begin(entries, "--json")
        self.await_events("run", "response")
        (template,), _ = self.children(process)
        os.kill(template, signal.SIGKILL)
        outcome = self.finish(process)
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertEqual(outcome.executions()[0]["stdout"], "from a new template 1\n")

    def test_the_template_again_and_again(self):
        """Whatever it was doing: a sub-run may fail, as a value, and the run goes on."""
        step = block("batch_rlm_query(['a', 'b', 'c'])")
        rounds = [turn(step, i, depth=0) for i in range(8)]
        entries = [*rounds, turn("FINAL(done)", 8, depth=0), *SUBCALLS[3:]]
        process = self.begin(entries, "--json")
        self.await_events("run", "response")
        kills = 0
        while process.poll() is None:
            for pid in self.children(process)[0]:
                with contextlib.suppress(ProcessLookupError):  # somebody was faster
                    os.kill(pid, signal.SIGKILL)
                    kills += 1
            time.sleep(random.uniform(0, 0.3))
        outcome = self.finish(process)
        self.assertEqual((outcome.status, outcome.result["output"]), (0, "done"), outcome.err)
        self.assertGreater(kills, 0)

    def told_after(self, number, entries, *arguments):
        """The block's error and the next prompt where its worker gets a signal while it is busy."""
        after = [turn(block("print('x' in globals())"), 1), turn("FINAL(done)", 2)]
        process = self.begin([*entries, *after], "--json", *arguments)
        self.await_events("run", "response")
        time.sleep(patience.seconds(0.1))  # the block has begun
        os.kill(self.children(process)[1][0], number)
        outcome = self.finish(process)
        self.assertEqual((outcome.status, outcome.result["output"]), (0, "done"), outcome.err)
        self.assertEqual(outcome.executions()[1]["stdout"], "False\n")
        told = outcome.result["trace"]["iterations"][1]["prompt"]["content"]
        return outcome.executions()[0]["error"], told

    def test_a_worker(self):
        """It is replaced, and the model is told why and what is lost; also where it waited."""
        response = {"text": "x", "delay": 3600000}
        slow = {"match": {"kind": "llm_query"}, "response": response, "repeat": True}
        for code in ("import time; time.sleep(3600)", "llm_query('q')"):
            with self.subTest(code):
                first = turn(block("x = 1", code), 0)
                error, told = self.told_after(signal.SIGKILL, [first, slow])
                self.assertIn("killed by signal 9 (SIGKILL)", error)
                self.assertIn("lost", told)
                self.trace.unlink()

    def test_a_worker_that_stands_still(self):
        """LIB-12: who neither ends nor hears the interrupt is killed."""
        first = turn(block("x = 1", "import time; time.sleep(3600)"), 0)
        error, told = self.told_after(signal.SIGSTOP, [first], "--block-timeout", patience.duration(0.5))
        self.assertIn("no interrupt ended the code", error)
        self.assertIn("lost", told)

    def test_the_worker_of_a_sub_run(self):
        """It goes on with a new one; its caller does not even notice."""
        entries = [
            turn(block("x = 1", "print(rlm_query('part'), x)"), 0, depth=0),
            turn("FINAL(done)", 1, depth=0),
            turn(block("import time; time.sleep(3600)"), 0, depth=1),
            turn(block("FINAL(len(context))"), 1, depth=1),
        ]
        process = self.begin(entries, "--json", "-c", self.write("context", "abc"))
        self.await_events("run", "response", "run", "response")
        time.sleep(patience.seconds(0.1))  # the block has begun
        os.kill(self.children(process)[1][-1], signal.SIGKILL)
        outcome = self.finish(process)
        self.assertEqual(outcome.executions()[0]["stdout"], "3 1\n")
        (sub,) = outcome.result["trace"]["subcalls"]
        self.assertIn("SIGKILL", sub["iterations"][0]["codeExecutions"][0]["error"])


if __name__ == "__main__":
    unittest.main()

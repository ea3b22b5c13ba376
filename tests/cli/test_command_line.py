"""`rlmd exec` and `rlmd trace` as a shell meets them: input, output, status, signals."""
import fcntl
import json
import os
import pty
import select
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import termios
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "system"))
import kernel  # noqa: E402
import leaks  # noqa: E402
import patience  # noqa: E402

RLMD = os.environ.get("RLMD") or str(Path(os.environ["RLMD_BUILD_ROOT"]) / "rlmd")

# LIB-6, and what comes with it.
USAGE = {
    "cost", "tokens", "inputTokens", "outputTokens", "duration", "iterations", "subcalls", "llmCalls",
    "maxDepthReached", "cachedTokens", "estimated", "costComplete",
}

ANSWER = {"match": {"kind": "turn"}, "response": {"text": "FINAL('the answer')"}, "repeat": True}


def block(code):
    """A first turn that is one block of Python."""
    return {"match": {"kind": "turn", "turn": 0}, "response": {"text": f"```repl\n{code}\n```"}}


# The input of a block, and an answer that tells it.
SHOW = block("FINAL(repr(context))")
SLEEP = block("import time\ntime.sleep(3600)")
FORCED = {"match": {"kind": "forced"}, "response": {"text": "FINAL(as far as I came)"}}


class CommandLineTest(leaks.LeakGuard, unittest.TestCase):
    maxDiff = None

    def setUp(self):
        super().setUp()
        self.environment["TERM"] = "xterm"
        for name in list(self.environment):
            if name.startswith("RLMD_") or name in ("NO_COLOR", "XDG_CONFIG_HOME"):
                del self.environment[name]

    def script(self, *entries):
        directory = self.directory / f"script{len(list(self.directory.iterdir()))}"
        directory.mkdir()
        (directory / "answers.json").write_text(json.dumps(entries))
        return ["-p", "replay", "--replay", str(directory)]

    def write(self, name, content):
        (self.directory / name).parent.mkdir(parents=True, exist_ok=True)
        (self.directory / name).write_text(content)
        return str(self.directory / name)

    def call(self, *arguments, **more):
        more.setdefault("stdin", None if "input" in more else subprocess.DEVNULL)
        if more["stdin"] is None:
            del more["stdin"]
        more.setdefault("stdout", subprocess.PIPE)
        return subprocess.run(
            [RLMD, *arguments], env=self.environment, cwd=self.directory, text=True,
            stderr=subprocess.PIPE, timeout=patience.hung(), **more
        )

    def answer(self, *arguments, entries=(SHOW,), **more):
        done = self.call("exec", *self.script(*entries), *arguments, **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def contexts(self, *arguments, **more):
        """The names of the inputs that a run got."""
        told = self.answer("--json", *arguments, entries=(ANSWER,), **more)
        return [context["name"] for context in json.loads(told)["trace"]["contexts"]]

    def refused(self, status, words, *arguments, **more):
        done = self.call("exec", *arguments, **more)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertIn(words, done.stderr)
        self.assertRegex(done.stderr, r"^rlmd: ")
        self.assertEqual(done.stdout, "")


class InputTest(CommandLineTest):
    def test_piped_input_is_the_context(self):
        self.assertEqual(self.answer("task", input="piped\n"), "'piped\\n'\n")

    def test_nothing_piped_is_no_context(self):
        """LIB-11: neither an empty pipe nor /dev/null is an input; with `-c -` they are."""
        self.assertEqual(self.contexts("task", input=""), [])
        self.assertEqual(self.contexts("task"), [])
        self.assertEqual(self.contexts("-c", "-", "task", input=""), ["context"])

    def test_closed_input_is_no_context(self):
        """And the descriptor is not given to something else."""
        done = subprocess.run(
            ["sh", "-c", 'exec "$@" <&-', "sh", RLMD, "exec", *self.script(SHOW), "task"],
            env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            timeout=patience.hung(),
        )
        self.assertEqual((done.returncode, done.stdout), (0, b"''\n"), done.stderr)

    def test_a_context_leaves_standard_input_alone(self):
        path = self.write("file", "from a file")
        self.assertEqual(self.answer("-c", path, "task", input="piped"), "'from a file'\n")

    def test_the_task_comes_from_three_places(self):
        path = self.write("task", "of a file")
        for text, *arguments in (
            ("given", "given"), ("piped", "-"), ("of a file", "--task-file", path)
        ):
            with self.subTest(arguments):
                done = json.loads(self.answer("--json", *arguments, input="piped"))
                self.assertEqual(done["trace"]["task"], text)

    def test_a_task_on_standard_input_is_no_context(self):
        self.assertEqual(self.contexts("-", input="what?"), [])
        self.refused(2, "both", "-c", "-", "-", input="what?")
        self.refused(2, "both", "-c", "x=-", "-", input="what?")

    def test_bad_tasks(self):
        self.refused(2, "no task")
        self.refused(2, "no task", input="piped")
        self.refused(2, "the task is empty", " \n")
        self.refused(2, "the task is empty", "-", input="")
        self.refused(2, "two tasks", "--task-file", "x", "task")
        self.refused(2, "'host' is one word too many", "which", "host", "failed")
        self.refused(8, "missing", "--task-file", "missing")
        self.refused(8, "longer than", "-", input="x" * (1 << 21))

    def test_bad_contexts(self):
        for source in ("missing", "name=missing", "/dev/zero"):
            with self.subTest(source):
                self.refused(8, source.split("=")[-1], *self.script(ANSWER), "-c", source, "task")
        self.refused(2, "llm_query", *self.script(ANSWER), "-c", "llm_query=/dev/null", "task")

    def test_skipped_files_are_told(self):
        tree = self.directory / "tree"
        tree.mkdir()
        (tree / "text").write_text("x\n")
        (tree / "binary").write_bytes(b"\0")
        done = self.call("exec", *self.script(SHOW), "-c", "tree", "task")
        self.assertEqual(done.stdout, "'===== text =====\\nx\\n'\n")
        self.assertIn("tree: skipped 1 binary file: binary", done.stderr)

    def test_settings_come_from_file_and_environment(self):
        self.write("rlmd.conf", "max-iterations = 7\nmax-depth = 1\n")
        self.environment["RLMD_MAX_DEPTH"] = "0"
        code = "b = budget()\nFINAL(str(b))"
        told = self.answer("--config", "rlmd.conf", "task", entries=(block(code),))
        self.assertRegex(told, r"'max_?[dD]epth': 0|'depth': 0")
        self.write("rlmd.conf", "max-iterations = lots\n")
        self.refused(2, "rlmd.conf:1: max-iterations", "--config", "rlmd.conf", "task")


class OutputTest(CommandLineTest):
    def test_answer_alone_on_standard_output(self):
        done = self.call("exec", *self.script(ANSWER), "task")
        self.assertEqual(done.stdout, "the answer\n")
        self.assertRegex(done.stderr, r"(?m)^rlmd: done in .*1 turn, 1 call, .* of \$5\.00")
        self.assertRegex(done.stderr, r"(?m)^rlmd: isolation L[1-4]$")

    def test_quiet(self):
        done = self.call("exec", *self.script(ANSWER), "-q", "task")
        self.assertEqual((done.stdout, done.stderr), ("the answer\n", ""))

    def test_verbose(self):
        done = self.call("exec", *self.script(block("print(1)"), ANSWER), "-vv", "task")
        self.assertRegex(done.stderr, r"(?m)^rlmd: \[[0-9a-f]{8}\] turn 1: replay, .* tokens in")
        self.assertRegex(done.stderr, r"(?m)^rlmd: \[[0-9a-f]{8}\] block: .* 2 bytes printed$")
        self.assertRegex(done.stderr, r"(?m)^rlmd: \[[0-9a-f]{8}\] run ended: final$")
        self.assertRegex(done.stderr, r"(?m)^rlmd: isolation L[1-4] \(.*seccomp.*\)$")

    def test_code_and_output_as_they_happen(self):
        """The reply of the model is shown before its block has run, the output after that."""
        blocks = block("print('one\\ntwo')\nimport sys; print('wrong', file=sys.stderr)\n1/0")
        done = self.call("exec", *self.script(blocks, ANSWER), "-vv", "task")
        told = [line.split("] ", 1)[-1] for line in done.stderr.splitlines() if "] " in line]
        for earlier, later in (
            ("< print('one\\ntwo')", "| one"), ("| one", "| two"), ("| two", "| wrong"),
            ("| wrong", "! ZeroDivisionError: division by zero"),
            ("! ZeroDivisionError: division by zero", "< FINAL('the answer')"),
        ):
            self.assertLess(told.index(earlier), told.index(later), done.stderr)
        done = self.call("exec", *self.script(blocks, ANSWER), "-v", "task")
        self.assertNotIn("< print", done.stderr)
        self.assertNotIn("| one", done.stderr)

    def test_json(self):
        result = json.loads(self.answer("--json", "task", entries=(ANSWER,)))
        for field in ("success", "output", "trace", "usage", "warnings", "sandbox", "stopReason"):
            self.assertIn(field, result)
        self.assertEqual((result["success"], result["output"]), (True, "the answer"))
        self.assertNotIn("event", result)

    def test_jsonl_ends_with_the_result(self):
        told = self.answer("--jsonl", "--trace", "trace", "task", entries=(ANSWER,))
        events = [json.loads(line) for line in told.splitlines()]
        self.assertEqual(events[0]["event"], "run")
        self.assertEqual([e["event"] for e in events].count("result"), 1)
        self.assertEqual(events[-1]["event"], "result")
        self.assertEqual(events[-1]["output"], "the answer")
        trace = self.directory / "trace"
        self.assertEqual(trace.read_text(), told)
        self.assertEqual(stat.S_IMODE(trace.stat().st_mode), 0o600)
        tree = self.call("trace", "trace")
        self.assertEqual(json.loads(tree.stdout), events[-1]["trace"])

    def test_json_of_a_failure(self):
        """A script that asked for JSON gets JSON, however early the run failed."""
        for form in ("--json", "--jsonl"):
            done = self.call("exec", *self.script(ANSWER), form, "-c", "missing", "task")
            self.assertEqual(done.returncode, 8)
            result = json.loads(done.stdout)
            self.assertEqual((result["success"], result["error"]["kind"]), (False, "input"))
            self.assertIn("missing", result["error"]["message"])
            self.assertEqual(set(result["usage"]), USAGE)
            self.assertFalse(any(result["usage"][name] for name in USAGE - {"costComplete"}))
            self.assertEqual((result["trace"], result["sandbox"]), (None, None))
            self.assertIsNone(result["stopReason"])
            self.assertNotIn("failed after", done.stderr)

    def test_why_no_run_began(self):
        poor = kernel.without(*kernel.LANDLOCK, kernel.UNSHARE)
        for reason, *arguments in (
            ("provider_error", "-p", "openai"),
            (None, "-p", "nobody"),
        ):
            with self.subTest(arguments):
                done = self.call("exec", "--json", *arguments, "task", preexec_fn=poor)
                self.assertEqual(json.loads(done.stdout)["stopReason"], reason, done.stderr)

    def test_a_program_without_its_files(self):
        """The missing files, and the remedy: the program and its library alone were built or
        copied."""
        for part in ("rlmd", "librlmd.so.0"):
            shutil.copy(Path(RLMD).with_name(part), self.directory)
        alone = self.directory / "rlmd"
        done = subprocess.run(
            [alone, "exec", "--json", *self.script(ANSWER), "task"],
            env={**self.environment, "LD_LIBRARY_PATH": ""},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=patience.hung(),
        )
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertEqual(json.loads(done.stdout)["stopReason"], "sandbox_error")
        self.assertIn("build all targets, or install", done.stderr)

    def test_a_trace_in_a_strange_place(self):
        trace = self.write("trace", "")
        (self.directory / "link").symlink_to(trace)
        self.refused(2, "symbolic link", *self.script(ANSWER), "--trace", "link", "task")
        os.chmod(trace, 0o666)
        self.refused(2, "chmod go-w", *self.script(ANSWER), "--trace", trace, "task")

    def test_output_file(self):
        self.assertEqual(self.answer("-o", "out", "task", entries=(ANSWER,)), "")
        self.assertEqual((self.directory / "out").read_text(), "the answer\n")
        done = self.call("exec", *self.script(ANSWER), "-o", "other", "-c", "missing", "task")
        self.assertEqual(done.returncode, 8)
        self.assertFalse((self.directory / "other").exists())
        self.assertFalse([p.name for p in self.directory.iterdir() if p.name.startswith(".")])

    def test_what_cannot_be_written(self):
        self.refused(2, "nowhere/out", *self.script(ANSWER), "-o", "nowhere/out", "task")
        self.refused(2, "nowhere/trace", *self.script(ANSWER), "--trace", "nowhere/trace", "task")
        self.refused(1, "No space left", *self.script(ANSWER), "-o", "/dev/full", "task")
        with open("/dev/full", "w") as full:
            done = self.call("exec", *self.script(ANSWER), "task", stdout=full)
        self.assertEqual(done.returncode, 1)
        self.assertIn("No space left", done.stderr)

    def test_a_full_trace_does_not_lose_the_answer(self):
        done = self.call("exec", *self.script(ANSWER), "--trace", "/dev/full", "task")
        self.assertEqual((done.returncode, done.stdout), (0, "the answer\n"))
        self.assertEqual(done.stderr.count("No space left"), 1)

    def test_nobody_reads(self):
        """A closed pipe ends the run quietly, before more is paid for."""
        for form, entries in (("--json", (ANSWER,)), ("--jsonl", (SLEEP, ANSWER))):
            with self.subTest(form):
                read, write = os.pipe()
                os.close(read)
                with os.fdopen(write, "w") as pipe:
                    done = self.call("exec", *self.script(*entries), form, "task", stdout=pipe)
                self.assertEqual((done.returncode, done.stderr), (1, ""))

    def test_closed_standard_output(self):
        done = subprocess.run(
            ["sh", "-c", 'exec "$@" >&-', "sh", RLMD, "exec", *self.script(ANSWER), "task"],
            env=self.environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
            timeout=patience.hung(),
        )
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"standard output", done.stderr)

    def test_dry_run_starts_nothing(self):
        context = self.write("x", "import os\n")
        # The provider's own address, and no key for it: nothing may be asked, so none is missed.
        arguments = ["--dry-run", "--python", "/nowhere/python3", "-c", context, "-m", "gpt-5.4"]
        arguments += ["-p", "openai", "what?"]
        done = self.call("exec", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^context +context: 10 characters, .*, code$")
        self.assertRegex(done.stdout, r"(?m)^cost +\$[0-9.]+ at most \(limit: \$5\.00\)$")
        self.assertIn("what?", done.stdout)
        shown = json.loads(self.call("exec", "--json", *arguments).stdout)
        self.assertIn("systemPrompt", shown)

    def test_the_worst_cost_is_that_of_the_dearest(self):
        """Code may spend all tokens on the model for sub-calls, or on output: both are counted."""
        prices = {
            "cheap": {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6},
            "dear": {"input_cost_per_token": 1e-6, "output_cost_per_token": 3e-5},
        }
        arguments = ["--json", "--dry-run", "-p", "openai", "--base-url", "http://127.0.0.1:9/v1"]
        arguments += ["--price-table", self.write("prices.json", json.dumps(prices))]
        arguments += ["--max-tokens", "100000", "-m", "cheap"]
        for more, cost in (
            (["--max-cost", "9"], 0.2),
            (["--max-cost", "9", "--subcall-model", "dear"], 3),
            (["--max-cost", "1", "--subcall-model", "dear"], 1),
        ):
            with self.subTest(more=more):
                done = self.call("exec", *arguments, *more, "task")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertAlmostEqual(json.loads(done.stdout)["worstCaseCost"], cost)

    def gate(self, status, *arguments, model="m"):
        prices = {"m": {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6}}
        done = self.call("exec", "--json", "--dry-run", "-p", "openai", "--base-url",
                         "http://127.0.0.1:9/v1", "-m", model, "--price-table",
                         self.write("prices.json", json.dumps(prices)), *arguments, "task")
        self.assertEqual(done.returncode, status, done.stderr)
        return json.loads(done.stdout), done.stderr

    def test_files_and_folders_of_a_dry_run(self):
        for path in ("a.txt", "src/b.c", "src/net/c.c", "src/net/http/d.c", "src/net/http/e.c"):
            self.write(f"tree/{path}", "some words of text\n" * (100 if "net" in path else 1))
        tree = os.path.dirname(self.write("tree/x\x1b[31m/f.txt", "words\n"))
        tree = os.path.dirname(tree)
        (context,) = self.gate(0, "-c", tree)[0]["contexts"]
        self.assertEqual(len(context["files"]), 6)
        self.assertEqual({folder["path"]: folder["files"] for folder in context["folders"]},
                         {"": 1, "src/": 1, "src/net/": 3, "x\\x1b[31m/": 1})
        self.assertEqual(context["folders"][0]["path"], "src/net/")
        for key in ("bytes", "tokens"):
            self.assertEqual(sum(folder[key] for folder in context["folders"]),
                             sum(file[key] for file in context["files"]))
        text = self.call("exec", "--dry-run", "-c", tree, "task").stdout
        self.assertRegex(text, r"(?m)^files +6\n +\S+ tokens +3 files  src/net/$")
        self.assertRegex(text, r"(?m)^ +\S+ tokens +1 file   src/$")
        self.assertIn("; 6 files in `context.files`", text)
        self.assertNotIn("\x1b", text)
        text = self.call("exec", "--dry-run", "-c", os.path.dirname(self.write("one/f", "x")),
                         "task").stdout
        self.assertRegex(text, r"(?m)^ +\S+ tokens +1 file   \./$")
        self.assertNotRegex(text, r"\b1 (files|calls|folders)\b")

    def test_a_gate_before_anything_is_spent(self):
        """With --strict a dry run fails where not everything can be read once."""
        large = self.write("large", "some words of text\n" * 100000)
        for more, misfit in ((["--max-cost", "0.01"], "max-cost is $0.01"),
                             (["--max-tokens", "9000"], "max-tokens is 9000"),
                             (["--max-calls", "2", "--max-tokens", "3M"], "max-calls is 2")):
            with self.subTest(more=more):
                shown, _ = self.gate(0, "-c", large, *more)
                self.assertFalse(shown["fits"])
                self.assertIn(misfit, shown["misfits"][0])
                shown, told = self.gate(6, "-c", large, "--strict", *more)
                self.assertIn(misfit, told)
        shown, _ = self.gate(0, "-c", large, "--strict", "--max-tokens", "3M")
        reading = shown["fullReading"]
        self.assertEqual((shown["fits"], shown["misfits"]), (True, []))
        self.assertGreater(reading["tokens"], shown["contexts"][0]["tokenEstimate"])
        self.assertGreaterEqual(reading["cost"], reading["tokens"] * 1e-6)
        self.assertLess(reading["cost"], reading["tokens"] * 2e-6)
        self.gate(0, "--strict")

    def test_a_size_out_of_bounds(self):
        """The bounds that are told can be given."""
        self.refused(2, "'1K' is no size from 64K to 1T", "--cache-size", "1K", "task")
        self.refused(2, "'0' is no size from 1 to 4G", "--max-file-size", "0", "task")
        self.answer("--cache-size", "64K", "task")

    def test_a_price_nobody_knows(self):
        """LIB-20: a limit that was asked for is refused, one that was not is lifted."""
        arguments = ["--dry-run", "-p", "openai", "--base-url", "http://127.0.0.1:9/v1"]
        arguments += ["-m", "nobody-knows-me", "task"]
        self.refused(2, "give price-table", "--max-cost", "1", *arguments)
        done = self.call("exec", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("limit: none", done.stdout)
        self.assertEqual(done.stderr.count("nobody-knows-me"), 1, done.stderr)


class StatusTest(CommandLineTest):
    def test_exit_status(self):
        self.refused(2, "did you mean --model?", "--modle", "x", "task")
        self.refused(2, "unknown provider", "-p", "nobody", "task")
        self.refused(2, "exclude", "--json", "--jsonl", "task")
        self.refused(4, "OPENAI_API_KEY", "-p", "openai", "task")
        level = json.loads(self.answer("--json", "task"))["sandbox"]["level"]
        for required in ("L1", "L2", "L3", "L4"):
            if required > level:
                self.refused(7, "'rlmd doctor'", *self.script(ANSWER), "--require", required, "task")
            else:
                self.answer("--require", required, "task")
        self.refused(1, "no answer in", *self.script(dict(SHOW, match={"turn": 9})), "task")

    def test_commands(self):
        for arguments, status, words in (
            ((), 2, "rlmd --help"), (("exce",), 2, "did you mean 'exec'?"), (("trace",), 2, "FILE"),
            (("trace", "missing"), 8, "missing"), (("help", "exce"), 2, "did you mean 'exec'?"),
            (("help", "exec", "more"), 2, "'more' is one word too many"),
            ((), 2, "no command was given"), ((), 2, "\n  rlmd review  find what is wrong"),
            (("--json", "exec", "task"), 2, "'--json' stands before the command: options come "
             "behind it, as in 'rlmd exec --json'"),
            (("-m", "x", "plan", "p"), 2, "as in 'rlmd plan -m'"),
            (("--api-key=sk-secret",), 2, "as in 'rlmd exec --api-key'"),
            (("-q",), 2, "there is no command: options come behind it"),
        ):
            with self.subTest(arguments):
                done = self.call(*arguments)
                self.assertEqual((done.returncode, done.stdout), (status, ""))
                self.assertIn(words, done.stderr)
                self.assertNotIn("sk-secret", done.stderr)
        for arguments in (("--help",), ("exec", "-h"), ("trace", "--help"), ("--version",)):
            with self.subTest(arguments):
                done = self.call(*arguments)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertNotEqual(done.stdout, "")
        for command in ("exec", "plan", "review", "merge", "trace", "doctor"):
            helped = self.call("help", command)
            self.assertEqual(helped.returncode, 0)
            self.assertEqual(helped.stdout, self.call(command, "--help").stdout)
        self.assertEqual(self.call("help").stdout, self.call("--help").stdout)
        version = self.call("--version").stdout
        self.assertEqual(self.call("version").stdout, version)
        self.assertRegex(version, r"^rlmd \S+ \(prices of \d{4}-\d\d-\d\d\)\n$")

    def test_merge(self):
        def line(name, success="true"):
            return (f'{{"custom_id":"{name}","tenant":null,"attempts":1,"job":"00000000000000a1",'
                    f'"success":{success}}}\n')

        for name, text in (("1", line("a")), ("2", line("b") + line("a")), ("3", line("a", "false"))):
            (self.directory / name).write_text(text)
        files = [str(self.directory / name) for name in ("out", "1", "2", "3")]
        done = self.call("merge", "-o", *files[:3])
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertIn("out: 2 of 3 lines", done.stderr)
        self.assertEqual(Path(files[0]).read_text(), line("a") + line("b"))
        done = self.call("merge", "-q", "-o", *files)
        self.assertEqual(done.returncode, 8)
        self.assertIn(f"{files[1]}:1 and {files[3]}:1 have different results of 'a'", done.stderr)
        self.assertEqual(self.call("merge", *files).returncode, 2)
        self.assertEqual(self.call("merge", "-o", files[0]).returncode, 2)

    def test_options_belong_to_commands(self):
        """An option of other commands is refused by its name, and no abbreviation names it."""
        for arguments, told in (
            (["doctor", "--p"], "--p may mean --provider, --python, --preload, --policy"),
            (["plan", "--co", "x"], "--co may mean --color, --config\n"),
            (["plan", "-c", "x", "p.json"], "plan has no use for --context"),
            (["review", "-c", "x"], "review has no use for --context"),
            (["exec", "--sarif", "x", "task"], "exec has no use for --sarif"),
            (["doctor", "--max-cost", "1"], "doctor has no use for --max-cost"),
            (["trace", "--model", "x", "t.jsonl"], "trace has no use for --model"),
            (["exec", "--policy", "task"], "exec has no use for --policy"),
            (["trace", "--json", "--text", "t.jsonl"], "--json and --text exclude each other"),
        ):
            with self.subTest(arguments=arguments):
                done = self.call(*arguments)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn("error: " + told, done.stderr)
                self.assertIn(f"'rlmd {arguments[0]} --help' lists the options", done.stderr)

    def test_names_that_mean_another_option(self):
        """A key is never taken from the command line, nor is --file a short form of --files-from."""
        for arguments, told in (
            (["exec", "--api-key", "sk-secret", "task"], "no option --api-key: all users of the machine"),
            (["batch", "--api-key=sk-secret", "x"], "name a file that holds it with --key-file"),
            (["exec", "--key", "sk-secret", "task"], "set it in the environment (OPENAI_API_KEY"),
            (["exec", "--key=sk-secret", "task"], "no option --key: all users"),
            (["exec", "--file", "x", "task"], "no option --file: -c FILE (--context) is a file"),
            (["exec", "task", "--file=x"], "no option --file: -c FILE (--context) is a file"),
            (["review", "--file", "a.c"], "no option --file: --include FILE reviews only that file"),
            (["exec", "--input", "x", "task"], "no option --input: -c FILE"),
            (["trace", "--key", "x"], "no option --key"),
        ):
            with self.subTest(arguments=arguments):
                done = self.call(*arguments)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn(told, done.stderr)
                self.assertNotIn("sk-secret", done.stderr)
        names = self.write("names", "a\n")
        self.write("a", "of a")
        self.assertIn("of a", self.answer("-c", ".", "--files", names, "task"))
        self.assertEqual(self.answer("--contex", self.write("--key", "x"), "task"), "'x'\n")

    def test_settings_of_other_commands(self):
        """In files and in the environment they are nobody's mistake."""
        config = self.write("rlmd.conf", "grace = 1s\nstrict = yes\nprompt = no-such-prompt\n")
        self.environment["RLMD_MAX_COST"] = "1"
        done = self.call("doctor", "--policy", "--json", "--config", config)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_key_names_its_provider(self):
        """Where nobody named one, and exactly one key is set."""
        def provider(*arguments, **environment):
            self.environment.update(environment)
            done = self.call("exec", "--dry-run", "--json", *arguments, "task")
            for name in environment:
                del self.environment[name]
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual("whose key is set; -p names another" in done.stderr,
                             not arguments and json.loads(done.stdout)["provider"] != "ollama")
            return json.loads(done.stdout)["provider"]

        self.assertEqual(provider(), "ollama")
        self.assertEqual(provider(OPENAI_API_KEY="sk-1"), "openai")
        self.assertEqual(provider(ANTHROPIC_API_KEY="sk-1"), "anthropic")
        self.assertEqual(provider(ANTHROPIC_API_KEY=""), "ollama")
        self.assertEqual(provider(OPENAI_API_KEY="sk-1", ANTHROPIC_API_KEY="sk-2"), "ollama")
        self.assertEqual(provider(OPENAI_API_KEY="sk-1", OLLAMA_HOST="127.0.0.1:9"), "ollama")
        self.assertEqual(provider("-p", "ollama", OPENAI_API_KEY="sk-1"), "ollama")
        self.assertEqual(provider("-p", "anthropic", OPENAI_API_KEY="sk-1"), "anthropic")

    def test_where_no_ollama_runs(self):
        """Somebody without a key learns how to ask somebody else."""
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))  # and nobody listens
            self.environment["OLLAMA_HOST"] = "127.0.0.1:%d" % taken.getsockname()[1]
            done = self.call("exec", "task")
            self.assertEqual(done.returncode, 5, done.stderr)
            self.assertIn("-p openai and -p anthropic ask others", done.stderr)
            done = self.call("exec", "-p", "ollama", "task")
            self.assertEqual(done.returncode, 5, done.stderr)
            self.assertNotIn("-p openai", done.stderr)

    def test_variables_that_are_no_setting_are_warned_of(self):
        """Most are mistyped; the result says so too, for whoever reads only that."""
        self.environment.update(RLMD_MAX_COTS="1", RLMD_JSON="1", RLMD_EMPTY="", RLMD_MODEL="m")
        done = self.call("exec", *self.script(ANSWER), "--json", "task")
        warnings = [
            "RLMD_MAX_COTS has no effect: there is no such setting; did you mean RLMD_MAX_COST?",
            "RLMD_JSON has no effect: --json can stand on the command line only",
        ]
        self.assertEqual(done.returncode, 0, done.stderr)
        for warning in warnings:
            self.assertIn(warning, json.loads(done.stdout)["warnings"])
            self.assertEqual(done.stderr.count(warning), 1)
        self.assertNotIn("RLMD_EMPTY", done.stderr)
        self.assertNotIn("RLMD_MODEL ", done.stderr)
        self.assertIn(warnings[0], self.call("doctor", "--policy").stderr)

    def test_strict(self):
        entries = (block("1"), dict(FORCED, repeat=True))
        arguments = ["--max-iterations", "1", "task"]
        done = self.call("exec", *self.script(*entries), *arguments)
        self.assertEqual((done.returncode, done.stdout), (0, "as far as I came\n"), done.stderr)
        self.assertIn("Budget exhausted, answer was forced", done.stderr)
        done = self.call("exec", *self.script(*entries), "--strict", *arguments)
        self.assertEqual((done.returncode, done.stdout), (6, "as far as I came\n"))


class SignalTest(CommandLineTest):
    def start(self, *entries, prefix=(), options=()):
        """Starts a run and waits until its block sleeps."""
        trace = self.directory / "trace"
        process = subprocess.Popen(
            [*prefix, RLMD, "exec", *self.script(*entries), "--trace", trace, *options, "task"],
            env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        self.wait_for(lambda: trace.exists() and '"event":"response"' in trace.read_text())
        return process

    def wait_for(self, condition):
        patience.wait_until(condition, "the program")

    def finish(self, process):
        out, err = process.communicate(timeout=patience.hung())
        return process.returncode, out, err

    def test_once_forces_an_answer(self):
        for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)):
            with self.subTest(number):
                process = self.start(SLEEP, FORCED)
                process.send_signal(number)
                code, out, err = self.finish(process)
                self.assertEqual((code, out), (status, "as far as I came\n"), err)
                self.assertIn("rlmd: interrupted after", err)
                (self.directory / "trace").unlink()

    def test_twice_stops(self):
        slow = {"match": {"kind": "forced"}, "response": {"text": "never", "delay": 50000}}
        process = self.start(SLEEP, slow, options=("--json", "--grace", "50s"))
        process.send_signal(signal.SIGINT)
        self.assertIn("interrupted", process.stderr.readline())
        process.send_signal(signal.SIGINT)
        code, out, err = self.finish(process)
        self.assertEqual(code, 130, err)
        result = json.loads(out)
        self.assertEqual((result["success"], result["stopReason"]), (False, "interrupted"))
        self.assertEqual(set(result["usage"]), USAGE)
        self.assertGreater(result["usage"]["inputTokens"], 0)
        self.assertTrue(result["usage"]["costComplete"])
        self.assertTrue(result["usage"]["estimated"])  # of the call that was cut
        self.assertEqual(len(result["trace"]["iterations"]), 1)
        self.assertRegex(err, r"(?m)^rlmd: interrupted after .*: 1 turn, \d calls?, .* of \$5\.00, partly")
        self.assertRegex(err, r"(?m)^rlmd: isolation L[1-4]$")
        last = (self.directory / "trace").read_text().splitlines()[-1]
        self.assertEqual(json.loads(last)["event"], "result")

    def test_an_ignored_signal_stays_ignored(self):
        short = block(f"import time\ntime.sleep({patience.seconds(1)})\nFINAL(3)")
        process = self.start(short, prefix=("sh", "-c", 'trap "" HUP; exec "$@"', "sh"))
        process.send_signal(signal.SIGHUP)
        code, out, err = self.finish(process)
        self.assertEqual((code, out), (0, "3\n"), err)

    def test_killed(self):
        """LIB-15, ENG-15: nothing survives SIGKILL but a trace that can be read."""
        process = self.start(SLEEP, ANSWER, options=("-o", str(self.directory / "out")))
        process.kill()
        self.finish(process)
        done = self.call("trace", "trace")
        self.assertEqual(json.loads(done.stdout)["answerSource"], "error")
        self.wait_for(lambda: not leaks.descendants())
        self.answer("task")  # takes away the cgroup of the killed one
        left = [path.name for path in self.directory.iterdir()]
        self.assertEqual([name for name in left if name.startswith((".", "out"))], [])


class TerminalTest(CommandLineTest):
    WILD = {"match": {}, "response": {"text": "FINAL(a\033[31mb\nc\u009bd)"}}

    def on_terminal(self, *arguments, command="exec", columns=80, **environment):
        """The output on a terminal, and the status."""
        self.environment.update(environment)
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = subprocess.Popen(
            [RLMD, command, *arguments], env=self.environment, stdin=theirs, stdout=theirs,
            stderr=theirs, cwd=self.directory,
        )
        os.close(theirs)
        seen, deadline = b"", time.monotonic() + patience.hung()
        while time.monotonic() < deadline:
            try:
                if select.select([ours], [], [], 1)[0]:
                    seen += os.read(ours, 65536)
            except OSError:  # the other side is closed
                break
        os.close(ours)
        return seen.decode(), process.wait(patience.hung())

    def test_live_line(self):
        slow = block(f"import time\ntime.sleep({patience.seconds(0.5)})")
        seen, status = self.on_terminal(*self.script(slow, ANSWER), "task", columns=40)
        self.assertEqual(status, 0, seen)
        lines = [part for part in seen.split("\r") if "turn 1 | depth 0" in part]
        self.assertTrue(lines, seen)
        for line in lines:
            self.assertLessEqual(len(line.replace("\033[2m", "").replace("\033[0m\033[K", "")), 40)
        before, after = seen.split("the answer\r\n")
        self.assertTrue(before.endswith("\r\033[K"), before)
        self.assertIn("rlmd: done in", after)

    def test_what_comes_before_the_first_turn(self):
        """Loading and starting are shown, and nothing is left of it; a pipe gets none of it."""
        path = self.write("input", "x" * 5000)
        seen, status = self.on_terminal(*self.script(ANSWER), "-c", path, "task")
        self.assertEqual(status, 0, seen)
        reading = seen.index("\r\033[2mreading: 0B\033[0m\033[K\r\033[K")
        starting = seen.index("\r\033[2mstarting a worker\033[0m\033[K\r\033[K")
        self.assertLess(reading, starting)
        self.assertLess(starting, seen.index("the answer"))
        for quiet in (["-q"], ["--color=never"]):
            done = self.call("exec", *self.script(ANSWER), *quiet, "-c", path, "task")
            self.assertNotIn("reading", done.stderr)
            self.assertNotIn("starting", done.stderr)
        seen, _ = self.on_terminal(*self.script(ANSWER), "-q", "-c", path, "task")
        self.assertEqual(seen, "the answer\r\n")

    def test_narrow_terminals_keep_cost_and_time(self):
        """Parts that do not fit are left out from the least to the most wanted."""
        slow = block(f"import time\ntime.sleep({patience.seconds(0.5)})")
        for columns, shown in (
            (90, r"turn 1 \| depth 0 \| 0 calls in flight \| \S+ tokens \| \$0\.00 of \$5\.00 \| \d+s"),
            (60, r"turn 1 \| depth 0 \| 0 calls \| \$0\.00 of \$5\.00 \| \d+s"),
            (46, r"turn 1 \| depth 0 \| \$0\.00 of \$5\.00 \| \d+s"),
            (32, r"turn 1 \| \$0\.00 of \$5\.00 \| \d+s"),
            (22, r"\$0\.00 of \$5\.00 \| \d+s"),
            (15, r"\$0\.00 of \$5\.00"),
            (12, r"\$0\.00"),
        ):
            with self.subTest(columns):
                seen, status = self.on_terminal(*self.script(slow, ANSWER), "task", columns=columns)
                self.assertEqual(status, 0, seen)
                self.assertRegex(seen, r"\r\033\[2m" + shown + r"\033\[0m\033\[K")

    def test_live_line_of_a_plan(self):
        """How many operations have ended; the result is whole, and nothing is left of the line."""
        path = self.write("plan.json", json.dumps({
            "operations": [{"id": "a", "input": "x"}, {"id": "b", "input": "x", "dependsOn": ["a"]}]
        }))
        slow = {"response": {"text": "\033[31mfine", "delay": int(1000 * patience.seconds(0.5))},
                "repeat": True}
        seen, status = self.on_terminal(*self.script(slow), path, command="plan")
        self.assertEqual(status, 0, seen)
        self.assertIn("\r\033[2m1 of 2 operations | 1 call in flight | ", seen)
        before, after = seen.split('{"results":')
        self.assertTrue(before.endswith("\r\033[K"), before)
        self.assertEqual(json.loads('{"results":' + after.split("\r\n")[0])["cancelled"], [])
        self.assertIn("rlmd: done in", after)

    def test_plain_terminals(self):
        slow = block(f"import time\ntime.sleep({patience.seconds(0.5)})")
        seen, _ = self.on_terminal(*self.script(slow, ANSWER), "task", TERM="dumb")
        self.assertNotIn("\033", seen)
        self.assertNotIn("turn 1 |", seen)
        seen, _ = self.on_terminal(*self.script(slow, ANSWER), "task", TERM="xterm", NO_COLOR="1")
        self.assertIn("turn 1 |", seen)
        self.assertNotIn("\033[2m", seen)

    def test_colors_on_demand(self):
        done = self.call("exec", "--color=always", "-p", "nobody", "task")
        self.assertIn("\033[31merror:\033[0m", done.stderr)
        done = self.call("exec", "-p", "nobody", "task")
        self.assertNotIn("\033", done.stderr)

    def test_what_a_model_wrote_is_escaped_on_a_terminal_only(self):
        seen, _ = self.on_terminal(*self.script(self.WILD), "-q", "task")
        self.assertEqual(seen, "a\\x1b[31mb\r\nc\\u009bd\r\n")
        done = self.call("exec", *self.script(self.WILD), "-q", "task")
        self.assertEqual(done.stdout, "a\033[31mb\nc\u009bd\n")

    def test_an_object_on_a_terminal_is_still_json(self):
        """With the same value, and nothing in it that a terminal acts on or does not show."""
        wild = "a\033[31m\u009b\x7f\u202eb\u061c\u200b\U000e0041\U000e0100\ufffa"
        wild = {"match": {}, "response": {"text": f"FINAL({wild})"}}
        piped = self.call("exec", *self.script(wild), "-q", "--json", "task").stdout
        for option in ("--json", "--jsonl"):
            seen, _ = self.on_terminal(*self.script(wild), "-q", option, "task")
            self.assertRegex(seen, r"\A[ -~\r\n]*\Z")
            last = json.loads(seen.splitlines()[-1])
            self.assertEqual(last["output"], json.loads(piped)["output"])
        seen, _ = self.on_terminal(*self.script(wild), "-q", "--trace", "/dev/stderr", "-o", "out", "task")
        self.assertRegex(seen, r"\A[ -~\r\n]*\Z")
        self.assertEqual(json.loads(seen.splitlines()[-1])["output"], json.loads(piped)["output"])

    def test_a_terminal_is_never_read_unasked(self):
        """No task, or a task alone: neither waits for somebody to type."""
        seen, status = self.on_terminal()
        self.assertEqual(status, 2)
        self.assertIn("--help", seen)
        seen, status = self.on_terminal(*self.script(SHOW), "-q", "task")
        self.assertEqual((seen, status), ("''\r\n", 0))


if __name__ == "__main__":
    unittest.main()

"""`rlmd trace`: for programs on a pipe, for people on a terminal, from a file or a pipe."""
import json
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from test_command_line import TerminalTest as Terminals  # noqa: E402
from test_command_line import CommandLineTest, block  # noqa: E402

FEW = 605  # micro-dollars that a call costs


def traced(test, *arguments):
    """The trace of a run with a turn, a call, a sub-run and an answer, each with its price."""
    cost = FEW / 1e6
    entries = (
        dict(block("print('look')\nllm_query('small?')\nrlm_query('below?', 'x')\n1/0")),
        {"match": {"kind": "llm_query"}, "response": {"text": "small", "cost": cost}},
        {"match": {"kind": "turn", "depth": 1}, "response": {"text": "FINAL(down)", "cost": cost}},
        {"match": {"kind": "turn"}, "response": {"text": "FINAL(wild \033[31m)", "cost": cost}},
    )
    path = str(test.directory / "t.jsonl")
    done = test.call("exec", *test.script(*entries), "--trace", path, *arguments, "what is it?")
    test.assertEqual(done.returncode, 0, done.stderr)
    return path


class FormTest(CommandLineTest):
    def test_a_pipe_gets_json(self):
        path = traced(self)
        shown = self.call("trace", path)
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        self.assertEqual(json.loads(shown.stdout)["finalAnswer"], "wild \033[31m")
        self.assertEqual(self.call("trace", "--json", path).stdout, shown.stdout)

    def test_costs_are_written_as_they_are(self):
        """Not as the nearest binary fraction with seventeen digits."""
        shown = self.call("trace", traced(self)).stdout
        self.assertIn('"cost": 0.000605,', shown)
        self.assertNotRegex(shown, r'"cost": \d\.\d{13}')

    def test_standard_input(self):
        path = traced(self)
        content = Path(path).read_text()
        self.assertEqual(self.call("trace", "-", input=content).stdout, self.call("trace", path).stdout)
        empty = self.call("trace", "-", input="")
        self.assertEqual((empty.returncode, empty.stdout), (8, ""))
        self.assertIn("standard input is no trace", empty.stderr)

    def test_text(self):
        """Turns with their code, what it printed and its error; calls; sub-runs; the answer."""
        shown = self.call("trace", "--text", traced(self)).stdout
        for line in (
            r"run [0-9a-f]{8} at depth 0, replay: \S+, \S+ tokens in, \d+ out, \$\d.*",
            r"  \? what is it\?", r"  turn 1: \S+, .* tokens in, \d+ out, .*", r"    block: \S+",
            r"      < print\('look'\)", r"      \| look", r"      ! ZeroDivisionError: .*",
            r"  llm_query: \S+, \d+ tokens in, \d+ out, \$0\.000605", r"    < small\?", r"    \| small",
            r"  run [0-9a-f]{8} at depth 1, .*\$0\.000605, partly estimated", r"    \? below\?", r"      = down",
            r"  final_direct \(final\)", r"    = wild .*",
        ):
            self.assertRegex(shown, "(?m)^" + line + "$")
        self.assertLess(shown.index("turn 1:"), shown.index("turn 2:"))

    def test_text_tells_what_is_estimated(self):
        """A run's usage, and not where the provider told all of it."""
        told = {"match": {"kind": "turn"}, "response": {
            "text": "FINAL(x)", "usage": {"input": 7, "output": 3, "estimated": False}}}
        path = str(self.directory / "t.jsonl")
        self.call("exec", *self.script(told), "--trace", path, "task")
        self.assertNotIn("estimated", self.call("trace", "--text", path).stdout)
        self.assertIn("$0.00, partly estimated\n",
                      self.call("trace", "--text", self.without_end(path)).stdout)

    def without_end(self, path):
        lines = Path(path).read_text().splitlines(True)
        return self.write("cut.jsonl", "".join(line for line in lines
                                               if json.loads(line)["event"] not in ("end", "result")))

    def test_long_texts_show_their_beginning(self):
        code = "\n".join("a%d = 1" % i for i in range(30))
        path = str(self.directory / "t.jsonl")
        answer = {"match": {"kind": "turn"}, "response": {"text": "FINAL(x)"}}
        self.call("exec", *self.script(block(code), answer), "--trace", path, "task")
        shown = self.call("trace", "--text", path).stdout
        self.assertIn("< a11 = 1\n", shown)
        self.assertNotIn("< a12 = 1\n", shown)
        self.assertIn("< (18 more lines)\n", shown)
        self.assertIn("< a29 = 1\n", self.call("trace", "--text", "-v", path).stdout)

    def test_a_killed_run(self):
        """A trace without an end is shown as far as it came."""
        path = traced(self)
        lines = Path(path).read_text().splitlines(True)
        Path(path).write_text("".join(lines[:3]) + '{"event": "co')
        shown = self.call("trace", "--text", path)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("error", shown.stdout)

    def test_runs_that_nest_without_end(self):
        """A file may say anything: it is shown as deep as runs can nest."""
        events = [
            {"event": "run", "seq": i, "run": f"r{i}", "parent": f"r{i - 1}" if i else None, "depth": i,
             "task": "t", "model": "m"} for i in range(60000)
        ]
        path = self.write("deep.jsonl", "".join(json.dumps(event) + "\n" for event in events))
        for form, mark in (("--text", "at depth"), ("--json", '"parentId"')):
            shown = self.call("trace", form, path)
            self.assertEqual(shown.returncode, 0, shown.stderr)
            self.assertEqual(shown.stdout.count(mark), 32)

    def test_numbers_beyond_all_bounds(self):
        """Their sums stay at the bound."""
        most = (1 << 63) - 1
        part = {"run": "r", "ms": -most, "index": most, "duration": -most, "cachedTokens": most}
        turn = {**part, "event": "response", "prompt": {"content": "p", "tokens": most},
                "response": {"content": "a", "tokens": most, "cost": 1e308}}
        call = {**part, "event": "llm_call", "inputTokens": most, "outputTokens": most, "cost": 1e308}
        events = [{"event": "run", "seq": 0, "run": "r", "parent": None, "depth": 0, "task": "t",
                   "model": "m", "ms": most}, turn, turn, call, {**part, "event": "code"}]
        path = self.write("vast.jsonl", "".join(json.dumps(event) + "\n" for event in events))
        shown = self.call("trace", "--json", path)
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        usage = json.loads(shown.stdout)["usage"]
        for name in ("tokens", "inputTokens", "outputTokens", "cachedTokens"):
            self.assertEqual(usage[name], most)
        self.assertEqual((usage["duration"], usage["llmCalls"]), (0, 3))
        shown = self.call("trace", "--text", path)
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))

    def test_bad_arguments(self):
        for arguments in (("trace", "--tree", "x"), ("trace", "a", "b"), ("trace", "-j")):
            done = self.call(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("rlmd trace --help", done.stderr)


class TerminalTest(CommandLineTest):
    on_terminal = Terminals.on_terminal

    def test_a_terminal_gets_text(self):
        path = traced(self)
        seen, status = self.on_terminal(path, command="trace")
        self.assertEqual(status, 0, seen)
        self.assertRegex(seen, r"^run [0-9a-f]{8} at depth 0")
        self.assertIn("= wild \\x1b[31m", seen)
        self.assertNotIn("\033", seen)
        seen, _ = self.on_terminal("--json", path, command="trace")
        self.assertEqual(json.loads(seen)["stopReason"], "final")


# Imported for what they offer, not to be run again here.
del Terminals

if __name__ == "__main__":
    unittest.main()

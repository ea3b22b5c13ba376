"""tools/prompts: the real tool and the real program, against the scripted server."""

import hashlib
import importlib.util
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest
import zipfile
from xml.etree import ElementTree

import patience
from harness import RLMD, GuardedTest, block
from model import ModelServer, Reply

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools/prompts"

# Code that solves each task from its text alone: (pattern found in the task, code). What the
# pattern captured is {0} in the code.
SOLUTIONS = {
    "needle": (r"code of the depot in (\w+)\?", r"""
import re
FINAL(re.search(r"depot in {0} is (\S+)\.", context)[1])"""),
    "count": (r"have the status (\d+)\?", r"""
FINAL(context.count("status={0} "))"""),
    "join": (r"customers from (\w+)\?", r"""
tables = {{path.rsplit("/", 1)[-1]: [line.split(",") for line in text.splitlines()]
          for path, text in context.files.items()}}
there = {{row[0] for row in tables["customers.csv"] if row[2] == "{0}"}}
FINAL(sum(int(row[2]) for row in tables["orders.csv"] if row[1] in there))"""),
    "largest": (r"(MB used)\?", r"""
rows = [line.split() for line in context.splitlines()]
FINAL(max(rows, key=lambda row: int(row[1]))[0].rstrip(":"))"""),
    "defines": (r"defines the function (\w+)\?", r"""
FINAL(next(path for path, text in context.files.items() if "def {0}(" in text))"""),
    "classify": (r"(customers unhappy)\?", r"""
import collections, re
found = collections.Counter()
for thing, said in re.findall(r"About the (\w+): (.*)", context):
    found[thing] += bool(re.search("broke|waited|stopped|back|worst", said))
FINAL(found.most_common(1)[0][0])"""),
    "tally": (r"(came late)\?", r"""
import re
FINAL(len(re.findall("longer than promised|I waited|came the week after", context)))"""),
    "chain": (r"(\w+) has handed a depot over", r"""
import re
over = dict(re.findall(r"(\w+) has handed the depot over to (\w+)\.", context))
place = dict(re.findall(r"The depot that (\w+) runs is in (\w+)\.", context))[over[over["{0}"]]]
FINAL(re.search(r"access code in %s is (\S+)\." % place, context)[1])"""),
    "callers": (r"call the function (\w+)\?", r"""
FINAL(sum("= {0}(" in text for text in context.files.values()))"""),
    "aggregate": (r"minutes was (\w+) down", r"""
import re
FINAL(sum(int(re.search(r"(\d+) minutes", line)[1]) for line in context.splitlines()
          if re.search(r"\b{0}\b.*minutes", line)))"""),
}


def solve(request):
    """The reply that solves whichever task is asked for."""
    for pattern, code in SOLUTIONS.values():
        found = re.search(pattern, request.last_user)
        if found:
            return Reply(text=block(*code.strip().format(found[1]).splitlines()))
    raise AssertionError(request.last_user)


class PromptsTest(GuardedTest):
    def server(self, *replies):
        server = ModelServer("openai").start()
        self.addCleanup(server.stop)
        return server.replies(*replies)

    def start_tool(self, server, *arguments, **more):
        command = [sys.executable, TOOL, "--rlmd", RLMD, "--provider", "openai", "--model", "m",
                   *arguments]
        process = subprocess.Popen([str(each) for each in command], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=self.environment(**server.environment() if server else {}),
                                   **more)
        self.addCleanup(self.end, process)
        return process

    def tool(self, server, *arguments, status=0):
        """Runs the tool to its end: what it printed, and what it said meanwhile."""
        process = self.start_tool(server, *arguments)
        out, err = process.communicate(timeout=patience.hung())
        self.assertEqual(process.returncode, status, err + out)
        return out, err

    def one(self, server, *arguments):
        """The only run of the needle, out of --json."""
        out, _ = self.tool(server, "--size", "small", "--tasks", "needle", "--runs", "1", "--json",
                           *arguments)
        (run,) = json.loads(out)["runs"]
        return run


class Scores(PromptsTest):
    def test_every_task_can_be_solved(self):
        """By code that looks at nothing but the text: so the answers are right, and in it."""
        for size in ("small", "20k"):
            with self.subTest(size=size):
                server = self.server().script(None, solve)
                out, _ = self.tool(server, "--size", size, "--runs", "2", "--json")
                told = json.loads(out)
                self.assertEqual([(run["task"], run["kind"], run["answer"]) for run in told["runs"]],
                                 [(run["task"], "right", str(run["expected"]))
                                  for run in told["runs"]])
                self.assertEqual(sorted({run["task"] for run in told["runs"]}), sorted(SOLUTIONS))
                self.assertEqual(len(told["runs"]), 2 * len(SOLUTIONS))
                every = told["summary"]["rlmd"]["all"]
                self.assertEqual((every["right"], every["runs"], every["codeAtOnce"]), (20, 20, 20))
                self.assertEqual((every["turns"], every["calls"], every["failures"]), (1, 1, {}))
                tokens = sum(request.billed_input + request.billed_output
                             for request in server.requests)
                self.assertEqual(sum(run["tokens"] for run in told["runs"]), tokens)

    def test_wrong(self):
        run = self.one(self.server(Reply(text="FINAL(XX-0000)")))
        self.assertEqual((run["right"], run["kind"], run["answer"]), (False, "wrong", "XX-0000"))
        self.assertFalse(run["codeAtOnce"])

    def test_errors_of_blocks_are_counted(self):
        run = self.one(self.server(Reply(text=block("1 / 0")), Reply(text=block("nothing_here")),
                                   Reply(text=block("print(1)")), Reply(text="FINAL(XX-0000)")))
        self.assertEqual(run["blockErrors"], {"ZeroDivisionError": 1, "NameError": 1})
        self.assertEqual((run["blocks"], run["turns"], run["codeAtOnce"]), (3, 4, True))

    def test_forced(self):
        look = Reply(text=block("print(len(context))"))
        run = self.one(self.server(look, Reply(text="It is XX-0000.")), "--max-turns", "1")
        self.assertEqual((run["kind"], run["forced"], run["detail"]),
                         ("forced", True, "max_iterations"))

    def test_forced_and_right(self):
        """It is a success, and counted as forced all the same."""
        answer = self.answer_of_the_needle()
        server = self.server(Reply(text=block("print(1)")), Reply(text=f"The code is {answer}."))
        run = self.one(server, "--max-turns", "1")
        self.assertEqual((run["kind"], run["forced"]), ("right", True))

    def answer_of_the_needle(self):
        directory = self.dir / "written"
        self.tool(None, "--size", "small", "--tasks", "needle", "--runs", "1", "--write", directory)
        return json.loads((directory / "needle-0.json").read_text())["answer"]

    def test_no_code(self):
        prose = Reply(text="I would have to look at the text first.")
        self.assertEqual(self.one(self.server(prose, prose, prose, prose))["kind"], "no code")

    def test_no_answer(self):
        prose = Reply(text="I would have to look at the text first.")
        server = self.server(prose, prose, prose).script(None, Reply(text=""))
        self.assertEqual(self.one(server)["kind"], "no answer")

    def test_budget(self):
        server = self.server(Reply(text=block("print(1)"))).script(None, Reply(text=""))
        self.assertEqual(self.one(server, "--max-turns", "1")["kind"], "budget")

    def test_failures_of_the_provider(self):
        for reply, kind, detail in (
                (Reply(error="auth"), "provider", "auth: "),
                (Reply(error="not_found"), "provider", "not_found: "),
                (Reply(error="billing"), "provider", "billing: "),
                (Reply(text="no", finish="refusal"), "refused", "refused: ")):
            with self.subTest(reply=reply):
                run = self.one(self.server(reply))
                self.assertEqual(run["kind"], kind)
                self.assertTrue(run["detail"].startswith(detail), run["detail"])

    def test_window(self):
        server = self.server().script(None, Reply(error="context_overflow"))
        self.assertEqual(self.one(server)["kind"], "window")

    def test_sandbox(self):
        """A worker that dies while it is made ready."""
        made = subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", self.dir / "venv"])
        if made.returncode:
            self.skipTest("/usr/bin/python3 has no venv (apt-get install python3-venv)")
        (packages,) = (self.dir / "venv/lib").glob("python3*/site-packages")
        (packages / "dies.py").write_text("import os; os._exit(3)\n")
        run = self.one(self.server(), "--", "--python", self.dir / "venv/bin/python",
                       "--preload", "dies")
        self.assertEqual((run["kind"], run["turns"]), ("sandbox", 0), run["detail"])

    def test_a_program_that_fails(self):
        """Its last words are told, where it gave no result."""
        broken = self.write("broken", "#!/bin/sh\necho oh no >&2\nexit 3\n")
        os.chmod(broken, 0o755)
        run = self.one(self.server(), "--rlmd", broken)
        self.assertEqual((run["kind"], run["detail"]),
                         ("error", "exit status 3 without a result: oh no"))

    def test_table(self):
        """A line for each task, one for all; failures by kind."""
        server = self.server(Reply(text="FINAL(XX-0000)"), Reply(error="auth"),
                             Reply(text="FINAL(nothing)"))
        server.script(None, solve)
        out, err = self.tool(server, "--size", "small", "--tasks", "needle,count", "--runs", "3")
        lines = [re.split(r"  +", line) for line in out.splitlines()]
        self.assertEqual(lines[0], ["system", "task", "right", "95 %", "forced", "code at once",
                                    "errors", "turns", "tokens", "seconds", "failures"])
        self.assertEqual([line[:3] for line in lines[1:]],
                         [["rlmd", "needle", "0/3"], ["rlmd", "count", "3/3"],
                          ["rlmd", "all", "3/6"]])
        self.assertEqual([line[-1] for line in lines[1:] if len(line) == 11],
                         ["wrong 2, provider 1", "wrong 2, provider 1"])
        self.assertRegex(err, r"(?m)^rlmd: needle 2/3: provider \(auth: .*\), 1 turns,")
        self.assertRegex(err, r"(?m)^rlmd: count 1/3: right, 1 turns,")
        self.assertEqual([line[3] for line in lines[1:]], ["0%-56%", "44%-100%", "19%-81%"])

    def test_several_sizes(self):
        """A line for each, what a run costs where that is known, and a picture."""
        server = self.server(Reply(text="FINAL(XX-0000)"))
        server.script(None, solve)
        picture = self.dir / "right.svg"
        prices = self.write("prices.json", json.dumps(
            {"m": {"input_cost_per_token": 1e-06, "output_cost_per_token": 1e-06}}))
        out, _ = self.tool(server, "--size", "5k,50k", "--tasks", "needle,count", "--runs", "1",
                           "--plot", picture, "--", "--price-table", prices)
        lines = [re.split(r"  +", line) for line in out.splitlines()]
        self.assertEqual(lines[0][:4] + lines[0][9:12],
                         ["system", "size", "task", "right", "tokens", "dollars", "seconds"])
        self.assertEqual([line[1:4] for line in lines[1:]], [
            ["5k", "needle", "0/1"], ["5k", "count", "1/1"], ["5k", "all", "1/2"],
            ["50k", "needle", "1/1"], ["50k", "count", "1/1"], ["50k", "all", "2/2"]])
        for line in lines[1:]:
            self.assertGreater(float(line[10]), 0)
        drawn = ElementTree.parse(picture)
        svg = "{http://www.w3.org/2000/svg}"
        heights = [float(point.get("cy")) for point in drawn.iter(svg + "circle")]
        self.assertEqual(len(heights), 2)
        self.assertGreater(heights[0], heights[1])
        words = [text.text for text in drawn.iter(svg + "text")]
        self.assertIn("50,000", words)
        self.assertIn("rlmd", words)

    def test_prompts_are_compared(self):
        """Each gets the same tasks, in turn, and a line of its own."""
        mine = self.dir / "mine"
        self.write("mine/root.txt", "These are my words.\n")
        server = self.server().script(
            lambda request: "These are my words." in request.system, Reply(text="FINAL(XX-0000)"))
        server.script(None, solve)
        out, _ = self.tool(server, "--size", "small", "--tasks", "needle,count", "--runs", "1",
                           "--json", "--prompt", "default", "--prompt", mine)
        told = json.loads(out)
        self.assertEqual([(run["system"], run["task"], run["kind"]) for run in told["runs"]],
                         [("rlmd default", "needle", "right"), (f"rlmd {mine}", "needle", "wrong"),
                          ("rlmd default", "count", "right"), (f"rlmd {mine}", "count", "wrong")])
        self.assertEqual(told["summary"][f"rlmd {mine}"]["all"]["failures"], {"wrong": 2})

    def test_what_is_kept(self):
        """--keep: the whole result of each run, by system, task and number."""
        server = self.server().script(None, solve)
        kept = self.dir / "kept"
        self.one(server, "--keep", kept)
        result = json.loads((kept / "rlmd-needle-0.json").read_text())
        self.assertEqual(len(result["trace"]["iterations"]), 1)


class Tasks(PromptsTest):
    # Of all that --write makes for seed 7: they may not change unnoticed, or scores that were
    # measured at different times could not be compared.
    DIGEST = "ed305f8d799bec45f5de59c07663059427c399baec8b6331afdacb55b86f0513"

    def written(self, *arguments):
        directory = self.dir / f"tasks-{time.monotonic_ns()}"
        self.tool(None, "--size", "small", "--runs", "2", *arguments, "--write", directory)
        return {str(path.relative_to(directory)): path.read_bytes()
                for path in sorted(directory.rglob("*")) if path.is_file()}

    def test_a_seed_makes_the_same_tasks(self):
        first = self.written("--seed", "7")
        self.assertEqual(first, self.written("--seed", "7"))
        digest = hashlib.sha256()
        for name, content in first.items():
            digest.update(name.encode() + b"\0" + content + b"\0")
        self.assertEqual(digest.hexdigest(), self.DIGEST)
        other = self.written("--seed", "8")
        same = [name for name in first if first[name] == other.get(name)]
        self.assertEqual(same, [])

    def test_runs_differ(self):
        found = self.written("--seed", "7")
        for task in SOLUTIONS:
            with self.subTest(task=task):
                self.assertNotEqual(*(json.loads(found[f"{task}-{run}.json"])["question"].encode()
                                      + b"".join(content for name, content in found.items()
                                                 if name.startswith(f"{task}-{run}/"))
                                      for run in (0, 1)))

    def test_sizes(self):
        """The files of a task have the size that was asked for, give or take a few lines."""
        for size, characters in (("5k", 5000), ("medium", 60000)):
            found = self.written("--size", size)
            for task in SOLUTIONS:
                with self.subTest(size=size, task=task):
                    long = sum(len(content) for name, content in found.items()
                               if name.startswith(f"{task}-0/"))
                    self.assertGreater(long, 0.7 * characters)
                    self.assertLess(long, 1.3 * characters)


class Checks(unittest.TestCase):
    """Answers are compared leniently, and no list of guesses passes."""

    @classmethod
    def setUpClass(cls):
        sys.path.insert(0, str(ROOT / "tools"))
        from scoring import tasks
        cls.Task = staticmethod(tasks.Task)

    def test_numbers(self):
        task = self.Task("count", "How many requests have the status 503?", {}, 1234)
        for said in ("1234", "1,234", "There are 1234 requests.", "**1234**", "1234.0", "= 1234",
                     "Of 1500 requests 1234 have the status 503.", "(1234)", "answer: 1234;"):
            with self.subTest(said=said):
                self.assertTrue(task.right(said))
        for said in ("", "1235", "12345", "12.1234", "0.1234", "1234.5", "x1234", "2026-1234",
                     "one of 1, 2, 3, 1234", "about 12:1234", "many"):
            with self.subTest(said=said):
                self.assertFalse(task.right(said))

    def test_identifiers(self):
        task = self.Task("largest", "Which disk?", {}, "disk-12", ["disk-1", "disk-2", "disk-123"])
        for said in ("disk-12", "`disk-12`", "It's Disk-12.", "disk-12, then disk-1", "(disk-12)"):
            with self.subTest(said=said):
                self.assertTrue(task.right(said))
        for said in ("", "disk-1", "disk-123", "disk-1, then disk-12", "adisk-12", "12"):
            with self.subTest(said=said):
                self.assertFalse(task.right(said))

    def test_paths(self):
        task = self.Task("defines", "Which file?", {}, "net/page_3.py", ["core/page_1.py"])
        for said in ("net/page_3.py", "page_3.py", "./net/page_3.py", "In `net/page_3.py`."):
            with self.subTest(said=said):
                self.assertTrue(task.right(said))
        for said in ("core/page_1.py", "core/page_1.py or net/page_3.py", "page_3.pyc", "page_3"):
            with self.subTest(said=said):
                self.assertFalse(task.right(said))


class Ends(PromptsTest):
    def interrupt(self, number, *arguments):
        """Ends the tool by a signal while its second run waits for the model."""
        asked = []

        def hang(request):
            asked.append(request)
            return Reply(until=lambda: False)

        server = self.server(Reply(text="FINAL(XX-0000)")).script(None, hang)
        process = self.start_tool(server, "--size", "small", "--tasks", "needle", "--runs", "2",
                                  *arguments)
        patience.wait_until(lambda: asked, "the second run's request")
        process.send_signal(number)
        out, err = process.communicate(timeout=patience.hung())
        return process.returncode, out, err

    def test_interrupted(self):
        """Nothing is left behind, and what had been measured is told."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number=number):
                status, out, err = self.interrupt(number)
                self.assertEqual(status, 128 + number, err)
                self.assertRegex(out, r"(?m)^rlmd +needle +0/1 .* wrong 1$")

    def test_interrupted_with_json(self):
        status, out, _ = self.interrupt(signal.SIGTERM, "--json")
        self.assertEqual((status, len(json.loads(out)["runs"])), (128 + signal.SIGTERM, 1))

    def test_wrong_command_lines(self):
        """Each in a sentence, before anything is run."""
        for arguments, said in (
                (["--tasks", "nedle"], "there is no task 'nedle'; there are needle, count, "),
                (["--size", "huge"], "'huge' is no size: small, medium, large, or characters"),
                (["--runs", "0"], "--runs is at least 1"),
                (["--rlmd", "/nowhere/rlmd"], "/nowhere/rlmd is no program: tools/build build makes"),
                (["--peer", "rlms", "--provider", "anthropic"], "an endpoint of --provider openai"),
                (["--prompt", "nonsense"], "nonsense"),
                (["--", "--nonsense"], "there is no option --nonsense"),
                (["--", "-c", "/nowhere/file"], "/nowhere/file")):
            with self.subTest(arguments=arguments):
                server = self.server()
                out, err = self.tool(server, *arguments, status=2)
                self.assertIn(said, err)
                self.assertNotIn("Traceback", err)
                self.assertEqual((out, server.requests), ("", []))


# In place of the peer of this name, for tests may not fetch anything: it gives the needle's answer
# in its first run, and fails in its second.
RLMS = {
    "rlm/__init__.py": """
import os, re, types
class RLM:
    def __init__(self, backend, backend_kwargs, logger, **limits):
        print("noise on standard output")
        self.model, self.logger = backend_kwargs["model_name"], logger
    def completion(self, prompt, root_prompt):
        self.logger.iterations = [{}, {}]
        if os.path.exists(MARK):
            raise RuntimeError("the second run")
        open(MARK, "w").close()
        place = re.search(r"depot in (\\w+)", root_prompt)[1]
        answer = re.search(rf"depot in {place} is (\\S+)\\.", prompt)[1]
        used = types.SimpleNamespace(total_calls=3, total_input_tokens=40, total_output_tokens=2)
        summary = types.SimpleNamespace(model_usage_summaries={self.model: used})
        return types.SimpleNamespace(response=answer, usage_summary=summary)
MARK = os.path.join(os.path.dirname(__file__), "mark")
""",
    "rlm/logger.py": """
class RLMLogger:
    iterations = []
    def get_trajectory(self):
        return {"iterations": self.iterations}
""",
    "rlms-0.dist-info/METADATA": "Metadata-Version: 2.1\nName: rlms\nVersion: 0\n",
    "rlms-0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "rlms-0.dist-info/RECORD": "",
}


class Peers(PromptsTest):
    def setUp(self):
        super().setUp()
        self.variables["PIP_RETRIES"] = "0"
        self.variables["XDG_CACHE_HOME"] = str(self.scratch)  # each installs what it has made
        self.addCleanup(self.forget)

    def forget(self):
        """Files that are meant to stay, the cache's directory, and what pip's look at the machine made."""
        for place in self.scratch.iterdir():
            shutil.rmtree(place)

    def wheel(self, name, files):
        """All that pip finds from now on."""
        if importlib.util.find_spec("ensurepip") is None:
            self.skipTest("this Python makes no environment with pip (apt-get install python3-venv)")
        directory = self.dir / "wheels"
        directory.mkdir()
        with zipfile.ZipFile(directory / f"{name}-0-py3-none-any.whl", "w") as archive:
            for path, text in files.items():
                archive.writestr(path, text)
        self.variables["PIP_NO_INDEX"] = "1"
        self.variables["PIP_FIND_LINKS"] = str(directory)

    def compare(self, runs):
        server = self.server().script(None, solve)
        return self.tool(server, "--size", "small", "--tasks", "needle", "--runs", runs, "--peer",
                         "rlms", "--base-url", server.environment()["OPENAI_BASE_URL"])

    def test_one_that_cannot_be_installed(self):
        """It is named as not run, and the rest is."""
        self.variables["PIP_INDEX_URL"] = "http://127.0.0.1:9/"
        out, err = self.compare(1)
        self.assertRegex(out, r"(?m)^not run: rlms: rlms could not be installed: \S.+$")
        self.assertRegex(out, r"(?m)^rlmd +needle +1/1 ")
        self.assertIn("tools/prompts: rlms is not run: ", err)
        self.assertEqual(list(self.scratch.rglob("*-unfinished")), [])

    def test_one_that_does_not_start(self):
        self.wheel("rlms", {**RLMS, "rlm/__init__.py": "raise OSError('no such luck')"})
        out, _ = self.compare(1)
        self.assertIn("\nnot run: rlms: it does not start here: OSError: no such luck\n", out)

    def test_side_by_side(self):
        """A line for each; what it costs and how it fails as of rlmd itself."""
        self.wheel("rlms", RLMS)
        out, err = self.compare(2)
        self.assertRegex(out, r"(?m)^rlmd +needle +2/2 ")
        self.assertRegex(out, r"(?m)^rlms +needle +1/2 +10%-90% +0 +2\.0 +21 +[\d.]+ +error 1$")
        self.assertIn("error (RuntimeError: the second run), 2 turns, ", err)
        self.assertIn("installing rlms as ", err)
        _, again = self.compare(1)
        self.assertNotIn("installing", again)


if __name__ == "__main__":
    unittest.main()

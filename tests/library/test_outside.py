"""Programs outside of the tree, built with pkg-config alone against what is installed."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from public import BUILD, ROOT

sys.path.append(str(ROOT / "tests/system"))
from model import ModelServer, Reply  # noqa: E402


def code(*lines):
    return Reply(text="```python\n%s\n```" % "\n".join(lines))


def final(text):
    return Reply(text=f"FINAL({text})")


class OutsideTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.room = pathlib.Path(tempfile.mkdtemp(prefix="rlmd-outside-"))
        cls.addClassCleanup(shutil.rmtree, cls.room)
        subprocess.run([shutil.which("meson"), "install", "--no-rebuild", "--quiet", "--destdir",
                        str(cls.room), "-C", str(BUILD)], check=True)
        (configuration,) = cls.room.rglob("rlmd.pc")
        cls.environment = {**os.environ, "PKG_CONFIG_PATH": str(configuration.parent),
                           "OPENAI_API_KEY": "sk-of-a-test"}
        (library,) = cls.room.rglob("librlmd.so")
        cls.environment["LD_LIBRARY_PATH"] = str(library.parent)

    def build(self, source, *packages):
        """The program, without warnings, from a copy of the source that knows no tree."""
        flags = subprocess.run(
            ["pkg-config", "--cflags", "--libs", "rlmd", *packages], env=self.environment, check=True, capture_output=True, text=True,
        ).stdout.split()
        copy = self.room / source.name
        shutil.copy(source, copy)
        program = copy.with_suffix("")
        done = subprocess.run(
            [shutil.which("cc") or "gcc", "-std=c11", "-D_DEFAULT_SOURCE", "-Wall", "-Wextra",
             "-Wpedantic", "-Werror", str(copy), "-o", str(program), *flags],
            capture_output=True, text=True, cwd=self.room)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return program

    def run_program(self, program, *arguments, servers=()):
        """Its status and both streams; its models are those of the servers."""
        environment = dict(self.environment)
        for server in servers:
            environment.update(server.environment())
        done = subprocess.run([str(program), *arguments], capture_output=True, text=True,
                              env=environment, cwd=self.room, stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout, done.stderr

    def setUp(self):
        if b"__asan_init" in (BUILD / "librlmd.so").read_bytes():
            self.skipTest("the library was built with a sanitizer, which programs must be, too")

    def test_inputs(self):
        program = self.build(ROOT / "examples/inputs.c")
        (self.room / "notes.md").write_text("# Seven\n")
        status, out, err = self.run_program(program, "notes.md")
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(out, "context: 8 characters of markdown, 0 files\n"
                              "code: print(len(context))\nanswer: seven\n")
        status, out, err = self.run_program(program, "nowhere")
        self.assertEqual((status, out), (8, ""))
        self.assertIn("nowhere", err)

    def example(self, name, *packages):
        """Built as its head says, and a file for it to read."""
        source = ROOT / "examples" / f"{name}.c"
        self.assertIn(f" *     cc {name}.c $(pkg-config --cflags --libs {' '.join(['rlmd', *packages])})"
                      f" -o {name}\n", source.read_text())
        self.assertLess(len(source.read_text().splitlines()), 120)
        (self.room / "hosts.txt").write_text("alpha\nbeta\ngamma\n")
        return self.build(source, *packages)

    def serve(self, provider, *replies):
        server = ModelServer(provider=provider)
        server.replies(*replies)
        self.addCleanup(server.stop)
        return server.start()

    def test_basic(self):
        program = self.example("basic")
        server = self.serve("ollama", code("print(len(context.splitlines()))"), final("three"))
        self.assertEqual(self.run_program(program, "How many?", "hosts.txt", servers=[server]),
                         (0, "three\n", ""))
        self.assertIn("3", server.requests[1].last_user)
        status, out, err = self.run_program(program, "How many?", "nowhere", servers=[server])
        self.assertEqual((status, out), (8, ""))
        self.assertRegex(err, "^basic: .*nowhere")
        server.script(None, Reply(error="not_found"))
        status, out, err = self.run_program(program, "How many?", "hosts.txt", servers=[server])
        self.assertEqual((status, out), (2, ""))
        self.assertRegex(err, "^basic: .*not found")

    def test_cloud(self):
        """The root asks one provider, its code another one, each under its own key."""
        program = self.example("cloud")
        root = self.serve("anthropic", code("print(llm_query('Which is the first? ' + context))"),
                          final("alpha"))
        cheap = self.serve("openai", Reply(text="alpha", usage=(1000, 100)))
        cheap.key = "sk-of-the-other"
        status, out, err = self.run_program(program, "Which is the first?", "hosts.txt",
                                            servers=[root, cheap])
        self.assertEqual((status, err), (0, ""))
        self.assertRegex(out, r"^alpha\n3 calls, \d+ tokens, \$0\.\d{6}\n$")
        self.assertEqual([each.model for each in root.requests], ["claude-sonnet-4-5"] * 2)
        self.assertEqual([each.model for each in cheap.requests], ["gpt-5-mini"])
        self.assertEqual({each.key for each in root.requests}, {root.key})
        self.assertEqual({each.key for each in cheap.requests}, {cheap.key})
        cost = sum(each.billed_input * 3e-6 + each.billed_output * 15e-6 for each in root.requests)
        cost += 1000 * 0.25e-6 + 100 * 2e-6
        self.assertIn(f"${cost:.6f}", out)

    def test_hooks(self):
        program = self.example("hooks")
        server = self.serve("openai", code("print(llm_query('first?'))"),
                            Reply(text="alpha", usage=(10, 1)), final("alpha"))
        status, out, err = self.run_program(program, "Which?", "hosts.txt", servers=[server])
        self.assertEqual(status, 0, err)
        self.assertEqual(out, code("print(llm_query('first?'))").text + "FINAL(alpha)")
        self.assertEqual([re.sub(r"\d{2,} ", "N ", line) for line in err.splitlines()], [
            "[code printed N bytes]",  # of the look at the inputs
            "[turn 1 of gpt-5.4 at depth 0: N tokens]", "[call by gpt-5.4: answered]",
            "[code printed 6 bytes]", "[turn 2 of gpt-5.4 at depth 0: N tokens]",
            "[ended: final, 0 blocks failed]"])

    def test_cancel_from_inside_a_hook(self):
        program = self.example("hooks")
        server = self.serve("openai")
        server.script(None, code("nothing"))
        status, out, err = self.run_program(program, "Which?", "hosts.txt", servers=[server])
        self.assertEqual((status, out), (130, code("nothing").text * 3), err)
        self.assertEqual(err.count(" and failed]"), 3)
        self.assertRegex(err, r"\[ended: .*3 blocks failed\]\nhooks: stopped before")
        self.assertEqual(len(server.requests), 3)

    def test_agent(self):
        """Jobs and short tools on the agent's loop, side by side: one job waits for the other."""
        program = self.example("agent", "libevent_core")
        for name in ("one", "two"):
            (self.room / f"{name}.log").write_text(f"{name}\n" * 100)
        server = self.serve("openai")
        both = {"one": False, "two": False}

        def answer(request):
            name = "two" if "two" in request.first_turn else "one"
            both[name] = True
            return Reply(text=f"FINAL({name} it is)", until=lambda: all(both.values()))
        server.script(None, answer)
        status, out, err = self.run_program(program, "Which is it?", "one.log", "hosts.txt",
                                            "nowhere", "two.log", servers=[server])
        self.assertEqual((status, err), (1, ""))
        self.assertEqual(sorted(out.replace("\n\n", "\n").splitlines()), [
            "analyse one.log: one it is", "analyse two.log: two it is", "beta", "gamma",
            "read hosts.txt: alpha", "read nowhere: cannot read nowhere: No such file or directory"])
        self.assertEqual(len(server.requests), 2)

    def test_provider(self):
        program = self.example("provider", "libevent_core")
        self.assertEqual(self.run_program(program, "hosts.txt"), (0, "3\n", ""))

    def test_glib(self):
        """A job in GLib's main loop, whose own work goes on meanwhile."""
        if subprocess.run(["pkg-config", "--exists", "glib-2.0"]).returncode:
            self.skipTest("GLib is not installed (tools/setup --all installs it)")
        program = self.example("glib", "glib-2.0")
        # Longer than a tick takes, and only from the request on.
        server = self.serve("openai", Reply(text=code("print(len(context.splitlines()))").text,
                                            delay=0.1), final("three"))
        self.assertEqual(self.run_program(program, "How many?", "hosts.txt", servers=[server]),
                         (0, "three\n(the loop had time for other things)\n", ""))

    def test_threads(self):
        source = ROOT / "examples/threads.c"
        self.assertIn(" *     cc threads.c $(pkg-config --cflags --libs rlmd) -pthread -o threads\n",
                      source.read_text())
        program = self.build(source)
        server = self.serve("openai")
        server.script(None, lambda request: Reply(
            text="FINAL(7)" if "seven" in request.first_turn else "FINAL(8)"))
        status, out, err = self.run_program(program, *["seven?", "eight?"] * 4, servers=[server])
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(sorted(out.splitlines()), ["eight? 8"] * 4 + ["seven? 7"] * 4)

    def test_function(self):
        """Out of a run's code, and out of that of its sub-run: sealed workers, this program's data."""
        program = self.example("function")
        server = self.serve("openai")
        server.script(lambda r: "SUB-RLM at depth" in r.system and r.turn,
                      Reply(text="FINAL_VAR(name)"))
        server.script(lambda r: "SUB-RLM at depth" in r.system,
                      code("name = look_up(number=18)['name']"))
        server.script(lambda r: not r.turn, code(
            "names = [look_up(17)['name'], rlm_query('Whose is order 18?')]",
            "try: look_up(19)",
            "except RuntimeError as error: names.append(str(error))",
            "try: look_up('x')",
            "except ValueError as error: names.append(str(error))",
            "names.append(rates()['GBP'])"))
        server.script(None, Reply(text="FINAL_VAR(names)"))
        status, out, err = self.run_program(program, "Whose are they?", servers=[server])
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(out, '["Ada", "Emmy", "look_up(): there is no such order", '
                              '"look_up(): number is a str, an int is wanted", 0.85]\n(look_up was called 3 times)\n')
        told = [request.system for request in server.requests if not request.turn]
        self.assertEqual(len(told), 2)
        for system in told:
            self.assertIn("- look_up(number: integer): The customer of the order", system)

    def test_journal(self):
        """Another process asks for what the first one has not had, and for nothing else."""
        program = self.example("journal")
        directory = tempfile.mkdtemp(dir=self.room)
        server = self.serve("ollama", code("part = llm_query('what?')\nprint(part)"),
                            Reply("three"), Reply(error="not_found"), final("three"))
        ask = (program, directory, "How many?")
        status, out, err = self.run_program(*ask, servers=[server])
        self.assertEqual((status, out), (2, ""))
        self.assertEqual(len(server.requests), 3)
        self.assertEqual(self.run_program(*ask, servers=[server]),
                         (0, "three\n3 of 4 calls were had before\n", ""))
        self.assertEqual(len(server.requests), 4)
        self.assertEqual(self.run_program(*ask, servers=[server]),
                         (0, "three\n4 of 4 calls were had before\n", ""))
        self.assertEqual(len(server.requests), 4)

    def test_repl(self):
        """Begin with inputs, execute, read a variable, end; and what is told where one fails."""
        program = self.example("repl", "libevent_core")
        for code_text, variable, expected in (
                ("names = context.split()\nprint(len(names))", "names",
                 (0, '3\nnames = ["alpha", "beta", "gamma"]\n', "")),
                ("x = 7", "y", (0, "there is no y, but:\nx, int, 7\n", "")),
                ("x = 7", "not a name", (2, "", "repl: 'not a name' is no variable's name\n")),
                ("import os; os._exit(3)", "x",
                 (7, "", "repl: the worker ended itself (exit status 3)\n"))):
            with self.subTest(code=code_text, variable=variable):
                self.assertEqual(self.run_program(program, code_text, variable, "hosts.txt"),
                                 expected)
        status, out, err = self.run_program(program, "x = 1\n1 / 0", "x", "hosts.txt")
        self.assertEqual((status, out), (0, "x = 1\n"))
        self.assertIn("ZeroDivisionError", err)

    def test_manners(self):
        """No handler, output, process, open file or change of the environment is left.

        In between a job ran in a sandbox and asked two providers, which found one key.
        """
        program = self.build(ROOT / "tests/library/manners.c")
        server = self.serve("openai", code("print(llm_query('?'))"), Reply(text="7"), final("7"))
        self.assertEqual(self.run_program(program, str(ROOT / "examples"), servers=[server]),
                         (0, "", ""))
        self.assertEqual([(each.model, each.key) for each in server.requests],
                         [(model, server.key) for model in ("gpt-5.4", "gpt-5-mini", "gpt-5.4")])

    def test_children_that_the_kernel_reaps(self):
        """A host that ignores SIGCHLD goes on doing so, and workers run and end for it, too."""
        program = self.build(ROOT / "tests/library/children.c", "libevent_core")
        status, out, err = self.run_program(program)
        self.assertEqual((status, err), (0, ""))
        said, *rest = out.splitlines()
        self.assertEqual(said, "42")
        self.assertEqual(len(rest), 1, rest)
        self.assertRegex(rest[0], "^worker: the worker has ended, and how is not known: .*SIGCHLD")

    def test_a_lent_base(self):
        """The host's own events have their turns; calls in flight are as many as the job may."""
        program = self.build(ROOT / "tests/library/lent_base.c", "libevent_core")
        self.assertEqual(self.run_program(program), (0, "", ""))


if __name__ == "__main__":
    unittest.main()

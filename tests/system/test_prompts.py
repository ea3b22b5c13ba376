"""The requests as the providers get them: what stays the same, what each turn tells, what is cached."""

import json
import os
import re
import shutil
import time
import unittest

from harness import block
from model import Reply
from providers import ProviderTest, final

PROVIDERS = ("ollama", "openai", "anthropic")
TURNS = 10


def messages_bytes(request):
    """Everything of the body up to the end of the last message: what a cache can know again."""
    body = request.body
    last = request.json["messages"][-1]["content"]
    quoted = json.dumps(last, ensure_ascii=False, separators=(",", ":")).encode()
    end = body.rindex(quoted) if quoted in body else body.rindex(b'"}]')
    return body[: body.index(b'"}]', end)]


def breakpoints(value):
    """How often cache_control stands in a request, wherever."""
    if isinstance(value, dict):
        own = "cache_control" in value
        return own + sum(breakpoints(each) for each in value.values())
    if isinstance(value, list):
        return sum(breakpoints(each) for each in value)
    return 0


def common(*texts):
    """How many characters all texts begin with alike."""
    return len(os.path.commonprefix(texts))


class FirstTurn(ProviderTest):
    """A run begins with a look at its inputs, as if the model had written it; its output is real."""

    def first(self, *arguments, **more):
        server = self.serve("openai", final())
        outcome = self.ask(server, *arguments, **more)
        self.assertEqual(len(server.requests), 1, "the look is no call of a model")
        return server.requests[0], outcome.result

    def test_no_input_no_look(self):
        """Nothing is looked at where there is nothing."""
        for context in (None, ""):
            with self.subTest(context=context):
                arguments = ["-c", self.write("c", context)] if context is not None else []
                request, result = self.first(*arguments)
                self.assertEqual([role for role, _ in request.messages], ["system", "user"])
                self.assertNotIn("<output>", request.last_user)
                self.assertNotIn("demonstration", result["trace"])

    def test_a_look_at_the_input(self):
        """The task and the inputs, a block, what it printed: of the input the first 700 characters,
        some of its middle and of its end, and how many there are of what."""
        context = "".join(f"line {number} of the input, é\n" for number in range(400))
        request, result = self.first("-c", self.write("c", context), task="what is it?")
        roles = [role for role, _ in request.messages]
        self.assertEqual(roles, ["system", "user", "assistant", "user"])
        opening, look, turn = (text for _, text in request.messages[1:])
        self.assertIn(f"- `context`: {len(context)} characters", opening)
        self.assertTrue(opening.endswith("TASK: what is it?\n"), opening)
        (code,) = re.findall(r"(?s)```python\n(.*?)```", look)
        self.assertIn("print(context[:700]", code)
        middle = len(context) // 2
        output = (f"{len(context)} characters in context, 400 line feeds; the first 700:\n{context[:700]}\n"
                  f"[...] in its middle:\n{context[middle:middle + 233]}\n"
                  f"[...] at its end:\n{context[-234:]}\n")
        self.assertIn(f"<output>\n[block 1]\n[stdout]\n{output}\n</output>", turn)
        self.assertNotIn(context[:702], turn)
        shown = result["trace"]["demonstration"]
        self.assertEqual((shown["code"], shown["stdout"], shown["error"]), (code, output, None))
        self.assertEqual(result["usage"]["iterations"], 1)
        self.assertEqual(len(result["trace"]["iterations"]), 1)

    def test_order(self):
        """Outputs first, then the task, then what to do with both; the budget last."""
        server = self.serve("openai", Reply(text=block("print('second')")), final())
        self.ask(server, "-c", self.write("c", "some text"), task="what is it?")
        for number, (request, needle) in enumerate(zip(server.requests, ("some text", "second")), 1):
            told = request.last_user
            places = [told.index(needle), told.index("TASK: what is it?"),
                      told.index("If this output answers the task, write FINAL(the answer)"),
                      told.index("if not, the next block of Python."),
                      told.index(f"\nTurn {number} of 30. Left: cost ")]
            self.assertEqual(places, sorted(places))
            self.assertEqual(told[places[-1]:].strip().count("\n"), 0)

    def test_the_block_has_run(self):
        """In the session of the run: what it defines is there, and the next block is the second."""
        look = self.write("mine/look.txt", "seen = len({{name}})\n")
        server = self.serve("openai", Reply(text=block("print(seen)")), final())
        self.ask(server, "--prompt", os.path.dirname(look), "-c", self.write("c", "x" * 77))
        self.assertIn("[block 1]\n[no output]", server.requests[0].last_user)
        self.assertIn("[block 2]\n[stdout]\n77\n", server.requests[1].last_user)

    def test_its_loss_is_told(self):
        """A look that takes the worker with it is like any block; the run goes on in a new one."""
        look = self.write("mine/look.txt", "import os; os._exit(3)\n")
        server = self.serve("openai", Reply(text=block("print(len(context))")), final())
        outcome = self.ask(server, "--prompt", os.path.dirname(look), "-c", self.write("c", "x" * 77))
        self.assertIn("The Python session ended", server.requests[0].last_user)
        self.assertIn("[stdout]\n77\n", server.requests[1].last_user)
        self.assertIsNotNone(outcome.result["trace"]["demonstration"]["error"])

    def test_its_answer_is_none(self):
        """Nor is what it cannot do: the model is asked all the same."""
        for text, told in (("FINAL('x')\n", "[no output]"), ("1/0\n", "ZeroDivisionError")):
            look = self.write("mine/look.txt", text)
            request, result = self.first("--prompt", os.path.dirname(look), "-c", self.write("c", "x"))
            self.assertEqual(result["output"], "ok")
            self.assertIn(told, request.last_user)

    def test_without_a_demonstration(self):
        """An empty one is none: the run begins with its bare turn."""
        mine = os.path.dirname(self.write("mine/demonstration.txt", "\n"))
        request, result = self.first("--prompt", mine, "-c", self.write("c", "some text"))
        self.assertEqual(len(request.messages), 2)
        self.assertIn("- `context`: 9 characters", request.last_user)
        self.assertNotIn("demonstration", result["trace"])

    def test_every_input_is_shown(self):
        """Of the first 700 characters, of the others less; a short one is shown whole."""
        sizes = {"context": 5000, "second": 900, "third": 30}
        arguments = []
        for name, size in sizes.items():
            path = self.write(name + ".txt", name[0] * size)
            arguments += ["-c", f"{name}={path}" if arguments else path]
        request, _ = self.first(*arguments)
        for name, shown in (("context", 700), ("second", 500), ("third", 30)):
            lines = " 0 line feeds;" if name == "context" else ""
            self.assertIn(f"{sizes[name]} characters in {name},{lines} the first {shown}:\n"
                          f"{name[0] * shown}\n", request.last_user)
        request, _ = self.first("-c", self.write("short", "s" * 2000))
        self.assertIn("s" * 2000, request.last_user)

    def test_looks_at_many_inputs(self):
        arguments = []
        for number in range(40):
            path = self.write(f"file{number}", "é" * 3000)
            arguments += ["-c", f"name{number}={path}"]
        request, _ = self.first(*arguments)
        self.assertEqual(request.last_user.count("characters in name"), 40)
        self.assertLessEqual(request.last_user.count("é"), 700 * 5 / 3 + 2000)
        self.assertNotIn("\ufffd", request.last_user)

    def test_files_of_a_directory_are_listed(self):
        for name in ("a.txt", "sub/b.md"):
            self.write(f"tree/{name}", "words")
        request, _ = self.first("-c", "tree")
        self.assertRegex(request.last_user, r"all: 2 files, 10 B, about \d+ tokens")
        self.assertRegex(request.last_user, r"\nsub/  1 file, 5 B\n  b.md  5 B\na.txt  5 B\n")
        self.assertIn("grep(pattern, glob=None, ignore_case=False)", request.system)
        self.assertNotIn("changes():", request.system)
        request, _ = self.first("-c", "tree/a.txt")
        self.assertNotIn("grep(", request.system)

    def test_a_sub_run_looks_too(self):
        server = self.serve("openai")
        server.script(lambda r: "SUB-RLM at depth" in r.system, final("part"))
        server.script(lambda r: r.turn == 0, Reply(text=block("rlm_query('a part', 'its own text')")))
        server.script(None, final())
        self.ask(server, "-c", self.write("c", "some text"))
        self.assertIn("its own text", server.requests[1].last_user)
        self.assertIn("TASK: a part", server.requests[1].messages[1][1])

    def test_a_forced_answer_has_what_was_seen(self):
        server = self.serve("openai", Reply(text="Hm."), Reply(text="words"))
        self.ask(server, "-c", self.write("c", "some text"), "--max-iterations", "1")
        self.assertIn("some text", server.requests[-1].last_user)

    def test_a_recording_replays(self):
        """The look is part of the request, and its output the same each time."""
        kept, path = str(self.dir / "kept"), self.write("c", "some text\n" * 500)
        server = self.serve("openai", Reply(text=block("1 + 1")), final())
        self.ask(server, "--record", kept, "-c", path)
        outcome = self.rlmd("exec", "--replay", kept, "-p", "openai", "-m", "m", "-c", path, "--", "the task")
        self.assertEqual((outcome.status, outcome.out), (0, "ok\n"), outcome.err)

    def test_a_script_matches_the_first_turn(self):
        """By its number, its depth, and by what the look has shown."""
        entry = {"match": {"kind": "turn", "depth": 0, "turn": 0, "pattern": "some (text|words)"},
                 "response": {"text": "FINAL(matched)"}}
        outcome = self.replay([entry], context="some text")
        self.assertEqual(outcome.out, "matched\n", outcome.err)

    def test_it_is_seen_in_the_trace(self):
        trace = self.dir / "trace"
        self.first("-c", self.write("c", "some text"), "--trace", trace)
        events = [json.loads(line) for line in trace.read_text().splitlines()]
        names = [event["event"] for event in events]
        self.assertLess(names.index("demonstration"), names.index("response"))
        shown = self.rlmd("trace", trace, "--json").result
        self.assertIn("some text", shown["demonstration"]["stdout"])


class SystemPrompt(ProviderTest):
    """The part that changes from run to run stands at its end: providers' caches know the rest."""

    def told(self, *arguments, task="the task"):
        server = self.serve("openai", final())
        self.ask(server, *arguments, task=task)
        return server.requests[0].system

    def test_runs_begin_alike(self):
        """ENG-22: whatever the task, the inputs, the budget, the model, nine tenths are the same."""
        prices = self.prices(m=(1000000, 2000000), other=(3, 4))
        runs = [
            self.told(),
            self.told(*prices, "-c", self.write("c", "some text " * 9000), "--max-cost", "0.5",
                      "--max-tokens", "77000", "--max-time", "20m", task="another task"),
            self.told(*prices, "-c", self.write("d", "日本語" * 900), "--subcall-model", "other",
                      "--max-depth", "5", "--max-iterations", "7", "-j", "9", "--preload", "json.tool"),
        ]
        same = common(*runs)
        for told in runs:
            self.assertLessEqual(told.index("# This run"), same)
            self.assertGreaterEqual(common(runs[0], runs[1]), 0.9 * len(told.encode()))
            self.assertGreaterEqual(same, 0.88 * len(told.encode()))

    def test_sub_runs_begin_alike(self):
        server = self.serve("openai")
        server.script(lambda r: "SUB-RLM at depth" in r.system, final("part"))
        server.script(lambda r: r.turn == 0,
                      Reply(text=block("rlm_query('a', 'x')", "rlm_query('b', 'y' * 9000)")))
        server.script(None, final())
        self.ask(server)
        root, first, second, _ = (request.system for request in server.requests)
        self.assertGreater(common(root, first), 0.7 * len(first))
        self.assertLessEqual(first.index("# This run"), common(first, second))

    def test_a_profile_for_small_models(self):
        """By the size mark in a model's name, or its window, or by its name; and it is said."""
        windows = {"tight": 16384, "wide": 16385}
        prices = self.write("windows.json", json.dumps(
            {name: {"input_cost_per_token": 0, "output_cost_per_token": 0, "max_input_tokens": tokens}
             for name, tokens in windows.items()}))
        for model, small in (
            ("qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", True), ("Qwen2.5-Coder-1.5B-Instruct", True),
            ("llama3.2:3b", True), ("llama3.1:8b", True), ("gemma3n:e4b", True), ("7b", True),
            ("qwen2.5:14b", False), ("mixtral-8x7b", False), ("Qwen3-30B-A3B", False),
            ("gpt-5-mini", False), ("llama3.2", False), ("model-8bit", False), ("llama-70b:7b", False),
            ("v1.70b", False), ("m", False), ("tight", True), ("wide", False),
        ):
            with self.subTest(model=model):
                outcome = self.rlmd("exec", "-p", "openai", "-m", model, "--price-table", prices,
                                    "--dry-run", "--json", "--", "the task",
                                    env=self.environment(OPENAI_API_KEY="k"))
                profile = "small" if small else "default"
                self.assertEqual(outcome.result["promptProfile"], profile, outcome.err)

    def test_the_small_profile(self):
        """Shorter, and said to be used; --prompt wins over what the model would get."""
        server = self.serve("openai", final(), final())
        small = self.ask(server, "--prompt", "small").result
        self.ask(server, "--prompt", "default", "--subcall-model", "tiny-1b")
        self.assertEqual(small["trace"]["promptProfile"], "small")
        short, long = (request.system for request in server.requests)
        self.assertLess(2 * len(short), len(long) + 600)
        self.assertLessEqual(short.index("Loaded: "), common(short, self.told("--prompt", "small",
                             "--max-tokens", "9000", "-c", self.write("c", "text"))))

    def test_the_small_profile_asks_for_code(self):
        """The first turn offers no answer, for such models would guess one, and none FINAL_VAR."""
        server = self.serve("openai", Reply(text="Hm."), final())
        self.ask(server, "--prompt", "small", "-c", self.write("c", "some text " * 300))
        first, second = (request.last_user for request in server.requests)
        self.assertRegex(first, r"(?s)some text.*\nTASK: .*\nThat was only a look\. Do not answer yet: .*\nTurn 1 of 30")
        self.assertIn("[note] Your last response had neither a code block nor an answer", second)
        self.assertNotIn("FINAL", first)
        self.assertNotIn("FINAL_VAR", second)

    def test_an_answer_is_offered_where_all_was_shown(self):
        """Of a longer input, of a second one, of files: the first turn asks for code."""
        short, long = self.write("short", "some text"), self.write("long", "some text " * 300)
        directory = self.dir / "files"
        directory.mkdir()
        (directory / "a.c").write_text("int a;\n" * 400)
        for profile in ("default", "small"):
            for inputs, offered in (
                ([short], True), ([long], False), ([short, f"more={long}"], False),
                ([short, f"more={short}"], True), ([directory], False),
            ):
                with self.subTest(profile=profile, inputs=inputs):
                    server = self.serve("openai", final())
                    given = [part for each in inputs for part in ("-c", each)]
                    self.ask(server, "--prompt", profile, *given)
                    told = server.requests[0].last_user
                    self.assertEqual("FINAL(" in told, offered, told)
                    self.assertEqual("Do not answer yet" in told, not offered)

    def test_each_model_gets_its_own(self):
        """A small one below a large one: its sub-runs are told in small."""
        server = self.serve("openai", Reply(text=block("rlm_query('p')")), final("p"), final())
        outcome = self.ask(server, "--subcall-model", "tiny-1b")
        trace = outcome.result["trace"]
        self.assertEqual(trace["promptProfile"], "default")
        self.assertEqual(trace["subcalls"][0]["promptProfile"], "small")


class LeftOut(ProviderTest):
    def opening(self, *arguments):
        server = self.serve("openai", final())
        self.ask(server, *arguments)
        return server.requests[0].messages[1][1]

    def test_what_was_left_out_of_a_directory(self):
        """Counted by kind, without names, where the inputs are named."""
        for name in ("tree/text", "tree/a.bin", "tree/b.bin"):
            self.write(name, b"\0" if name.endswith("bin") else b"words")
        (self.dir / "tree" / "out").symlink_to("/")
        told = self.opening("-c", "tree")
        self.assertIn("left out: 2 binary files, 1 symbolic link", told)
        self.assertNotIn("a.bin", told)
        self.assertNotIn("left out", self.opening("-c", self.write("file", "x")))

    def test_what_was_left_out_is_known_below(self):
        self.write("tree/text", "words")
        self.write("tree/a.bin", b"\0")
        server = self.serve("openai")
        server.script(lambda r: "SUB-RLM at depth" in r.system, final("part"))
        server.script(lambda r: r.turn == 0, Reply(text=block("rlm_query('a part')")))
        server.script(None, final())
        self.ask(server, "-c", "tree")
        self.assertIn("left out: 1 binary file", server.requests[1].messages[1][1])

    def test_a_dry_run_shows_what_is_sent(self):
        """To the letter, but for the time, which goes on meanwhile."""
        def timeless(text):
            return re.sub(r"time (\d+m)?[\d.]+m?s\b", "time", text)

        path = self.write("c", "some text")
        for options in ([], ["--max-cost", "0.02"], ["--max-tokens", "9k"]):
            with self.subTest(options=options):
                server = self.serve("openai", final())
                options = [*options, *self.prices(m=(1000000, 2000000)), "-c", path]
                shown = self.ask(server, *options, "--dry-run").result
                self.assertEqual(server.requests, [])
                self.ask(server, *options)
                sent = server.requests[0]
                self.assertEqual(timeless(shown["systemPrompt"]), timeless(sent.system))
                self.assertEqual(timeless(shown["firstTurn"]), timeless(sent.last_user).replace(
                    f"[block 1]\n[stdout]\n9 characters in context, the first 9:\nsome text\n\n",
                    "(what the block prints)\n"))
                self.assertEqual(shown["opening"], sent.messages[1][1])
                self.assertEqual(shown["demonstration"], sent.messages[2][1])

    def test_a_batch_of_sub_runs_is_priced(self):
        """ENG-24: what each costs, how long so many take."""
        server = self.serve("openai", final())
        self.ask(server, *self.prices(m=(1000000, 2000000)), "-j", "7")
        batch = next(s for s in server.requests[0].system.splitlines() if "batch_rlm_query. C" in s)
        self.assertRegex(batch, r"Cost: \$0\.\d+ each, time: about \S+ for up to 7 at once")


class Profiles(ProviderTest):
    """--prompt: what models are told is data."""

    def directory(self, **texts):
        for name, text in texts.items():
            self.write(f"mine/{name}.txt", text)
        return str(self.dir / "mine")

    def refused(self, *arguments, **more):
        outcome = self.rlmd("exec", *arguments, "--", "the task", **more)
        self.assertEqual(outcome.status, 2, outcome.err)
        return outcome.err

    def test_a_directory_replaces_what_it_has(self):
        """Everything else is the default's; a long text is told whole."""
        mine = self.directory(root="Mine, at depth {{depth}}. " + "x" * 5000, query="Only yes.\n")
        server = self.serve("openai", Reply(text=block("llm_query('q')")), Reply(text="yes"), final())
        self.ask(server, "--prompt", mine)
        root, query, turn = server.requests
        self.assertTrue(root.system.startswith("Mine, at depth 0. " + "x" * 5000 + "\n# This run\n"))
        self.assertEqual(query.system, "Only yes.")
        self.assertIn("TASK: the task", turn.last_user)

    def test_notes_are_replaced_too(self):
        mine = self.directory(no_code="CODE PLEASE", unknown_variable="NO {{output}}")
        server = self.serve("openai", Reply(text="Hm."), Reply(text="FINAL_VAR(gone)"), final())
        self.ask(server, "--prompt", mine)
        self.assertIn("CODE PLEASE", server.requests[1].last_user)
        self.assertIn("NO gone", server.requests[2].last_user)

    def test_sub_runs_are_told_the_same(self):
        mine = self.directory(root="MINE", subrun=" AND BELOW", this_run="", subrun_grant="!")
        server = self.serve("openai", Reply(text=block("rlm_query('p')")), final("p"), final())
        self.ask(server, "--prompt", mine)
        self.assertEqual(server.requests[1].system, "MINE AND BELOW!")

    def test_it_may_stand_in_a_file_and_in_the_environment(self):
        mine = self.directory(root="MINE")
        for more in ({"arguments": ["--config", self.write("conf", f"prompt = {mine}\n")]},
                     {"environment": {"RLMD_PROMPT": mine}}):
            server = self.serve("openai", final())
            self.ask(server, *more.get("arguments", []), **more.get("environment", {}))
            self.assertTrue(server.requests[0].system.startswith("MINE"))

    def test_a_plan_takes_it(self):
        plan = self.write("plan.json", json.dumps(
            {"operations": [{"id": "a", "type": "Query", "input": "q"}]}))
        server = self.serve("openai", Reply(text="a"))
        outcome = self.rlmd("plan", "-p", "openai", "-m", "m", "--prompt", self.directory(query="MINE"),
                            plan, env=self.environment(**server.environment()))
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertTrue(server.requests[0].system.startswith("MINE"))

    def test_it_is_told_which_were_used(self):
        mine = self.directory(root="MINE")
        for name in ("default", mine):
            server = self.serve("openai", final())
            outcome = self.ask(server, "--prompt", name)
            self.assertEqual(outcome.result["trace"]["promptProfile"], name)
            shown = self.ask(server, "--prompt", name, "--dry-run")
            self.assertEqual(shown.result["promptProfile"], name)

    def test_an_unknown_name_lists_those_that_there_are(self):
        told = self.refused("--prompt", "nope")
        self.assertRegex(told, r"no prompt profile 'nope' \(there are: default[^)]*\), and no directory")

    def test_what_is_wrong_with_a_directory(self):
        """Said before anything is asked, with the file and what it may have."""
        for name, text, told in (
            ("rot.txt", "x", r"rot\.txt, which is no prompt: those are root\.txt, turn\.txt and the others"),
            ("root.md", "x", r"root\.md, which is no prompt"),
            ("turn.txt", "{{tsk}}", r"turn\.txt: there is no \{\{tsk\}\} for it; there are turn, .*task"),
            ("query.txt", "{{task}}", r"query\.txt: .*it has no placeholders"),
            ("turn.txt", "{{task", r"turn\.txt: a \{\{ has no \}\}"),
            ("root.txt", b"\xff", r"root\.txt: it is no text in UTF-8"),
            ("root.txt", b"a\0b", r"root\.txt: it is no text in UTF-8"),
            ("root.txt", "x" * 65537, r"root\.txt is larger than 65536 bytes"),
            ("root.txt/x", "x", r"root\.txt: not a regular file"),
        ):
            with self.subTest(name=name, text=text[:10]):
                self.write(f"bad/{name}", text)
                told_now = self.refused("--prompt", "bad")
                self.assertRegex(told_now, "error: the prompts in bad: ")
                self.assertRegex(told_now, told)
                shutil.rmtree(self.dir / "bad")

    def test_hidden_files_are_passed_over(self):
        self.write("mine/.root.txt.swp", b"\0")
        server = self.serve("openai", final())
        self.ask(server, "--prompt", self.directory(root="MINE"))
        self.assertTrue(server.requests[0].system.startswith("MINE"))


class Conversation(ProviderTest):
    """Ten turns with outputs, errors, notes, an unknown variable and a lost session."""

    STEPS = [
        block("x = 1", "print('one')"),
        block("1/0"),
        "I shall look at it.",
        block("print(llm_query('what?'))"),
        "FINAL_VAR(nothing)",
        block("import sys", "print('to stderr', file=sys.stderr)"),
        block("import os", "os._exit(1)"),
        block("print('" + "é€" * 500 + "')") + "\n" + block("2 + 2"),
        "```json\n{}\n```",
        block("print(rlm_query('a part'))"),
    ]

    def converse(self, provider, *arguments):
        server = self.serve(provider)
        server.script("^what\\?$", Reply(text="an answer"))
        server.script(lambda r: "SUB-RLM at depth" in r.system, final("part of it"))
        for step in self.STEPS:
            server.script(None, Reply(text=step), times=1)
        server.script(None, final("the end"))
        outcome = self.ask(server, *arguments, task="the \"task\"\nof two lines")
        self.assertEqual(outcome.result["output"], "the end")
        root = [r for r in server.requests if "The task" in r.system or "TASK:" in r.last_user]
        root = [r for r in root if "SUB-RLM at depth" not in r.system]
        self.assertEqual(len(root), TURNS + 1)
        return root, server, outcome

    def test_each_request_begins_with_the_one_before(self):
        """ENG-10: byte for byte, up to the end of its messages, so that prompt caches hit."""
        for provider in PROVIDERS:
            for option in ([], ["--no-stream"]):
                with self.subTest(provider=provider, option=option):
                    root, _, _ = self.converse(provider, *option)
                    for before, after in zip(root, root[1:]):
                        self.assertTrue(after.body.startswith(messages_bytes(before)))
                        self.assertEqual(
                            after.messages[: len(before.messages)], before.messages
                        )
                        self.assertEqual(len(after.messages), len(before.messages) + 2)

    def test_a_forced_answer_too(self):
        """It is asked for at the end of the same conversation, where the budget affords it."""
        for provider in PROVIDERS:
            with self.subTest(provider=provider):
                server = self.serve(
                    provider, Reply(text=block("1")), Reply(text=block("2")), Reply(text="words")
                )
                self.ask(server, "--max-iterations", "2")
                _, before, forced = server.requests
                self.assertTrue(forced.body.startswith(messages_bytes(before)))
                self.assertIn("No code runs any more", forced.last_user)

    def test_roles_alternate(self):
        """Some chat templates refuse anything else."""
        root, _, _ = self.converse("openai")
        roles = [role for role, _ in root[-1].messages]
        self.assertEqual(roles, ["system"] + ["user", "assistant"] * TURNS + ["user"])

    def test_each_turn_says_what_is_left(self):
        """ENG-22: turn, cost, tokens, iterations; and the task again."""
        root, _, _ = self.converse("openai")
        tokens = []
        for number, request in enumerate(root, 1):
            told = request.last_user
            self.assertRegex(told, rf"\nTurn {number} of 30\. Left: cost ")
            self.assertIn(f"{30 - number} iterations after this one.", told)
            self.assertIn('TASK: the "task"\nof two lines\n', told)
            tokens.append(int(re.search(r"(\d+) tokens, \d+ iterations", told).group(1)))
        # After the first, when it is known what a forced answer takes, less is kept for it.
        self.assertLess(tokens[0], tokens[1])
        self.assertEqual(tokens[1:], sorted(tokens[1:], reverse=True))
        self.assertLess(tokens[-1], tokens[1])

    def test_the_time_is_told_once_it_gets_short(self):
        """Less than a minute, or than a quarter of it; in the system prompt as in the turns."""
        for limit, told in (("1h", False), ("59s", True)):
            with self.subTest(limit):
                server = self.serve("openai", Reply(text=block("1")), final())
                self.ask(server, "--max-time", limit)
                for request in server.requests:
                    self.assertEqual(", time " in request.system, told, request.system[-300:])
                    self.assertEqual(", time " in request.last_user, told)

    def test_how_long_a_sub_run_takes_is_measured(self):
        """The mean of those that have ended: between what the server took and what it saw."""
        delays = (0.2, 2.2)
        server = self.serve("openai")
        below = lambda request: "SUB-RLM at depth" in request.system
        for delay in delays:
            server.script(below, final("part", delay=delay), times=1)
        calls = block("rlm_query('a part')", "rlm_query('a part')")
        server.replies(Reply(text=calls), final("the end"))
        self.ask(server)
        turns = [request for request in server.requests if not below(request)]
        (told,) = re.findall(r"a sub-RLM ([\d.]+) ?(ms|s)\b", turns[1].last_user)
        seconds = float(told[0]) / (1000 if told[1] == "ms" else 1)
        self.assertGreaterEqual(seconds, int(sum(delays) / 2))
        self.assertLessEqual(seconds, (turns[1].time - turns[0].time) / 2 + 0.5)

    def test_what_happened_is_told(self):
        root, _, _ = self.converse("openai")
        told = [request.last_user for request in root]
        for number, needles in {
            2: ["[stdout]\none\n"],
            3: ["ZeroDivisionError"],
            4: ["neither a code block nor an answer"],
            5: ["an answer"],
            6: ["FINAL_VAR(nothing) is no answer", "x"],
            7: ["[stderr]\nto stderr"],
            8: ["All variables and imports are lost"],
            9: ["é€é€", "[block 7]\n[stdout]\n4\n"],
            10: ["neither a code block nor an answer"],
            11: ["part of it"],
        }.items():
            for needle in needles:
                self.assertIn(needle, told[number - 1], f"turn {number}")

    def test_a_long_task_is_told_whole_once(self):
        """The reminder is cut: it stands in every turn."""
        server = self.serve("openai", Reply(text=block("1")), final())
        self.ask(server, task="begin " + "long " * 5000 + "end")
        first, second = (request.last_user for request in server.requests)
        self.assertEqual(first.count("long "), 5000)
        self.assertLess(second.count("long "), 500)
        self.assertRegex(second, r"TASK: begin long (?s:.*)characters omitted(?s:.*) end\n")


class Cache(ProviderTest):
    """Anthropic caches only what it is told to, at four places at most."""

    def test_a_conversation_is_cached(self):
        """The system prompt, which siblings share, and all up to the last message."""
        server = self.serve("anthropic", *[Reply(text=block("1"))] * 5, final())
        self.ask(server)
        for request in server.requests:
            (system,) = request.json["system"]
            self.assertEqual(system["cache_control"], {"type": "ephemeral"})
            self.assertEqual(request.json["cache_control"], {"type": "ephemeral"})
            self.assertEqual(breakpoints(request.json), 2)

    def test_a_call_that_nobody_repeats_is_not(self):
        """Writing to the cache costs more than not to."""
        code = block("llm_query('q')")
        server = self.serve("anthropic", Reply(text=code), Reply(text="a"), final())
        self.ask(server)
        self.assertEqual([breakpoints(r.json) for r in server.requests], [2, 0, 2])

    def test_others_cache_by_themselves(self):
        for provider in ("openai", "ollama"):
            server = self.serve(provider, final())
            self.ask(server)
            self.assertEqual(breakpoints(server.requests[0].json), 0)

    def test_an_endpoint_that_does_not_know_it(self):
        server = self.serve("anthropic", Reply(error="cache_control"), final())
        self.ask(server)
        self.assertEqual([breakpoints(r.json) for r in server.requests], [2, 0])


class Figures(ProviderTest):
    """ENG-24: what calls cost and take is told from the price table and what was measured."""

    def test_costs_are_those_of_the_price_table(self):
        prices = {"m": (1000000, 2000000), "cheap": (100000, 400000)}
        server = self.serve("openai", final(), prices=prices)
        self.ask(server, *self.prices(**prices), "--subcall-model", "cheap")
        # 2,000 tokens in and 500 out; a sub-run is five such turns
        told = server.requests[0].system
        self.assertIn("llm_query asks cheap. Cost: $0.0004, time: about 3.0s.", told)
        self.assertIn("rlm_query. Cost: $0.002 each, time: about 15s ", told)

    def test_an_unknown_price_is_not_guessed(self):
        server = self.serve("openai", final())
        self.ask(server)
        self.assertIn("Cost: an unknown price", server.requests[0].system)

    def test_times_are_measured(self):
        """In the turns after, and in the system prompts of sub-runs that begin later."""
        server = self.serve(
            "openai",
            Reply(text=block("llm_query('q')")),
            Reply(text="a", delay=0.4),
            Reply(text=block("rlm_query('part')")),
            final("a part"),
            final(),
        )
        begun = time.monotonic()
        self.ask(server)
        whole = time.monotonic() - begun
        first, _, second, below, last = server.requests
        measured = r"about ([\d.]+)(ms|s)"
        for pattern, text in ((f"An llm_query takes {measured}", second.last_user),
                              (rf"llm_query asks m\. .*time: {measured}", below.system)):
            number, unit = re.search(pattern, text).groups()
            seconds = float(number) * {"ms": 0.001, "s": 1}[unit]
            self.assertTrue(0.39 < seconds < whole, (seconds, whole))
        self.assertNotIn("An llm_query takes", first.last_user)
        self.assertRegex(last.last_user, r"a sub-RLM (\d+ms|\d\.\ds)\.")

    def test_the_granted_budget_stands_in_the_system_prompt(self):
        """ENG-22, ENG-25, ENG-27: the root's own; below, the grant and what the parent has left."""
        server = self.serve("openai", Reply(text=block("rlm_query('p')")), final("p"), final())
        self.ask(server, "--max-tokens", "100000", "--max-depth", "3", "--downgrade", "15")
        root, below = server.requests[0].system, server.requests[1].system
        self.assertRegex(root, r"Granted: cost unlimited, 100000 tokens, 30 iterations")
        self.assertIn("With under 15 % of cost, tokens or time left", root)
        self.assertIn("You are a SUB-RLM at depth 1 of at most 3", below)
        granted = int(re.search(r"granted by the parent\): .*, (\d+) tokens", below).group(1))
        left = int(re.search(r"remaining budget: .*, (\d+) tokens", below).group(1))
        self.assertLessEqual(granted, left + granted)
        self.assertLess(granted, 50000)
        self.assertGreater(granted, 40000)
        self.assertGreater(left, 40000)
        self.assertIn("15 iterations", below)


if __name__ == "__main__":
    unittest.main()

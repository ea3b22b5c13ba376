"""The words that a model reads in a request, and that they are true: what is described exists, what is shown runs."""

import json
import re
import shutil
import unittest
from pathlib import Path

from harness import block
from model import Reply
from providers import ProviderTest, final

SPECIFIED = (
    "llm_query", "rlm_query", "batch_rlm_query", "chunk_text", "search_context", "count_matches",
    "extract_json", "extract_sections",
)


class SystemPrompt(ProviderTest):
    def told(self, *arguments):
        """The system prompt of a root run, as the server got it."""
        server = self.serve("openai", final())
        self.ask(server, *arguments)
        return server.requests[0].system

    def execute(self, *lines, context="", replies=()):
        """The outcome of each block of one response, and the server's requests."""
        server = self.serve("openai", Reply(text="\n".join(lines)))
        for pattern, reply in replies:
            server.script(pattern, reply)
        server.script(None, final())
        outcome = self.ask(server, "-c", self.write("input", context))
        return outcome.executions(), server.requests

    def test_every_function_that_is_described_exists(self):
        """ENG-21, ENG-23: those of the specification among them, each with a docstring."""
        described = re.findall(r"(?m)^- (?:\w+\(\): [^.]*\. )*(\w+)\(", self.told())
        described += re.findall(r"\b(SHOW_VARS|budget|FINAL_VAR)\(", self.told())
        self.assertLessEqual(set(SPECIFIED) | {"FINAL", "FINAL_VAR"}, set(described))
        small = self.told("--prompt", "small")
        for name in (*SPECIFIED, "FINAL", "FINAL_VAR"):
            self.assertRegex(small, rf"\b{name}\(")
        names = sorted(set(described))
        (done,), _ = self.execute(
            block(f"for name in {names!r}:", "    print(name, len(globals()[name].__doc__ or '') > 20)")
        )
        self.assertEqual(done["error"], None)
        self.assertEqual(done["stdout"], "".join(f"{name} True\n" for name in names))

    def test_the_example_runs(self):
        """ENG-28: several blocks in one response, run in sequence in one session, as it shows them."""
        system = self.told()
        example = re.findall(r"(?m)^```python\n[\s\S]*?^```$", system)
        self.assertGreaterEqual(len(example), 2)
        context = "7,2024-05-06,it came late again\n8,2023-05-06,it came late\n" * 4000
        executions, requests = self.execute(
            *example, context=context, replies=[("^Does each review", Reply(text="0 yes\n1: No"))]
        )
        self.assertEqual([done["error"] for done in executions], [None] * len(example))
        self.assertIn("4000 reviews, 40 calls: ['0 7,2024-05-06,it came late again'", executions[0]["stdout"])
        counted = "2 of 4000 labelled, 1 yes: ['0 7,2024-05-06,it came late again']"
        self.assertIn(counted, executions[2]["stdout"])
        told = requests[-1].last_user
        self.assertLess(told.index("4000 reviews"), told.index(counted), "both in one turn")
        self.assertIn("cheaper and faster than one block a turn", system.replace("\n", " "))

    def test_when_to_use_which(self):
        """ENG-24: each way to ask has its cost and its time, from the price table of this run."""
        prices = {"m": (1000000, 2000000)}
        system = self.told(*self.prices(**prices))
        choice = system[system.index("# Which one") : system.index("# Answer")]
        for way in ("llm_query", "batch_llm_query", "rlm_query", "batch_rlm_query"):
            self.assertRegex(choice, rf"\b{way}\b")
        figures = system[system.index("# This run") :]
        self.assertEqual(len(re.findall(r"Cost: \$\d", figures)), 2)
        self.assertEqual(len(re.findall(r"about \d", figures)), 2)

    def test_what_is_loaded(self):
        """Which Python, and the modules of --preload; a dry run says the same."""
        own = re.match(r"python(\d+\.\d+)$", Path(shutil.which("python3")).resolve().name)
        library = f"Python{' ' + own[1] if own else ''}'s standard library"
        self.assertIn(f"Loaded: {library}. ", self.told())
        options = "--preload", "json.tool", "--preload", "this"
        self.assertIn(f"Loaded: {library}, json.tool, this. ", self.told(*options))
        shown = self.rlmd("exec", "--dry-run", "--json", "-p", "ollama", *options, "task").out
        self.assertIn(f"Loaded: {library}, json.tool, this. ", json.loads(shown)["systemPrompt"])
        odd = self.dir / "interpreter"  # a name that says no version
        odd.symlink_to(Path(shutil.which("python3")).resolve())
        self.assertIn(f"Loaded: {library}. ", self.told("--python", odd))

    def test_sizes_of_pieces(self):
        """In tokens of the window of llm_query's model, and in characters by what the inputs hold."""
        dense, plain = self.write("dense", "日本語" * 5000), self.write("plain", "some words. " * 5000)
        free = {"input_cost_per_token": 0, "output_cost_per_token": 0}
        windows = {"big": 128000, "small": 20000, "vast": 2000000}
        prices = self.write("windows.json", json.dumps(
            {name: {**free, "max_input_tokens": tokens} for name, tokens in windows.items()}))
        for model, tokens in (("big", 25000), ("small", 4000), ("vast", 50000)):
            sizes = []
            for context in (dense, plain):
                told = self.told("--price-table", prices, "--subcall-model", model, "-c", context)
                found = re.search(r"up to (\d+) tokens at a time, here some (\d+) characters", told)
                self.assertEqual(int(found[1]), tokens, model)
                sizes.append(int(found[2]))
            self.assertLess(2 * sizes[0], sizes[1], "the dense one is shorter")

    def test_a_sub_run_is_told_how_to_work(self):
        """ENG-25, ENG-26, ENG-27: its place, what it may spend, and to be quick about it."""
        server = self.serve("openai", Reply(text=block("rlm_query('p')")), final("p"), final())
        self.ask(server, "--max-depth", "3")
        below = " ".join(server.requests[1].system.split())
        for phrase in (
            "SUB-RLM at depth 1 of at most 3", "ALLOCATED BUDGET", "EFFICIENCY", "2-5 iterations",
            "Prefer llm_query", "Return FINAL() promptly", "parent's own remaining budget",
        ):
            self.assertIn(phrase, below)

    def test_a_forced_answer_has_outputs_and_variables(self):
        """ENG-19: what was printed last, and each variable with its type, size and beginning."""
        server = self.serve(
            "openai", Reply(text=block("found = ['ada', 'bob']", "print('seen', 17)")), Reply(text="both")
        )
        self.ask(server, "--max-iterations", "1")
        forced = server.requests[-1].last_user
        self.assertIn("seen 17", forced)
        self.assertRegex(forced, r"found.*list.*2.*ada")
        self.assertIn("TASK: the task", forced)


if __name__ == "__main__":
    unittest.main()

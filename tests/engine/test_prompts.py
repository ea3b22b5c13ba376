"""What the prompts in share/prompts/ must say: ENG-19, ENG-21 to ENG-28."""
import ast
import os
import re
import unittest
from pathlib import Path

SOURCE = Path(os.environ.get("RLMD_SOURCE_ROOT", Path(__file__).parents[2]))
PROMPTS = {path.stem: path.read_text() for path in (SOURCE / "share/prompts/default").glob("*.txt")}

BUDGET = {"cost", "tokens", "time", "iterations", "depth", "max_depth"}

# The values that the engine has for each prompt.
VALUES = {
    "root": BUDGET | {
        "contexts", "max_output", "model", "subcall_model",
        "query_cost", "query_time", "subrun_cost", "subrun_time", "downgrade", "parallel",
    },
    "subrun": BUDGET | {"parent_cost", "parent_tokens", "parent_iterations"},
    "first_turn": BUDGET | {"turn", "max_turns", "task", "contexts", "previews"},
    "preview": {"name", "preview"},
    "first_turn_bare": BUDGET | {"turn", "max_turns", "task", "contexts"},
    "turn": BUDGET | {"turn", "max_turns", "task", "output", "query_time", "subrun_time"},
    "forced": {"task", "reason", "output"},
    "direct": set(),
    "query": set(),
    "no_code": set(),
    "cut": set(),
    "cut_text": set(),
    "repeated": set(),
    "operation": {"task", "output"},
    "serial": set(),
    "summary": {"turns", "output"},
    "only_code": set(),
    "lost": {"reason"},
    "unknown_variable": {"output", "variables"},
}


def flat(name):
    """The prompt in one line, so that a phrase is found wherever its lines break."""
    return " ".join(PROMPTS[name].split())


class Prompts(unittest.TestCase):
    def test_files(self):
        """There are these prompts and no others."""
        self.assertEqual(set(PROMPTS), set(VALUES))

    def test_placeholders(self):
        """No prompt asks for a value that the engine does not have: it would render as nothing."""
        for name, text in PROMPTS.items():
            with self.subTest(name):
                self.assertLessEqual(set(re.findall(r"\{\{(.*?)\}\}", text)), VALUES[name])
                self.assertEqual(text.count("{{"), text.count("}}"))

    def test_system_prompts_do_not_change(self):
        """A system prompt is a cached prefix: it holds nothing of a turn."""
        for name in ("root", "subrun", "direct", "query"):
            for value in ("turn", "task", "output", "preview", "reason", "variables"):
                self.assertNotIn("{{%s}}" % value, PROMPTS[name])

    def test_functions(self):
        """ENG-21: all functions are described."""
        for function in (
            "llm_query", "rlm_query", "batch_rlm_query", "batch_llm_query", "race_query", "run_plan",
            "chunk_text", "search_context", "count_matches", "extract_json", "extract_sections",
            "SHOW_VARS", "budget", "FINAL", "FINAL_VAR",
        ):
            self.assertIn(function + "(", PROMPTS["root"])

    def test_budget(self):
        """ENG-22: the budget stands in the system prompt as granted, and in each turn as it is."""
        for name in ("root", "first_turn", "first_turn_bare", "turn"):
            for value in BUDGET:
                self.assertIn("{{%s}}" % value, PROMPTS[name])
        for name in ("first_turn", "first_turn_bare", "turn"):
            self.assertTrue(PROMPTS[name].startswith("Turn {{turn}} of {{max_turns}}."))
            self.assertIn("TASK: {{task}}", PROMPTS[name])

    def test_endings(self):
        """ENG-23: both ways to end a run, in text and in code."""
        self.assertIn("FINAL(the answer)", PROMPTS["root"])
        self.assertIn("FINAL_VAR(name)", PROMPTS["root"])
        self.assertIn('call FINAL(value) or FINAL_VAR("name") in code', flat("root"))

    def test_choice(self):
        """ENG-24: when to use which call, with its cost and time."""
        choice = PROMPTS["root"].split("# Which one")[1].split("# Answer")[0]
        for word in (
            "llm_query", "batch_llm_query", "rlm_query", "batch_rlm_query",
            "{{query_cost}}", "{{query_time}}", "{{subrun_cost}}", "{{subrun_time}}",
        ):
            self.assertIn(word, choice)
        (batch,) = [line for line in choice.splitlines() if "batch_rlm_query" in line]
        for value in ("{{subrun_cost}} each", "{{subrun_time}} for up to {{parallel}} at once"):
            self.assertIn(value, batch)

    def test_degraded(self):
        """How code tells an answer from what stands in for one."""
        self.assertIn(".degraded is True; .reason says why", flat("root"))

    def test_subrun(self):
        """ENG-25 to ENG-27: depth, both budgets, and how to be efficient."""
        for phrase in (
            "SUB-RLM", "depth {{depth}}", "{{max_depth}}", "ALLOCATED BUDGET", "EFFICIENCY",
            "2-5 iterations", "Prefer llm_query", "Return FINAL() promptly",
            "parent's own remaining budget",
            "{{parent_cost}}", "{{parent_tokens}}", "{{parent_iterations}}",
        ):
            self.assertIn(phrase, flat("subrun"))

    def test_blocks_in_sequence(self):
        """ENG-28: several blocks run in sequence, which beats several turns, with an example."""
        self.assertIn("All blocks of one response run in sequence", flat("root"))
        self.assertIn("cheaper and faster than one block a turn", flat("root"))
        self.assertGreaterEqual(len(re.findall(r"^```repl$", PROMPTS["root"], re.M)), 2)

    def test_examples_are_python(self):
        """What the examples show would run."""
        for code in re.findall(r"^```repl\n(.*?)^```$", PROMPTS["root"], re.M | re.S):
            ast.parse(code)

    def test_length(self):
        """Small local models have to read the system prompt too: some 900 tokens."""
        self.assertLess(len(PROMPTS["root"]), 4096)

    def test_caps(self):
        """ENG-14: what a purse that runs low does to sub-runs is said from the start."""
        self.assertIn("under {{downgrade}} % of cost, tokens or time left", flat("root"))

    def test_measured(self):
        """ENG-24: each turn tells the times again, as this run has measured them by then."""
        self.assertIn("{{query_time}}", PROMPTS["turn"])
        self.assertIn("{{subrun_time}}", PROMPTS["turn"])

    def test_summary(self):
        """ENG-10: it says what was lost, and that the data were not."""
        self.assertIn("outputs of turns 1 to {{turns}}", flat("summary"))
        self.assertIn("variables, imports and functions", flat("summary"))

    def test_forced(self):
        """ENG-19: why, the task, and what was found out."""
        for value in ("{{reason}}", "{{task}}", "{{output}}"):
            self.assertIn(value, PROMPTS["forced"])


if __name__ == "__main__":
    unittest.main()

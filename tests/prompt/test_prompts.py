"""The prompts in share/prompts/ must say this: ENG-19, ENG-21 to ENG-28."""
import ast
import os
import re
import unittest
from pathlib import Path

SOURCE = Path(os.environ.get("RLMD_SOURCE_ROOT", Path(__file__).parents[2]))
PROMPTS = {path.stem: path.read_text() for path in (SOURCE / "share/prompts/default").glob("*.txt")}

SMALL = {path.stem: path.read_text() for path in (SOURCE / "share/prompts/small").glob("*.txt")}
BUDGET = {"cost", "tokens", "time_left", "iterations"}
DEPTH = {"depth", "max_depth"}  # never changes in a run
TURNS = ("first_turn", "first_turn_bare", "turn")


def flat(name):
    """The prompt in one line, so that a phrase is found wherever its lines break."""
    return " ".join(PROMPTS[name].split())


class Prompts(unittest.TestCase):
    def test_what_differs_from_run_to_run_stands_at_the_end(self):
        """A system prompt is a cached prefix: its first parts hold no value, the others none of a turn."""
        for prompts in (PROMPTS, {**PROMPTS, **SMALL}):
            for name in ("root", "subrun", "direct", "query"):
                self.assertNotIn("{{", prompts[name])
            for name in ("this_run", "grant", "subrun_grant"):
                for value in ("turn", "task", "output", "reason", "variables"):
                    self.assertNotIn("{{%s}}" % value, prompts[name])
        self.assertGreater(len(PROMPTS["root"]), 9 * len(PROMPTS["this_run"] + PROMPTS["grant"]) / 2)

    def test_functions(self):
        """ENG-21: all functions are described; the small profile has those of the specification."""
        for function in (
            "llm_query", "rlm_query", "batch_rlm_query", "chunk_text", "search_context",
            "count_matches", "extract_json", "extract_sections", "FINAL", "FINAL_VAR",
        ):
            self.assertIn(function + "(", SMALL["root"])
        for function in (
            "llm_query", "rlm_query", "batch_rlm_query", "batch_llm_query", "race_query", "run_plan",
            "chunk_text", "search_context", "count_matches", "extract_json", "extract_sections",
            "SHOW_VARS", "budget", "FINAL", "FINAL_VAR",
        ):
            self.assertIn(function + "(", PROMPTS["root"])

    def test_budget(self):
        """ENG-22: the budget stands in the system prompt as granted, and in each turn as it is."""
        for name in TURNS:
            for value in BUDGET:
                self.assertIn("{{%s}}" % value, PROMPTS[name])
        for value in BUDGET | DEPTH:
            self.assertIn("{{%s}}" % value, PROMPTS["grant"])
            self.assertIn("{{%s}}" % value, SMALL["grant"])

    def test_order_of_a_turn(self):
        """Outputs first, then the task, then what to do with both, and the budget last."""
        for name, text in [(name, prompts[name]) for prompts in (PROMPTS, {**PROMPTS, **SMALL})
                           for name in TURNS]:
            asked = "{{step}}" if name == "first_turn" else "FINAL("
            places = [text.index("TASK: {{task}}"), text.index(asked),
                      text.index("\nTurn {{turn}} of {{max_turns}}. Left: ")]
            if name != "first_turn_bare":
                places.insert(0, text.index("{{output}}"))
            self.assertEqual(places, sorted(places), name)
            self.assertEqual(len(text[places[-1]:].strip().splitlines()), 1, name)

    def test_a_look_at_a_part_offers_no_answer(self):
        """For models answer out of it; where all was shown they may."""
        for prompts in (PROMPTS, SMALL):
            self.assertIn("Do not answer yet", prompts["step_part"])
            self.assertNotIn("FINAL", prompts["step_part"])
            self.assertIn("FINAL(the answer)", prompts["step"])

    def test_placeholders_for_answers(self):
        """Only these three: what a reply says in them is known for no answer."""
        for name, text in [*PROMPTS.items(), *SMALL.items()]:
            for said in re.findall(r"\bFINAL(?:_VAR)?\([^)]*\)", text):
                self.assertIn(said, ("FINAL(the answer)", "FINAL(...)", "FINAL_VAR(name)", "FINAL()",
                                     "FINAL(value)", 'FINAL_VAR("name")', "FINAL_VAR({{output}})",
                                     # what the model itself said
                                     "FINAL({{output}})", 'FINAL("{{output}}")'), name)

    def test_placeholders_are_no_answers(self):
        """ENG-2: whatever stands in a prompt in the place of an answer, the parser refuses."""
        source = (SOURCE / "src/reply/marker.c").read_text()
        table = re.search(r"placeholders\[\] = \{(.*?)\}", source, re.S).group(1)
        refused = set(re.findall(r'"([^"]*)"', table)) | {"", "..."}
        shown = set()
        for name, text in {**PROMPTS, **SMALL}.items():
            shown |= {(name, said) for said in re.findall(r"\bFINAL\(([^)]*)\)", text)}
        self.assertIn("the answer", {said for _, said in shown})
        self.assertEqual({pair for pair in shown
                          if pair[1] not in refused and "{{output}}" not in pair[1]}, set())

    def test_endings(self):
        """ENG-23: both ways to end a run, in text and in code."""
        self.assertIn("FINAL(the answer)", PROMPTS["root"])
        self.assertIn("FINAL_VAR(name)", PROMPTS["root"])
        self.assertIn('call FINAL(value) or FINAL_VAR("name") in code', flat("root"))

    def test_choice(self):
        """ENG-24: when to use which call, and what each costs and takes."""
        choice = PROMPTS["root"].split("# Which one")[1].split("# Answer")[0]
        for word in ("llm_query", "batch_llm_query", "rlm_query", "batch_rlm_query"):
            self.assertIn(word, choice)
        for value in ("query_cost", "query_time", "subrun_cost", "subrun_time"):
            self.assertIn("{{%s}}" % value, PROMPTS["this_run"])
            self.assertIn("{{%s}}" % value, SMALL["this_run"])
        (batch,) = [line for line in PROMPTS["this_run"].splitlines() if "batch_rlm_query" in line]
        for value in ("{{subrun_cost}} each", "{{subrun_time}} for up to {{parallel}} at once"):
            self.assertIn(value, batch)

    def test_degraded(self):
        """How code tells an answer from what stands in for one."""
        self.assertIn(".degraded is True; .reason says why", flat("root"))

    def test_subrun(self):
        """ENG-25 to ENG-27: depth, both budgets, and how to be efficient."""
        told = flat("subrun") + flat("subrun_grant")
        for phrase in (
            "SUB-RLM", "depth {{depth}}", "{{max_depth}}", "ALLOCATED BUDGET", "EFFICIENCY",
            "2-5 iterations", "Prefer llm_query", "Return FINAL() promptly",
            "parent's own remaining budget",
            "{{parent_cost}}", "{{parent_tokens}}", "{{parent_iterations}}",
        ):
            self.assertIn(phrase, told)

    def test_blocks_in_sequence(self):
        """ENG-28: several blocks run in sequence, which beats several turns, with an example."""
        self.assertIn("All blocks of one response run in sequence", flat("root"))
        self.assertIn("cheaper and faster than one block a turn", flat("root"))
        self.assertGreaterEqual(len(re.findall(r"^```python$", PROMPTS["root"], re.M)), 2)

    def test_the_example_counts_in_python(self):
        """A model only labels what Python cannot tell, once it is known how many calls that takes."""
        filters, labels, counts = re.findall(r"^```python\n(.*?)^```$", PROMPTS["root"], re.M | re.S)
        self.assertIn('print(len(rows), "reviews,", len(parts), "calls', filters)
        self.assertNotIn("llm_query", filters + counts)
        self.assertIn("batch_llm_query", labels)
        self.assertIn("len(late)", counts)
        rows, answers = ["0 late", "1 fine"], ["0 yes\n1: No", None]
        session = {"re": re, "rows": rows, "parts": ["a", "b"], "batch_llm_query": lambda asked: answers}
        exec(labels + "late = None\n" + counts, session)
        self.assertEqual(session["late"], ["0 late"])

    def test_examples_are_python(self):
        """The examples' code would run."""
        for prompts in (PROMPTS, SMALL):
            for code in re.findall(r"^```python\n(.*?)^```$", prompts["root"], re.M | re.S):
                ast.parse(code)

    def test_length(self):
        """Some 1,100 tokens, for providers cache a beginning that runs share from 1,024 on; small
        models have to read theirs, of 500."""
        self.assertIn(len(PROMPTS["root"]), range(4350, 4700))
        self.assertLess(len(SMALL["root"]), 2300)

    def test_inputs_are_in_memory(self):
        """Code that models try most, and that does not go: files, packages, an input typed out."""
        for text in (flat("root"), " ".join(SMALL["root"].split())):
            self.assertRegex(text, "no files")
            self.assertRegex(text, "nothing can be installed")
            self.assertRegex(text, r"copy (an input|its text) into your code")

    def test_caps(self):
        """ENG-14: what a budget that runs low does to sub-runs is said from the start."""
        self.assertIn("under {{downgrade}} % of cost, tokens or time left", flat("this_run"))

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

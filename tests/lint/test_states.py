"""The picture at the head of engine/run.c against what the code does.

The picture is the lines `A -> B   why` of the file's first comment. `any -> B` stands for an
arrow from every state; that every state may go to FINISH is said once and not drawn.
"""
import re
import unittest

import tree

SOURCE = "src/engine/run.c"
TABLE = "src/engine/run_private.h"
LAST = "FINISH"


def load():
    source = tree.read(SOURCE)
    head = source[: source.index("*/")]
    drawn = set(re.findall(r"^ \*\s+(any|[A-Z_]+) -> ([A-Z_]+)\b", head, flags=re.MULTILINE))
    macro = r"#define RUN_STATES\(X\)(.*?[^\\])\n"
    table = re.search(macro, tree.read(TABLE), flags=re.DOTALL).group(1)
    rows = re.findall(r"\bX\((\w+),\s*(\w+),\s*(\w+)\)", table)
    bodies = {}
    for name, _, _, body in tree.functions(tree.without_comments(source)):
        bodies[name] = body
    return drawn, rows, bodies


def steps(body):
    """The states that one function goes to by then() and await()."""
    found = set()
    for argument in re.findall(r"\b(?:then|await)\(run,\s*([^;]*)\)", body):
        found.update(re.findall(r"\bRUN_([A-Z_]+)\b", argument))
    return found


def reached(name, bodies, entries, seen):
    """The same for a function with the helpers that it calls, but not other states' functions."""
    seen.add(name)
    found = steps(bodies[name])
    for called in set(re.findall(r"\b(\w+)\s*\(", bodies[name])):
        if called in bodies and called not in seen and called not in entries:
            found |= reached(called, bodies, entries, seen)
    return found


class StatesTest(unittest.TestCase):
    def setUp(self):
        self.drawn, rows, self.bodies = load()
        self.states = {state: function for state, function, _ in rows}
        self.wakes = {state: wake for state, _, wake in rows}
        self.entries = {f"run_{function}" for function in self.states.values()}
        helpers = {"then", "await", "run_drive"}
        bodies = {name: body for name, body in self.bodies.items() if name not in helpers}
        self.done = set()
        for state, function in self.states.items():
            entry = f"run_{function}"
            self.assertIn(entry, bodies, f"state {state} has no function")
            for to in reached(entry, bodies, self.entries, set()) - {LAST}:
                self.done.add((state, to))

    def test_picture_names_the_states(self):
        named = {state for arrow in self.drawn for state in arrow} - {"any"}
        self.assertEqual(named | {LAST}, set(self.states))

    def test_every_step_is_drawn(self):
        everywhere = {to for state, to in self.drawn if state == "any"}
        missing = {(a, b) for a, b in self.done if (a, b) not in self.drawn and b not in everywhere}
        self.assertEqual(missing, set(), "steps that the picture does not show")

    def test_every_arrow_is_a_step(self):
        arrows = {(state, to) for state, to in self.drawn if state != "any"}
        self.assertEqual(arrows - self.done, set(), "arrows that no code takes")

    def test_what_is_awaited_says_what_wakes_it(self):
        source = tree.without_comments(tree.read(SOURCE))
        awaited = set(re.findall(r"\bawait\(run,\s*RUN_(\w+)\)", source))
        woken = {state for state, wake in self.wakes.items() if wake != "NOTHING"}
        self.assertEqual(awaited, woken)

    def test_only_steps_and_drawn_jumps_change_the_state(self):
        """run->state is written by then() and await(); elsewhere only for a drawn `any -> X`."""
        everywhere = {to for state, to in self.drawn if state == "any"} | {LAST}
        for name, body in self.bodies.items():
            if name in ("then", "await"):
                continue
            for value in re.findall(r"run->state\s*=[^=]\s*(?:RUN_)?(\w+)", body):
                self.assertIn(value, everywhere, f"{name}() sets the state")
            if name not in self.entries and name not in self.helpers_of_states():
                self.assertLessEqual(steps(body), everywhere, f"{name}() takes a step")

    def helpers_of_states(self):
        seen = set()
        for entry in self.entries:
            if entry in self.bodies:
                reached(entry, self.bodies, self.entries - {entry}, seen)
        return seen

    def test_only_run_c_knows_the_state(self):
        """Nobody else reads or writes it."""
        for path in tree.files(".c", ".h", under=("src",)):
            if tree.name(path) != SOURCE:
                self.assertNotRegex(tree.read(path), r"\brun->state\b", tree.name(path))


if __name__ == "__main__":
    unittest.main()

"""The pictures of states in comments against what the code does.

That of engine/run.c is the lines `A -> B   why` of the file's first comment. `any -> B` stands
for an arrow from every state; that every state may go to FINISH is said once and not drawn.
"""
import re
import unittest

import tree

# Where `FROM -> TO   function` draws the states of an enum: its prefix, and where it is.
PICTURES = {
    "src/async/dispatch.c": ("dispatch_state", "DISPATCH_", "src/async/execution.h"),
    "src/async/scheduler.c": ("permit_state", "", "src/async/scheduler.c"),
    "src/batch/results_file.c": ("results_state", "RESULTS_", "src/batch/results_file.c"),
    "src/engine/job.c": ("job_state", "JOB_", "src/engine/job.h"),
    "src/engine/repl.c": ("repl_state", "REPL_", "src/engine/repl.c"),
}
ARROW = re.compile(r"^ \*\s+(any|[A-Z_]+) -> ([A-Z_]+)\b[ ]*(\w*)", flags=re.MULTILINE)
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
        helpers = {"then", "await", "drive"}
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
        """No other file reads or writes it."""
        for path in tree.files(".c", ".h", under=("src",)):
            if tree.name(path) != SOURCE:
                self.assertNotRegex(tree.read(path), r"\brun->state\b", tree.name(path))


def values(name, prefix, path):
    body = re.search(rf"enum {name} \{{(.*?)\}}", tree.without_comments(tree.read(path)), re.DOTALL)
    return re.findall(rf"\b{prefix}(\w+)", body.group(1))


class PicturesTest(unittest.TestCase):
    def test_every_picture_is_known(self):
        drawn = {tree.name(path) for path in tree.files(".c", ".h", under=("src",))
                 if ARROW.search(tree.read(path))}
        drawn -= {SOURCE, "src/llm/call.h"}  # which is tested below, and which names no states
        self.assertEqual(drawn, set(PICTURES))

    def test_states_are_those_of_the_enum(self):
        for path, where in PICTURES.items():
            with self.subTest(path):
                arrows = ARROW.findall(tree.read(path))
                named = {state for arrow in arrows for state in arrow[:2]} - {"any"}
                self.assertEqual(named, set(values(*where)))

    def test_arrows_are_what_functions_do(self):
        """Each names the function that takes the step, and each step of a function is drawn."""
        for path, (_, prefix, _) in PICTURES.items():
            with self.subTest(path):
                source = tree.read(path)
                drawn = {(function, to) for _, to, function in ARROW.findall(source)}
                taken = {(name, to)
                         for name, _, _, body in tree.functions(tree.without_comments(source))
                         for to in re.findall(rf"->state = {prefix}([A-Z_]+)\b", body)}
                self.assertEqual(drawn, taken)

    def test_a_worker_moves_by_its_messages(self):
        """pool/worker.c draws them as `FROM --message--> TO`; the table says what may be said when."""
        head = tree.read("src/pool/worker.c").split("*/")[0]
        said = {row[1].strip('"'): re.findall(r"IN\((\w+)\)", row[3])
                for _, *row in tree.rows("src/wire/messages.def", "MESSAGE")}
        steps = re.findall(r"(?=(?<![A-Z])([A-Z]+|  ) +--(\w+)-+> +([A-Z]+))", head)
        named = {state for before, _, after in steps for state in (before, after)} - {"  "}
        self.assertEqual(named, set(values("worker_state", "WORKER_", "src/wire/message.h")))
        for before, message, _ in steps:
            self.assertTrue(before == "  " or before in said[message], (before, message))


if __name__ == "__main__":
    unittest.main()

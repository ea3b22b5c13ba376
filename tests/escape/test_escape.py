"""Every attempt of tests/escape in every mode that this machine allows; one test an attempt.

A mode that cannot be had is skipped with its reason. Guards G1 to G10 of docs/security.md.
"""

import os
import platform
import sys
import unittest

import attempts
import runner

ATTEMPTS_MIN = 90  # that really ran, in each mode that was not skipped

# Sanitizers watch the supervisor, which runs the same code in every mode: with them, the most
# and the least of the walls are enough, and half of a slow test is saved. Where these tests
# do not run as root the most is `user`.
SANITIZED = b"__asan_init" in runner.RLMD.read_bytes()
MIDDLE = ("container", "user") if os.getuid() == 0 else ()


class Escape:
    """Mixed in before unittest.TestCase for each mode."""

    @classmethod
    def setUpClass(cls):
        if SANITIZED and cls.mode in MIDDLE:
            raise unittest.SkipTest(f"{cls.mode}: a sanitizer sees the same code in other modes")
        try:
            cls.stage = runner.Stage(cls.mode)
        except runner.Unavailable as reason:
            raise unittest.SkipTest(f"{cls.mode}: {reason}")
        cls.addClassCleanup(cls.stage.close)
        cls.stage.run()
        print(f"{cls.mode}: {cls.stage.sandbox}", *cls.stage.notes, sep="\n  ", file=sys.stderr)
        print(f"  at most {cls.stage.peak >> 20} MiB, {cls.stage.children} processes", file=sys.stderr)

    def attempt(self, group, attempt):
        outcome = self.stage.outcomes.get((group, attempt.name))
        if outcome is None:
            self.fail("it was not made, for its run ended: " + "; ".join(self.stage.problems))
        word, execution = outcome
        if word == "Missing":
            self.assertNotEqual(platform.machine(), "x86_64", "not known to libseccomp")
            self.skipTest("this architecture has no such thing")
        told = f"stdout: {execution['stdout'][-2000:]}\nerror: {(execution['error'] or '')[-2000:]}"
        self.assertIn(word, attempt.words, told)

    def test_enough_was_tried(self):
        """So that "nothing ran" is no success."""
        words = [word for word, _ in self.stage.outcomes.values()]
        self.assertGreaterEqual(len([word for word in words if word != "Missing"]), ATTEMPTS_MIN)

    def test_runs_went_on(self):
        """Each hostile run ended with its last block's answer, and the honest one beside them with its own."""
        self.assertEqual(self.stage.problems, [])
        self.assertGreaterEqual(self.stage.honest_runs, 3)

    def test_the_mode_is_what_it_is_called(self):
        """Results name the layers that stood; where the machine refuses one, it is not among them."""
        layers = self.stage.sandbox["layers"]
        self.assertIn("seccomp", layers)
        if self.stage.mode.deprived:
            refused = [layer for layer in layers if "namespace" in layer or "landlock" in layer]
            self.assertEqual(refused, [])

    def test_nothing_changed_outside(self):
        self.assertEqual(self.stage.traces(), [])

    def test_supervisor_stayed_small(self):
        """Its memory is bounded, whatever its workers say, and so is their number."""
        if SANITIZED:
            self.skipTest("sanitizers need memory of their own")
        self.assertGreater(self.stage.peak, 1 << 20)
        self.assertLess(self.stage.peak, runner.SUPERVISOR_MAX)
        self.assertLess(self.stage.children, runner.WORKERS_MAX)


def one(group, attempt):
    return lambda self: self.attempt(group, attempt)


for loaded in attempts.load():
    for each in loaded.attempts.values():
        test = one(loaded.name, each)
        test.__doc__ = f"{each.name}: {each.expect}"
        setattr(Escape, f"test_{loaded.name}_{each.name}", test)


class Root(Escape, unittest.TestCase):
    mode = "root"


class Container(Escape, unittest.TestCase):
    mode = "container"


class User(Escape, unittest.TestCase):
    mode = "user"


class Bare(Escape, unittest.TestCase):
    mode = "bare"


if __name__ == "__main__":
    unittest.main()

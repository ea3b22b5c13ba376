"""The results of bench/measure.c for samples, by bench/verdict: figures, verdicts, refusals."""
import os
import re
import resource
import subprocess
import sys
import unittest

VERDICT = os.path.join(os.environ["RLMD_BUILD_ROOT"], "bench/verdict")
HELD, MISSED, NOISY, MISSING = 0, 2, 3, 77


def judged(*arguments, ours=(), beside=(), anyway=True, noise=2, **more):
    """Its status, its row without the marks of a noisy machine, and what it complains of."""
    samples = "".join(f"o {a}\nf {b}\n" for a, b in zip(ours, beside)) if beside else "".join(
        f"o {a}\n" for a in ours)
    environment = {name: value for name, value in os.environ.items() if name != "BENCH_ANYWAY"}
    if anyway:
        environment["BENCH_ANYWAY"] = "1"
    if noise:
        environment["BENCH_NOISE"] = str(noise)
    done = subprocess.run([VERDICT, *arguments], input=samples, text=True, capture_output=True,
                          env=environment, check=False, **more)
    rows = [line for line in done.stdout.splitlines() if line.startswith("| ")]
    return done.returncode, rows[0].replace(" (noisy)", "") if rows else "", done.stderr


class VerdictTest(unittest.TestCase):
    def test_a_target_that_is_met_missed_or_within_the_spread(self):
        floor = [100] * 9
        ours = [195, 190, 198, 200, 202, 205, 209, 207, 210]
        for how, target, status, verdict in (
                ("at-most", "2.5", HELD, "holds"), ("at-most", "1.5", MISSED, "missed"),
                ("at-most", "2", HELD, "undecided: the target is within the spread"),
                ("at-least", "1.5", HELD, "holds"), ("at-least", "2.5", MISSED, "missed")):
            with self.subTest(how=how, target=target):
                pair = (ours, floor) if how == "at-most" else (floor, ours)
                got, row, _ = judged(how, "11s", target, "ms", "ours", "theirs", ours=pair[0],
                                     beside=pair[1])
                self.assertEqual(got, status)
                self.assertRegex(row, rf"^\| 11s \| ours: .* ms \| theirs: .* ms \| 2.02x \| "
                                      rf"1.95x?-2.09 \| [<>]= {target}x \| {verdict} \|$")

    def test_a_limit_in_the_samples_own_unit(self):
        status, row, _ = judged("limit", "9", "2.5", "MB", "ours", ours=[2.0, 2.1] * 9)
        self.assertEqual((status, row),
                         (HELD, "| 9 | ours: 2.10 MB |  | 2.1 | 2.1-2.1 | <= 2.5 | holds |"))

    def test_the_machine_changes_its_speed(self):
        """Ours and the floor together: the ratio stays."""
        floor = [100.0] * 9 + [170.0] * 9
        status, row, _ = judged("at-most", "1", "2", "us", "ours", "floor",
                                ours=[1.5 * each for each in floor], beside=floor)
        self.assertEqual(status, HELD)
        self.assertIn("| 1.5x | 1.5-1.5 |", row)

    def test_few_samples_are_not_judged(self):
        status, row, _ = judged("at-most", "1", "2", "us", "ours", "floor", ours=[9], beside=[1],
                                anyway=False)
        self.assertEqual(status, HELD)
        self.assertIn("| not judged: too few samples |", row)


class RefusalTest(unittest.TestCase):
    def assert_no_figure(self, status, row, said):
        self.assertEqual(status, NOISY, said)
        self.assertEqual(row, "| 1 | ours | floor | | | <= 2x | not measured: too noisy |")
        self.assertRegex(said, r"^bench: row 1: the machine is too noisy for a figure: others use "
                               r"\d+ % of a core, and the parts of this run differ by \d+ %\. Let ")

    def test_parts_that_differ(self):
        """By more than the figure would be worth; and nobody reads it."""
        ours = [each * 10 for each in range(1, 19)]
        self.assert_no_figure(*judged("at-most", "1", "2", "us", "ours", "floor", ours=ours,
                                      beside=[10] * 18, anyway=False))
        status, row, _ = judged("at-most", "1", "2", "us", "ours", "floor", ours=ours,
                                beside=[10] * 18)
        self.assertEqual(status, MISSED)
        self.assertIn("| missed |", row)

    def test_a_verdict_that_noise_cannot_turn(self):
        """Each part, put wrong by twice, is on the same side of the target."""
        parts = [130, 140, 180, 120, 200, 190, 150, 160, 170]  # half as wide again
        for how, target, status, verdict in (
                ("at-least", "8", HELD, "holds: at least 60x"),
                ("at-least", "60", HELD, "holds: at least 60x"),
                ("at-least", "61", NOISY, None), ("at-least", "399", NOISY, None),
                ("at-least", "400", MISSED, "missed: at most 400x"),
                ("at-most", "400", HELD, "holds: at most 400x"),
                ("at-most", "399", NOISY, None), ("at-most", "61", NOISY, None),
                ("at-most", "60", MISSED, "missed: at least 60x"),
                ("limit", "1000", HELD, "holds: at most 400 ms"),
                ("limit", "10", MISSED, "missed: at least 60 ms")):
            with self.subTest(how=how, target=target):
                one, slow = [1] * 9, parts
                ours, beside = (one, slow) if how == "at-least" else (slow, one)
                if how == "limit":
                    got = judged(how, "7", target, "ms", "ours", ours=ours, anyway=False)
                else:
                    got = judged(how, "7", target, "ms", "ours", "theirs", ours=ours,
                                 beside=beside, anyway=False)
                self.assertEqual(got[0], status, got)
                said = f"{verdict}, on a noisy machine" if verdict else "not measured: too noisy"
                self.assertRegex(got[1], rf"^\| 7 \| ours \| (theirs)? ?\| \| \| [<>]= {target}\w* "
                                         rf"\| {re.escape(said)} \|$")
                self.assertIn("the machine is too noisy for a figure", got[2])

    def test_who_is_in_line_adds_to_the_noise(self):
        """Nothing is known of how many there are: what is far enough off is judged all the same."""
        parts = [each * 1e6 for each in (130, 140, 180, 120, 200, 190, 150, 160, 170)]
        for how, status, verdict in (("at-least", HELD, "holds"), ("at-most", MISSED, "missed")):
            pair = ([1] * 9, parts) if how == "at-least" else (parts, [1] * 9)
            got = judged(how, "7", "8", "ms", "ours", "theirs", ours=pair[0], beside=pair[1],
                         anyway=False, noise=None)
            self.assertEqual(got[0], status, got)
            bound = re.search(rf"{verdict}: at least ([0-9.e+]+)x, on a noisy machine", got[1])
            self.assertLessEqual(float(bound[1]), 60e6 * 1.01)

    def test_one_part_is_enough_for_doubt(self):
        ours = [130, 140, 180, 15, 200, 190, 150, 160, 170]
        status, row, _ = judged("at-least", "7", "8", "ms", "ours", "theirs", ours=[1] * 9,
                                beside=ours, anyway=False)
        self.assertEqual(status, NOISY)
        self.assertIn("| not measured: too noisy |", row)

    def test_others_use_the_machine(self):
        with subprocess.Popen([sys.executable, "-c", "print(flush=True)\nwhile True: pass"],
                              stdout=subprocess.PIPE) as other:
            other.stdout.readline()
            try:
                self.assert_no_figure(*judged("at-most", "1", "2", "us", "ours", "floor",
                                              ours=[15] * 18, beside=[10] * 18, anyway=False))
            finally:
                other.kill()

    def test_a_low_limit_of_descriptors(self):
        def lower():
            resource.setrlimit(resource.RLIMIT_NOFILE, (64, 128))

        self.assertEqual(judged("descriptors", "14", "100", preexec_fn=lower), (HELD, "", ""))
        status, row, said = judged("descriptors", "14", "5100", preexec_fn=lower)
        self.assertEqual(status, MISSING)
        self.assertEqual(said, "bench: row 14 is not measured, for want of 5100 descriptors (the "
                               "limit is 128): raise it, as root, with `ulimit -Hn 5100`\n")
        self.assertRegex(row, r"^\| 14 \| .* \| not measured: it is missing \|$")

    def test_no_samples(self):
        for samples, said in (((), "there are no samples"), (("x",), "no sample: o x")):
            with self.subTest(samples=samples):
                status, _, complaint = judged("limit", "9", "2", "MB", "ours", ours=samples)
                self.assertEqual((status, complaint.strip()), (1, f"bench: {said}"))


if __name__ == "__main__":
    unittest.main()

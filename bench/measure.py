"""bench/measure.h for benchmarks in Python: samples are taken here, and judged by bench/verdict.

A benchmark's command line begins with the path of `verdict`.
"""
import subprocess
import sys
import time

FAILED = 1
MISSING = 77  # as Meson is told that a test was skipped


class Row:
    """A row of docs/performance.md: ours, and a floor or a peer taken in turn with it."""

    def __init__(self, number, ours, beside=None, unit="ms"):
        """`unit` is the samples'; without `beside` the target is one of ours, in that unit."""
        self.number, self.ours, self.beside, self.unit = number, ours, beside, unit
        self.samples = []

    def add(self, ours, beside=None):
        self.samples.append(f"o {ours}\n")
        if beside is not None:
            self.samples.append(f"f {beside}\n")

    def judge(self, verdict, *, at_most=None, at_least=None):
        """Prints the row; returns a status for sys.exit(): of several rows, their max()."""
        sys.stdout.flush()
        target = at_most if at_least is None else at_least
        how = "limit" if self.beside is None else "at-most" if at_least is None else "at-least"
        what = [self.ours] if self.beside is None else [self.ours, self.beside]
        return subprocess.run([verdict, how, self.number, str(target), self.unit, *what],
                              input="".join(self.samples), text=True, check=False).returncode


def missing(number, what, how):
    """Names what is not there to be measured, and how to get it; returns a status."""
    print(f"bench: row {number} is not measured, for want of {what}: {how}", file=sys.stderr)
    print(f"| {number} | | {what} | | | | not measured: it is missing |", flush=True)
    return MISSING


def milliseconds(function):
    """The time of one call."""
    start = time.perf_counter()
    function()
    return (time.perf_counter() - start) * 1e3

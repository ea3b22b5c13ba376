"""tests/patience.py - how long a test waits, by what the machine can do now.

No test says "within five seconds" of a machine that it does not know. It waits for an event, for as
long as hung() says; or, where being prompt is what is tested, it measures with a Stopwatch, whose
seconds are those of an idle machine of this century: where everything takes four times as long, for
the machine is slow or busy, they last four times as long.
"""

import os
import sys
import time
import unittest

START = 0.02        # seconds that an interpreter takes to start where nothing else goes on
FRESH = 2.0         # seconds for which a measurement is believed
HUNG = 300.0        # seconds, of an idle machine, after which nothing will come any more
POLL = 0.005        # seconds between two looks at what gives no event

_measured = {"at": float("-inf"), "slowness": 1.0}


def _start_an_interpreter():
    begun = time.monotonic()
    # Not by subprocess, which the leak guard watches.
    pid = os.posix_spawn(sys.executable, [sys.executable, "-I", "-S", "-c", "pass"], os.environ)
    os.waitpid(pid, 0)
    return time.monotonic() - begun


def _look_at_the_load():
    """How many want a processor: on the average of the last minute, and now."""
    with open("/proc/loadavg", encoding="ascii") as file:
        minute, _, _, running, _ = file.read().split()
    return float(minute), int(running.split("/")[0])


def slowness():
    """How many times longer things take now than on an idle machine; at least 1.

    The worst of: what a start of an interpreter takes now, and how many want each processor, now
    and on the average of the last minute. Now is before that start and after it: of a process that
    is killed with all its threads each wants a processor for a moment, and two thousand of them
    are no reason to wait for minutes.
    """
    now = time.monotonic()
    if now - _measured["at"] > FRESH:
        _, before = _look_at_the_load()
        start = _start_an_interpreter()
        minute, after = _look_at_the_load()
        wanted = max(minute, min(before, after)) / len(os.sched_getaffinity(0))
        _measured["slowness"] = max(1.0, start / START, wanted)
        _measured["at"] = time.monotonic()
    return _measured["slowness"]


def seconds(idle):
    """Work of `idle` seconds on an idle machine is done here after these many."""
    return idle * slowness()


def hung():
    """Seconds after which a process that was to end, or an event that was to come, never will."""
    return seconds(HUNG)


class Stopwatch:
    """Seconds of an idle machine, since it was made."""

    def __init__(self):
        self.slowness = slowness()
        self.begun = time.monotonic()

    def took(self):
        """By the slower of what the machine was at the beginning and is now."""
        elapsed = time.monotonic() - self.begun
        self.slowness = max(self.slowness, slowness())
        return elapsed / self.slowness


def wait_until(condition, what="it", idle=HUNG):
    """Waits for what gives no event; fails with what `what`, a text or a function, says."""
    watch = Stopwatch()
    while not condition():
        # The machine is asked again only where the time would be up by what is known.
        if time.monotonic() - watch.begun > idle * watch.slowness and watch.took() > idle:
            said = what() if callable(what) else what
            raise unittest.TestCase.failureException(f"waited in vain: {said}")
        time.sleep(POLL)


def duration(idle):
    """For an option of the program: what takes `idle` seconds on an idle machine is done in it."""
    return f"{int(1000 * seconds(idle))}ms"

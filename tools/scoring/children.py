"""Programs that are run to their end, or to the moment at which a signal asks us to stop."""

import os
import signal
import subprocess

POLL = 0.2      # seconds between two looks whether a signal came
ENOUGH = 10     # seconds that a program which was told twice to end may still take

_asked = []     # the signals that came


class Interrupted(Exception):
    """A signal asked for the end; its only argument is the number."""


class TooLong(Exception):
    """A program took longer than it may, and was ended."""


def take_signals():
    """From now on SIGHUP, SIGINT and SIGTERM make run() end its program and raise Interrupted."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: _asked.append(number))


def check():
    """Raises Interrupted where a signal came."""
    if _asked:
        raise Interrupted(_asked[0])


def run(command, seconds=None, group=False, **more):
    """Runs a program: its exit status and what it wrote to both streams, as text.

    `seconds` is how long it may take; None: as long as it likes. With `group` what it started
    and left behind is ended with it.
    """
    check()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               encoding="utf-8", errors="replace", start_new_session=group,
                               **{"stdin": subprocess.DEVNULL, **more})
    left = float("inf") if seconds is None else seconds
    try:
        while True:
            try:
                out, err = process.communicate(timeout=min(POLL, left))
                return process.returncode, out, err
            except subprocess.TimeoutExpired:
                check()
                left -= POLL
                if left <= 0:
                    raise TooLong(f"it took more than {seconds} seconds") from None
    finally:
        _end(process, group)


def _end(process, group):
    """Tells a program twice to end, which stops rlmd at once, and then kills it."""
    for number, patience in ((signal.SIGTERM, POLL), (signal.SIGTERM, ENOUGH),
                             (signal.SIGKILL, None)):
        if process.poll() is None:
            _signal(process, number, group)
            try:
                process.communicate(timeout=patience)
            except subprocess.TimeoutExpired:
                pass
    if group:
        _signal(process, signal.SIGKILL, group)


def _signal(process, number, group):
    if not group:
        process.send_signal(number)
        return
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        pass  # nobody of the group is left

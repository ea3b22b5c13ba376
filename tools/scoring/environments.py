"""What is installed on demand, by pip, below the user's cache directory: never in the tree."""

import os
import pathlib
import shutil
import sys

from scoring import children

SECONDS = 1800          # that an installation may take
UNMADE = "-unfinished"  # the end of the name of what is being made


class CannotInstall(Exception):
    """Why something cannot be installed here, in a sentence."""


def cache():
    """The directory below which everything is kept that is installed on demand."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(base, "rlmd")


def pip(python, what, *arguments):
    """Runs that interpreter's pip; `what` is installed."""
    execute(what, python, "-m", "pip", "--disable-pip-version-check", *arguments)


def execute(what, *command):
    """Runs a step of installing `what`; CannotInstall, with the last line it said, if it fails."""
    try:
        status, out, err = children.run([str(each) for each in command], SECONDS)
    except children.TooLong as error:
        raise CannotInstall(f"{what} could not be installed: {error}") from None
    if status:
        last = ((err or out).strip().splitlines() or [f"exit status {status}"])[-1]
        raise CannotInstall(f"{what} could not be installed: {last}")


def made(name, what, make):
    """cache()/name. Where it is not there, make(path) makes it, under another name first."""
    place = cache() / name
    if place.exists():
        return place
    unmade = place.with_name(place.name + UNMADE)
    _remove(unmade)
    unmade.parent.mkdir(parents=True, exist_ok=True)
    print(f"installing {what} as {place}", file=sys.stderr, flush=True)
    try:
        make(unmade)
        unmade.rename(place)
    finally:
        _remove(unmade)
    return place


def _remove(path):
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    elif path.exists():
        path.unlink()


def environment(name, packages):
    """A virtual environment with these packages.

    The programs in its bin/ do not work, for they name an interpreter that has been renamed since:
    `bin/python -m` is how they are called.
    """
    what = " ".join(packages)

    def make(unmade):
        execute(what, sys.executable, "-m", "venv", unmade)
        pip(unmade / "bin/python", what, "install", "-q", *packages)

    return made(name, what, make)

"""Other libraries for recursive language models, asked the same tasks at the same endpoint.

Each is installed on demand by pip into a virtual environment of its own below the user's cache
directory, and asked by peer_driver.py in a process of its own.
"""

import json
import os
import pathlib
import shutil
import sys

from scoring import children, runs

# What pip installs. DSPy's interpreter is a Deno.
PEERS = {"rlms": ["rlms"], "dspy": ["dspy", "deno"]}
DRIVER = pathlib.Path(__file__).with_name("peer_driver.py")
INSTALL_SECONDS = 1800
TURNS = 20              # where the command line names no other limits
SECONDS = 300
UNMADE = "-unfinished"  # the end of the name of an environment that is being made


class CannotRun(Exception):
    """Why a peer cannot be run here, in a sentence."""


def cache():
    """The directory below which everything is kept that is installed on demand."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(base, "rlmd")


def environment(name, packages):
    """The directory of a virtual environment with these packages, made where it is not there."""
    place = cache() / name
    if (place / "bin/python").exists():
        return place
    unmade = place.with_name(place.name + UNMADE)
    shutil.rmtree(unmade, ignore_errors=True)
    unmade.parent.mkdir(parents=True, exist_ok=True)
    print(f"installing {' '.join(packages)} into {place}", file=sys.stderr, flush=True)
    try:
        # Programs in bin/ name their interpreter by its path, so python -m is how they are called.
        for command in ([sys.executable, "-m", "venv", unmade],
                        [unmade / "bin/python", "-m", "pip", "install", "-q",
                         "--disable-pip-version-check", *packages]):
            status, out, err = children.run([str(each) for each in command], INSTALL_SECONDS)
            if status:
                last = ((err or out).strip().splitlines() or [f"exit status {status}"])[-1]
                raise CannotRun(f"{' '.join(packages)} could not be installed: {last}")
        unmade.rename(place)
    except children.TooLong as error:
        raise CannotRun(f"{' '.join(packages)} could not be installed: {error}") from None
    finally:
        shutil.rmtree(unmade, ignore_errors=True)
    return place


def prepare(name, settings):
    """A function that asks the peer a task; CannotRun where it cannot be installed."""
    place = environment(f"peer-{name}", PEERS[name])
    limits = {"turns": settings.max_turns or TURNS, "seconds": settings.max_seconds or SECONDS}

    def ask(task, directory, keep):
        asked = {"peer": name, "model": settings.model, "baseUrl": settings.base_url,
                 "question": task.question, "context": context(task), **limits}
        given = pathlib.Path(directory, "asked.json")
        given.write_text(json.dumps(asked), encoding="utf-8")
        python = str(place / "bin/python")
        path = f"{place / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        try:
            with open(given, encoding="utf-8") as file:
                status, out, err = children.run(
                    [python, str(DRIVER)], limits["seconds"], group=True, stdin=file, cwd=directory,
                    env={**os.environ, "PATH": path, "TMPDIR": directory, "HOME": directory})
        except children.TooLong as error:
            return runs.Outcome("budget", str(error), seconds=limits["seconds"])
        if keep is not None:
            pathlib.Path(keep).write_text(out, encoding="utf-8")
        return judge(task, status, out, err)

    return ask


def context(task):
    """A task's files as one text, as rlmd itself puts the files of a directory together."""
    if len(task.files) == 1:
        return next(iter(task.files.values()))
    return "".join(f"===== {path} =====\n{text}" for path, text in sorted(task.files.items()))


def judge(task, status, out, err):
    """The outcome, by the last line of what the driver printed."""
    try:
        told = json.loads(out.strip().splitlines()[-1])
    except (IndexError, ValueError):
        last = (err.strip().splitlines() or ["it said nothing"])[-1]
        return runs.Outcome("error", f"exit status {status} without an answer: {last}")
    more = {key: told[key] for key in ("turns", "calls", "tokens", "seconds")}
    if told["error"]:
        return runs.Outcome("error", told["error"], **more)
    right = task.right(told["answer"])
    return runs.Outcome("right" if right else "wrong", "", told["answer"], **more)

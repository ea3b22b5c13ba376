"""Other libraries for recursive language models, asked the same tasks at the same endpoint.

Each is installed on demand by pip into a virtual environment of its own below the user's cache
directory, and asked by peer_driver.py in a process of its own.
"""

import json
import os
import pathlib
import re
import tempfile

from scoring import children, environments, runs

# What pip installs. DSPy's interpreter is a Deno.
PEERS = {"rlms": ["rlms"], "dspy": ["dspy", "deno"]}
DRIVER = pathlib.Path(__file__).with_name("peer_driver.py")
TURNS = 20              # where the command line names no other limits
SECONDS = 300
PROBE_SECONDS = 600     # for the first start, which may fetch something


def prepare(name, settings):
    """A function that asks the peer a task; environments.CannotInstall where there is none."""
    place = environments.environment(f"peer-{name}", PEERS[name])
    limits = {"turns": settings.max_turns or TURNS, "seconds": settings.max_seconds or SECONDS}
    with tempfile.TemporaryDirectory(prefix="rlmd-prompts-") as directory:
        try:
            asked = {"peer": name, "probe": True}
            status, _, err = drive(place, asked, directory, PROBE_SECONDS)
        except children.TooLong as error:
            raise environments.CannotInstall(f"it does not start here: {error}") from None
    if status:
        raise environments.CannotInstall(f"it does not start here: {reason(err)}")

    def ask(task, directory, keep):
        asked = {"peer": name, "model": settings.model, "baseUrl": settings.base_url,
                 "question": task.question, "context": context(task), **limits}
        try:
            status, out, err = drive(place, asked, directory, limits["seconds"])
        except children.TooLong as error:
            return runs.Outcome("budget", str(error), seconds=limits["seconds"])
        if keep is not None:
            pathlib.Path(keep).write_text(out, encoding="utf-8")
        return judge(task, status, out, err)

    return ask


def drive(place, asked, directory, seconds):
    """Runs the driver in the environment `place`: exit status, output, what it said."""
    given = pathlib.Path(directory, "asked.json")
    given.write_text(json.dumps(asked), encoding="utf-8")
    path = f"{place / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    variables = {"PATH": path, "TMPDIR": directory, "HOME": directory, "NO_COLOR": "1",
                 "DENO_DIR": str(place / "deno")}
    with open(given, encoding="utf-8") as file:
        return children.run([str(place / "bin/python"), str(DRIVER)], seconds, group=True,
                            stdin=file, cwd=directory, env={**os.environ, **variables})


def reason(said):
    """The line that says most of what a library said when it failed: that with the exception."""
    lines = said.strip().splitlines() or ["it said nothing"]
    return next((line for line in lines if re.match(r"[\w.]*(Error|Exception)\b", line)), lines[-1])


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
        return runs.Outcome("error", f"exit status {status} without an answer: {reason(err)}")
    more = {key: told[key] for key in ("turns", "calls", "tokens", "seconds")}
    if told["error"]:
        return runs.Outcome("error", told["error"], **more)
    right = task.right(told["answer"])
    return runs.Outcome("right" if right else "wrong", "", told["answer"], **more)

"""One run of `rlmd exec` over a task, and what became of it."""

import json
import pathlib
import re

from scoring import children

# Why a run was no success, in the order in which a table tells it.
FAILURES = {
    "wrong": "it answered, and the answer is not right",
    "forced": "the budget or the turns were over; the answer made of what there was is not right",
    "no code": "turn after turn had neither code nor an answer; what was made of it is not right",
    "no answer": "the model gave none, also when it was asked for one",
    "budget": "the budget was over without an answer",
    "window": "a prompt did not fit into the model's window",
    "provider": "the provider failed, or could not be reached",
    "refused": "the model or a content filter refused",
    "sandbox": "the sandbox could not be built, or its worker died",
    "error": "the system itself failed",
}
KIND_OF_ERROR = {
    "no_answer": "no answer", "budget": "budget", "context_overflow": "window",
    "refused": "refused", "sandbox": "sandbox", "worker": "sandbox",
    **dict.fromkeys(("not_found", "auth", "billing", "throttled", "overloaded", "network",
                     "timeout", "bad_reply", "bad_request", "replay"), "provider"),
}


class WrongUse(Exception):
    """The program refused its command line: no run would begin. Its text is what it said."""


class Outcome:
    """What one run came to: `kind` is "right" or one of FAILURES, `detail` says more in words.

    `seconds`, `tokens` and `cost` (US dollars; None: not known) are of the whole run, all calls and
    sub-runs. `errors` counts the exceptions that blocks of the root run ended with, by their type.
    Of rlmd's runs alone are known `code_at_once` (the first turn had code) and `blocks`; they are
    None elsewhere.
    """

    def __init__(self, kind, detail="", answer=None, **more):
        self.kind, self.detail, self.answer = kind, detail, answer
        self.forced = more.get("forced", False)
        self.turns = more.get("turns", 0)
        self.calls = more.get("calls", 0)
        self.tokens = more.get("tokens", 0)
        self.cost = more.get("cost")
        self.seconds = more.get("seconds", 0.0)
        self.code_at_once = more.get("code_at_once")
        self.blocks = more.get("blocks")
        self.errors = more.get("errors", {})

    def right(self):
        return self.kind == "right"


def put(files, directory):
    """Writes a task's files below `directory`; gives what is to be named as the context."""
    for name, text in files.items():
        path = pathlib.Path(directory, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    only = next(iter(files)) if len(files) == 1 else ""
    return str(pathlib.Path(directory, only))


def ask(task, program, options, directory, keep=None):
    """Asks the program `task`, whose files go below `directory`; `keep` is a file for the result.

    Raises WrongUse where the program refuses the options.
    """
    context = put(task.files, directory)
    command = [program, "exec", "--json", "-q", *options, "-c", context, "--", task.question]
    status, out, err = children.run(command)
    if keep is not None:
        pathlib.Path(keep).write_text(out, encoding="utf-8")
    try:
        result = json.loads(out)
    except ValueError:
        result = None
    if result is None and status == 2 or result is not None and refused(result):
        raise WrongUse(err.strip() or result["error"]["message"])
    if result is None:
        last = (err.strip().splitlines() or ["it said nothing"])[-1]
        return Outcome("error", f"exit status {status} without a result: {last}")
    return judge(task, result)


def refused(result):
    """Whether no run began for what the program was given: none would with the next task either."""
    return (not result["success"] and result["error"]["kind"] in ("usage", "input")
            and result["trace"] is None)


def judge(task, result):
    """The outcome of a run, by the object that --json printed."""
    trace, usage = result["trace"] or {}, result["usage"]
    forced = trace.get("answerSource") == "forced"
    more = {"forced": forced, "turns": usage["iterations"], "calls": usage["llmCalls"],
            "tokens": usage["tokens"], "cost": usage["cost"] if usage["costComplete"] else None,
            "seconds": usage["duration"] / 1000,
            **signs(trace.get("iterations", []))}
    if not result["success"]:
        error = result["error"]
        kind = KIND_OF_ERROR.get(error["kind"], "error")
        return Outcome(kind, f"{error['kind']}: {error['message']}", **more)
    said = result["output"]
    if task.right(said):
        kind = "right"
    elif result["stopReason"] == "no_code":
        kind = "no code"
    else:
        kind = "forced" if forced else "wrong"
    return Outcome(kind, result["stopReason"], said, **more)


def signs(iterations):
    """How the root run went: whether its first turn had code, and what the blocks ended with."""
    blocks = [block for each in iterations for block in each["codeExecutions"]]
    errors = {}
    for block in blocks:
        if block["error"]:
            last = block["error"].strip().splitlines()[-1]
            name = re.match(r"[\w.]+", last)
            name = name.group() if name else "unknown"
            errors[name] = errors.get(name, 0) + 1
    return {"code_at_once": bool(iterations and iterations[0]["codeExecutions"]),
            "blocks": len(blocks), "errors": errors}

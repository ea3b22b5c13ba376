"""What the runs came to, as a table and as JSON."""

from scoring import runs


def describe(run):
    """One run as an object for JSON. `seconds` are of the whole run."""
    outcome = run["outcome"]
    return {"system": run["system"], "task": run["task"], "run": run["run"],
            "right": outcome.right(), "kind": outcome.kind, "detail": outcome.detail,
            "expected": run["expected"], "answer": outcome.answer, "forced": outcome.forced,
            "turns": outcome.turns, "calls": outcome.calls, "tokens": outcome.tokens,
            "seconds": round(outcome.seconds, 3), "codeAtOnce": outcome.code_at_once,
            "blocks": outcome.blocks, "blockErrors": outcome.errors}


def known(counts):
    """The sum of those that are not None, or None where there is none such."""
    counts = [each for each in counts if each is not None]
    return sum(counts) if counts else None


def summary(outcomes):
    """Successes, means and failures of some runs; None where there are none."""
    if not outcomes:
        return None
    number = len(outcomes)
    errors = {}
    for each in outcomes:
        for name, times in each.errors.items():
            errors[name] = errors.get(name, 0) + times
    return {"runs": number, "right": sum(each.right() for each in outcomes),
            "forced": sum(each.forced for each in outcomes),
            "codeAtOnce": known(each.code_at_once for each in outcomes),
            "turns": round(sum(each.turns for each in outcomes) / number, 2),
            "calls": round(sum(each.calls for each in outcomes) / number, 2),
            "tokens": round(sum(each.tokens for each in outcomes) / number),
            "seconds": round(sum(each.seconds for each in outcomes) / number, 3),
            "blocks": known(each.blocks for each in outcomes), "blockErrors": errors,
            "failures": {kind: times for kind in runs.FAILURES
                         if (times := sum(each.kind == kind for each in outcomes))}}


def summaries(systems, tasks, made):
    """system -> task -> summary, with "all" for all tasks of a system."""
    def of(system, task=None):
        return summary([each["outcome"] for each in made if each["system"] == system
                        and task in (None, each["task"])])

    return {system: {**{task: of(system, task) for task in tasks}, "all": of(system)}
            for system in systems}


def whole(settings, systems, not_run, made):
    """The object of --json."""
    return {**settings, "notRun": not_run,
            "summary": summaries(systems, settings["tasks"], made),
            "runs": [describe(each) for each in made]}


HEAD = ("system", "task", "right", "forced", "code at once", "errors", "turns", "tokens", "seconds",
        "failures")


def row(system, task, found):
    """A line of the table, as texts; `errors` are blocks that an exception ended."""
    failures = ", ".join(f"{kind} {times}" for kind, times in found["failures"].items())
    at_once, blocks = "", ""
    if found["blocks"] is not None:
        at_once = str(found["codeAtOnce"])
        blocks = f"{sum(found['blockErrors'].values())}/{found['blocks']}"
    return (system, task, f"{found['right']}/{found['runs']}", str(found["forced"]), at_once,
            blocks, f"{found['turns']:.1f}", f"{found['tokens']:,}", f"{found['seconds']:.1f}",
            failures)


def table(systems, not_run, tasks, made):
    """The text for people: a line for each system and task, one for all tasks of a system."""
    rows = [HEAD]
    for system, found in summaries(systems, tasks, made).items():
        rows += [row(system, task, found[task]) for task in (*tasks, "all") if found[task]]
    widths = [max(len(each[column]) for each in rows) for column in range(len(HEAD))]
    lines = []
    for each in rows:
        cells = [text.ljust(width) if column < 2 or column == len(HEAD) - 1 else text.rjust(width)
                 for column, (text, width) in enumerate(zip(each, widths))]
        lines.append("  ".join(cells).rstrip())
    lines += [f"not run: {system}: {why}" for system, why in not_run.items()]
    return "\n".join(lines) + "\n"

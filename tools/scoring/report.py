"""What the runs came to, as a table, as JSON and as a picture."""

import math

from scoring import runs

CERTAIN = 1.96  # standard deviations, for 95 per cent


def interval(right, number):
    """Where the rate of success lies with a certainty of 95 %: Wilson's score interval."""
    rate, square = right / number, CERTAIN ** 2
    middle = (rate + square / (2 * number)) / (1 + square / number)
    half = (CERTAIN * math.sqrt(rate * (1 - rate) / number + square / (4 * number ** 2))
            / (1 + square / number))
    return [round(max(0.0, middle - half), 3), round(min(1.0, middle + half), 3)]


def describe(run):
    """One run as an object for JSON. `seconds` are of the whole run."""
    outcome = run["outcome"]
    return {"system": run["system"], "size": run["size"], "task": run["task"], "run": run["run"],
            "right": outcome.right(), "kind": outcome.kind, "detail": outcome.detail,
            "expected": run["expected"], "answer": outcome.answer, "forced": outcome.forced,
            "turns": outcome.turns, "calls": outcome.calls, "tokens": outcome.tokens,
            "cost": outcome.cost, "seconds": round(outcome.seconds, 3),
            "codeAtOnce": outcome.code_at_once, "blocks": outcome.blocks,
            "blockErrors": outcome.errors}


def known(counts):
    """The sum of those that are not None, or None where there is none such."""
    counts = [each for each in counts if each is not None]
    return sum(counts) if counts else None


def summary(outcomes):
    """Successes, means and failures of some runs; None where there are none."""
    if not outcomes:
        return None
    number, right = len(outcomes), sum(each.right() for each in outcomes)
    errors = {}
    for each in outcomes:
        for name, times in each.errors.items():
            errors[name] = errors.get(name, 0) + times
    costs = [each.cost for each in outcomes]
    return {"runs": number, "right": right, "interval": interval(right, number),
            "forced": sum(each.forced for each in outcomes),
            "codeAtOnce": known(each.code_at_once for each in outcomes),
            "turns": round(sum(each.turns for each in outcomes) / number, 2),
            "calls": round(sum(each.calls for each in outcomes) / number, 2),
            "tokens": round(sum(each.tokens for each in outcomes) / number),
            "cost": None if None in costs else round(sum(costs) / number, 6),
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


def of_size(made, size):
    return [each for each in made if each["size"] == size]


def whole(settings, systems, not_run, made):
    """The object of --json."""
    return {**settings, "notRun": not_run,
            "summary": summaries(systems, settings["tasks"], made),
            "bySize": {size: summaries(systems, settings["tasks"], of_size(made, size))
                       for size in settings["sizes"]},
            "runs": [describe(each) for each in made]}


HEAD = ("system", "size", "task", "right", "95 %", "forced", "code at once", "errors", "turns",
        "tokens", "dollars", "seconds", "failures")
LEFT = ("system", "size", "task", "failures")  # of these columns
SOMETIMES = ("size", "dollars")                # these are left out where they say nothing


def row(system, size, task, found):
    """A line of the table, as texts; `errors` are blocks that an exception ended."""
    failures = ", ".join(f"{kind} {times}" for kind, times in found["failures"].items())
    at_once, blocks = "", ""
    if found["blocks"] is not None:
        at_once = str(found["codeAtOnce"])
        blocks = f"{sum(found['blockErrors'].values())}/{found['blocks']}"
    low, high = found["interval"]
    return (system, size, task, f"{found['right']}/{found['runs']}", f"{low:.0%}-{high:.0%}",
            str(found["forced"]), at_once, blocks, f"{found['turns']:.1f}",
            f"{found['tokens']:,}", f"{found['cost']:.4f}" if found["cost"] else "",
            f"{found['seconds']:.1f}", failures)


def table(systems, not_run, settings, made):
    """The text for people: a line for each system, size and task, one for all tasks of them."""
    tasks, sizes = settings["tasks"], settings["sizes"]
    rows = []
    for size in sizes:
        for system, found in summaries(systems, tasks, of_size(made, size)).items():
            rows += [row(system, size if len(sizes) > 1 else "", task, found[task])
                     for task in (*tasks, "all") if found[task]]
    shown = [column for column, name in enumerate(HEAD)
             if name not in SOMETIMES or any(each[column] for each in rows)]
    rows.insert(0, HEAD)
    widths = {column: max(len(each[column]) for each in rows) for column in shown}
    lines = ["  ".join(each[column].ljust(widths[column]) if HEAD[column] in LEFT
                       else each[column].rjust(widths[column]) for column in shown).rstrip()
             for each in rows]
    lines += [f"not run: {system}: {why}" for system, why in not_run.items()]
    return "\n".join(lines) + "\n"


# --- the picture -------------------------------------------------------------------------------

WIDTH, HEIGHT, MARGIN = 720, 400, 60
COLOURS = ("#2a62b8", "#c24d2c", "#2f8f4e", "#8a4fbf", "#7a6a10")


def escaped(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def plot(systems, settings, made):
    """SVG: of each system the rate of success by the size of its inputs, with its interval."""
    sizes, characters = settings["sizes"], settings["characters"]
    low, high = math.log10(min(characters)), math.log10(max(characters))

    def across(length):
        part = (math.log10(length) - low) / (high - low) if high > low else 0.5
        return MARGIN + part * (WIDTH - 2 * MARGIN)

    def down(rate):
        return HEIGHT - MARGIN - rate * (HEIGHT - 2 * MARGIN)

    def words(x, y, text, anchor="middle", colour="#333"):
        return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">'
                f'{escaped(text)}</text>')

    parts = [words(WIDTH / 2, 24, f"right answers, {settings['model'] or 'the default model'}")]
    for rate in (0, 0.25, 0.5, 0.75, 1):
        parts.append(f'<line x1="{MARGIN}" x2="{WIDTH - MARGIN}" y1="{down(rate):.1f}" '
                     f'y2="{down(rate):.1f}" stroke="#ddd"/>')
        parts.append(words(MARGIN - 8, down(rate) + 4, f"{rate:.0%}", "end"))
    for size, length in zip(sizes, characters):
        parts.append(words(across(length), HEIGHT - MARGIN + 20, f"{length:,}"))
    parts.append(words(WIDTH / 2, HEIGHT - 14, "characters of input"))
    for number, system in enumerate(systems):
        colour, points = COLOURS[number % len(COLOURS)], []
        for size, length in zip(sizes, characters):
            found = summary([each["outcome"] for each in of_size(made, size)
                             if each["system"] == system])
            if not found:
                continue
            x = across(length) + 6 * number
            y = down(found["right"] / found["runs"])
            points.append(f"{x:.1f},{y:.1f}")
            ends = [down(end) for end in found["interval"]]
            parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{ends[0]:.1f}" y2="{ends[1]:.1f}" '
                         f'stroke="{colour}" stroke-opacity="0.5"/>')
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>')
        line = " ".join(points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}"/>')
        parts.append(words(WIDTH - MARGIN, 44 + 18 * number, system, "end", colour))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            'font-family="sans-serif" font-size="13">\n'
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>\n' + "\n".join(parts)
            + "\n</svg>\n")

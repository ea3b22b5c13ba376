"""Plans as docs/plans.md has them, made of what run_plan() and race_query() were given.

The supervisor checks the plan as a whole (ids, dependencies, cycles). Here each operation is looked
at alone, so that what is wrong is told where the code stands that wrote it.
"""

import json
import re

from arguments import CONTEXT_HINT, check_list, check_model, check_prompt, check_text, plain
from channel import exceeds
from messages import (
    PLAN_ID_MAX, PLAN_PARALLEL_MAX, PLAN_PRIORITY_MAX, PLAN_TIMEOUT_MAX, PROMPTS_MAX,
)

STRATEGIES = ("DependencyAware", "Sequential", "Parallel", "Speculative")
FAILURES = ("FailDependents", "FailFast", "ContinueOnError")
TYPES = ("Query", "Transform", "Verify", "Synthesize")
MODES = ("llm", "rlm")

OTHER_NAMES = {
    **dict.fromkeys("prompt query question task".split(), "input"),
    **dict.fromkeys("depends_on dependencies depends".split(), "dependsOn"),
}
ALTERNATIVE = {"query": "prompt", "question": "prompt", "ctx": "context"}
REFERENCE = re.compile("{{ *([-A-Za-z0-9_.:/@+\x80-\U0010ffff]+) *}}")
LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def check_choice(what, value, choices):
    check_text("run_plan", what, value)
    if value not in choices:
        names = ", ".join(map(repr, choices))
        raise ValueError(f"run_plan(): {what} must be one of {names}, not {value!r}")
    return plain(value)


def check_whole(what, value, least, most):
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"run_plan(): {what} must be a number, not {type(value).__name__}")
    if not least <= value <= most or value != int(value):
        raise ValueError(
            f"run_plan(): {what} must be a whole number from {least} to {most}, not {value!r}"
        )
    return int(value)


# Each of these gives a member of an operation, or raises; `what` says whose it is.


def check_name(what, value):
    check_text("run_plan", what, value)
    return plain(value)


def check_input(what, value):
    check_prompt("run_plan", what, value)
    return plain(value)


def check_context(what, value):
    if isinstance(value, (dict, list)):
        return value
    check_text("run_plan", what, value, CONTEXT_HINT)
    return plain(value)


def check_metadata(what, value):
    if not isinstance(value, dict):
        raise TypeError(f"run_plan(): {what} must be a dict, not {type(value).__name__}")
    for key, text in value.items():
        check_text("run_plan", f"a key in {what}", key)
        check_text("run_plan", f"{key!r} in {what}", text)
    return value


def check_ids(what, value):
    ids = check_list("run_plan", what, value)
    return [check_name(f"each id in {what}", name) for name in ids]


MEMBERS = {
    "id": check_name,
    "input": check_input,
    "type": lambda what, value: check_choice(what, value, TYPES),
    "mode": lambda what, value: check_choice(what, value, MODES),
    "model": lambda what, value: check_model("run_plan", what, value),
    "context": check_context,
    "priority": lambda what, value: check_whole(
        what, value, -PLAN_PRIORITY_MAX, PLAN_PRIORITY_MAX),
    "timeout": lambda what, value: check_whole(
        what + " (milliseconds)", value, 0, PLAN_TIMEOUT_MAX),
    "metadata": check_metadata,
    "dependsOn": check_ids,
}


def make_operation(number, given, own_context):
    name = f"operation {number}"
    if not isinstance(given, dict):
        raise TypeError(f"run_plan(): {name} must be a dict, not {type(given).__name__}")
    made = {}
    for key, value in given.items():
        member = OTHER_NAMES.get(key, key)
        if member not in MEMBERS:
            known = ", ".join(MEMBERS)
            raise ValueError(f"run_plan(): {name} has {key!r}; it may have {known}")
        if member in made:
            raise ValueError(f"run_plan(): {name} has {member!r} twice, by two names")
        if value is not None:
            made[member] = MEMBERS[member](f"{key!r} of {name}", value)
    for member in ("id", "input"):
        if member not in made:
            raise ValueError(f"run_plan(): {name} has no {member!r}")
    if made.get("mode") == "rlm":
        if "model" in made:
            raise ValueError(f"run_plan(): 'model' of {name}: only those of mode 'llm' have one")
        if given.get("context") is own_context:
            made.pop("context", None)
    return made


def make_plan(operations, strategy, failure, max_parallel, timeout, own_context):
    """The JSON of a plan. Operations without a context of their own share `own_context`, which is
    not sent."""
    operations = check_list("run_plan", "operations", operations)
    if not operations:
        raise ValueError("run_plan(): there are no operations")
    plan = {
        "strategy": check_choice("strategy", strategy, STRATEGIES),
        "partialFailure": check_choice("failure", failure, FAILURES),
        "timeoutPerOp": PLAN_TIMEOUT_MAX,
    }
    if timeout is not None:
        what = "timeout (milliseconds)"
        plan["timeoutPerOp"] = check_whole(what, timeout, 1, PLAN_TIMEOUT_MAX)
    if max_parallel is not None:
        plan["maxParallel"] = check_whole("max_parallel", max_parallel, 1, PLAN_PARALLEL_MAX)
    made = (make_operation(number, each, own_context) for number, each in enumerate(operations))
    return write("run_plan", plan, made)


def literal(text):
    """`text` as an input in which nothing is substituted."""

    def escape(match):
        if len(match.group(1).encode("utf-8", "surrogatepass")) > PLAN_ID_MAX:
            return match.group()
        start = match.start()
        while start and text[start - 1] == "\\":
            start -= 1
        return "\\" * (match.start() - start + 1) + match.group()

    return REFERENCE.sub(escape, text)


def make_alternative(number, given, own_context):
    function, name = "race_query", f"alternative {number}"
    if isinstance(given, str):
        given = {"prompt": given}
    if not isinstance(given, dict):
        raise TypeError(
            f"{function}(): {name} must be a str or a dict, not {type(given).__name__}"
        )
    if not any(key in given and own in given for key, own in ALTERNATIVE.items()):
        given = {ALTERNATIVE.get(key, key): value for key, value in given.items()}
    made, asked, other = {"id": str(number)}, "prompt", "model"
    if "task" in given:
        made["mode"], asked, other = "rlm", "task", "context"
    if asked not in given or any(key not in (asked, other) for key in given):
        raise ValueError(
            f'{function}(): {name} must have "prompt" and may have "model", or "task" and '
            f'may have "context", and nothing else, but has {list(given)!r}'
        )
    check_prompt(function, f"the {asked} of {name}", given[asked])
    made["input"] = literal(plain(given[asked]))
    value = given.get(other)
    if value is None or value is own_context and asked == "task":
        return made
    if asked == "task":
        check_text(function, f"the context of {name}", value, CONTEXT_HINT)
        made["context"] = plain(value)
    else:
        made["model"] = check_model(function, f"the model of {name}", value)
    return made


def make_race(prompts, own_context):
    """The JSON of a plan whose operations are alternatives, called "0", "1", ..."""
    prompts = check_list("race_query", "prompts", prompts)
    if not prompts:
        raise ValueError("race_query(): there is nothing to race")
    plan = {
        "strategy": "Speculative",
        "timeoutPerOp": PLAN_TIMEOUT_MAX,
        "maxParallel": min(len(prompts), PLAN_PARALLEL_MAX),
    }
    made = (make_alternative(number, each, own_context) for number, each in enumerate(prompts))
    return write("race_query", plan, made)


def write(function, plan, operations):
    parts, size = [], 0
    for number, operation in enumerate(operations):
        try:
            part = json.dumps(operation, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:  # only a context can be so
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"{function}(): 'context' of operation {number}: {error}") from None
        parts.append(part)
        size += len(part)
        if size > PROMPTS_MAX:
            break
    head = json.dumps(plan)[:-1]
    text = LONE_SURROGATE.sub("\ufffd", f'{head},"operations":[{",".join(parts)}]}}')
    if exceeds(text, PROMPTS_MAX):
        raise ValueError(
            f"{function}(): all texts together have more than {PROMPTS_MAX >> 20} MiB; a sub-RLM "
            "without a context of its own shares yours, which costs nothing"
        )
    return text

"""The calls of models that the model's code can make.

Each docstring is shown to the model by help(); the names and their meaning
are a contract with the prompts of this and of other RLM libraries.
"""

import json

import plans
from answers import Answer, BudgetExceeded, LLMError, Notes
from arguments import (
    CONTEXT_HINT, check_list, check_model, check_prompt, check_task, check_text, plain,
)
from channel import BATCH_MAX, Attachment, ProtocolError
from messages import ATTACHED_MAX, ATTACHMENT_WEIGHT, PROMPTS_MAX

REASONS_MAX = 10  # failures that a lost race tells
REASON_MAX = 200  # characters of each


class Queries:
    """`context` is what a sub-RLM shares that has none of its own."""

    def __init__(self, channel, context):
        self._channel = channel
        self._context = context
        self.notes = Notes()

    def llm_query(self, prompt, model=None):
        """Asks the model one question and returns its answer, a str.

        prompt: a str; the model sees nothing else, so put the text that the
            question is about into it.
        model: the name of another model than the default one for sub-calls.

        .degraded of the answer is true where it was cut, and .reason says so.
        Raises BudgetExceeded, TimeoutError or LLMError. For several prompts
        batch_llm_query() is faster: they are asked at the same time.
        """
        hint = "for several prompts use batch_llm_query()"
        check_prompt("llm_query", "the prompt", prompt, hint)
        model = check_model("llm_query", "model", model)
        return self._one("llm_query", "llm_query", questions_of([prompt], model))

    def batch_llm_query(self, prompts, model=None):
        """Asks the model all prompts at the same time; returns the answers in their order.

        prompts: a list of str. An empty one makes no call and gives [].
        model: as for llm_query().

        A failed prompt does not lose the others: in its place stands an
        LLMError, which is falsy and whose str() begins with "Error".
        """
        prompts = check_list("batch_llm_query", "prompts", prompts)
        for number, prompt in enumerate(prompts):
            check_prompt("batch_llm_query", f"prompt {number}", prompt)
        model = check_model("batch_llm_query", "model", model)
        return self._many(
            "batch_llm_query",
            "llm_query",
            prompts,
            lambda some: questions_of(some, model),
        )

    def rlm_query(self, task, ctx=None):
        """Gives a task to a sub-RLM: a model with a Python session of its own, like this one.

        task: what it shall find out, a str.
        ctx: the str that it gets as `context`; without it, it shares yours.

        Returns its answer, a str. Its .degraded is true where there was no
        sub-RLM, or it had to answer before it was done; .reason says which.
        Raises BudgetExceeded, TimeoutError or LLMError. It takes several model
        calls: for a simple question about a text that fits into a prompt use
        llm_query().
        """
        check_prompt("rlm_query", "the task", task, "for several tasks use batch_rlm_query()")
        if ctx is not None:
            check_text("rlm_query", "ctx", ctx, CONTEXT_HINT)
        return self._one("rlm_query", "rlm_query", tasks_of([(task, self._other(ctx))]))

    def batch_rlm_query(self, tasks):
        """Gives several tasks to sub-RLMs at the same time; returns the answers in their order.

        tasks: a list; each is a str, or a dict {"task": str, "context": str}
            in which "context" may be left out to share yours. An empty list
            makes no call and gives [].

        A failed task does not lose the others: in its place stands an
        LLMError, which is falsy and whose str() begins with "Error".
        """
        tasks = check_list("batch_rlm_query", "tasks", tasks)
        pairs = [check_task(number, task) for number, task in enumerate(tasks)]
        pairs = [(task, self._other(context)) for task, context in pairs]
        return self._many("batch_rlm_query", "rlm_query", pairs, tasks_of)

    def race_query(self, prompts):
        """Asks alternatives at the same time; returns the first answer, a str, cancels the others.

        prompts: a list; each is a str, or a dict {"prompt": str, "model": str} in
            which "model" may be left out, or {"task": str, "context": str} for
            a sub-RLM, as in batch_rlm_query().

        An alternative that fails does not end the race. Where all fail it
        raises LLMError with the reason of each; BudgetExceeded or TimeoutError
        where that was everybody's reason.
        """
        result = self._run("race_query", plans.make_race(prompts, self._context))
        if result["winner"] is None:
            raise lost(result["results"])
        winner = result["results"][result["winner"]]
        return self._answer("race_query", winner["response"], winner.get("degraded"))

    def run_plan(self, operations, strategy="DependencyAware", failure="FailDependents",
                 max_parallel=None, timeout=None):
        """Runs calls that depend on each other, each as soon as what it needs is there.

        operations: a list of dicts with these members; the first two are required:
            "id": str; the others call it by that name
            "input": the prompt, or the sub-RLM's task; {{id}} in it is replaced
                by the answer of the operation with that id, which must be in
                "dependsOn" (write \\{{id}} for the text itself)
            "dependsOn": a list of ids
            "mode": "llm", a model call, or "rlm", a sub-RLM
            "model": as for llm_query(), in mode "llm"
            "context": a str, or a dict or list, which is handed on as JSON; a
                sub-RLM without it shares yours
            "type": "Query", "Transform", "Verify" or "Synthesize"
            "priority": an int; of those that could start, the higher starts first
            "timeout": milliseconds
            "metadata": a dict of str
        strategy: "DependencyAware", "Sequential", "Parallel" (all independent) or
            "Speculative" (alternatives: the first success cancels the others).
        failure: what a failed operation does: "FailDependents", "FailFast"
            (ends everything) or "ContinueOnError" (its error is its answer).
        max_parallel: how many run at once, at most; as in a batch where it is left out.
        timeout: milliseconds for each operation; none where it is left out: then
            only the end of the run limits them.

        Returns a dict: "results" has for each id a dict with "response" (a str
        with .degraded and .reason as of rlm_query(), or None), "error" (None,
        or a dict with "kind" and "message"), "status"
        ("succeeded", "failed" or "cancelled"), "tokens" and "duration";
        beside it stand "winner", "cancelled", "error" (what cut the whole
        short, or None), "totalTokens", "duration" and "metrics".

        A failed operation raises nothing. ValueError says what is wrong with
        the plan; BudgetExceeded, TimeoutError and LLMError that it was not run.
        """
        plan = plans.make_plan(
            operations, strategy, failure, max_parallel, timeout, self._context
        )
        result = self._run("run_plan", plan)
        for each in result["results"].values():
            if each["response"] is not None:
                each["response"] = self._answer(
                    "run_plan", each["response"], each.get("degraded")
                )
        return result

    def budget(self):
        """What is left for this run, a dict: money in US dollars, time in milliseconds, counts."""
        reply = self._channel.call("budget", {})
        return json.loads(reply["values"][0])

    def _other(self, context):
        """None for the caller's own: that one is shared, and not sent."""
        return None if context is self._context else context

    def _answer(self, function, text, reason):
        if reason:
            self.notes.add(function, reason)
        return Answer(text, reason)

    def _one(self, function, name, fields):
        try:
            reply = self._channel.call(name, fields)
        except ProtocolError as error:  # too large
            raise LLMError(str(error), "input") from None
        kind = reply["errors"][0]
        if kind is None:
            return self._answer(function, reply["values"][0], reply["degraded"][0])
        message = reply["messages"][0] or kind
        if kind == "budget":
            raise BudgetExceeded(message)
        if kind == "timeout":
            raise TimeoutError(message)
        raise LLMError(message, kind)

    def _run(self, function, plan):
        try:
            return json.loads(self._one(function, "run_plan", {"plan": plan}))
        except LLMError as error:
            if error.kind == "input":
                raise ValueError(f"{function}(): {error.args[0]}") from None
            raise

    def _many(self, function, name, items, make_fields):
        results = []
        for some in portions(items):
            try:
                reply = self._channel.call(name, make_fields(some))
            except ProtocolError as error:  # too large, for what is small enough is put together
                results.extend(LLMError(str(error), "input") for _item in some)
                continue
            for slot in range(len(some)):
                kind = reply["errors"][slot]
                results.append(
                    self._answer(function, reply["values"][slot], reply["degraded"][slot])
                    if kind is None
                    else LLMError(reply["messages"][slot] or kind, kind)
                )
        return results


def lost(results):
    """Why nobody won."""
    errors = [result["error"] for result in results.values()]
    kinds = {error["kind"] for error in errors}
    reasons = [
        f"{number}: {error['kind']}: {error['message'][:REASON_MAX]}"
        for number, error in enumerate(errors[:REASONS_MAX])
    ]
    if len(errors) > REASONS_MAX:
        reasons.append(f"and {len(errors) - REASONS_MAX} more")
    message = f"all {len(errors)} alternatives failed: " + "; ".join(reasons)
    if kinds == {"budget"}:
        return BudgetExceeded(message)
    if kinds == {"timeout"}:
        return TimeoutError(message)
    return LLMError(message, kinds.pop() if len(kinds) == 1 else "all_failed")


def questions_of(prompts, model):
    """The fields of a call for them."""
    return {
        "prompts": [plain(prompt) for prompt in prompts],
        "turns": [],
        "model": model,
        "system": None,
        "max_tokens": None,
        "temperature": None,
    }


def tasks_of(pairs):
    """The fields of a call for them."""
    return {
        "tasks": [plain(task) for task, _context in pairs],
        "contexts": [None if context is None else plain(context) for _task, context in pairs],
        "models": [None for _pair in pairs],
    }


def portions(items):
    """The items, prompts or (task, context), in lists that fit into one call each.

    One that is too large for any call stands alone.
    """
    some, words, total = [], 0, 0
    for item in items:
        text, context = item if isinstance(item, tuple) else (item, None)
        size = Attachment(plain(text)).size
        more = size + ATTACHMENT_WEIGHT
        if context is not None:
            more += Attachment(plain(context)).size + ATTACHMENT_WEIGHT
        if some and (
            len(some) == BATCH_MAX or words + size > PROMPTS_MAX or total + more > ATTACHED_MAX
        ):
            yield some
            some, words, total = [], 0, 0
        some.append(item)
        words += size
        total += more
    if some:
        yield some

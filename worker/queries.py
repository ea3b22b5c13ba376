"""The calls of models that the model's code can make.

Each docstring is shown to the model by help(); the names and their meaning
are a contract with the prompts of this and of other RLM libraries.
"""

import json

import plans
from answers import Answer, BudgetExceeded, LLMError, Notes
from arguments import check_list
from calling import called
from channel import BATCH_MAX, Attachment, ProtocolError
from messages import ATTACHED_MAX, ATTACHMENT_WEIGHT, PROMPTS_MAX
from questions import (
    QUESTION, QUESTIONS, SHORT, TASK, TASKS, options_of, question_of, second_is_no_model,
    second_is_text, spread, task_of,
)

CALL_MOST = BATCH_MAX, PROMPTS_MAX, ATTACHED_MAX  # of what weigh() tells

FEW = 500  # texts that every call has room for

REASONS_MAX = 10  # failures that a lost race tells
REASON_MAX = 200  # characters of each


class Queries:
    """`context` is what a sub-RLM shares that has none of its own."""

    def __init__(self, channel):
        self._channel = channel
        self.context = ""
        self.notes = Notes()

    @called(QUESTION, second_is_text("llm_query", "prompt", str))
    def llm_query(self, prompt, model=None, *, context=None, system=None, max_tokens=None,
                  temperature=None):
        """Asks the model one question and returns its answer, a str.

        prompt: a str; the model sees nothing else, so put the text that the
            question is about into it, or give it as `context`. A list of
            messages, dicts with "role" and "content", will do too.
        model: the name of another model than the default one for sub-calls.
        system: what the model is told first.
        max_tokens, temperature: of the answer, where the usual is not right.

        .degraded of the answer is true where it was cut, and .reason says so.
        Raises BudgetExceeded, TimeoutError or LLMError. For several prompts
        batch_llm_query() is faster: they are asked at the same time.
        """
        options = options_of("llm_query", model, system, max_tokens, temperature)
        question = question_of("llm_query", "the prompt", prompt, context, options, alone=True)
        return self._one("llm_query", "llm_query", questions_of([question]))

    @called(QUESTIONS, second_is_text("batch_llm_query", "prompts", (str, list, tuple)))
    def batch_llm_query(self, prompts, model=None, *, context=None, system=None, max_tokens=None,
                        temperature=None):
        """Asks the model all prompts at the same time; returns the answers in their order.

        prompts: a list of str. An empty one makes no call and gives [].
        context: a str for all of them, or a list with one for each.
        model, system, max_tokens, temperature: as for llm_query().

        A failed prompt does not lose the others: in its place stands an
        LLMError, which is falsy and whose str() begins with "Error".
        """
        prompts = check_list("batch_llm_query", "prompts", prompts)
        options = options_of("batch_llm_query", model, system, max_tokens, temperature)
        contexts = spread("batch_llm_query", "context", context, len(prompts))
        questions = [
            question_of("batch_llm_query", f"prompt {number}", prompt, beside, options)
            for number, (prompt, beside) in enumerate(zip(prompts, contexts))
        ]
        return self._many("batch_llm_query", "llm_query", questions, questions_of)

    @called(TASK, second_is_no_model("rlm_query", "task"))
    def rlm_query(self, task, ctx=None, model=None):
        """Gives a task to a sub-RLM: a model with a Python session of its own, like this one.

        task: what it shall find out, a str.
        ctx: the str that it gets as `context`; without it, it shares yours.
        model: the name of another model than the default one for sub-calls.

        Returns its answer, a str. Its .degraded is true where there was no
        sub-RLM, or it had to answer before it was done; .reason says which.
        Raises BudgetExceeded, TimeoutError or LLMError. It takes several model
        calls: for a simple question about a text that fits into a prompt use
        llm_query().
        """
        asked = task_of("rlm_query", "the task", task, ctx, model, self.context)
        return self._one("rlm_query", "rlm_query", tasks_of([asked]))

    @called(TASKS, second_is_no_model("batch_rlm_query", "tasks"))
    def batch_rlm_query(self, tasks, ctx=None, model=None):
        """Gives several tasks to sub-RLMs at the same time; returns the answers in their order.

        tasks: a list; each is a str, or a dict {"task": str, "context": str}
            in which "context" may be left out to share yours. An empty list
            makes no call and gives [].
        ctx: a str for all of them, or a list with one for each.
        model: as for rlm_query().

        A failed task does not lose the others: in its place stands an
        LLMError, which is falsy and whose str() begins with "Error".
        """
        tasks = check_list("batch_rlm_query", "tasks", tasks)
        contexts = spread("batch_rlm_query", "ctx", ctx, len(tasks))
        asked = [
            task_of("batch_rlm_query", f"task {number}", task, context, model, self.context)
            for number, (task, context) in enumerate(zip(tasks, contexts))
        ]
        return self._many("batch_rlm_query", "rlm_query", asked, tasks_of)

    def race_query(self, prompts):
        """Asks alternatives at the same time; returns the first answer, a str, cancels the others.

        prompts: a list; each is a str, or a dict {"prompt": str, "model": str} in
            which "model" may be left out, or {"task": str, "context": str} for
            a sub-RLM, as in batch_rlm_query().

        An alternative that fails does not end the race. Where all fail it
        raises LLMError with the reason of each; BudgetExceeded or TimeoutError
        where that was everybody's reason.
        """
        result = self._run("race_query", plans.make_race(prompts, self.context))
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
            operations, strategy, failure, max_parallel, timeout, self.context
        )
        result = self._run("run_plan", plan)
        for each in result["results"].values():
            if each["response"] is not None:
                each["response"] = self._answer(
                    "run_plan", each["response"], each.get("degraded")
                )
        return result

    def budget(self):
        """The budget left, a dict: money in US dollars, time in milliseconds, counts."""
        reply = self._channel.call("budget", {})
        return json.loads(reply["values"][0])

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
        results = [None] * len(items)
        for some in portions(items):
            asked = [items[place] for place in some]
            try:
                reply = self._channel.call(name, make_fields(asked))
            except ProtocolError as error:  # too large, for what is small enough is put together
                for place in some:
                    results[place] = LLMError(str(error), "input")
                continue
            for number, place in enumerate(some):
                kind = reply["errors"][number]
                results[place] = (
                    self._answer(function, reply["values"][number], reply["degraded"][number])
                    if kind is None
                    else LLMError(reply["messages"][number] or kind, kind)
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


def questions_of(questions):
    """The fields of a call for them; they have the same options."""
    options = questions[0].options
    several = any(len(question.texts) > 1 for question in questions)
    return {
        "prompts": [text for question in questions for text in question.texts],
        "turns": [len(question.texts) for question in questions] if several else [],
        **options._asdict(),
    }


def tasks_of(tasks):
    """The fields of a call for them."""
    return {
        "tasks": [task.texts[0] for task in tasks],
        "contexts": [task.context for task in tasks],
        "subsets": [task.subset for task in tasks] if any(task.subset for task in tasks) else [],
        "models": [task.model for task in tasks],
    }


def portions(items):
    """The places of the items, in lists that make one call each.

    Those with the same options go together as far as they fit; one that is too large for any
    call stands alone.
    """
    if go_together(items):
        yield range(len(items))
        return
    groups = {}
    for place, item in enumerate(items):
        groups.setdefault(item.options, []).append(place)
    for options, places in groups.items():
        first = weigh(options.system) if options and options.system else (0, 0, 0)
        some, sums = [], first
        for place in places:
            item = items[place]
            weights = weigh(*item.texts, *filter(None, [item.subset]), beside=item.context)
            added = tuple(map(sum, zip(sums, weights)))
            if some and any(a > most for a, most in zip(added, CALL_MOST)):
                yield some
                some, added = [], tuple(map(sum, zip(first, weights)))
            some.append(place)
            sums = added
        if some:
            yield some


def go_together(items):
    """Whether they are one portion, as most are, without weighing each."""
    if not items:
        return False
    options, count, size = items[0].options, 0, 0
    for item in items:
        if item.options is not options or item.context is not None or item.subset:
            return False
        for text in item.texts:
            count += 1
            size += len(text)
    return count <= FEW and size <= SHORT and not (options and options.system)


def weigh(*texts, beside=None):
    """The size of a call's texts: their number, the bytes of prompts, and those of all."""
    sizes = [Attachment(text).size for text in texts]
    more = Attachment(beside).size + ATTACHMENT_WEIGHT if beside is not None else 0
    return len(sizes), sum(sizes), sum(sizes) + len(sizes) * ATTACHMENT_WEIGHT + more

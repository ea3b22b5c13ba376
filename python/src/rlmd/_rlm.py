"""RLM: tasks, plans and reviews."""

from __future__ import annotations

import asyncio
import concurrent.futures
import queue
from typing import (Any, AsyncIterator, Callable, Iterable, Iterator, List, Mapping, Optional,
                    Sequence, Union)

from ._answer import Answer, Event
from ._contexts import Contexts
from ._errors import Error, error_of
from ._moved import EVENTS as MOVED_EVENTS, Moved, Trajectory
from ._progress import EVENTS as PROGRESS_EVENTS, Progress
from ._schemas import read_schema, tool_of
from ._server import Params, Server, shared

Tools = Union[Sequence[Callable[..., Any]], Mapping[str, Callable[..., Any]], None]
Check = Callable[[str], Any]
EVENTS = ["code", "llm_call"]  # of which a stream tells


def named(options: Mapping[str, Any]) -> Params:
    """max_cost=0.5 is the option max-cost."""
    return {name.replace("_", "-"): value for name, value in options.items() if value is not None}


class Toolbox:
    def __init__(self, tools: Tools):
        found = dict(tools) if isinstance(tools, Mapping) else {
            each.__name__: each for each in tools or ()}
        self.functions = found
        self.params = [tool_of(function, name) for name, function in found.items()]

    def call(self, params: Params) -> Any:
        return self.functions[params["name"]](**params["arguments"])


def reply_of(model: Callable[..., Any], params: Params) -> Any:
    """The answer of a function that is the provider, to model.request."""
    told = model(params["messages"], params)
    return {"text": told} if isinstance(told, str) else told


class Job:
    """One that the server has: its events in order, and its result as a future."""

    def __init__(self, server: Server, params: Params, tools: Toolbox, model: Optional[Callable[..., Any]],
                 check: Optional[Check], contexts: Optional[Contexts],
                 on_event: Optional[Callable[[str, Params], None]] = None):
        self.result: "concurrent.futures.Future[Params]" = concurrent.futures.Future()
        self._server, self._tools, self._model, self._check = server, tools, model, check
        self._contexts, self._on_event = contexts, on_event
        if tools.params:
            params["tools"] = tools.params
        if model:
            params["model"] = "client"
        if check:
            params["check"] = True
        if contexts and contexts.params:
            params["contexts"] = contexts.params
        self.begun = server.begin("job.start", **params)
        self.begun.add_done_callback(self._start)
        self.name: Optional[str] = None

    def _start(self, begun: "concurrent.futures.Future[Any]") -> None:
        failure = begun.exception()
        if failure:
            self._finish(failure)
            return
        name: str = begun.result()["job"]
        self.name = name
        self._server.listen(name, self._hear, self._answer)

    def _hear(self, method: str, params: Params) -> None:
        if method == "end":
            self._finish(params["why"])
            return
        if self._on_event:
            self._on_event(method, params)
        if method == "job.end":
            self._finish(params["result"])

    def _finish(self, outcome: Any) -> None:
        if self.result.done():
            return
        self._server.later(self._forget)
        if isinstance(outcome, BaseException):
            self.result.set_exception(outcome)
        else:
            self.result.set_result(outcome)

    def _forget(self) -> None:
        if self.name:
            self._server.forget(self.name)
        if self._contexts:
            self._contexts.close()

    def _answer(self, method: str, params: Params) -> Any:
        if method == "tool.call":
            return self._tools.call(params)
        if method == "model.request":
            assert self._model
            return reply_of(self._model, params)
        assert self._check
        wrong = self._check(params["answer"])
        return {"accept": wrong in (None, True), **({"wrong": wrong} if isinstance(wrong, str) else {})}

    def cancel(self) -> None:
        if self.name and not self.result.done():
            self._server.begin("job.cancel", job=self.name)


def answer_of(result: Params, read: Callable[[str], Any]) -> Answer:
    """Raises where there is no answer; one that was forced is one."""
    error = result.get("error")
    if error and not (result.get("output") and error["kind"] == "cancelled"):
        raise error_of(error["kind"], error["message"], result)
    return Answer(result, read(result.get("output") or ""))


class Stream:
    """The events of a task: iterate over it, or `async for`. `answer` is there at the end."""

    def __init__(self, read: Callable[[str], Any]) -> None:
        self._events: "queue.SimpleQueue[Any]" = queue.SimpleQueue()
        self._read = read
        self.job: Optional[Job] = None
        self.answer: Optional[Answer] = None

    def hear(self, method: str, params: Params) -> None:
        if method == "job.delta":
            self._events.put(Event("delta", params["text"], params))
        elif method == "job.event":
            event = params["event"]
            if event["event"] == "llm_call":
                self._events.put(Event("subcall", str(event.get("response", "")), event))
            elif event["event"] == "code":
                self._events.put(Event("code", str(event.get("code", "")), event))
                text = str(event.get("stdout", "")) + str(event.get("error") or "")
                self._events.put(Event("output", text, event))

    def end(self, done: "concurrent.futures.Future[Params]") -> None:
        self._events.put(done)

    def _turn(self, item: Any) -> Event:
        if isinstance(item, Event):
            return item
        self.answer = answer_of(item.result(), self._read)
        return Event("end", str(self.answer), self.answer.result, self.answer)

    def __iter__(self) -> Iterator[Event]:
        try:
            while self.answer is None:
                yield self._turn(self._events.get())
        finally:
            self.close()

    async def __aiter__(self) -> AsyncIterator[Event]:
        loop = asyncio.get_running_loop()
        try:
            while self.answer is None:
                yield self._turn(await loop.run_in_executor(None, self._events.get))
        finally:
            self.close()

    def close(self) -> None:
        """Ends the task, if it goes on."""
        if self.job:
            self.job.cancel()


class RLM:
    """Asks models about inputs of any size.

    provider: "openai", "anthropic", "ollama", or a function of yours, which is given the messages
    (a list of dicts with "role" and "content") and all of the request, and returns the text, or a
    dict with "text" and "usage" ({"inputTokens", "outputTokens", "cost"}). model: its name. The
    options are those of `rlmd exec`, with _ for -: max_cost (US dollars), max_tokens, max_time,
    max_depth, temperature, base_url, ... binary: the rlmd program; else $RLMD_BIN, the one of
    rlmd-runtime, or the PATH's.
    tenant: of a server at a socket, whose user may name one. progress: completion() shows the tree
    of runs while it goes on, in a notebook or in a terminal at standard error.

    With backend or backend_kwargs the arguments are those of `rlms`, and so is completion(prompt,
    root_prompt): docs/python.md, "Moving from rlms".

    Any thread may use it, and several at a time.
    """

    def __init__(self, provider: Union[str, Callable[..., Any], None] = None,
                 model: Optional[str] = None, *, binary: Optional[str] = None,
                 tenant: Optional[str] = None, tools: Tools = None, progress: bool = False,
                 **options: Any):
        self._model = provider if callable(provider) else None
        self._binary, self._tenant, self._progress = binary, tenant, progress
        self._moved: Optional[Moved] = None
        if "backend" in options or "backend_kwargs" in options:
            self._moved = Moved(options)
            provider, model = self._moved.options.pop("provider"), self._moved.options.pop("model")
            options, tools = self._moved.options, self._moved.tools
        self._options = {"provider": None if callable(provider) else provider, "model": model, **options}
        self._tools = dict(Toolbox(tools).functions)

    def tool(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Decorates a function that code of all tasks may call; its docstring is the model's."""
        tool_of(function)
        self._tools[function.__name__] = function
        return function

    # Tasks

    def completion(self, prompt: str, context: Any = None, *, schema: Any = None,
                   tools: Tools = None, contexts: Optional[Mapping[str, Any]] = None,
                   check: Optional[Check] = None, **options: Any) -> Answer:
        """The answer, which is a str.

        context: a str, bytes, Path (a file or a directory), Git, open file, table, or what JSON can
        say; contexts: several, by the names of their variables. schema: a JSON Schema, a dataclass or
        a Pydantic model; the value is answer.parsed. check: is given each answer; it returns None
        where that will do, else what is wrong with it, which the model is told.
        """
        if self._moved:
            return self._complete_moved(self._moved, prompt, options.pop("root_prompt", context), options)
        schema, read = read_schema(schema)
        job = self._start(prompt, context, contexts, schema, tools, check, options,
                          *self._shown())
        return answer_of(self._wait(job), read)

    def _shown(self) -> Any:
        """The hearer of a job's events, and their names, where its progress is shown."""
        return (Progress().hear, PROGRESS_EVENTS) if self._progress else ()

    def _complete_moved(self, moved: Moved, prompt: Any, root_prompt: Optional[str],
                        options: Params) -> Answer:
        trajectory = Trajectory(moved)
        job = self._start(moved.task(root_prompt), prompt, None, None, None, None, options,
                          trajectory.hear, MOVED_EVENTS)
        return trajectory.completion(answer_of(self._wait(job), lambda text: None), prompt)

    async def acompletion(self, prompt: str, context: Any = None, *, schema: Any = None,
                          tools: Tools = None, contexts: Optional[Mapping[str, Any]] = None,
                          check: Optional[Check] = None, **options: Any) -> Answer:
        """As completion(). A task of asyncio that is cancelled cancels the job."""
        schema, read = read_schema(schema)
        loop = asyncio.get_running_loop()
        job = await loop.run_in_executor(
            None, lambda: self._start(prompt, context, contexts, schema, tools, check, options,
                                      *self._shown()))
        try:
            return answer_of(await asyncio.wrap_future(job.result), read)
        except asyncio.CancelledError:
            job.cancel()
            raise

    def stream(self, prompt: str, context: Any = None, *, schema: Any = None, tools: Tools = None,
               contexts: Optional[Mapping[str, Any]] = None, check: Optional[Check] = None,
               **options: Any) -> Stream:
        """The events of the task, for `for` and for `async for`; leaving the loop ends the task."""
        schema, read = read_schema(schema)
        stream = Stream(read)
        stream.job = self._start(prompt, context, contexts, schema, tools, check, options,
                                 stream.hear)
        stream.job.result.add_done_callback(stream.end)
        return stream

    def map(self, prompts: Iterable[str], context: Any = None, *, return_exceptions: bool = False,
            schema: Any = None, **options: Any) -> List[Any]:
        """The answers in the order of the prompts, asked at the same time. An error is raised once
        all have ended, or stands in its place."""
        schema, read = read_schema(schema)
        jobs = [self._start(prompt, context, None, schema, None, None, options) for prompt in prompts]
        answers: List[Any] = []
        for job in jobs:
            try:
                answers.append(answer_of(self._wait(job), read))
            except Error as error:
                answers.append(error)
        failures = [each for each in answers if isinstance(each, Error)]
        if failures and not return_exceptions:
            raise failures[0]
        return answers

    def plan(self, plan: Params, **options: Any) -> Params:
        """The result of a plan (docs/plans.md), as `rlmd plan` prints it."""
        job = self._begin({"plan": plan}, Toolbox(self._tools), None, None, options)
        return self._raised(self._wait(job))

    def review(self, path: Any = ".", *, diff: Optional[str] = None, rules: Any = None,
               **options: Any) -> Params:
        """The result of a review, as `rlmd review --json` prints it: the findings are in
        ["review"]["findings"]."""
        review = {"path": str(path), "diff": diff, "rules": rules and str(rules)}
        given = {key: value for key, value in review.items() if value is not None}
        job = self._begin({"review": given}, Toolbox(self._tools), None, None, options)
        return self._raised(self._wait(job))

    @staticmethod
    def _raised(result: Params) -> Params:
        error = result.get("error")
        if error:
            raise error_of(error.get("kind") or "error", error.get("message") or str(error), result)
        return result

    @staticmethod
    def _wait(job: Job) -> Params:
        """Ctrl-C ends the job, too."""
        try:
            return job.result.result()
        except KeyboardInterrupt:
            job.cancel()
            raise

    def _start(self, prompt: str, context: Any, contexts: Optional[Mapping[str, Any]], schema: Any,
               tools: Tools, check: Optional[Check], options: Params,
               on_event: Optional[Callable[[str, Params], None]] = None,
               events: Sequence[str] = EVENTS) -> Job:
        if not isinstance(prompt, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"the prompt is a str, not {type(prompt).__name__}")
        box = Toolbox({**self._tools, **Toolbox(tools).functions})
        server = shared(self._binary, self._tenant)
        params: Params = {"task": prompt}
        if schema is not None:
            params["schema"] = schema
        if on_event:
            params["events"] = list(events)
        return self._begin(params, box, check, Contexts(server, context, contexts), options, on_event)

    def _begin(self, params: Params, tools: Toolbox, check: Optional[Check],
               contexts: Optional[Contexts], options: Params,
               on_event: Optional[Callable[[str, Params], None]] = None) -> Job:
        params["options"] = named({**self._options, **options})
        return Job(shared(self._binary, self._tenant), params, tools, self._model, check, contexts, on_event)

"""Moving from `rlms` (0.1.3): its arguments of RLM, its result, its callbacks and its logger.

    from rlmd import RLM
    rlm = RLM(backend="openai", backend_kwargs={"model_name": "gpt-5-mini"}, max_budget=0.5)
    print(rlm.completion(prompt=text, root_prompt="Which host failed first?").response)

What has no counterpart here is refused by its name, with what to do.
"""

from __future__ import annotations

import datetime
import json
import os
import tempfile
import time
import uuid
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, cast

from ._answer import Answer
from ._errors import UsageError

Params = Dict[str, Any]

# Where backends are that speak OpenAI's API, and the variable of their key.
GATEWAYS = {
    "openrouter": ("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "vercel": ("https://ai-gateway.vercel.sh/v1", "AI_GATEWAY_API_KEY"),
    "gemini": ("https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"),
    "vllm": (None, None),
}
EVENTS = ["run", "response", "code", "llm_call", "iteration", "end"]
PREVIEW = 80  # characters of a prompt for on_subcall_start
TASK = ("`context` has a request, and all that it is about: find the request in it, carry it out, "
        "and answer as it wants.")
# Arguments that mean nothing here, unless they have these values.
NO_MORE: Dict[str, Tuple[Tuple[Any, ...], str]] = {
    "depth": ((0,), "a run knows its own depth: leave it out"),
    "environment": (("local",), "code always runs behind kernel walls of this machine: leave it out"),
    "environment_kwargs": ((None, {}), "inputs are contexts of completion(), functions custom_tools"),
    "max_errors": ((None,), "max_iterations and max_budget end a run that goes wrong"),
    "custom_system_prompt": ((None,), "prompt=DIRECTORY has prompts of your own (docs/prompts.md)"),
    "orchestrator": ((True,), "the prompts say how to delegate: prompt=DIRECTORY has your own"),
    "persistent": ((False,), "rlmd.Session lives from block to block"),
    "compaction_threshold_pct": ((0.85,), "a conversation is summed up at half of the window"),
    "sub_sampling_args": ((None,), "calls of code say it: llm_query(prompt, temperature=...)"),
}
SAMPLING = {"temperature": "temperature", "max_tokens": "max_output_tokens",
            "max_completion_tokens": "max_output_tokens", "stop": "stop"}


class RLMLogger:
    """The trajectory of each completion, and with log_dir a file of it in the form of rlms, which
    its visualiser reads."""

    def __init__(self, log_dir: Optional[str] = None, file_name: str = "rlm"):
        self.log_dir, self.log_file_path = log_dir, None
        self._metadata: Optional[Params] = None
        self._iterations: List[Params] = []
        if log_dir is not None:
            os.makedirs(log_dir, exist_ok=True)
            stamp = datetime.datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
            self.log_file_path = os.path.join(
                log_dir, f"{file_name}_{stamp}_{uuid.uuid4().hex[:8]}.jsonl")

    def _write(self, kind: str, entry: Params, **more: Any) -> Params:
        entry = {"type": kind, **more, "timestamp": datetime.datetime.now().isoformat(), **entry}
        if self.log_file_path:
            with open(self.log_file_path, "a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")
        return entry

    def log_metadata(self, metadata: Any) -> None:
        if self._metadata is None:
            self._metadata = metadata.to_dict()
            self._write("metadata", metadata.to_dict())

    def log(self, iteration: Any) -> None:
        self._iterations.append(self._write("iteration", iteration.to_dict(),
                                            iteration=len(self._iterations) + 1))

    def clear_iterations(self) -> None:
        self._iterations = []

    def get_trajectory(self) -> Optional[Params]:
        if self._metadata is None:
            return None
        return {"run_metadata": self._metadata, "iterations": list(self._iterations)}

    @property
    def iteration_count(self) -> int:
        return len(self._iterations)


class Facts(Dict[str, Any]):
    """A dict as rlms has objects: members as attributes, and to_dict()."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def to_dict(self) -> Params:
        return {key: value.to_dict() if isinstance(value, Facts) else value
                for key, value in self.items()}


class Completion(Answer):
    """An Answer, with the fields of rlms' result beside it."""

    response: str
    root_model: str
    prompt: Any
    usage_summary: Facts
    execution_time: float
    metadata: Optional[Params]
    error: Optional[str]

    def to_dict(self) -> Params:
        told = {"root_model": self.root_model, "prompt": self.prompt, "response": self.response,
                "usage_summary": self.usage_summary.to_dict(), "execution_time": self.execution_time}
        return told if self.metadata is None else {**told, "metadata": self.metadata}


def refuse(name: str, why: str) -> UsageError:
    return UsageError(f"RLM: {name} is not supported: {why}")


class Moved:
    """The arguments of rlms, read: `options` are those of `rlmd exec`, `tools` functions."""

    def __init__(self, given: Params):
        given = dict(given)
        for name, (fine, why) in NO_MORE.items():
            if given.pop(name, fine[0]) not in fine:
                raise refuse(name, why)
        self.backend = given.pop("backend", None) or "openai"
        self.kwargs = dict(given.pop("backend_kwargs", None) or {})
        self._key_file: Any = None
        self.options: Params = self._provider(self.backend, dict(self.kwargs))
        self._sample(given.pop("sampling_args", None))
        self._below(given.pop("other_backends", None), given.pop("other_backend_kwargs", None))
        self.tools = self._tools(given.pop("custom_tools", None), given.pop("custom_sub_tools", None))
        self.logger = given.pop("logger", None)
        self.verbose = given.pop("verbose", False)
        self.prologue = given.pop("user_prologue", None)
        self.calls = {name: given.pop(name, None) for name in
                      ("on_subcall_start", "on_subcall_complete", "on_iteration_start",
                       "on_iteration_complete")}
        given.pop("compaction", None)  # long conversations are summed up anyway
        timeout = given.pop("max_timeout", None)
        self.options.update(
            max_depth=given.pop("max_depth", 1), max_iterations=given.pop("max_iterations", 30),
            max_cost=given.pop("max_budget", None), max_tokens=given.pop("max_tokens", None),
            max_time=None if timeout is None else f"{max(1, int(timeout * 1000))}ms",
            max_parallel=given.pop("max_concurrent_subcalls", 4))
        self.options.update(given)  # those of ours beside them
        if self.logger:
            self.logger.log_metadata(self._metadata())

    def _provider(self, backend: str, kwargs: Params) -> Params:
        kwargs.pop("sampling_args", None)
        options = {"provider": backend, "model": kwargs.pop("model_name", None),
                   "base_url": kwargs.pop("base_url", None)}
        key = kwargs.pop("api_key", None)
        if backend in GATEWAYS:
            url, variable = GATEWAYS[backend]
            options["provider"] = "openai"
            options["base_url"] = options["base_url"] or url
            key = key or (os.environ.get(variable) if variable else None)
            if not options["base_url"]:
                raise refuse(f"backend={backend!r} without base_url",
                             "backend_kwargs={'base_url': 'http://HOST:PORT/v1', ...} says where it is")
        elif backend not in ("openai", "anthropic", "ollama"):
            raise refuse(f"backend={backend!r}", "a server that speaks OpenAI's API is "
                         "backend='openai' with base_url and api_key in backend_kwargs")
        if kwargs:
            raise refuse(f"backend_kwargs[{min(kwargs)!r}]",
                         "model_name, base_url, api_key and sampling_args are")
        if key:
            options["key_file"] = self._keep(key)
        return options

    def _keep(self, key: str) -> str:
        """A file that goes with us, which nobody else can read: mkstemp(3)."""
        self._key_file = tempfile.NamedTemporaryFile("w", prefix="rlmd-key-")
        self._key_file.write(key)
        self._key_file.flush()
        return str(self._key_file.name)

    def _sample(self, given: Optional[Params]) -> None:
        for name, value in {**self.kwargs.get("sampling_args", {}), **(given or {})}.items():
            if name not in SAMPLING:
                raise refuse(f"sampling_args[{name!r}]", f"{', '.join(SAMPLING)} are")
            self.options[SAMPLING[name]] = value

    def _below(self, backends: Any, kwargs: Any) -> None:
        """The model of calls and sub-runs."""
        if not backends:
            return
        (backend,) = backends
        below = dict(cast(List[Params], kwargs or [{}])[0])
        model = below.pop("model_name", None)
        if backend != self.backend or any(self.kwargs.get(name) != value
                                          for name, value in below.items()):
            raise refuse("other_backends", "calls of code go to the same provider: "
                         "subcall_model='MODEL' is another of its models")
        self.options["subcall_model"] = model

    @staticmethod
    def _tools(given: Any, below: Any) -> Dict[str, Callable[..., Any]]:
        if below is not None and below != given:
            raise refuse("custom_sub_tools", "sub-runs have the functions of the root")
        tools: Dict[str, Callable[..., Any]] = {}
        all_of_them: Params = dict(given or {})
        for name, entry in all_of_them.items():
            described = cast(Params, entry) if isinstance(entry, Mapping) else {}
            told = described.get("description") if "tool" in described else None
            function = described.get("tool", entry)
            if not callable(function) or isinstance(function, type):
                raise refuse(f"custom_tools[{name!r}]",
                             "it is no function: data is an input, contexts={'" + name + "': ...}")
            if told and not getattr(function, "__doc__", None):
                function.__doc__ = told
            tools[name] = function
        return tools

    def _metadata(self) -> Facts:
        shown = {key: value for key, value in self.kwargs.items() if "key" not in key}
        return Facts(root_model=self.options["model"] or "unknown",
                     max_depth=self.options["max_depth"],
                     max_iterations=self.options["max_iterations"], backend=self.backend,
                     backend_kwargs=shown, environment_type="local", environment_kwargs={},
                     other_backends=None)

    def task(self, root_prompt: Optional[str]) -> str:
        words = root_prompt or TASK
        return f"{words}\n\n{self.prologue}" if self.prologue else words


class Trajectory:
    """One completion, as its events tell it."""

    def __init__(self, moved: Moved):
        self._moved, self._began = moved, time.perf_counter()
        self._runs: Dict[str, Params] = {}
        self._root: Optional[str] = None
        self._turn: Optional[Params] = None  # of the root, not logged yet
        self._calls: List[Params] = []
        self._turn_began = self._began
        self.usage: Dict[str, Params] = {}
        if moved.logger:
            moved.logger.clear_iterations()

    def hear(self, method: str, params: Params) -> None:
        if method == "job.event":
            event = params["event"]
            getattr(self, "_" + event["event"])(event)

    def _call(self, name: str, *arguments: Any) -> None:
        function = self._moved.calls[name]
        if function:
            function(*arguments)

    def _count(self, model: str, tokens_in: int, tokens_out: int, cost: Optional[float]) -> Facts:
        one = Facts(total_calls=1, total_input_tokens=tokens_in or 0,
                    total_output_tokens=tokens_out or 0, total_cost=cost)
        all_of = self.usage.setdefault(model, Facts(one, total_calls=0, total_input_tokens=0,
                                                    total_output_tokens=0, total_cost=0.0))
        for name, value in one.items():
            all_of[name] += value or 0
        return Facts(model_usage_summaries={model: one})

    def _run(self, event: Params) -> None:
        run = self._runs[event["run"]] = {**event, "began": time.perf_counter()}
        if event["parent"] is None:
            self._root = event["run"]
        else:
            self._call("on_subcall_start", run["depth"], run["model"], run["task"][:PREVIEW])

    def _response(self, event: Params) -> None:
        depth = self._runs[event["run"]]["depth"]
        self._count(event["model"], event["prompt"]["tokens"], event["response"]["tokens"],
                    event["response"].get("cost"))
        self._call("on_iteration_start", depth, event["index"] + 1)
        self._runs[event["run"]]["turn"] = time.perf_counter()
        if event["run"] == self._root:
            self._log()
            self._turn = Facts(prompt=[{"role": "user", "content": event["prompt"]["content"]}],
                               response=event["response"]["content"], code_blocks=[],
                               final_answer=None, iteration_time=None)
            self._calls = []

    def _code(self, event: Params) -> None:
        if event["run"] != self._root or not self._turn:
            return
        stderr = "\n".join(filter(None, (event["stderr"], event["error"])))
        self._turn["code_blocks"].append({"code": event["code"], "result": {
            "stdout": event["stdout"], "stderr": stderr, "locals": {},
            "execution_time": event["duration"] / 1000, "rlm_calls": self._calls,
            "final_answer": None}})
        self._calls = []
        if self._moved.verbose:
            print(f"{event['code']}\n{event['stdout']}{stderr}")

    def _llm_call(self, event: Params) -> None:
        summary = self._count(event["model"], event["inputTokens"], event["outputTokens"],
                              event.get("cost"))
        if event["run"] == self._root:
            self._calls.append({
                "root_model": event["model"], "prompt": event["prompt"],
                "response": event.get("response") or "", "usage_summary": summary.to_dict(),
                "execution_time": event["duration"] / 1000})

    def _iteration(self, event: Params) -> None:
        run = self._runs[event["run"]]
        taken = time.perf_counter() - run.get("turn", run["began"])
        self._call("on_iteration_complete", run["depth"], event["index"] + 1, taken)
        if event["run"] == self._root and self._turn:
            self._turn["iteration_time"] = taken

    def _end(self, event: Params) -> None:
        run = self._runs[event["run"]]
        error = event.get("error")
        if event["run"] != self._root:
            self._call("on_subcall_complete", run["depth"], run["model"],
                       time.perf_counter() - run["began"], error and str(error.get("message")))
            return
        if self._turn:
            self._turn["final_answer"] = event.get("finalAnswer")
        self._log()

    def _log(self) -> None:
        if self._turn and self._moved.logger:
            self._moved.logger.log(self._turn)
        self._turn = None

    def completion(self, answer: Answer, prompt: Any) -> Completion:
        done = Completion(answer.result, answer.parsed)
        done.response, done.prompt, done.error = str(answer), prompt, None
        done.root_model = answer.result.get("model") or "unknown"
        done.usage_summary = Facts(
            model_usage_summaries={name: Facts(each) for name, each in self.usage.items()},
            total_cost=answer.cost,
            total_input_tokens=answer.usage.input_tokens,
            total_output_tokens=answer.usage.output_tokens)
        done.execution_time = time.perf_counter() - self._began
        done.metadata = self._moved.logger.get_trajectory() if self._moved.logger else None
        return done

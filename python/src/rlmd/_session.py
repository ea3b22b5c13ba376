"""Session: Python behind kernel walls, block by block."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Callable, Mapping, NamedTuple, Optional, Type, Union

from ._contexts import Contexts
from ._rlm import Toolbox, Tools, named, reply_of
from ._server import Params, shared


class Output(NamedTuple):
    """The outcome of a block. error: the traceback, or None. interrupted: its time was over."""

    stdout: str
    stderr: str
    error: Optional[str]
    interrupted: bool
    duration_ms: int


class Session:
    """A worker that lives until close(): its code reaches no file, network or process.

        with Session(context=Path("big.log")) as session:
            print(session.run("print(len(context))").stdout)
            session["hosts"] = ["web-1", "web-2"]

    context and contexts: as for RLM.completion(). tools: functions of this process that the code
    may call. options: those of `rlmd exec`, as worker_memory="2G", python=, preload=["numpy"].
    One block runs at a time.

    models=True: the code may ask models (llm_query(), rlm_query(), ...), by the provider, the
    model and the limits of the options, all blocks together: provider="openai", max_cost=0.5.
    provider: a function answers them instead, as for RLM.
    """

    def __init__(self, context: Any = None, tools: Tools = None, *,
                 contexts: Optional[Mapping[str, Any]] = None, binary: Optional[str] = None,
                 tenant: Optional[str] = None,
                 models: bool = False, provider: Union[str, Callable[..., Any], None] = None,
                 **options: Any):
        self._tools = Toolbox(tools)
        self._model = provider if callable(provider) else None
        self._server = shared(binary, tenant)
        given = Contexts(self._server, context, contexts)
        params: Params = {"options": named(options)}
        if self._model:
            params["model"] = "client"
        elif provider:
            params["options"]["provider"] = provider
        if models:
            params["models"] = True
        if given.params:
            params["contexts"] = given.params
        if self._tools.params:
            params["tools"] = self._tools.params
        try:
            name: str = self._server.call("session.open", **params)["session"]
        finally:
            given.close()
        self._name: Optional[str] = name
        self._server.listen(name, lambda method, told: None, self._answer)

    def _answer(self, method: str, params: Params) -> Any:
        if method == "model.request":
            assert self._model
            return reply_of(self._model, params)
        return self._tools.call(params)

    def _call(self, method: str, **params: Any) -> Any:
        begun = self._server.begin(f"session.{method}", session=self._name, **params)
        try:
            return begun.result()
        except KeyboardInterrupt:
            self._server.begin("session.interrupt", session=self._name)
            raise

    def run(self, code: str, timeout: Optional[float] = None) -> Output:
        """Runs a block, for at most so many seconds (30). An exception of the code is told in
        `error`; WorkerError: the worker has died, and the session with it."""
        more = {} if timeout is None else {"timeoutMs": max(1, int(timeout * 1000))}
        done = self._call("execute", code=code, **more)
        error = done["error"] and done["error"]["traceback"]
        return Output(done["stdout"], done["stderr"], error, done["interrupted"], done["durationMs"])

    def status(self) -> Params:
        """As session.status of docs/serve.md: "busy", "gone"; where the code may ask models also
        "tokens" and "cost" (US dollars) so far, "left" of the limits, and "running"."""
        told: Params = self._server.call("session.status", session=self._name)
        return told

    def interrupt(self) -> None:
        """From another thread: ends the block that runs with KeyboardInterrupt."""
        self._server.call("session.interrupt", session=self._name)

    def __getitem__(self, name: str) -> Any:
        """A variable: its value, or its text where JSON has none for it. KeyError: there is none."""
        told = self._call("get", name=name)
        if not told["found"]:
            raise KeyError(name)
        return told["value"] if "value" in told else told["text"]

    def __setitem__(self, name: str, value: Any) -> None:
        self._call("set", name=name, value=value)

    def close(self) -> None:
        """Ends the worker; once more is fine."""
        name, self._name = self._name, None
        if name and self._server.alive:
            self._server.call("session.close", session=name)
            self._server.forget(name)

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

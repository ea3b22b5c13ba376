"""Python as other libraries want it of an interpreter, in a Session.

Their code runs in a namespace of its own, where no name is reserved: functions of the host's may
have any name, and change between two blocks. All of them are one tool of the session's.
"""

from __future__ import annotations

import base64
import importlib
import inspect
import io
import json
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from ._session import Session

BY_NAME = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
OUTPUT_MAX = 1_000_000  # characters of a block's output

PRELUDE = """
import ast, base64, io, json, traceback

class Final(BaseException):
    pass

names = {"__name__": "__main__"}
told = {}

def final(*args, **kwargs):
    raise Final(list(args), kwargs)

def define(functions, finals):
    def one(name):
        def function(*args, **kwargs):
            answer = call_host(name=name, args=list(args), kwargs=kwargs)
            if "error" in answer:
                raise RuntimeError(answer["error"])
            return answer["value"]
        function.__name__ = function.__qualname__ = name
        return function
    names.update((name, one(name)) for name in functions)
    names.update(dict.fromkeys(finals, final))

def speakable(value):
    if type(value).__module__.startswith("PIL."):
        data = io.BytesIO()
        value.save(data, "PNG")
        return {"png": base64.b64encode(data.getvalue()).decode()}
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return {"text": repr(value)}
    return {"value": value}

def run_block(source, variables):
    told.clear()
    names.update(json.loads(variables))
    try:
        tree = ast.parse(source, "<code>")
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "<code>", "exec"), names)
        if last is not None:
            told.update(speakable(eval(compile(ast.Expression(last.value), "<code>", "eval"), names)))
    except Final as end:
        told["final"] = {"args": [speakable(each) for each in end.args[0]],
                         "kwargs": {key: speakable(each) for key, each in end.args[1].items()}}
    except BaseException as error:
        words = traceback.format_exception(type(error), error, error.__traceback__.tb_next)
        told["error"] = {"type": type(error).__name__, "message": str(error), "traceback": "".join(words)}
        if isinstance(error, KeyboardInterrupt):
            raise
"""


class Block(NamedTuple):
    """value: of the last line, where that is an expression. final: the arguments of a function that
    ends the work, with which the code has called it."""

    stdout: str
    value: Any
    final_args: Optional[List[Any]]
    final_kwargs: Dict[str, Any]
    error: Optional[Dict[str, str]]


def heard(told: Dict[str, Any]) -> Any:
    """A value that JSON has, or an image; of others their repr()."""
    if "png" in told:
        image = importlib.import_module("PIL.Image")
        return image.open(io.BytesIO(base64.b64decode(told["png"])))
    return told["value"] if "value" in told else told.get("text")


class Walled:
    """functions: of the host's, by name; it may be changed between two blocks. finals: names of
    functions that end the work."""

    def __init__(self, functions: Dict[str, Callable[..., Any]], finals: List[str], **options: Any):
        self.functions, self._finals = functions, finals
        self._defined: Optional[List[str]] = None
        options.setdefault("max_output", OUTPUT_MAX)
        self._options = options
        self._session: Optional[Session] = None

    def redefine(self) -> None:
        """Has the functions be the host's from the next block on, whatever code has made of them."""
        self._defined = None

    def start(self) -> Session:
        if self._session is None:
            self._session = Session(tools={"call_host": self._call}, **self._options)
            self._check(self._session.run(PRELUDE).error)
        return self._session

    def close(self) -> None:
        if self._session is not None:
            self._session.close()

    @staticmethod
    def _check(error: Optional[str]) -> None:
        if error:
            raise RuntimeError(error)

    def _call(self, name: str, args: List[Any], kwargs: Dict[str, Any]) -> Dict[str, Any]:
        """A function of the host's, with arguments by name."""
        function = self.functions[name]
        try:
            signature = inspect.signature(function)
            given = signature.bind(*args, **kwargs).arguments
            if all(signature.parameters[each].kind in BY_NAME for each in given):
                args, kwargs = [], dict(given)
        except (TypeError, ValueError):
            pass  # it says itself what is wrong
        try:
            return {"value": function(*args, **kwargs)}
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"}

    def run(self, code: str, variables: Optional[Dict[str, Any]] = None,
            timeout: Optional[float] = None) -> Block:
        """Raises WorkerError, and TypeError for variables that JSON has not."""
        session = self.start()
        wanted = list(self.functions)
        if wanted != self._defined:
            self._check(session.run(f"define({wanted!r}, {self._finals!r})").error)
            self._defined = wanted
        given = json.dumps(variables or {}, allow_nan=False)
        done = session.run(f"run_block({code!r}, {given!r})", timeout)
        told = session["told"]
        final = told.get("final")
        error = told.get("error")
        if done.error and not error:
            error = {"type": "KeyboardInterrupt" if done.interrupted else "Error",
                     "message": "the time for the block was over" if done.interrupted else done.error,
                     "traceback": done.error}
        return Block(done.stdout, heard(told), [heard(each) for each in final["args"]] if final else None,
                     {key: heard(each) for key, each in final["kwargs"].items()} if final else {}, error)

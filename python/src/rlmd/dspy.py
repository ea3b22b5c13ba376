"""rlmd's walls for DSPy 3.4 and later: CPython behind kernel walls, in place of Deno and Pyodide.

    import dspy, rlmd.dspy
    rlm = dspy.RLM("context, question -> answer", interpreter_factory=rlmd.dspy.Interpreter)
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional

from dspy.primitives.code_interpreter import (
    CodeExecutionError, CodeInterpreterError, FinalOutput)

from ._errors import Error
from ._walled import Walled


class Interpreter:
    """A dspy CodeInterpreter. The options are those of rlmd.Session."""

    execution_instructions = (
        "Code runs in CPython with its standard library, in a process without files, network or other "
        "processes; variables persist for this session. Host tools and SUBMIT are global functions."
    )

    def __init__(self, tools: Optional[Mapping[str, Callable[..., Any]]] = None,
                 output_fields: Optional[List[Dict[str, Any]]] = None, *,
                 timeout: Optional[float] = None, **options: Any):
        self._walled = Walled(dict(tools or {}), ["SUBMIT"], **options)
        self.output_fields = output_fields
        self._timeout, self._gone = timeout, False

    @property
    def tools(self) -> Dict[str, Callable[..., Any]]:
        return self._walled.functions

    def start(self) -> None:
        if self._gone:
            raise CodeInterpreterError("the session has ended: make another interpreter")
        try:
            self._walled.start()
        except Error as error:
            self._gone = True
            raise CodeInterpreterError(str(error)) from error

    def execute(self, code: str, variables: Optional[Dict[str, Any]] = None) -> Any:
        self.start()
        try:
            block = self._walled.run(code, variables, self._timeout)
        except TypeError as error:
            raise CodeInterpreterError(f"variables are what JSON can say: {error}") from error
        except Error as error:
            self._gone = True
            raise CodeInterpreterError(str(error)) from error
        if block.final_args is not None:
            return FinalOutput(self._output(block.final_args, block.final_kwargs))
        if block.error:
            if block.error["type"] in ("SyntaxError", "IndentationError", "TabError"):
                raise SyntaxError(block.error["message"])
            raise CodeExecutionError(block.error["traceback"])
        return block.stdout or (None if block.value is None else str(block.value))

    def _output(self, args: List[Any], kwargs: Dict[str, Any]) -> Any:
        """SUBMIT(a, b) and SUBMIT(name=a): by the names of the output fields."""
        names = [field["name"] for field in self.output_fields or []]
        if not names:
            if kwargs or len(args) != 1:
                raise CodeExecutionError("TypeError: SUBMIT takes one value")
            return {"output": args[0]}
        given = {**dict(zip(names, args)), **kwargs}
        if len(args) > len(names) or set(given) != set(names):
            raise CodeExecutionError(f"TypeError: the call is SUBMIT({', '.join(names)})")
        return given

    def shutdown(self) -> None:
        self._gone = True
        self._walled.close()

    def __enter__(self) -> "Interpreter":
        return self

    def __exit__(self, *_: Any) -> None:
        self.shutdown()

    def __call__(self, code: str, variables: Optional[Dict[str, Any]] = None) -> Any:
        return self.execute(code, variables)

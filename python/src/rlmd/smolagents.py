"""rlmd's walls for smolagents: a PythonExecutor without Docker or a cloud.

    from smolagents import CodeAgent
    import rlmd.smolagents
    agent = CodeAgent(tools=[], model=model, executor=rlmd.smolagents.Executor())

Its code is CPython, with all modules of the interpreter that the options name (python=,
preload=["numpy"]); no import is refused, for the walls need no list of safe ones.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional

from smolagents.default_tools import FinalAnswerTool
from smolagents.local_python_executor import CodeOutput, PythonExecutor
from smolagents.monitoring import AgentLogger, LogLevel
from smolagents.utils import AgentExecutionError

from ._walled import Walled

FINAL = "final_answer"


class CodeError(AgentExecutionError, RuntimeError):
    """The code failed; its text is the traceback."""


class Executor(PythonExecutor):
    """The options are those of rlmd.Session; timeout: seconds of a block."""

    def __init__(self, *, timeout: Optional[float] = None, **options: Any):
        self._walled = Walled({}, [FINAL], **options)
        self._timeout = timeout
        self._final: Callable[..., Any] = FinalAnswerTool().forward
        self._variables: Dict[str, Any] = {}
        self.state: Dict[str, Any] = {"_print_outputs": ""}

    def send_tools(self, tools: Dict[str, Any]) -> None:
        """They run in this process, when code calls them."""
        for name, tool in tools.items():
            function = getattr(tool, "forward", tool)
            if name == FINAL:
                self._final = function
            else:
                self._walled.functions[name] = function

    def send_variables(self, variables: Dict[str, Any]) -> None:
        """Those that JSON can say; smolagents' own state is not for the code."""
        self._variables.update({name: value for name, value in variables.items()
                                if not name.startswith("_")})

    def __call__(self, code_action: str) -> CodeOutput:
        variables, self._variables = self._variables, {}
        block = self._walled.run(code_action, variables, self._timeout)
        self.state["_print_outputs"] = block.stdout
        if block.final_args is not None:
            return CodeOutput(self._final(*block.final_args, **block.final_kwargs), block.stdout, True)
        if block.error:
            raise CodeError(block.error["traceback"], AgentLogger(LogLevel.OFF))
        return CodeOutput(block.value, block.stdout, False)

    def cleanup(self) -> None:
        self._walled.close()

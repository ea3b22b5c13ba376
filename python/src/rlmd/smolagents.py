"""rlmd's walls for smolagents: a PythonExecutor without Docker or a cloud.

    from smolagents import CodeAgent
    import rlmd.smolagents
    agent = CodeAgent(tools=[], model=model, executor=rlmd.smolagents.Executor())

Its code is CPython, with all modules of the interpreter that the options name (python=,
preload=["numpy"]); no import is refused, for the walls need no list of safe ones.
"""

from __future__ import annotations

from typing import Any, Dict, Optional

from smolagents.local_python_executor import CodeOutput, PythonExecutor

from ._walled import Walled

FINAL = "final_answer"


class Executor(PythonExecutor):
    """The options are those of rlmd.Session; timeout: seconds of a block."""

    def __init__(self, *, timeout: Optional[float] = None, **options: Any):
        self._walled = Walled({}, [FINAL], **options)
        self._timeout = timeout
        self._variables: Dict[str, Any] = {}
        self.state: Dict[str, Any] = {"_print_outputs": ""}

    def send_tools(self, tools: Dict[str, Any]) -> None:
        """They run in this process, when code calls them."""
        for name, tool in tools.items():
            if name != FINAL:
                self._walled.functions[name] = getattr(tool, "forward", tool)

    def send_variables(self, variables: Dict[str, Any]) -> None:
        """Those that JSON can say; smolagents' own state is not for the code."""
        self._variables.update({name: value for name, value in variables.items()
                                if not name.startswith("_")})

    def __call__(self, code_action: str) -> CodeOutput:
        variables, self._variables = self._variables, {}
        block = self._walled.run(code_action, variables, self._timeout)
        self.state["_print_outputs"] = block.stdout
        if block.final_args is not None:
            given = [*block.final_args, *block.final_kwargs.values()]
            return CodeOutput(given[0] if given else None, block.stdout, True)
        if block.error:
            raise RuntimeError(block.error["traceback"])
        return CodeOutput(block.value, block.stdout, False)

    def cleanup(self) -> None:
        self._walled.close()

"""rlmd's walls for the official library of Recursive Language Models (`rlms` 0.1.3).

    import rlm, rlmd.rlms
    rlmd.rlms.install()
    rlm.RLM(backend="openai", environment="local").completion(...)

The library chooses environments by their names and has no place for another: install() has "local"
mean this one, in this process.
"""

from __future__ import annotations

import copy
import time
from typing import Any, Dict

import rlm.core.rlm
from rlm.core.types import REPLResult
from rlm.environments import (
    LocalREPL, extract_tool_value, get_environment)

from ._walled import Walled

ANSWER = {"content": "", "ready": False}
# The names that the library gives to code are its own again after each block.
RESTORE = ("for _name in {names}:\n    if _name + '_0' in globals():\n"
           "        globals()[_name] = globals()[_name + '_0']\n")
LIST = ("{name: type(value).__name__ for name, value in globals().items() if not name.startswith('_') "
        "and not callable(value)}")


class Variables(Dict[str, Any]):
    """Names and types, as the library's prompts and logs want them; an item is the value itself,
    which is fetched from behind the walls: as JSON has it, else its repr()."""

    def __init__(self, environment: "Environment", types: Dict[str, str]):
        super().__init__(types)
        self._environment = environment

    def __getitem__(self, name: str) -> Any:
        super().__getitem__(name)
        return self._environment.value_of(name)

    def get(self, name: str, otherwise: Any = None) -> Any:
        return self[name] if name in self else otherwise


class Environment(LocalREPL):
    """Its questions to models are those of the library's own; its code runs behind the walls.

    rlmd: options of rlmd.Session, as a dict. Of tools only functions and what JSON can say.
    """

    def __init__(self, *args: Any, rlmd: Any = None, **kwargs: Any):
        self._walled = Walled({}, [], **(rlmd or {}))
        self._variables: Dict[str, Any] = {"answer": ANSWER}
        super().__init__(*args, **kwargs)

    def setup(self) -> None:
        super().setup()
        self.locals = Variables(self, {"answer": "dict"})
        for name in ("llm_query", "llm_query_batched", "rlm_query", "rlm_query_batched", "SHOW_VARS"):
            self._walled.functions[name] = self.globals[name]
        for name, entry in self.custom_tools.items():
            value = extract_tool_value(entry)
            if callable(value):
                self._walled.functions[name] = value
            else:
                self._give(name, value)

    def value_of(self, name: str) -> Any:
        return self._variables[name] if name in self._variables else self._walled.run(name).value

    def _give(self, name: str, value: Any) -> None:
        """Has a variable from the next block on."""
        self._variables[name] = value
        self.locals = Variables(self, {**self.locals, name: type(value).__name__})

    def _show_vars(self) -> str:
        return f"Available variables: {dict(self.locals)}"

    def add_context(self, context_payload: Any, context_index: Any = None) -> int:
        index = self._context_count if context_index is None else context_index
        self._give(f"context_{index}", context_payload)
        if index == 0:
            self._give("context", context_payload)
        self._context_count = max(self._context_count, index + 1)
        return int(index)

    def add_history(self, message_history: Any, history_index: Any = None) -> int:
        index = self._history_count if history_index is None else history_index
        self._give(f"history_{index}", copy.deepcopy(message_history))
        if index == 0:
            self._give("history", self._variables["history_0"])
        self._history_count = max(self._history_count, index + 1)
        return int(index)

    def append_compaction_entry(self, entry: Any) -> None:
        super().append_compaction_entry(entry)
        if self.compaction:
            self._give("history", self._compaction_history)

    def execute_code(self, code: str) -> Any:
        began = time.perf_counter()
        self._pending_llm_calls = []
        variables, self._variables = self._variables, {}
        block = self._walled.run(code, variables)
        self._walled.redefine()
        restore = RESTORE.format(names=["context"] if self.compaction else ["context", "history"])
        told = self._walled.run(f"{restore}[{LIST}, answer if isinstance(globals().get('answer'), dict) else None]").value
        names, answer = told if isinstance(told, list) else ({}, None)
        self.locals = Variables(self, names)
        final = None
        if answer and answer.get("ready"):
            final = str(answer.get("content", ""))
            self._variables["answer"] = ANSWER
        error = "" if block.error is None else f"\n{block.error['type']}: {block.error['message']}"
        return REPLResult(stdout=block.stdout, stderr=error, locals=dict(names),
                          execution_time=time.perf_counter() - began,
                          rlm_calls=list(self._pending_llm_calls), final_answer=final)

    def cleanup(self) -> None:
        super().cleanup()
        self._walled.close()


def install(**options: Any) -> None:
    """Has the environment "local" of rlms be this one; the options are those of rlmd.Session."""

    def environment(name: str, given: Dict[str, Any]) -> Any:
        if name == "local":
            return Environment(**given, rlmd=options)
        return get_environment(name, given)

    rlm.core.rlm.get_environment = environment

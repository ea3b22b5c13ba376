"""Answers, and the events on the way to them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Dict, List, Optional

if TYPE_CHECKING:
    from typing_extensions import Self

Result = Dict[str, Any]


class Usage(Dict[str, Any]):
    """The members of "usage" in snake case, also as attributes: usage.input_tokens."""

    def __init__(self, usage: Result):
        super().__init__({snake(key): value for key, value in usage.items()})

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class Answer(str):
    """The answer's text, and what is known of it.

    result: the object of `rlmd exec --json`. parsed: the value, where a schema was given.
    """

    result: Result
    parsed: Any

    def __new__(cls, result: Result, parsed: Any = None) -> Self:
        answer = super().__new__(cls, result.get("output") or "")
        answer.result, answer.parsed = result, parsed
        return answer

    @property
    def usage(self) -> Usage:
        return Usage(self.result["usage"])

    @property
    def cost(self) -> float:
        """US dollars."""
        return float(self.result["usage"]["cost"])

    @property
    def trace(self) -> Any:
        """The tree of runs (docs/trace.md)."""
        return self.result.get("trace")

    @property
    def success(self) -> bool:
        return bool(self.result["success"])

    @property
    def forced(self) -> bool:
        """Whether it was asked for before the model was ready to give it."""
        return self.stop_reason != "final"

    @property
    def stop_reason(self) -> Optional[str]:
        return self.result.get("stopReason")

    @property
    def warnings(self) -> List[str]:
        return list(self.result.get("warnings") or [])

    def _repr_html_(self) -> str:
        words = str(self).replace("&", "&amp;").replace("<", "&lt;")
        usage = self.result["usage"]
        return (f"<pre style='white-space:pre-wrap'>{words}</pre><small>{usage['iterations']} turns, "
                f"{usage['llmCalls']} calls, {usage['tokens']} tokens, ${self.cost:.4f}</small>")


class Event:
    """One of a stream. type: "delta" (words of the model), "code", "output", "subcall", or "end",
    whose `answer` is the answer. str() is its text. data: all of it."""

    def __init__(self, kind: str, text: str, data: Dict[str, Any], answer: Optional[Answer] = None):
        self.type, self.text, self.data, self.answer = kind, text, data, answer

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<{self.type} {self.text[:60]!r}>"


def snake(name: str) -> str:
    return re.sub(r"([A-Z])", lambda match: "_" + match[1].lower(), name)

"""An exception for each kind of error that rlmd names."""

from __future__ import annotations

from typing import Any, Dict, Optional, Type


class Error(Exception):
    """A call without an answer.

    kind: the name that rlmd gives it, as in the result of `rlmd exec --json`. result: the whole
    result of the job, where there was one: what was used until then stands in its "usage".
    """

    kind = "error"

    def __init__(self, message: str, result: Optional[Dict[str, Any]] = None):
        super().__init__(message)
        self.result = result


class InternalError(Error):
    kind = "internal"


class UsageError(Error):
    kind = "usage"


class NotFoundError(Error):
    kind = "not_found"


class AuthError(Error):
    kind = "auth"


class BillingError(Error):
    kind = "billing"


class ThrottledError(Error):
    kind = "throttled"


class OverloadedError(Error):
    kind = "overloaded"


class NetworkError(Error):
    kind = "network"


class TimeoutError(Error):
    kind = "timeout"


class BadReplyError(Error):
    kind = "bad_reply"


class BadRequestError(Error):
    kind = "bad_request"


class BudgetError(Error):
    kind = "budget"


class NoAnswerError(Error):
    kind = "no_answer"


class SandboxError(Error):
    kind = "sandbox"


class WorkerError(Error):
    kind = "worker"


class InputError(Error):
    kind = "input"


class ContextOverflowError(Error):
    kind = "context_overflow"


class RefusedError(Error):
    kind = "refused"


class ReplayError(Error):
    kind = "replay"


class CancelledError(Error):
    kind = "cancelled"


class FunctionError(Error):
    kind = "function"


class SchemaError(Error):
    kind = "schema"


class MachineError(Error):
    kind = "machine"


class ServerError(Error):
    """The rlmd program cannot be found or started, or ended while it was needed."""

    kind = "server"


KINDS: Dict[str, Type[Error]] = {each.kind: each for each in Error.__subclasses__()}


def error_of(kind: str, message: str, result: Optional[Dict[str, Any]] = None) -> Error:
    """The exception for a kind, which a newer rlmd may have named."""
    error = KINDS.get(kind, Error)(message, result)
    error.kind = kind
    return error

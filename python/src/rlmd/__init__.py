"""Answers about inputs of any size, and Python sessions behind kernel walls: a client of `rlmd serve`.

    from rlmd import RLM
    answer = RLM(model="gpt-5-mini").completion("Which host failed first?", context=Path("big.log"))

RLM asks, Session runs code, batch() answers the tasks of a file. Each call that fails raises
Error, or the subclass of its kind.
"""

from ._answer import Answer, Event, Usage
from ._batch import Batch, batch
from ._contexts import Git
from ._errors import (AuthError, BadReplyError, BadRequestError, BillingError, BudgetError,
                      CancelledError, ContextOverflowError, Error, FunctionError, InputError,
                      InternalError, MachineError, NetworkError, NoAnswerError, NotFoundError,
                      OverloadedError, RefusedError, ReplayError, SandboxError, SchemaError,
                      ServerError, ThrottledError, TimeoutError, UsageError, WorkerError)
from ._moved import RLMLogger
from ._rlm import RLM, Stream
from ._server import close_all
from ._session import Output, Session

__version__ = "0.1.0"

__all__ = [
    "RLM", "RLMLogger", "Answer", "AuthError", "BadReplyError", "BadRequestError", "Batch",
    "BillingError", "BudgetError", "CancelledError", "ContextOverflowError", "Error", "Event",
    "FunctionError", "Git", "InputError", "InternalError", "MachineError", "NetworkError", "NoAnswerError",
    "NotFoundError", "Output", "OverloadedError", "RefusedError", "ReplayError", "SandboxError",
    "SchemaError", "ServerError", "Session", "Stream", "ThrottledError", "TimeoutError", "Usage",
    "UsageError", "WorkerError", "batch", "close_all",
]

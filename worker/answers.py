"""Results of model calls, for the code: an answer, or why there is none."""

import sys

# By this name pickle finds the classes, when `answers` is a module of the user's.
sys.modules["_rlmd_answers"] = sys.modules[__name__]


class Answer(str):
    """The text of an answer, exactly as it was given: a str.

    .degraded is true where it is less than what was asked for, and .reason
    says in which way: no sub-RLM could be started, its answer was forced
    when its budget was spent, it was cut at its length limit.
    Strings that are made of it (a slice, a sum) are plain ones.
    """

    __module__ = "_rlmd_answers"

    degraded = False
    reason = ""

    def __new__(cls, text, reason=None):
        answer = str.__new__(cls, text)
        if reason:
            answer.degraded, answer.reason = True, reason
        return answer

    def __await__(self):
        """For code that awaits an answer that it has already."""
        return self
        yield


# For code that looks at the names of types to tell an answer from an error; it is a str.
Answer.__name__ = "str"


class LLMError(Exception):
    """A call that failed.

    Raised by llm_query() and rlm_query(). The batch functions don't raise it:
    there it stands as a value in the place of the result that failed. It is
    falsy, its str() begins with "Error", and `.kind` says what it was:
    "timeout", "throttled", "budget", "refused", ...
    """

    __module__ = "__main__"  # where the user finds it; tracebacks show it without ours

    degraded = True  # as an Answer says it, for code that looks at all of a batch

    def __init__(self, message, kind="internal"):
        super().__init__(message)
        self.kind = kind

    @property
    def reason(self):
        return str(self.args[0])

    def __bool__(self):
        return False

    def __str__(self):
        return f"Error ({self.kind}): {self.args[0]}"


class BudgetExceeded(LLMError):
    """A limit of the run's budget is reached: no more calls. budget() says what is left."""

    __module__ = "__main__"

    def __init__(self, message):
        super().__init__(message, "budget")

    def __str__(self):
        return self.args[0]


class Notes:
    """Notes for a block on its calls, each once, and on the answers that it got, once for each
    function and reason."""

    KINDS_MAX = 20

    def __init__(self):
        self._counts = {}
        self._told = {}  # a set that keeps the order

    def tell(self, text):
        if len(self._told) < self.KINDS_MAX:
            self._told[text] = None

    def add(self, function, reason):
        key = function, reason
        if key in self._counts or len(self._counts) < self.KINDS_MAX:
            self._counts[key] = self._counts.get(key, 0) + 1

    def take(self):
        """The notes since the last time, a line each."""
        told = "".join([f"[note] {text}\n" for text in self._told])
        self._told.clear()
        if not self._counts:
            return told
        counts, self._counts = self._counts, {}
        return told + "".join(
            f"[note] {function}(): {count} degraded answer{'s' if count > 1 else ''}: {reason} "
            "(.degraded and .reason of an answer tell)\n"
            for (function, reason), count in counts.items()
        )

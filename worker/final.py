"""How a block gives the run's answer.

Each docstring is shown to the model by help().
"""

import ast
import json
import linecache
import sys

import tracebacks
import variables
from arguments import plain
from calling import called
from channel import exceeds
from messages import ANSWER_MAX


class Final:
    """The answer that FINAL() or FINAL_VAR() gave last, if any did."""

    def __init__(self):
        self.source = self.answer = None

    def give(self, source, answer):
        if exceeds(answer, ANSWER_MAX):
            raise ValueError(
                f"an answer has at most {ANSWER_MAX >> 20} MiB ({ANSWER_MAX} bytes), "
                f"but this one has {len(answer)} characters: shorten it"
            )
        self.source, self.answer = source, answer

    def take(self):
        taken = self.source, self.answer
        self.source = self.answer = None
        return taken


def one_value(_self, given, named):
    """FINAL(answer=x) is FINAL(x); several fields are a JSON object, several values a line."""
    if named and not given:
        given.append(next(iter(named.values())) if len(named) == 1 else as_json(named))
        named.clear()
    elif len(given) > 1 and not named:
        given[:] = [" ".join(map(str, given))]


def as_json(fields):
    try:
        return json.dumps(fields, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):  # keys of another type, a circle
        return str(fields)


class Finish:
    """The functions that end a run; `names` knows what the namespace holds (helpers.Names)."""

    def __init__(self, names):
        self.final = Final()
        self._names = names

    @called(arrange=one_value)
    def FINAL(self, value):
        """Ends the run after this block; str(value) is the answer. The last call counts."""
        self.final.give("final_direct", plain(str(value)))

    @called(dict.fromkeys(
        "variable_name var_name variable var value answer result".split(), "name"))
    def FINAL_VAR(self, name):
        """Ends the run after this block; the variable of this name is the answer.

        name: the variable's name as a str, as in FINAL_VAR("report"). The
        variable's value itself will do too. Raises NameError if there is no
        such variable, or it is an expression: its value FINAL() takes.
        """
        value = self._named(name) if isinstance(name, str) else name
        if is_untouched(value):
            raise NameError(self._no_variable("answer"))
        if is_answer(value):
            value = value.get("content", "")
        self.final.give("final_var", plain(str(value)))

    def _named(self, text):
        """The value that the str names: a variable's, or itself."""
        bare = plain(text).strip().strip("'\"")
        if bare.isidentifier() and self._names.has_variable(bare):
            return self._names.namespace[bare]
        literal = is_literal("FINAL_VAR")
        if literal is None:
            literal = not self._names.has_value(text)
        if not literal:
            return text
        if bare.isidentifier():
            raise NameError(self._no_variable(bare))
        if self._names.is_expression(text):
            raise NameError(
                f"FINAL_VAR(): {text.strip()!r} is an expression, no variable's name. "
                f"Write FINAL({text.strip()}), or give its value a name first."
            )
        return text

    def _no_variable(self, name):
        names = ", ".join(self._names.user_names()[:variables.LINES_MAX]) or "none yet"
        return (
            f"FINAL_VAR(): there is no variable {name!r}. Your variables: {names}. "
            "To give a text itself as the answer use FINAL()."
        )


def is_literal(function):
    """Whether the first argument that a block's code calls this function with is written out
    there, as a name would be, and not computed; None where that cannot be told."""
    frame = sys._getframe()
    while frame is not None and tracebacks.is_foreign(frame.f_code.co_filename):
        frame = frame.f_back
    try:
        nodes = ast.walk(ast.parse("".join(linecache.getlines(frame.f_code.co_filename))))
        calls = [
            node.args or [keyword.value for keyword in node.keywords]
            for node in nodes
            if isinstance(node, ast.Call) and is_called(node.func, function)
            and node.lineno <= frame.f_lineno <= node.end_lineno
        ]
    except (AttributeError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return all(isinstance(given[0], ast.Constant) for given in calls if given) if calls else None


def is_called(node, function):
    name = getattr(node, "id", getattr(node, "attr", ""))
    return name.replace("_", "").lower() == function.replace("_", "").lower()


def new_answer():
    """The `answer` of other RLM libraries: setting "ready" ends the run."""
    return {"content": "", "ready": False}


def is_untouched(value):
    """Whether nobody has written to it: then it is no variable of the user's, nor an answer."""
    return (
        type(value) is dict and len(value) == 2 and value.get("ready") is False
        and type(value.get("content")) is str and not value["content"]
    )


def is_answer(value):
    return isinstance(value, dict) and "ready" in value

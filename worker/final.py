"""How a block gives the run's answer.

Each docstring is shown to the model by help().
"""

import variables
from arguments import plain
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


class Finish:
    """The functions that end a run."""

    """`names` knows what the namespace holds (helpers.Names)."""

    def __init__(self, names):
        self.final = Final()
        self._names = names

    def FINAL(self, value):
        """Ends the run after this block; str(value) is the answer. The last call counts."""
        self.final.give("final_direct", plain(str(value)))

    def FINAL_VAR(self, name):
        """Ends the run after this block; the variable of this name is the answer.

        name: the variable's name as a str, as in FINAL_VAR("report"). The
        variable's value itself will do too. Raises NameError if there is no
        such variable, or it is an expression: its value FINAL() takes.
        """
        value = name
        if isinstance(name, str):
            bare = name.strip().strip("'\"")
            if bare.isidentifier():
                value = self._variable(bare)
            elif not self._names.has_value(name) and self._names.is_expression(name):
                raise NameError(
                    f"FINAL_VAR(): {name.strip()!r} is an expression, no variable's name. "
                    f"Write FINAL({name.strip()}), or give its value a name first."
                )
        self.final.give("final_var", plain(str(value)))

    def _variable(self, name):
        if self._names.has_variable(name):
            return self._names.namespace[name]
        names = ", ".join(self._names.user_names()[:variables.LINES_MAX]) or "none yet"
        raise NameError(
            f"FINAL_VAR(): there is no variable {name!r}. Your variables: {names}. "
            "To give a text itself as the answer use FINAL()."
        )


def new_answer():
    """The `answer` of other RLM libraries: setting "ready" ends the run."""
    return {"content": "", "ready": False}


def is_answer(value):
    return isinstance(value, dict) and "ready" in value

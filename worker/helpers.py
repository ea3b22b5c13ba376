"""The namespace of the model's code: every name of ours, and its value."""

import builtins

import aliases
import variables
from answers import BudgetExceeded, LLMError
from arguments import plain
from calling import public
from code_base import CodeBase
from final import Finish, is_answer, is_untouched
from first_reading import FirstReading
from queries import Queries
from texts import Texts


class Names:
    """The namespace, and which of its names are ours (`table`, the inputs) or the user's."""

    def __init__(self, namespace):
        self.namespace = namespace
        self.inputs = {}
        self.table = {}

    def user_names(self):
        hidden = {*self.table, *self.inputs}
        if is_answer(self.namespace.get("answer")):
            hidden.add("answer")
        return variables.user_names(self.namespace, hidden)

    def has_variable(self, name):
        return (
            name in self.namespace and name not in self.table and not variables.is_special(name)
            and not (name == "answer" and is_untouched(self.namespace[name]))
        )

    def has_value(self, text):
        return any(value is text for value in list(self.namespace.values()))

    def is_expression(self, text):
        return variables.is_expression(plain(text), self.table, self.namespace)

    def SHOW_VARS(self):
        """Lists a line for each input and variable, with type, size and preview."""
        names = [*self.inputs, *self.user_names()]
        return variables.Listing(variables.listing(self.namespace, names))


class Helpers:
    """`table` has every name of ours, the inputs aside."""

    def __init__(self, channel, namespace):
        self._names = Names(namespace)
        self._queries = queries = Queries(channel)
        self._texts = texts = Texts()
        self._code_base = code_base = CodeBase()
        finish = Finish(self._names)
        self.final = finish.final
        self.notes = queries.notes
        self.user_names = self._names.user_names
        self.has_variable = self._names.has_variable
        self.is_expression = self._names.is_expression
        functions = (
            queries.llm_query, queries.batch_llm_query, queries.rlm_query,
            queries.batch_rlm_query, queries.race_query, queries.run_plan,
            texts.chunk_text, texts.search_context, texts.count_matches, texts.extract_json,
            texts.extract_sections, finish.FINAL, finish.FINAL_VAR, self._names.SHOW_VARS,
            queries.budget, code_base.tree, code_base.find_files, code_base.grep,
            code_base.read_lines, code_base.outline, code_base.changes,
            FirstReading(queries, code_base, texts).first_reading,
        )
        self.table = self._names.table
        self.table.update((function.__name__, public(function)) for function in functions)
        self.table.update(
            llm_query_batched=self.table["batch_llm_query"],
            llm_batch=self.table["batch_llm_query"],
            rlm_query_batched=self.table["batch_rlm_query"],
            BudgetExceeded=BudgetExceeded,
            LLMError=LLMError,
        )
        aliases.install(aliases.functions(self.table, texts))
        aliases.install(aliases.values("", ""))
        self._builtins = vars(builtins)

    def begin(self, inputs, task, theirs):
        """Takes the inputs of the run; theirs: the host's functions by their names."""
        context = inputs["context"]
        self._names.inputs = self._code_base.inputs = inputs
        self._queries.context = self._texts.context = context
        self.table.update(theirs)
        self._builtins.update(aliases.values(context, task))

"""Names of other RLM libraries for what is here, so that prompts made for them run unchanged.

They are where Python looks last, beside its builtins: an input or a variable of the same name
is found first, and no listing of the variables shows them.
"""

import builtins

from calling import public


# Each is called as the function of the prompt is.
OTHER_NAMES = {
    "llm_query": "llm call_llm llm_call query_llm",
    "batch_llm_query": "sub_llm_batch llm_query_batch llm_batch_query batch_llm",
    "rlm_query": "rlm sub_rlm recursive_llm",
    "batch_rlm_query": "rlm_query_batch rlm_batch batch_rlm sub_rlm_batch",
    "SHOW_VARS": "show_vars",
    "FINAL": "SUBMIT final_answer FINAL_ANSWER FinalAnswer Final submit_answer",
    "FINAL_VAR": "FinalVar FINALVAR FINAL_var final_var",
}


def install(names):
    for name, value in names.items():
        if not hasattr(builtins, name):
            setattr(builtins, name, value)


def functions(table, texts):
    """`table` has the functions of the prompt."""

    def sub_llm(*given, **options):
        """llm_query(), but the second argument is text, also where it may be a model's name."""
        if len(given) > 1:
            options.setdefault("context", given[1] or None)
            given = given[0], *given[2:]
        return table["llm_query"](*given, **options)

    found = {
        other: table[name] for name, others in OTHER_NAMES.items() for other in others.split()
    }
    sub_llm.__qualname__, sub_llm.__module__ = "sub_llm", "__main__"
    found["sub_llm"] = sub_llm
    for helper in (texts.find_line, texts.get_line, texts.count_lines, texts.quote_match,
                   texts.chunk_by_headers, texts.chunk_by_size, texts.search):
        found[helper.__name__] = public(helper)
    return found


def values(context, task):
    return {
        "query": task,
        "task_0": task,
        "context_0": context,  # of the contexts that a session was given; here the only
        "input_0": context,
        "history": [],         # of the questions before this one: there are none
    }

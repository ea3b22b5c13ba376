"""Names of other RLM libraries for what is here, so that prompts made for them run unchanged.

They are where Python looks last, beside its builtins: an input or a variable of the same name
is found first, and no listing of the variables shows them.
"""

import builtins

from calling import public


# Each is called as the function of the prompt is.
OTHER_NAMES = {
    "FINAL": "SUBMIT final_answer FINAL_ANSWER FinalAnswer Final submit_answer",
    "FINAL_VAR": "FinalVar FINALVAR FINAL_var final_var",
}


def install(table, texts):
    """`table` has the functions of the prompt."""
    for name, value in names(table, texts).items():
        if not hasattr(builtins, name):
            setattr(builtins, name, value)


def names(table, texts):
    """{name: what it stands for}"""
    found = {
        other: table[name] for name, others in OTHER_NAMES.items() for other in others.split()
    }
    for helper in (texts.find_line, texts.get_line, texts.count_lines, texts.quote_match,
                   texts.chunk_by_headers, texts.chunk_by_size):
        found[helper.__name__] = public(helper)
    return found

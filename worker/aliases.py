"""Names of other RLM libraries for what is here, so that prompts made for them run unchanged.

They are where Python looks last, beside its builtins: an input or a variable of the same name
is found first, and no listing of the variables shows them.
"""

import builtins

from calling import public


def install(texts):
    for name, value in names(texts).items():
        if not hasattr(builtins, name):
            setattr(builtins, name, value)


def names(texts):
    """{name: what it stands for}"""
    found = {}
    for helper in (texts.find_line, texts.get_line, texts.count_lines, texts.quote_match,
                   texts.chunk_by_headers, texts.chunk_by_size):
        found[helper.__name__] = public(helper)
    return found

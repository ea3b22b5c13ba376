"""The question that a block asks, in any form: a prompt, a list of messages, a dict, a pair.

Others call the arguments otherwise, and give them in another order; what can only have been
meant in one way is taken so, and what can be meant in two is refused with both calls.
"""

import collections
import re

from arguments import (
    CONTEXT_HINT, check_model, check_prompt, check_temperature, check_text, check_whole, plain,
)
from calling import Ignored
from messages import ANSWER_TOKENS_MAX, STRING_MAX
from source import reference

# Other libraries' names of the arguments.
ASKED = "query question instruction input message sub_query user_prompt"
BESIDE = "data text document doc content chunk sub_context"
# Without these a call asks the same question: it is made, and a note says that they were ignored.
RUN_DECIDES = "the run decides that"
IGNORED = {
    **dict.fromkeys("""
        max_workers workers num_workers n_workers max_concurrency max_concurrent concurrency
        parallel max_parallel batch_size timeout timeout_s max_retries retries retry cache
        use_cache stream verbose show_progress progress depth max_depth max_iterations
        """.split(), Ignored(RUN_DECIDES)),
    **dict.fromkeys("top_p top_k seed stop presence_penalty frequency_penalty n".split(),
                    Ignored("no such setting is sent")),
    **dict.fromkeys("""
        schema json_schema response_format response_schema output_schema return_type
        output_format format json json_mode
        """.split(), Ignored("say in the prompt which form the answer shall have")),
}
QUESTION = {
    **dict.fromkeys(ASKED.split() + ["task", "messages"], "prompt"),
    **dict.fromkeys(BESIDE.split() + ["ctx"], "context"),
    **dict.fromkeys("system_prompt system_message instructions".split(), "system"),
    **dict.fromkeys("max_output_tokens max_completion_tokens max_new_tokens".split(),
                    "max_tokens"),
    "model_name": "model",
    **IGNORED,
}
QUESTIONS = {
    **QUESTION,
    **dict.fromkeys("prompt query question task queries questions tasks".split(), "prompts"),
    "messages": "prompts", "contexts": "context", "chunks": "context",
}
TASK_MEMBERS = {
    **dict.fromkeys(ASKED.split() + ["prompt", "sub_task"], "task"),
    **dict.fromkeys(BESIDE.split() + ["ctx"], "context"),
    "model_name": "model",
}
TASK = {name: "ctx" if own == "context" else own for name, own in TASK_MEMBERS.items()}
TASK["context"] = TASK.pop("ctx")
TASK.update(IGNORED)
TASKS = {
    **TASK,
    **dict.fromkeys("prompt prompts query queries question questions task".split(), "tasks"),
    "contexts": "ctx", "chunks": "ctx",
}

ROLES = {
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "ai", "model"), "assistant"),
}

# How the names of models begin, behind the name of a provider.
FAMILIES = re.compile(
    r"(?:[\w.-]+/)*(?:chatgpt|gpt|o[1-9]|claude|sonnet|haiku|opus|gemini|gemma|codellama|llama"
    r"|qwen|qwq|mistral|mixtral|codestral|ministral|deepseek|phi|grok|kimi|glm|command-r|granite"
    r"|nova|smollm|starcoder)(?![A-Za-z])[\w.:/@+-]*", re.ASCII | re.IGNORECASE
)
NAME = re.compile(r"[\w./:@+-]*[\w]", re.ASCII)

SHORT = 1 << 20  # characters that every call has room for

Options = collections.namedtuple("Options", "model system max_tokens temperature")


class Question:
    """`texts`: the user's words and the model's in turn, the user's first and last."""

    __slots__ = "texts", "options"
    context = subset = None

    def __init__(self, texts, options):
        self.texts = texts
        self.options = options


class Task:
    """`context`: None for the caller's own, or for `subset`, which names a part of it."""

    __slots__ = "texts", "context", "subset", "model"
    options = None

    def __init__(self, task, context, subset, model):
        self.texts = (task,)
        self.context = context
        self.subset = subset
        self.model = model


def is_family(text):
    return isinstance(text, str) and FAMILIES.fullmatch(text) is not None


def is_text(text):
    """Whether what stands where a model may be named is text; None: it may be either."""
    if is_family(text):
        return False
    if len(text) > STRING_MAX or not NAME.fullmatch(text):
        return True
    if re.search("[0-9]", text) and re.search("[A-Za-z]", text):
        return False
    return None


def asked_by_name(given, named, asked, beside):
    """f(data, instruction="...") for f(instruction, data)."""
    if given and asked in named and beside not in named:
        named[beside] = given.pop(0)


def second_is_text(function, asked, kinds):
    """llm_query(text, "a question") and llm_query(prompt, "gpt-5") for llm_query(prompt, model)."""

    def arrange(_self, given, named):
        if not given and asked not in named and "context" in named:
            named[asked] = named.pop("context")
        asked_by_name(given, named, asked, "context")
        if asked == "prompts":
            as_list(given, named)
        if len(given) < 2 or not isinstance(given[1], kinds):
            return
        text = not isinstance(given[1], str) or given[1] and is_text(given[1])
        if text is None:
            raise ValueError(
                f"{function}(): the second argument is a model, but {given[1]!r} may also be "
                f"meant as text. Write {function}({asked}, model={given[1]!r}), or "
                f"{function}({asked}, context={given[1]!r})"
            )
        if text and "context" not in named:
            named["context"] = given.pop(1)

    return arrange


def as_list(given, named):
    """Makes the list of a batch: of prompts one by one, of one question about several texts."""
    if len(given) > 1 and all(isinstance(each, str) and not is_family(each) for each in given):
        given[:] = [list(given)]
    elif isinstance(named.get("prompts"), str) and isinstance(named.get("context"), (list, tuple)):
        named["prompts"] = [named["prompts"]] * len(named["context"])


def second_is_no_model(function, asked):
    """A context may be any text, but nobody means the name of a model by it."""

    def arrange(_self, given, named):
        asked_by_name(given, named, asked, "ctx")
        if len(given) > 1 and is_family(given[1]):
            raise ValueError(
                f"{function}(): the second argument is the context, but {given[1]!r} is the name "
                f"of a model. Write {function}({asked}, model={given[1]!r}), or "
                f"{function}({asked}, ctx={given[1]!r}) where it is the text"
            )

    return arrange


def options_of(function, model, system, max_tokens, temperature):
    if system is not None:
        check_prompt(function, "system", system)
    if max_tokens is not None:
        max_tokens = check_whole(function, "max_tokens", max_tokens, 1)
        if max_tokens > ANSWER_TOKENS_MAX:
            raise ValueError(f"{function}(): max_tokens is at most {ANSWER_TOKENS_MAX}")
    return Options(
        check_model(function, "model", model),
        plain(system) if system else None,
        max_tokens,
        check_temperature(function, temperature),
    )


def question_of(function, what, given, context, options, alone=False):
    """A Question. `context` is joined to what is asked; `alone`: a message may stand for a list."""
    if type(given) is str and context is None and len(given) <= SHORT:
        return Question((given,), options)  # as most are, without all that follows
    if isinstance(given, dict) and "role" not in given:
        given, context, options = members_of(function, what, given, context, options)
    elif isinstance(given, dict) and alone:
        given = [given]
    if is_conversation(given):
        system, texts = conversation(function, what, given)
        if system:
            system = system if options.system is None else f"{options.system}\n\n{system}"
            options = options._replace(system=system)
    else:
        if isinstance(given, tuple) and len(given) == 2 and context is None:
            given, context = given
        texts = [given]
    check_prompt(function, what, texts[-1], "for several prompts use batch_llm_query()"
                 if alone else "a str, or a list of messages with role and content")
    texts[-1] = plain(texts[-1])
    if context is not None:
        check_text(function, f"the context of {what}", context, CONTEXT_HINT)
        texts[-1] = f"{texts[-1]}\n\n{plain(context)}" if texts[-1] else plain(context)
        check_prompt(function, f"{what} with its context", texts[-1])
    return Question(tuple(texts), options)


def members_of(function, what, given, context, options):
    """(prompt, context, options) of a dict; what it does not have is as for the others."""
    members = renamed(function, what, given, QUESTION, ("prompt", "context", *Options._fields))
    if "prompt" not in members:
        members["prompt"] = members.pop("context", None)
    own = options_of(function, *(members.get(name) for name in Options._fields))
    options = Options(*(usual if each is None else each for each, usual in zip(own, options)))
    if members.get("context") is not None:
        context = members["context"]
    return members["prompt"], context, options


def renamed(function, what, given, others, known):
    members = {}
    for key, value in given.items():
        own = key if key in known else others.get(key)
        if own not in known:
            raise ValueError(
                f"{function}(): {what} has {key!r}; it must have {known[0]!r} and may have "
                + ", ".join(map(repr, known[1:]))
            )
        if own in members:
            raise ValueError(f"{function}(): {what} has {own!r} twice, by two names")
        members[own] = value
    return members


def is_conversation(given):
    return isinstance(given, (list, tuple)) and bool(given) and all(
        isinstance(message, dict) and "role" in message for message in given
    )


def conversation(function, what, messages):
    """(the system's words or None, [the user's, the model's, ..., the user's])"""
    system, texts = [], []
    for number, message in enumerate(messages):
        role = ROLES.get(message["role"])
        name = f"message {number} of {what}"
        if role is None:
            raise ValueError(
                f"{function}(): {name} has the role {message['role']!r}; "
                "it may be system, user or assistant"
            )
        text = content_of(function, name, message.get("content"))
        if role == "system":
            system.append(text)
        elif (role == "user") == (len(texts) % 2 == 0):
            texts.append(text)
        elif texts:
            texts[-1] = f"{texts[-1]}\n\n{text}"
        else:
            raise ValueError(f"{function}(): the first message of {what} must be the user's")
    if len(texts) % 2 == 0:
        raise ValueError(f"{function}(): the last message of {what} must be the user's")
    return "\n\n".join(system) or None, texts


def content_of(function, name, content):
    if isinstance(content, (list, tuple)) and all(
        isinstance(part, dict) and isinstance(part.get("text"), str) for part in content
    ):
        content = "\n\n".join(plain(part["text"]) for part in content)
    check_text(function, f"the content of {name}", content)
    return plain(content)


def task_of(function, what, given, context, model, own):
    """A Task; `own` is the caller's context, which is shared and not sent."""
    if isinstance(given, dict):
        members = renamed(function, what, given, TASK_MEMBERS, ("task", "context", "model"))
        if "task" not in members:
            raise ValueError(f'{function}(): {what} has no "task", but {list(given)!r}')
        given = members["task"]
        context = members["context"] if members.get("context") is not None else context
        model = members["model"] if members.get("model") is not None else model
    elif isinstance(given, tuple) and len(given) == 2 and context is None:
        given, context = given
    if given and given is own and isinstance(context, str):
        given, context = context, own  # a text beside the whole input is the task
    check_prompt(function, what, given, "for several tasks use batch_rlm_query()"
                 if function == "rlm_query" else None)
    if context is not None:
        check_text(function, f"the context of {what}", context, CONTEXT_HINT)
    subset = None if context is own else reference(context)
    context = None if context is None or context is own or subset else plain(context)
    return Task(plain(given), context, subset,
                check_model(function, f"the model of {what}", model))


def spread(function, what, value, count):
    """`count` values: those of a list, or the same each time."""
    if not isinstance(value, (list, tuple)):
        return [value] * count
    if len(value) != count:
        raise ValueError(
            f"{function}(): {what} is a list of {len(value)}, but there are {count} to ask: "
            "give one for each, or a single one for all"
        )
    return value

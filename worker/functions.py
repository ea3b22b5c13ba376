"""Functions of the host's, the program that uses the library: called here, served over there.

Arguments are checked as JSON before they are sent: the other side takes anything else for a lie.
"""

import inspect
import json

from answers import BudgetExceeded, LLMError
from channel import ProtocolError
from messages import ARGUMENTS_DEPTH, ARGUMENTS_MAX, ARGUMENTS_VALUES

INTEGER_LIMIT = 1 << 63
OUTPUT = "<output>"  # a session's own: is called with what a block prints, as it prints it
KIND = inspect.Parameter.POSITIONAL_OR_KEYWORD


def read(text):
    """Their descriptions in `start`, a list of dicts with "name", "doc" and "schema"."""
    return [] if text == "[]" else json.loads(text)  # 28 pages of most workers


def make(channel, told):
    """{name: a plain function}"""
    return {each["name"]: make_one(channel, each) for each in told if each["name"] != OUTPUT}


def make_output(channel, told):
    """A function that tells what was printed on a stream; None: nobody wants to know."""
    if all(each["name"] != OUTPUT for each in told):
        return None

    def tell(stream, text):
        call(channel, OUTPUT, json.dumps({"stream": stream, "text": text}))

    return tell


def make_one(channel, told):
    name, signature = told["name"], signature_of(told["schema"])

    def function(*given, **named):
        try:
            bound = signature.bind(*given, **named)
        except TypeError as error:
            raise TypeError(f"{name}(): {error}. The call is {name}{signature}") from None
        arguments = dict(bound.arguments)
        arguments.update(arguments.pop(others_of(told["schema"]), {}))
        return call(channel, name, write(name, arguments))

    function.__name__ = function.__qualname__ = name
    function.__module__ = "__main__"  # where the user finds it
    function.__doc__ = told["doc"]
    function.__signature__ = signature
    return function


def others_of(schema):
    """The name for arguments that the schema allows without naming them; None: it does not."""
    properties = schema.get("properties")
    if properties is not None and schema.get("additionalProperties") is not True:
        return None
    name = "others"
    while name in (properties or ()):
        name += "_"
    return name


def signature_of(schema):
    """Those that have to be given come first; what is left out of the others is not sent."""
    properties, required = schema.get("properties", {}), schema.get("required", [])
    parameters = [inspect.Parameter(name, KIND) for name in properties if name in required]
    parameters += [
        inspect.Parameter(name, KIND, default=properties[name].get("default"))
        for name in properties if name not in required
    ]
    if others_of(schema):
        parameters.append(inspect.Parameter(others_of(schema), inspect.Parameter.VAR_KEYWORD))
    return inspect.Signature(parameters)


def write(name, arguments):
    """JSON of the arguments that no strict reader refuses."""
    try:
        plain = json.loads(json.dumps(arguments, allow_nan=False))
        values = check(plain, 1)
    except (TypeError, ValueError, RecursionError) as error:
        raise type(error)(f"{name}(): the arguments are handed on as JSON: {error}") from None
    if values > ARGUMENTS_VALUES:
        raise ValueError(f"{name}(): the arguments have {values} values, of {ARGUMENTS_VALUES}")
    text = json.dumps(plain)
    if len(text) > ARGUMENTS_MAX:
        raise ValueError(f"{name}(): the arguments have more than {ARGUMENTS_MAX >> 20} MiB")
    return text


def check(value, depth):
    """How many values it has in it; raises for what is no JSON everywhere."""
    if isinstance(value, str):
        if "\ud800" <= max(value, default="") and any("\ud800" <= c <= "\udfff" for c in value):
            raise ValueError("a str has surrogates, from bytes that are not UTF-8")
        return 0
    if isinstance(value, int):
        if not -INTEGER_LIMIT <= value < INTEGER_LIMIT:
            raise ValueError(f"the number {value} has more than 64 bits")
        return 0
    if not isinstance(value, (dict, list)):
        return 0
    if depth > ARGUMENTS_DEPTH:
        raise ValueError(f"they are more than {ARGUMENTS_DEPTH} deep")
    if isinstance(value, dict):
        for key in value:
            check(key, depth)
            if "\0" in key:
                raise ValueError("a key has a NUL in it")
        value = value.values()
    return len(value) + sum(check(each, depth + 1) for each in value)


def call(channel, name, arguments):
    try:
        reply = channel.call("function", {"name": name, "arguments": arguments})
    except ProtocolError as error:
        raise LLMError(str(error), "input") from None
    kind, message = reply["errors"][0], reply["messages"][0]
    if kind is None:
        return json.loads(reply["values"][0])
    message = f"{name}(): {message or kind}"
    if kind == "budget":
        raise BudgetExceeded(message)
    if kind == "timeout":
        raise TimeoutError(message)
    if kind == "input":
        raise ValueError(message)
    raise RuntimeError(message)

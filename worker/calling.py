"""Functions as the model's code calls them: plain ones, whose errors say how they are called.

Other RLM libraries have other names for the same arguments; those are understood too, where they
can mean nothing else.
"""

import collections
import functools
import inspect

Ignored = collections.namedtuple("Ignored", "why")  # an argument without which a call is the same


def called(others=None, arrange=None):
    """A method that public() makes a function of.

    others: {another name of an argument: its name here, or Ignored}. The object whose method it is
        has `notes` where something is Ignored.
    arrange: is given self and the arguments, a list and a dict with the names of here, before they
        are looked at, and may put right in them what can only have been meant otherwise.
    """

    def mark(method):
        method.others, method.arrange = others or {}, arrange
        return method

    return mark


def public(method):
    """A plain function that calls the bound method, and is called as it is."""
    name = method.__name__
    signature = inspect.signature(method)
    others, arrange = getattr(method, "others", {}), getattr(method, "arrange", None)
    fitting = fitting_counts(signature)

    @functools.wraps(method)
    def function(*given, **named):
        given = list(given)
        if named:
            named, notes = renamed(name, named, others)
            for note in notes:
                method.__self__.notes.tell(note)
        if arrange:
            arrange(method.__self__, given, named)
        if not named and len(given) in fitting:  # bind() takes longer than all the rest
            return method(*given)
        try:
            bound = signature.bind(*given, **named)
        except TypeError as error:
            raise TypeError(f"{name}(): {error}. The call is {name}{signature}") from None
        return method(*bound.args, **bound.kwargs)

    function.__dict__.clear()  # as it is wrapped()
    function.__qualname__ = name
    function.__module__ = "__main__"  # where the user finds it
    function.__signature__ = signature
    return function


def fitting_counts(signature):
    """How many arguments, all without their names, are a call as it should be."""
    parameters = signature.parameters.values()
    plain = [each for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    needed = sum(each.default is each.empty for each in plain)
    if any(each.default is each.empty for each in parameters if each not in plain):
        return range(0)
    return range(needed, len(plain) + 1)


def renamed(function, named, others):
    """(`named` with the names of here, a note for each that is ignored); two for one argument
    are refused."""
    result, sources, notes = {}, {}, []
    for name, value in named.items():
        own = others.get(name, name)
        if isinstance(own, Ignored):
            notes.append(f"{function}(): {name}= was ignored: {own.why}")
            continue
        if own in result:
            raise TypeError(
                f"{function}(): {sources[own]}= and {name}= mean the same here: give one of them"
            )
        result[own], sources[own] = value, name
    return result, notes

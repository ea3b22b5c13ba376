"""Arguments of the functions in the namespace: taken as they are, or refused in words
that say which one of many it was."""

from channel import exceeds
from messages import PROMPTS_MAX, STRING_MAX, TEMPERATURE_MAX

CONTEXT_HINT = "make a str of it, for example with json.dumps() or '\\n'.join()"


def plain(text):
    """`text` as an exact str, whatever its class redefines."""
    return text if type(text) is str else str.__str__(text)


def check_text(function, what, value, hint=None):
    if not isinstance(value, str):
        hint = f": {hint}" if hint else ""
        raise TypeError(f"{function}(): {what} must be a str, not {type(value).__name__}{hint}")


def check_whole(function, what, value, least):
    """An int; a float will do that is one."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{function}(): {what} must be a number, not {type(value).__name__}")
    if not value >= least or value != value // 1:
        raise ValueError(
            f"{function}(): {what} must be a whole number and at least {least}, not {value}"
        )
    return int(value)


def check_prompt(function, what, value, hint=None):
    check_text(function, what, value, hint)
    if exceeds(plain(value), PROMPTS_MAX):
        raise ValueError(
            f"{function}(): {what} has more than {PROMPTS_MAX >> 20} MiB; cut it into pieces, "
            "for example with chunk_text(), and ask about each"
        )


def check_list(function, what, values):
    if isinstance(values, (str, bytes, dict)):
        raise TypeError(f"{function}(): {what} must be a list, not {type(values).__name__}")
    try:
        return list(values)
    except TypeError:
        raise TypeError(
            f"{function}(): {what} must be a list, not {type(values).__name__}"
        ) from None


def check_model(function, what, model):
    """None, and an empty one, for the usual."""
    if model is None:
        return None
    check_text(function, what, model)
    name = plain(model).encode("utf-8", "replace")
    if len(name) > STRING_MAX:
        raise ValueError(f"{function}(): the name of a model has at most {STRING_MAX} bytes")
    if b"\0" in name:
        raise ValueError(f"{function}(): the name of a model has no NUL character")
    return name.decode() or None


def check_temperature(function, value):
    """In thousandths, or None."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{function}(): temperature must be a number, not {type(value).__name__}")
    if not 0 <= value <= TEMPERATURE_MAX / 1000:
        raise ValueError(
            f"{function}(): temperature must be from 0 to {TEMPERATURE_MAX // 1000}, not {value}"
        )
    return round(value * 1000)

"""The variables of a namespace, told in text; the values are foreign code and may do anything."""

import ast
import builtins
import itertools
import json
import types

LINES_MAX = 100
LINE_MAX = 200
PREVIEW_MAX = 120
EXPRESSION_MAX = 1000  # characters; what is longer was no lookup
ITEMS_SHOWN = 5
BRACKETS = {list: "[]", tuple: "()", set: "{}", dict: "{}"}


class Listing(str):
    """A text that a REPL shows as it is."""

    __repr__ = str.__str__


def kind_of(value):
    return type(value).__name__


def whole(value):
    """`str` as it is, what JSON can say as JSON, else `repr`."""
    if isinstance(value, str):
        return str.__str__(value)
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except Exception:
        pass
    try:
        return str.__str__(repr(value))
    except Exception as error:
        return f"<a {kind_of(value)}; its repr() raised {kind_of(error)}>"


def user_names(namespace, hidden):
    """The user's variables, in the order of their making, without modules."""
    return [
        name
        for name, value in list(namespace.items())
        if type(name) is str
        and name not in hidden
        and not is_special(name)
        and not isinstance(value, types.ModuleType)
    ]


def is_special(name):
    return name.startswith("__") and name.endswith("__")


def is_expression(text, *namespaces):
    """Whether `text` is Python that looks something up: in something, or by a name that exists.

    A text that happens to be Python, as "north-east" and "Berlin (Germany)" are, is none.
    """
    if len(text) > EXPRESSION_MAX:
        return False
    try:
        nodes = list(ast.walk(ast.parse(text.strip(), mode="eval")))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    return any(
        isinstance(node, ast.Subscript)
        or isinstance(node, ast.Name) and (
            any(node.id in names for names in namespaces)
            or id(node) in called and hasattr(builtins, node.id)
        )
        for node in nodes
    )


def listing(namespace, names):
    """A line each: name, type, size, short preview."""
    lines = [line(name, namespace[name]) for name in names[:LINES_MAX] if name in namespace]
    if len(names) > LINES_MAX:
        lines[-1] = f"... and {len(names) - LINES_MAX + 1} more"
    return "\n".join(lines)


def line(name, value):
    parts = [name, kind_of(value)]
    try:
        unit = "characters" if isinstance(value, str) else "items"
        parts.append(f"{len(value)} {unit}")
    except Exception:
        pass
    parts.append(preview(value))
    text = ", ".join(parts)
    return text if len(text) <= LINE_MAX else text[:LINE_MAX - 3] + "..."


def preview(value):
    try:
        text = sketch(value, 2)
    except Exception as error:
        text = f"<repr() raised {kind_of(error)}>"
    return " ".join(text.split())


def sketch(value, depth):
    """The beginning of a repr, made without the rest where the type is a common one."""
    if isinstance(value, (str, bytes)):
        return repr(value[:PREVIEW_MAX])
    brackets = BRACKETS.get(type(value))
    if brackets is None or not value:
        return repr(value)
    if not depth:
        return brackets[0] + "..." + brackets[1]
    shown = list(itertools.islice(value, ITEMS_SHOWN))
    if type(value) is dict:
        items = [f"{sketch(key, 0)}: {sketch(value[key], depth - 1)}" for key in shown]
    else:
        items = [sketch(item, depth - 1) for item in shown]
    if len(value) > ITEMS_SHOWN:
        items.append("...")
    return brackets[0] + ", ".join(items) + brackets[1]

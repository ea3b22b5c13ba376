"""JSON Schemas of what Python says in type hints: of functions, dataclasses, Pydantic models."""

from __future__ import annotations

import dataclasses
import inspect
import json
import typing
from typing import Any, Callable, Dict, List, Optional, Tuple, cast

SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null",
          dict: "object", list: "array", tuple: "array", set: "array"}


def schema_of_type(hint: Any) -> Dict[str, Any]:
    """Of what is not known: {}, which takes anything."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint in SIMPLE:
        return {"type": SIMPLE[hint]}
    if dataclasses.is_dataclass(hint):
        return schema_of_dataclass(hint)
    if hasattr(hint, "model_json_schema"):
        found: Dict[str, Any] = hint.model_json_schema()
        return found
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if origin is typing.Union or type(hint).__name__ == "UnionType":
        return {"anyOf": [schema_of_type(each) for each in typing.get_args(hint)]}
    if origin in (list, set, tuple) and arguments:
        return {"type": "array", "items": schema_of_type(arguments[0])}
    if origin is dict:
        more = schema_of_type(arguments[1]) if len(arguments) == 2 else {}
        return {"type": "object", "additionalProperties": more}
    return {}


def schema_of_dataclass(cls: Any) -> Dict[str, Any]:
    hints = typing.get_type_hints(cls)
    fields = dataclasses.fields(cls)
    required = [field.name for field in fields if field.default is dataclasses.MISSING
                and field.default_factory is dataclasses.MISSING]
    return {"type": "object", "required": required, "additionalProperties": False,
            "properties": {field.name: schema_of_type(hints[field.name]) for field in fields}}


def read_schema(schema: Any) -> Tuple[Optional[Dict[str, Any]], Callable[[str], Any]]:
    """The JSON Schema, and what makes a value of an answer."""
    if schema is None:
        return None, lambda text: None
    if isinstance(schema, dict):
        return cast(Dict[str, Any], schema), json.loads
    if hasattr(schema, "model_validate_json"):
        return schema.model_json_schema(), schema.model_validate_json
    if dataclasses.is_dataclass(schema):
        return schema_of_dataclass(schema), lambda text: make(schema, json.loads(text))
    found = schema_of_type(schema)
    if not found:
        raise TypeError("schema is a JSON Schema (dict), a dataclass, a Pydantic model or a type")
    return found, json.loads


def make(hint: Any, value: Any) -> Any:
    """A dataclass, with those in it, of the dicts that JSON has."""
    content: Any = value  # also where a check has made a dict of unknown members of it
    if dataclasses.is_dataclass(hint) and isinstance(value, dict):
        hints = typing.get_type_hints(hint)
        built: Any = hint
        return built(**{name: make(hints[name], each) for name, each in content.items()})
    if typing.get_origin(hint) is list and isinstance(value, list):
        (item,) = typing.get_args(hint)
        return [make(item, each) for each in content]
    return value


def tool_of(function: Callable[..., Any], name: Optional[str] = None) -> Dict[str, Any]:
    """A function as the server is told of it. Its docstring tells the model what it does."""
    name = name or function.__name__
    doc = inspect.getdoc(function)
    if not doc:
        raise TypeError(f"the tool {name} needs a docstring, which tells the model what it does")
    hints = typing.get_type_hints(function)
    properties: Dict[str, Any] = {}
    required: List[str] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(f"the tool {name} has *{parameter.name}: name each argument")
        properties[parameter.name] = schema_of_type(hints.get(parameter.name))
        if parameter.name not in hints:
            properties[parameter.name] = {}
        if parameter.default is parameter.empty:
            required.append(parameter.name)
    return {"name": name, "doc": doc, "schema": {"type": "object", "properties": properties,
                                                 "required": required}}

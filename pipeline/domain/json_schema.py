"""Check a value against the subset of JSON Schema that tools and structured answers use.

`type`, `enum`, `required`, `properties`, `additionalProperties: false`, `items`, `minimum`, `maximum`,
`minLength`, `maxLength`, `minItems` and `maxItems`. Other keywords, which MCP servers use, are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.domain.frozen import dataclass

_TYPES: dict[str, tuple[str, tuple[type, ...]]] = {
    "string": ("text", (str,)),
    "integer": ("a whole number", (int,)),
    "number": ("a number", (int, float)),
    "boolean": ("true or false", (bool,)),
    "array": ("a list", (list, tuple)),
    "object": ("an object", (Mapping,)),
    "null": ("null", (type(None),)),
}


class SchemaMismatch(ValueError):
    """A value does not fit its schema; the message names the field and the expected value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonSchema:
    """The form of a structured answer: an object."""

    name: str
    """Letters, digits and `_`: providers show it to the model."""
    schema: Mapping[str, Any]


def check_value(schema: Mapping[str, Any], value: Any) -> None:
    """Raise SchemaMismatch for the first part of `value` that does not fit `schema`."""
    _check(schema, value, "")


def _check(schema: Mapping[str, Any], value: Any, where: str) -> None:
    _check_type(schema.get("type"), value, where)
    choices = schema.get("enum")
    if isinstance(choices, list | tuple) and not any(_same(value, one) for one in choices):
        raise SchemaMismatch(f"{where or 'the value'}: must be one of {', '.join(map(str, choices))}")
    if isinstance(value, str):
        _bounds(schema, "minLength", "maxLength", len(value), f"{where}: the number of characters")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        _bounds(schema, "minimum", "maximum", value, f"{where}: the number")
    elif isinstance(value, list | tuple):
        _bounds(schema, "minItems", "maxItems", len(value), f"{where}: the number of items")
        items = schema.get("items")
        if isinstance(items, Mapping):
            for number, one in enumerate(value):
                _check(items, one, f"{where}[{number}]")
    elif isinstance(value, Mapping):
        _check_object(schema, value, where)


def _check_type(expected: Any, value: Any, where: str) -> None:
    names = [expected] if isinstance(expected, str) else expected
    if not isinstance(names, list | tuple):
        return
    known = [_TYPES[name] for name in names if name in _TYPES]
    if known and not any(_is_a(value, types) for _words, types in known):
        words = " or ".join(words for words, _types in known)
        raise SchemaMismatch(f"{where or 'the arguments'}: must be {words}")


def _is_a(value: Any, types: tuple[type, ...]) -> bool:
    if isinstance(value, bool):
        return bool in types
    if isinstance(value, float) and value.is_integer() and types == (int,):
        return True
    return isinstance(value, types)


def _check_object(schema: Mapping[str, Any], value: Mapping[str, Any], where: str) -> None:
    properties = schema.get("properties")
    properties = properties if isinstance(properties, Mapping) else {}
    prefix = f"{where}." if where else ""
    for name in schema.get("required", ()):
        if name not in value:
            raise SchemaMismatch(f"{prefix}{name}: is missing")
    for name, one in value.items():
        if name in properties:
            _check(properties[name], one, f"{prefix}{name}")
        elif schema.get("additionalProperties") is False:
            known = ", ".join(properties) or "none"
            raise SchemaMismatch(f"{prefix}{name}: there is no such argument; there are: {known}")


def _bounds(schema: Mapping[str, Any], low: str, high: str, size: float, what: str) -> None:
    least, most = schema.get(low), schema.get(high)
    if isinstance(least, int | float) and size < least:
        raise SchemaMismatch(f"{what} must be at least {least}")
    if isinstance(most, int | float) and size > most:
        raise SchemaMismatch(f"{what} must be at most {most}")


def _same(value: Any, choice: Any) -> bool:
    return bool(value == choice) and isinstance(value, bool) == isinstance(choice, bool)

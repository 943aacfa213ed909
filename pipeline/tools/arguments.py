"""Parse a call's arguments and check them against the subset of JSON Schema that the built-in tools use.

`type`, `enum`, `required`, `properties`, `additionalProperties: false`, `items`, `minimum`, `maximum`,
`minLength`, `maxLength`, `minItems` and `maxItems`. Other keywords, which schemas of MCP servers may have,
are checked by those servers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from pipeline.tools.tool import ToolFailed

_TYPES: dict[str, tuple[str, tuple[type, ...]]] = {
    "string": ("text", (str,)),
    "integer": ("a whole number", (int,)),
    "number": ("a number", (int, float)),
    "boolean": ("true or false", (bool,)),
    "array": ("a list", (list, tuple)),
    "object": ("an object", (Mapping,)),
    "null": ("null", (type(None),)),
}


class BadArguments(ToolFailed):
    """The arguments do not fit the schema; the message names the field and the expected value."""

    code = "bad_arguments"


def parsed_arguments(text: str) -> dict[str, Any]:
    """The object that a model wrote as JSON; empty text is an empty object. Raises BadArguments, also for
    NaN, Infinity, duplicate keys and halves of surrogate pairs: a person would be shown something else than
    the executed arguments."""
    if not text.strip():
        return {}
    try:
        value = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_unique_keys)
    except (ValueError, RecursionError) as error:
        raise BadArguments(f"the arguments are not valid JSON ({error})") from error
    if not isinstance(value, dict):
        raise BadArguments("the arguments must be a JSON object, such as {}")
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise BadArguments("the arguments hold half a character (a lone surrogate)") from None
    return value


def check_arguments(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
    """Raise BadArguments for the first argument that does not fit `schema`."""
    _check(schema, arguments, "")


def _check(schema: Mapping[str, Any], value: Any, where: str) -> None:
    _check_type(schema.get("type"), value, where)
    choices = schema.get("enum")
    if isinstance(choices, list | tuple) and not any(_same(value, one) for one in choices):
        raise BadArguments(f"{where or 'the value'}: must be one of {', '.join(map(str, choices))}")
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
        raise BadArguments(f"{where or 'the arguments'}: must be {words}")


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
            raise BadArguments(f"{prefix}{name}: is missing")
    for name, one in value.items():
        if name in properties:
            _check(properties[name], one, f"{prefix}{name}")
        elif schema.get("additionalProperties") is False:
            known = ", ".join(properties) or "none"
            raise BadArguments(f"{prefix}{name}: there is no such argument; there are: {known}")


def _bounds(schema: Mapping[str, Any], low: str, high: str, size: float, what: str) -> None:
    least, most = schema.get(low), schema.get(high)
    if isinstance(least, int | float) and size < least:
        raise BadArguments(f"{what} must be at least {least}")
    if isinstance(most, int | float) and size > most:
        raise BadArguments(f"{what} must be at most {most}")


def _same(value: Any, choice: Any) -> bool:
    return bool(value == choice) and isinstance(value, bool) == isinstance(choice, bool)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice")
    return found

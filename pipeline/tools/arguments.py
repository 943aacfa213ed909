"""Parse a call's arguments and check them against the tool's schema.

Keywords that `pipeline.domain.json_schema` ignores are checked by the MCP servers whose schemas have them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from pipeline.domain.json_schema import SchemaMismatch, check_value
from pipeline.tools.tool import ToolFailed


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
    try:
        check_value(schema, arguments)
    except SchemaMismatch as error:
        raise BadArguments(str(error)) from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice")
    return found

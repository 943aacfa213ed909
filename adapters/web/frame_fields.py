"""Read the fields of a client's frame. Pure; every wrong value is a BadFrame with the field's name."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NoReturn

CLIENT_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")
"""The key that a client gives a frame."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_NUMBER = 2**53 - 1


class BadFrame(Exception):
    """A frame is not accepted: the problem's code, and a message for the client."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def client_id_field(fields: Mapping[str, Any]) -> str:
    """The key of the frame: 1 to 100 characters of A-Z a-z 0-9 _ -. Raises BadFrame."""
    value = string_field(fields, "client_id", max_chars=100)
    if not CLIENT_ID.fullmatch(value):
        raise BadFrame("bad_frame", "client_id: expected 1 to 100 characters of A-Z a-z 0-9 _ -")
    return value


def string_field(
    fields: Mapping[str, Any], name: str, *, max_chars: int | None, may_be_empty: bool = False
) -> str:
    """The text of a field. Raises BadFrame."""
    if name not in fields:
        raise BadFrame("bad_frame", f"{name}: the field is missing")
    value = fields[name]
    if not isinstance(value, str):
        raise BadFrame("bad_frame", f"{name}: expected a string")
    if not value and not may_be_empty:
        raise BadFrame("bad_frame", f"{name}: must not be empty")
    if max_chars is not None and len(value) > max_chars:
        raise BadFrame("bad_frame", f"{name}: longer than {max_chars} characters")
    if not value.isascii() and _SURROGATE.search(value):
        raise BadFrame("bad_frame", f"{name}: contains half a character (a lone surrogate)")
    return value


def optional_string_field(fields: Mapping[str, Any], name: str, *, max_chars: int) -> str:
    """The text of a field that may be missing or null, which is the empty text. Raises BadFrame."""
    if fields.get(name) is None:
        return ""
    return string_field(fields, name, max_chars=max_chars, may_be_empty=True)


def integer_field(fields: Mapping[str, Any], name: str, *, least: int) -> int:
    """The whole number of a field, at least `least`. Raises BadFrame."""
    if name not in fields:
        raise BadFrame("bad_frame", f"{name}: the field is missing")
    value = fields[name]
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadFrame("bad_frame", f"{name}: expected a whole number")
    if not least <= value <= _MAX_NUMBER:
        raise BadFrame("bad_frame", f"{name}: expected a number of at least {least} and below 2^53")
    return value


def boolean_field(fields: Mapping[str, Any], name: str) -> bool:
    """The truth value of a field. Raises BadFrame."""
    if name not in fields:
        raise BadFrame("bad_frame", f"{name}: the field is missing")
    value = fields[name]
    if not isinstance(value, bool):
        raise BadFrame("bad_frame", f"{name}: expected true or false")
    return value


def json_object(raw: str) -> Mapping[str, Any]:
    """The fields of a frame. Raises BadFrame."""
    try:
        value = _DECODER.decode(raw)
    except (ValueError, RecursionError):
        raise BadFrame("bad_frame", "frame: not JSON; send one JSON object as text") from None
    if not isinstance(value, dict):
        raise BadFrame("bad_frame", "frame: expected a JSON object")
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)

"""Read fields of untrusted JSON, with types and bounds. A value that does not fit counts as absent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

_LARGEST = 2**62


def mapping(value: object) -> Mapping[str, Any]:
    """The object, or an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: object, *, most: int) -> list[Any]:
    """The first elements of an array, or none."""
    return value[:most] if isinstance(value, list) else []


def integer(value: object) -> int | None:
    """An integer usable as an id. JSON's true is None."""
    return value if type(value) is int and abs(value) < _LARGEST else None


def seconds(value: object) -> float | None:
    """A non-negative duration."""
    if type(value) not in (int, float) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < _LARGEST and math.isfinite(value) else None


def text(value: object, *, most: int) -> str:
    """At most `most` characters, without lone surrogates, which no store accepts."""
    if not isinstance(value, str):
        return ""
    return value[:most].encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def units(value: str) -> bytes:
    """The text in UTF-16, as Telegram counts it: two bytes per unit."""
    return value.encode("utf-16-le", "surrogatepass")

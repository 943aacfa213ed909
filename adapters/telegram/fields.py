"""Fields of JSON from outside, each with its type and bounds. Whatever does not fit counts as absent."""

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
    """A whole number that an id can be. JSON's true is none."""
    return value if type(value) is int and abs(value) < _LARGEST else None


def seconds(value: object) -> float | None:
    """A duration that is not negative."""
    if type(value) not in (int, float) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < _LARGEST and math.isfinite(value) else None


def text(value: object, *, most: int) -> str:
    """At most `most` characters, without halves of characters, which no store takes."""
    if not isinstance(value, str):
        return ""
    return value[:most].encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def units(value: str) -> bytes:
    """The text as Telegram counts it: two bytes a unit."""
    return value.encode("utf-16-le", "surrogatepass")

"""Read fields of untrusted JSON, with types and bounds. A value that does not fit counts as absent; nothing
here raises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_LARGEST_INTEGER = 2**62
_LARGEST_AMOUNT = 2**53


def mapping(value: object) -> Mapping[str, Any]:
    """The object, or an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: object, *, most: int) -> list[Any]:
    """The first elements of an array, or none."""
    return value[:most] if isinstance(value, list) else []


def mappings(value: object, *, most: int = 20) -> list[Mapping[str, Any]]:
    """The objects among the first `most` elements of an array, or none."""
    return [one for one in items(value, most=most) if isinstance(one, dict)]


def integer(value: object) -> int | None:
    """An integer usable as an id. JSON's true is None."""
    return value if type(value) is int and abs(value) < _LARGEST_INTEGER else None


def amount(value: object) -> float | None:
    """A finite number of at least 0, such as a duration or a size. JSON's true is None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < _LARGEST_AMOUNT else None


def text(value: object, *, most: int) -> str:
    """At most `most` characters of a string, or none. Half of a surrogate pair becomes U+FFFD, because no
    store accepts it."""
    if not isinstance(value, str):
        return ""
    return value[:most].encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

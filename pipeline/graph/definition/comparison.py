"""Compare plain data without running code of other types: equality, order, membership, truth.

Lists and tuples with equal items are equal. Only values of an exact plain type are compared; any other raises
Mismatch before one of its methods could run.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

MAX_NESTING: Final = 64
"""Values nested deeper are not compared; plain data is far shallower (`frozen_json.MAX_DEPTH`)."""

NUMBERS: Final = frozenset({int, float, bool})
SEQUENCES: Final = frozenset({tuple, list})
MAPPINGS: Final = frozenset({dict, MappingProxyType})

_KINDS: Final[Mapping[type, str]] = {
    str: "text",
    int: "a number",
    float: "a number",
    bool: "a truth value",
    type(None): "nothing",
    tuple: "a list",
    list: "a list",
    dict: "a mapping",
    MappingProxyType: "a mapping",
}


class Mismatch(Exception):
    """Two values cannot be compared in this way; the text names their kinds."""


def kind_of(value: Any) -> str:
    """The kind of `value` as text for a message."""
    return _KINDS.get(type(value), "something that is not plain data")


def truth(value: Any) -> bool:
    """Whether `value` counts as true: not zero, not empty, not None."""
    if type(value) not in _KINDS:
        raise Mismatch(f"{kind_of(value)} is neither true nor false")
    return bool(value)


def equal(left: Any, right: Any, depth: int = 0, known: set[tuple[int, int]] | None = None) -> bool:
    """Whether both are the same data; 1, 1.0 and True are, as in Python. `known` holds the ids of the pairs
    found equal, so that a part shared by many places is compared once."""
    left_type, right_type = type(left), type(right)
    if left_type is str and right_type is str:
        return bool(left == right)
    if left_type in NUMBERS and right_type in NUMBERS:
        return bool(left == right)
    if left_type not in _KINDS or right_type not in _KINDS:
        raise Mismatch(f"{kind_of(left)} and {kind_of(right)} cannot be compared")
    if left is right:
        return True
    if depth >= MAX_NESTING:
        raise Mismatch("values nested so deep cannot be compared")
    known = set() if known is None else known
    pair = (id(left), id(right))
    if pair in known:
        return True
    found = False
    if left_type in SEQUENCES and right_type in SEQUENCES:
        found = len(left) == len(right) and all(
            equal(one, other, depth + 1, known) for one, other in zip(left, right, strict=True)
        )
    elif left_type in MAPPINGS and right_type in MAPPINGS:
        found = len(left) == len(right) and all(
            key in right and equal(value, right[key], depth + 1, known) for key, value in left.items()
        )
    if found:
        known.add(pair)
    return found


def less(left: Any, right: Any, depth: int = 0) -> bool:
    """Whether `left` comes before `right`: numbers, texts, and lists item by item."""
    left_type, right_type = type(left), type(right)
    if (left_type in NUMBERS and right_type in NUMBERS) or (left_type is str and right_type is str):
        return bool(left < right)
    if left_type in SEQUENCES and right_type in SEQUENCES:
        if depth >= MAX_NESTING:
            raise Mismatch("values nested so deep cannot be compared")
        for one, other in zip(left, right, strict=False):
            if not equal(one, other, depth + 1):
                return less(one, other, depth + 1)
        return len(left) < len(right)
    raise Mismatch(f"{kind_of(left)} and {kind_of(right)} have no order")


def at_most(left: Any, right: Any) -> bool:
    """Whether `left` comes before `right` or is the same data."""
    return less(left, right) or equal(left, right)


def contains(whole: Any, item: Any) -> bool:
    """Whether `item` is in `whole`: part of a text, an item of a list, a key of a mapping."""
    kind = type(whole)
    if kind in SEQUENCES:
        return any(equal(item, other) for other in whole)
    if kind in MAPPINGS:
        return type(item) is str and item in whole
    if kind is str and type(item) is str:
        return item in whole
    raise Mismatch(f"{kind_of(item)} cannot be in {kind_of(whole)}")

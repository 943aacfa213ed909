"""Plain JSON data for the state and for records, made immutable.

Mappings become read-only and lists become tuples, deeply, so that a node can change neither the state nor an
update that it has already returned. Only the exact types of JSON are plain: a subclass (an enum, a named
tuple, a defaultdict) would be read back from a record as another type.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from pipeline.domain.errors import GraphError

MAX_DEPTH: Final = 32
"""Nesting beyond this is refused; JSON readers and writers recurse."""
MAX_INT_BITS: Final = 13_000
"""Longer whole numbers are refused; JSON readers and writers stop at 4300 digits."""

_ATOMS: Final = frozenset({str, bool, type(None)})
_USUAL: Final = 1 << 63
"""Whole numbers below it have few digits."""


def freeze(value: Any, where: str = "the value") -> Any:
    """`value` as immutable plain data; the content of frozen values is unchanged.

    Raises GraphError, which names the place (`where` and the keys below it), for anything that is not JSON:
    other types, keys that are not strings, numbers that are not finite, and nesting over MAX_DEPTH.
    """
    try:
        return _freeze(value, 0)
    except _NotPlainError as problem:
        raise problem.at(where) from None


def freeze_update(update: Mapping[str, Any], where: str = "the update") -> dict[str, Any]:
    """As `freeze`, for a mapping of any type; the top level of the result is a new, mutable dict."""
    try:
        return _freeze_items(update, 1)
    except _NotPlainError as problem:
        raise problem.at(where) from None


def thaw(value: Any) -> Any:
    """A mutable copy of dicts and lists, as a JSON reader would return."""
    kind = type(value)
    if kind is MappingProxyType or kind is dict:
        return {key: thaw(item) for key, item in value.items()}
    if kind is tuple or kind is list:
        return [thaw(item) for item in value]
    return value


class _NotPlainError(Exception):
    """What is wrong; `keys` collects the path to it, innermost first, so that success builds no text."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.keys: list[str] = []

    def at(self, where: str) -> GraphError:
        place = ", ".join([where, *(f"key {key}" for key in reversed(self.keys))])
        return GraphError(f"{place}{',' if self.keys else ''} {self}")


def _freeze(value: Any, depth: int) -> Any:
    kind = type(value)
    if kind in _ATOMS:
        return value
    if kind is int:
        if value.bit_length() <= MAX_INT_BITS:
            return value
        raise _NotPlainError("must be plain data, and a number of so many digits is not")
    if kind is float:
        if math.isfinite(value):
            return value
        raise _NotPlainError(f"must be plain data, and {value} is not a JSON number")
    if kind is list or kind is tuple:
        return _freeze_list(value, depth + 1)
    if kind is dict or kind is MappingProxyType:
        return MappingProxyType(_freeze_items(value, depth + 1))
    raise _NotPlainError(f"must be plain data, and {kind.__name__} is not")


def _freeze_list(items: Sequence[Any], depth: int) -> tuple[Any, ...]:
    if depth > MAX_DEPTH:
        raise _NotPlainError(f"is nested deeper than {MAX_DEPTH} levels")
    return tuple([item if type(item) is str else _freeze(item, depth) for item in items])


def _freeze_items(items: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    if depth > MAX_DEPTH:
        raise _NotPlainError(f"is nested deeper than {MAX_DEPTH} levels")
    frozen = {}
    # Every update passes this loop: the usual types are tested here, and `_freeze` has the rest.
    for key, value in items.items():
        if type(key) is not str:
            raise _NotPlainError(f"has a key of the type {type(key).__name__}, and keys are strings")
        kind = type(value)
        if kind is str or value is None or kind is bool or (kind is int and -_USUAL < value < _USUAL):
            frozen[key] = value
            continue
        try:
            if kind is dict:
                frozen[key] = MappingProxyType(_freeze_items(value, depth + 1))
            elif kind is list:
                frozen[key] = _freeze_list(value, depth + 1)
            else:
                frozen[key] = _freeze(value, depth)
        except _NotPlainError as problem:
            problem.keys.append(key)
            raise
    return frozen

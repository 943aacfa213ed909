"""Plain data: what may stand in the state and in records, made immutable on the way in.

Mappings become read-only, lists become tuples, both all the way down, so that a node can neither change
the state behind the engine's back nor an update it has already returned.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from pipeline.domain.errors import GraphError

MAX_DEPTH: Final = 32
"""Nesting beyond this is refused; JSON readers and writers recurse."""

_SCALARS: Final = frozenset({str, int, bool, type(None)})


def freeze(value: Any, where: str = "the value", depth: int = 0) -> Any:
    """`value` as immutable plain data; frozen values pass through unchanged in content.

    Raises GraphError that names the place (`where`) of anything that is not JSON: other types, keys that
    are not strings, numbers that are not finite, and nesting over MAX_DEPTH.
    """
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind is float:
        if not math.isfinite(value):
            raise GraphError(f"{where} must be plain data, and {value} is not a JSON number")
        return value
    if depth >= MAX_DEPTH:
        raise GraphError(f"{where} is nested deeper than {MAX_DEPTH} levels")
    if kind is tuple or kind is list:
        return tuple([freeze(item, where, depth + 1) for item in value])
    if isinstance(value, Mapping):
        return MappingProxyType(freeze_update(value, where, depth))
    raise GraphError(f"{where} must be plain data, and {kind.__name__} is not")


def freeze_update(update: Mapping[str, Any], where: str = "the update", depth: int = 0) -> dict[str, Any]:
    """As `freeze`, for a mapping whose top level the caller keeps to itself."""
    frozen = {}
    for key, value in update.items():
        if type(key) is not str:
            raise GraphError(f"{where} has the key {key!r}, which is not a string")
        frozen[key] = value if type(value) in _SCALARS else freeze(value, f"{where}, key {key},", depth + 1)
    return frozen


def thaw(value: Any) -> Any:
    """A mutable copy, as a JSON reader would give it: dicts and lists."""
    if isinstance(value, Mapping):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [thaw(item) for item in value]
    return value

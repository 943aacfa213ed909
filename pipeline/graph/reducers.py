"""How updates of one key of the state combine: channels and their reducers.

The batching law holds for every reducer: folding two batches one after the other gives what folding
them as one batch gives. Branches and resumed runs rely on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from pipeline.domain.errors import GraphError


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()
"""The value of a key that nobody has written yet."""

Fold = Callable[[Any, Sequence[Any]], Any]
"""(current value or MISSING, one or more updates in order) -> new value; frozen plain data throughout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """A key's way of combining updates. Raises GraphError from `fold` for an update it cannot take."""

    name: str
    """For signatures and graph documents."""
    fold: Fold


def custom(name: str, combine: Callable[[Any, Any], Any], initial: Any = MISSING) -> Channel:
    """A channel that combines two values at a time; the first update stands alone without `initial`."""

    def fold(current: Any, updates: Sequence[Any]) -> Any:
        value = initial if current is MISSING else current
        for update in updates:
            value = update if value is MISSING else combine(value, update)
        return value

    return Channel(name=name, fold=fold)


def _append(current: Any, updates: Sequence[Any]) -> tuple[Any, ...]:
    items: list[Any] = [] if current is MISSING else list(current)
    for update in updates:
        if not isinstance(update, tuple):
            raise GraphError(f"an append channel takes a list of new items, not {type(update).__name__}")
        items.extend(update)
    return tuple(items)


def _merge(current: Any, updates: Sequence[Any]) -> Mapping[str, Any]:
    merged: dict[str, Any] = {} if current is MISSING else dict(current)
    for update in updates:
        if not isinstance(update, Mapping):
            raise GraphError(f"a merge channel takes a mapping, not {type(update).__name__}")
        merged.update(update)
    return MappingProxyType(merged)


append: Final = Channel(name="append", fold=_append)
"""Updates are lists of new items (seed 1: operator.add)."""
merge: Final = Channel(name="merge", fold=_merge)
"""Updates are mappings; later keys win (seed 1: _merge_dicts)."""
last: Final = Channel(name="last", fold=lambda _current, updates: updates[-1])
"""The newest update; several branches may write it without a conflict."""
first: Final = Channel(name="first", fold=lambda current, updates: updates[0] if current is MISSING else current)
"""The first value ever written stays."""

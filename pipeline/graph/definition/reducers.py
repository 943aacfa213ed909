"""How updates of one key of the state combine: channels and their reducers.

The batching law holds for every reducer: folding two batches one after the other gives the same as folding
them as one batch. Branches and resumed runs rely on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Any, Final

from pipeline.domain.errors import GraphError
from pipeline.domain.frozen import dataclass
from pipeline.graph.definition.frozen_json import freeze


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()
"""The value of a key that was never written."""

Fold = Callable[[Any, Sequence[Any]], Any]
"""(current value or MISSING, one or more updates in order) -> new value; frozen plain data throughout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """How the updates of a key combine. `fold` raises GraphError for an update that it refuses."""

    name: str
    """For signatures and graph documents."""
    fold: Fold


def custom(name: str, combine: Callable[[Any, Any], Any], initial: Any = MISSING) -> Channel:
    """A channel that combines two values at a time; without `initial`, the first update is the value.

    `combine(value, update)` must depend on nothing else. Its result is made immutable. Raises GraphError if
    the result or `initial` is not plain data; `fold` raises it for any exception of `combine`.
    """
    where = f"the value of channel {name}"
    start = MISSING if initial is MISSING else freeze(initial, where)

    def fold(current: Any, updates: Sequence[Any]) -> Any:
        value = start if current is MISSING else current
        for update in updates:
            value = update if value is MISSING else freeze(_combined(name, combine, value, update), where)
        return value

    return Channel(name=name, fold=fold)


def _combined(name: str, combine: Callable[[Any, Any], Any], value: Any, update: Any) -> Any:
    try:
        return combine(value, update)
    except Exception as error:
        raise GraphError(f"channel {name} cannot combine: {type(error).__name__}: {error}") from error


def _append(current: Any, updates: Sequence[Any]) -> tuple[Any, ...]:
    items = () if current is MISSING else current
    if type(items) is not tuple:
        raise GraphError(f"an append channel holds a list, and the key has {_kind(items)} already")
    for update in updates:
        if type(update) is not tuple:
            raise GraphError(f"an append channel takes a list of new items, not {_kind(update)}")
    # Copies the long part once, whatever the number of updates.
    return items + (updates[0] if len(updates) == 1 else tuple(chain.from_iterable(updates)))


def _merge(current: Any, updates: Sequence[Any]) -> Mapping[str, Any]:
    merged: dict[str, Any] = {}
    if current is not MISSING:
        if not _is_mapping(current):
            raise GraphError(f"a merge channel holds a mapping, and the key has {_kind(current)} already")
        merged.update(current)
    for update in updates:
        if not _is_mapping(update):
            raise GraphError(f"a merge channel takes a mapping, not {_kind(update)}")
        merged.update(update)
    return MappingProxyType(merged)


def _is_mapping(value: Any) -> bool:
    # The type of frozen data first: `isinstance` is slow for an abstract class.
    return type(value) is MappingProxyType or isinstance(value, Mapping)


append: Final = Channel(name="append", fold=_append)
"""Updates are lists of new items, and the first is added to nothing."""
merge: Final = Channel(name="merge", fold=_merge)
"""Updates are mappings, and the first is merged into nothing; later keys win."""
last: Final = Channel(name="last", fold=lambda _current, updates: updates[-1])
"""The newest update; several branches may write it without a conflict."""
first: Final = Channel(
    name="first", fold=lambda current, updates: updates[0] if current is MISSING else current
)
"""Keeps the first value ever written."""


def _kind(value: Any) -> str:
    return f"a value of the type {type(value).__name__}"

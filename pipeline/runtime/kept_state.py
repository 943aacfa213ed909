"""State of a graph that outlives a run: what a run begins with, and what it leaves.

`GraphStructure.keep` declares the keys. The host stores the values with the commit of the turn.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any, Final

from pipeline.domain.frozen import dataclass
from pipeline.graph.definition.elements import Lifetime
from pipeline.graph.definition.frozen_json import freeze, thaw
from pipeline.graph.definition.reducers import append, first, merge
from pipeline.graph.definition.structure import GraphStructure

_log = logging.getLogger(__name__)

MAX_CHARS: Final = 200_000
"""The longest state of one graph and lifetime, as JSON text."""
_MISSING: Final = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptValues:
    """The stored values of one graph and lifetime."""

    version: str
    """The version of the graph that wrote them."""
    values: Mapping[str, Any]
    """Plain data by key."""
    foreign: str = ""
    """The source of foreign text that they may contain, as `ChatMessage.foreign`; empty for none."""


Stored = Mapping[Lifetime, KeptValues]


def first_state(graph: GraphStructure[Any, Any], stored: Stored) -> dict[str, Any]:
    """The values with which a run begins. A key that an earlier version wrote under another name is found
    under that; keys that the graph does not declare any more are left out."""
    state = {}
    for key, kept in graph.keep.items():
        found = stored.get(kept.lives)
        value = _MISSING if found is None else _value(found, key, kept.was, graph.version)
        if value is not _MISSING:
            state[key] = freeze(value, f"the kept value of {key}")
    return state


def _value(found: KeptValues, key: str, was: tuple[str, ...], version: str) -> Any:
    names = (key, *was) if found.version != version else (key,)
    return next((found.values[name] for name in names if name in found.values), _MISSING)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChange:
    """What one run changed in the kept keys of its graph."""

    graph: GraphStructure[Any, Any]
    before: Mapping[str, Any]
    """The values with which it began."""
    after: Mapping[str, Any]
    """Its last state."""
    foreign: str = ""
    """The source of foreign text that the run has read, as `ChatMessage.foreign`."""

    @property
    def lifetimes(self) -> tuple[Lifetime, ...]:
        """Those whose values it changed."""
        changed = {
            kept.lives
            for key, kept in self.graph.keep.items()
            if self.before.get(key, _MISSING) != self.after.get(key, _MISSING)
        }
        return tuple(sorted(changed))

    def applied(self, lives: Lifetime, stored: KeptValues | None) -> KeptValues:
        """The stored values with this change. Another run may have changed them since this one began: its
        additions to lists and mappings stay, and of two values of another key the newer one counts."""
        current = {} if stored is None else first_state(self.graph, {lives: stored})
        keys = [key for key, kept in self.graph.keep.items() if kept.lives == lives]
        values = {key: current[key] for key in keys if key in current}
        for key in keys:
            before, after = self.before.get(key, _MISSING), self.after.get(key, _MISSING)
            if before == after:
                continue
            if after is _MISSING:
                values.pop(key, None)
            else:
                values[key] = self._combined(key, before, after, values.get(key, _MISSING))
        foreign = (stored.foreign if stored is not None else "") or self.foreign
        return self._within_limit(
            KeptValues(version=self.graph.version, values=values, foreign=foreign), stored
        )

    def _combined(self, key: str, before: Any, after: Any, current: Any) -> Any:
        channel = self.graph.folds.get(key)
        if current == before or current is _MISSING or channel is None:
            return after
        if channel.name == append.name:
            known = 0 if before is _MISSING else len(before)
            return (*current, *after[known:])
        if channel.name == merge.name:
            old = {} if before is _MISSING else before
            added = {name: value for name, value in after.items() if old.get(name, _MISSING) != value}
            return {**current, **added}
        return current if channel.name == first.name else after

    def _within_limit(self, kept: KeptValues, stored: KeptValues | None) -> KeptValues:
        """`kept`; above the limit, lists begin again with what this run added, or else nothing changes."""
        if _size(kept) <= MAX_CHARS:
            return kept
        shorter = dict(kept.values)
        for key in kept.values:
            channel, before = self.graph.folds.get(key), self.before.get(key, ())
            if channel is not None and channel.name == append.name:
                shorter[key] = kept.values[key][len(before) :]
        kept = KeptValues(version=kept.version, values=shorter, foreign=kept.foreign)
        if _size(kept) <= MAX_CHARS:
            _log.info("the beginning of a kept list is dropped", extra={"graph": self.graph.name})
            return kept
        _log.warning("the state is too large and is not kept", extra={"graph": self.graph.name})
        return stored or KeptValues(version=self.graph.version, values={})


def _size(kept: KeptValues) -> int:
    return len(json.dumps(thaw(dict(kept.values)), ensure_ascii=False))

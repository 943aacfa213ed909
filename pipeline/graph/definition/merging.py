"""Fold updates into a state: one after another, or those of several branches at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from pipeline.domain.errors import GraphError
from pipeline.graph.definition.elements import ConflictPolicy
from pipeline.graph.definition.reducers import MISSING, Channel, merge

ANSWERS: Final = "answers"
FAILURE: Final = "failure"
FANOUT: Final = "fanout"
RESERVED: Final = frozenset({ANSWERS, FAILURE, FANOUT})
"""Keys of the state that only the engine writes: answers to gates by node; and, as inputs of one execution of
a node, the failure that led to it and the results and errors of the branches that joined in it."""

_ENGINE_CHANNELS: Final[Mapping[str, Channel]] = {ANSWERS: merge}


CLEARED: Final = object()
"""In a branch's updates: the key was removed. Never recorded."""


class MemoryConflict(GraphError):
    """Several branches wrote a key that has no channel, and the policy is `error`."""

    code = "memory_conflict"


class BranchWrites(NamedTuple):
    """What one branch wrote, update by update."""

    name: str
    updates: Sequence[Mapping[str, Any]]


def channels_of(declared: Mapping[str, Channel]) -> Mapping[str, Channel]:
    """The declared channels and those of the engine."""
    return {**declared, **_ENGINE_CHANNELS}


def folded(
    values: Mapping[str, Any], channels: Mapping[str, Channel], update: Mapping[str, Any]
) -> dict[str, Any]:
    """`values` with one update folded in. Raises GraphError when a channel refuses its value."""
    merged = {**values, **update}
    for key in update:
        channel = channels.get(key)
        if channel is not None:
            merged[key] = channel.fold(values.get(key, MISSING), (update[key],))
    return merged


def folded_batch(
    values: Mapping[str, Any], channels: Mapping[str, Channel], updates: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """As `folded` for each of `updates` in order, with one fold per key (the batching law)."""
    batches: dict[str, list[Any]] = {}
    for update in updates:
        for key, value in update.items():
            batches.setdefault(key, []).append(value)
    merged = dict(values)
    for key, batch in batches.items():
        remaining = _since_cleared(batch)
        if len(remaining) < len(batch):
            merged.pop(key, None)
        if remaining:
            channel = channels.get(key)
            current = merged.get(key, MISSING)
            merged[key] = remaining[-1] if channel is None else channel.fold(current, remaining)
    return merged


def _since_cleared(batch: list[Any]) -> list[Any]:
    """The updates of a key since it was last cleared."""
    for at in range(len(batch) - 1, -1, -1):
        if batch[at] is CLEARED:
            return batch[at + 1 :]
    return batch


def winning_updates(
    branches: Sequence[BranchWrites], channels: Mapping[str, Channel], policy: ConflictPolicy
) -> list[Mapping[str, Any]]:
    """The updates of all branches, in the order in which they finished, without those that lost a conflict.

    Only keys without a channel can conflict: a channel says how several writes combine.
    Under the policy `error`, raises MemoryConflict, which names the key and the branches.
    """
    winners: list[Mapping[str, Any]] = []
    owners: dict[str, str] = {}
    for branch in branches:
        plain_keys = {key for update in branch.updates for key in update if key not in channels}
        taken = plain_keys & owners.keys()
        if taken and policy == "error":
            key = min(taken)
            raise MemoryConflict(f"branches {owners[key]} and {branch.name} both wrote {key}")
        owners.update(dict.fromkeys(plain_keys - taken, branch.name))
        if taken and policy == "first_wins":
            winners += [_without(update, taken) for update in branch.updates]
        else:
            winners += branch.updates
    return winners


def _without(update: Mapping[str, Any], keys: set[str]) -> Mapping[str, Any]:
    return {key: value for key, value in update.items() if key not in keys}

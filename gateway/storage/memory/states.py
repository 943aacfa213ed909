"""Kept states in a dictionary."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gateway.storage.json_bodies import decode_body, encode_body
from gateway.storage.states import KeptState, StateChanged, StateWrite


class MemoryStates:
    """A part of `MemoryStore`. `require_open` raises StorageError if the store is closed."""

    def __init__(self, require_open: Callable[[], None]) -> None:
        self._require_open = require_open
        self._states: dict[tuple[str, str], tuple[int, str]] = {}
        """By owner and graph: revision and body."""

    async def read(self, owner: str, graph: str) -> KeptState | None:
        self._require_open()
        known = self._states.get((owner, graph))
        if known is None:
            return None
        return KeptState(owner=owner, graph=graph, revision=known[0], body=decode_body(known[1]))

    async def forget(self, owner: str) -> int:
        self._require_open()
        owned = [key for key in self._states if key[0] == owner]
        for key in owned:
            del self._states[key]
        return len(owned)

    def drop_graph(self, graph: str) -> None:
        """Delete the states of a graph, of every owner."""
        for key in [key for key in self._states if key[1] == graph]:
            del self._states[key]

    def check(self, writes: Sequence[StateWrite]) -> list[tuple[StateWrite, str]]:
        """The writes with their encoded bodies. Raises StateChanged and StorageError."""
        for write in writes:
            if self._states.get((write.owner, write.graph), (0, ""))[0] != write.revision:
                raise StateChanged(f"the state of {write.graph} has changed since it was read")
        return [(write, encode_body(write.body)) for write in writes]

    def put(self, writes: Sequence[tuple[StateWrite, str]]) -> None:
        """Store checked writes."""
        for write, body in writes:
            self._states[(write.owner, write.graph)] = (write.revision + 1, body)

    def copy(self, source: str, target: str) -> None:
        """Copy every state of the owner `source` to `target`, which has none."""
        owned = {graph: kept for (owner, graph), kept in self._states.items() if owner == source}
        for graph, kept in owned.items():
            self._states[target, graph] = kept

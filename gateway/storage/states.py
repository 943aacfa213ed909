"""Port for the state of graphs that outlives a run. A part of `Store`.

A turn's commit writes it (`TurnCommit.states`), so it changes with the answer or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from pipeline.domain.errors import StorageError
from pipeline.domain.frozen import dataclass


class StateChanged(StorageError):
    """Another turn has written the state since it was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptState:
    """One owner's state of one graph."""

    owner: str
    """A session or a person."""
    graph: str
    """The graph's name."""
    revision: int
    """Grows with every write."""
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateWrite:
    """A new state, as part of a turn's commit."""

    owner: str
    graph: str
    revision: int
    """That of the state it was made from; 0 for none. With another one stored, the commit is refused."""
    body: Mapping[str, Any]


class StateBook(Protocol):
    """The kept states."""

    async def read(self, owner: str, graph: str) -> KeptState | None:
        """The state, None if there is none. Raises StorageError."""
        ...

    async def forget(self, owner: str) -> int:
        """Delete every state of an owner; how many."""
        ...

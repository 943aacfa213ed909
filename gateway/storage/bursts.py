"""Port for entries that the turn of an earlier entry answers too. A part of `Store`.

The record is written before the turn works on such an entry, so a restart finds which messages a turn covers.
The commit of the turn finishes all of them (`TurnCommit.also`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from pipeline.domain.frozen import dataclass

if TYPE_CHECKING:
    # The store's port has this one as a part, so an import at run time would be circular.
    from gateway.storage.ports import Lease


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedToo:
    """An entry that the commit of an earlier entry's turn finishes."""

    seq: int
    body: Mapping[str, Any] | None = None
    """Replaces the entry's body if that must be forgotten; None keeps it."""


class BurstBook(Protocol):
    """Which entries are answered together."""

    async def join(self, lease: Lease, turn: int, seqs: Sequence[int], *, steered: bool = False) -> None:
        """Record durably that the turn of the entry with the seq `turn` answers the entries `seqs` too.
        `steered`: its run was in progress when they joined it. An entry that has joined the turn before is
        not changed.

        Raises FenceLost; and AlreadyDone, with nothing written, if one of them is finished, is not a later
        entry of the thread, or has joined another turn.
        """
        ...

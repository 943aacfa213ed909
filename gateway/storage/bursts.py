"""Entries that are answered together: port for what a turn covers, and a part of `TurnCommit`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from gateway.storage.lease import Lease
from pipeline.domain.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedToo:
    """An entry that the commit of an earlier entry's turn finishes."""

    seq: int
    body: Mapping[str, Any] | None = None
    """Replaces the entry's body if that must be forgotten; None keeps it."""


class BurstBook(Protocol):
    """Which entries the turn of an earlier entry answers too. A restart finds what a turn covers."""

    async def join(self, lease: Lease, turn: int, seqs: Sequence[int], *, steered: bool = False) -> None:
        """Record durably that the turn of the entry with the seq `turn` answers the entries `seqs` too.
        `steered`: its run was in progress when they joined it. An entry that has joined the turn before is
        not changed.

        Raises FenceLost; and AlreadyDone, with nothing written, if one of them is finished, is not a later
        entry of the thread, or has joined another turn.
        """
        ...

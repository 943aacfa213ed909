"""Entries that are answered together, in the rows of the inbox."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gateway.storage.memory.rows import ThreadRow
from gateway.storage.ports import Lease
from pipeline.domain.errors import AlreadyDone


class MemoryBursts:
    """A part of `MemoryStore`, which passes what gives a thread's row after a check of the fence."""

    def __init__(self, fenced: Callable[[Lease], ThreadRow]) -> None:
        self._fenced = fenced

    async def join(self, lease: Lease, turn: int, seqs: Sequence[int], *, steered: bool = False) -> None:
        unfinished = self._fenced(lease).unfinished
        if turn not in unfinished:
            raise AlreadyDone(f"inbox entry {turn} has no turn that others can join")
        rows = [unfinished.get(seq) for seq in seqs]
        for seq, row in zip(seqs, rows, strict=True):
            if row is None or seq <= turn or row.joined not in (0, turn):
                raise AlreadyDone(f"inbox entry {seq} cannot join the turn of entry {turn}")
        for row in rows:
            if row is not None and not row.joined:
                row.joined, row.steered = turn, steered

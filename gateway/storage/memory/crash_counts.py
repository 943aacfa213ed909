"""Process deaths, in a dictionary."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from gateway.storage.crash_counts import Deaths
from gateway.storage.memory.rows import EntryRow


class MemoryDeaths:
    """A part of `MemoryStore`, which passes its entries and its check that the store is open."""

    def __init__(self, require_open: Callable[[], None], entries: Mapping[int, EntryRow]) -> None:
        self._require_open = require_open
        self._entries = entries
        self._known: dict[int, Deaths] = {}

    async def note(self) -> Mapping[int, Deaths]:
        self._require_open()
        self.count(lambda _thread: True)
        return dict(self._known)

    async def of(self, seqs: Collection[int]) -> Mapping[int, Deaths]:
        self._require_open()
        return {seq: self._known[seq] for seq in seqs if seq in self._known}

    def count(self, had: Callable[[str], bool]) -> None:
        """Count the death of the process that had these threads, by their keys."""
        unfinished = {seq: row for seq, row in self._entries.items() if row.outcome is None}
        self._known = {seq: deaths for seq, deaths in self._known.items() if seq in unfinished}
        ends = {
            seq: row.attempts - row.excused
            for seq, row in unfinished.items()
            if had(row.thread) and row.attempts - row.excused > self._known.get(seq, Deaths()).total
        }
        for seq, total in ends.items():
            alone = self._known.get(seq, Deaths()).alone + (len(ends) == 1)
            self._known[seq] = Deaths(total=total, alone=alone)

"""The messages that were finished last, in a dictionary."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gateway.storage.finished import LOOKED_THROUGH
from gateway.storage.memory.rows import EntryRow
from pipeline.domain.messages import InboundMessage


class MemoryFinished:
    """A part of `MemoryStore`, which passes its entries and its check that the store is open."""

    def __init__(self, require_open: Callable[[], None], entries: Mapping[int, EntryRow]) -> None:
        self._require_open = require_open
        self._entries = entries

    async def newest(self, *, within_s: float) -> tuple[InboundMessage, ...]:
        self._require_open()
        rows = [self._entries[seq] for seq in sorted(self._entries, reverse=True)[:LOOKED_THROUGH]]
        finished = [row for row in rows if row.outcome is not None]
        after = max((row.finished_at for row in finished), default=0.0) - within_s
        kept = [row.view().item for row in finished if row.finished_at >= after and row.outcome != "declined"]
        return tuple([item for item in kept if isinstance(item, InboundMessage)])

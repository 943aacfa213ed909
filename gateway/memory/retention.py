"""Delete what was not mentioned for long from the memory."""

from __future__ import annotations

import logging

from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError
from pipeline.memory.ports import MemoryBook

_log = logging.getLogger(__name__)

_DAY_S = 86_400.0


class MemoryRetention:
    """Deletes facts `keep_days` after they were last referenced, and arcs after they ended; 0: none."""

    def __init__(self, book: MemoryBook, clock: Clock, *, keep_days: int) -> None:
        self._book = book
        self._clock = clock
        self._keep_days = keep_days

    async def remove_old(self) -> None:
        """Delete what is old now and once a day, until cancelled."""
        while self._keep_days:
            try:
                removed = await self._book.prune(before=self._clock.now() - self._keep_days * _DAY_S)
            except StorageError as error:
                _log.warning("old memories could not be removed", extra={"reason": str(error)})
            else:
                if removed:
                    _log.info("old memories removed", extra={"memories": removed})
            await self._clock.sleep(_DAY_S)

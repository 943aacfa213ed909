"""Stop running turns whose entries another process has cancelled, where the signal of that was lost."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import NoReturn

from gateway.storage.changes import ChangeBook
from gateway.storage.copies import LOOK_S
from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError

_log = logging.getLogger(__name__)


class StoppedTurns:
    """Looks each second whether the entries of running turns are cancelled: one read for all. `running`
    returns their threads by seq, `stop` stops the turn of a thread's entry."""

    def __init__(
        self,
        changes: ChangeBook,
        clock: Clock,
        *,
        running: Callable[[], Mapping[int, str]],
        stop: Callable[[str, int], None],
    ) -> None:
        self._changes = changes
        self._clock = clock
        self._running = running
        self._stop = stop

    async def run(self) -> NoReturn:
        """Look, for ever."""
        while True:
            await self._clock.sleep(LOOK_S)
            running = self._running()
            if not running:
                continue
            try:
                stopped = await self._changes.stopped(running.keys())
            except StorageError as error:
                _log.warning("stopped turns are not read", extra={"reason": str(error)})
                continue
            for seq in sorted(stopped):
                self._stop(running[seq], seq)

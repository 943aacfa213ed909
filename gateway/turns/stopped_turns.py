"""Stop running turns whose entries another process has cancelled, or over which somebody speaks there, where
the signal of that was lost."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import NoReturn

from gateway.storage.changes import ChangeBook
from gateway.storage.copies import LOOK_S
from gateway.turns.live_thread import LiveThread
from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError

_log = logging.getLogger(__name__)


class StoppedTurns:
    """Looks each second whether running turns are to be stopped: one read for all. `threads` are those that a
    worker runs."""

    def __init__(self, changes: ChangeBook, clock: Clock, threads: Mapping[str, LiveThread]) -> None:
        self._changes = changes
        self._clock = clock
        self._threads = threads

    async def run(self) -> NoReturn:
        """Look, for ever."""
        while True:
            await self._clock.sleep(LOOK_S)
            running = {live.running_seq: live for live in self._threads.values() if live.runs}
            if not running:
                continue
            try:
                stopped = await self._changes.stopped({seq: live.began_at for seq, live in running.items()})
            except StorageError as error:
                _log.warning("stopped turns are not read", extra={"reason": str(error)})
                continue
            for seq in stopped:
                # The read took a moment: another turn of the thread may run by now.
                live = running[seq]
                if live.running_seq == seq and live.stop is not None:
                    live.stop.request()

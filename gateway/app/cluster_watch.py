"""Read which processes share the store and of which release they are, for Prometheus and /readyz, and finish
an upgrade of the store when the last process of the older release has ended."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import Final, NoReturn

from gateway.runtime.cluster_figures import ClusterFigures
from gateway.storage.formats import FormatBook, StoreFormat
from gateway.storage.owners import ListedOwner, OwnerBook
from gateway.storage.shared_leases import SharedCoordinator
from gateway.storage.upgrade_words import upgrade_words
from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError

_log = logging.getLogger(__name__)

READ_EVERY_S: Final = 5.0
"""Seconds between two reads, which are as old as that at a scrape."""
_FULL: Final = "workers full: each runs as many turns as it may, and messages wait; add workers"


class ClusterWatch:
    """What this process knows of the others. Run `run` as a supervised task."""

    def __init__(
        self,
        owners: OwnerBook,
        formats: FormatBook,
        coordinator: SharedCoordinator,
        clock: Clock,
        room: Callable[[], int | None] = lambda: None,
    ) -> None:
        """`room` says how many more turns all workers could run."""
        self._room = room
        self._owners = owners
        self._formats = formats
        self._coordinator = coordinator
        self._clock = clock
        self._alive: tuple[ListedOwner, ...] = ()
        self._unowned: int | None = None
        self._format: StoreFormat | None = None

    @property
    def usable(self) -> bool:
        """Whether this program understands the store, which a newer one may have changed."""
        return self._format is None or self._format.is_usable

    def lines(self) -> tuple[str, ...]:
        """Lines for /readyz on an upgrade that is under way, and on workers without room."""
        words = "" if self._format is None else upgrade_words(self._alive, self._format)
        upgrade = (f"upgrade: {words}",) if words else ()
        return (*upgrade, *((_FULL,) if self._room() == 0 else ()))

    def figures(self) -> ClusterFigures:
        """Those of the last read, and the age of this process's own report now."""
        reported = self._coordinator.reported_at
        age_s = None if reported is None else max(0.0, self._clock.monotonic() - reported)
        return ClusterFigures(
            owners=Counter(one.owner.role for one in self._alive),
            versions=Counter((one.owner.version, one.formats.newest) for one in self._alive),
            room=self._room(),
            unowned=self._unowned,
            beat_age_s=age_s,
            format=None if self._format is None else self._format.version,
            format_waiting=None if self._format is None else self._format.waiting,
        )

    async def run(self) -> NoReturn:
        """Read, for ever."""
        while True:
            try:
                await self._read()
            except StorageError as error:
                _log.warning("the processes are not counted", extra={"reason": str(error)})
                self._alive = ()
                self._unowned = None
            await self._clock.sleep(READ_EVERY_S)

    async def _read(self) -> None:
        found = await self._formats.current()
        if found.waiting:
            before, found = found, await self._formats.upgrade()
            if found.version > before.version:
                _log.info("the data format is raised", extra={"to": found.version, "of": found.newest})
        self._format = found
        listed = await self._owners.listed(now=self._clock.now())
        unowned = await self._coordinator.unowned()
        self._alive = tuple(one for one in listed if one.left_s > 0)
        self._unowned = unowned

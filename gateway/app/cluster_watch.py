"""Read for Prometheus which processes share the store."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Final, NoReturn

from gateway.runtime.cluster_figures import ClusterFigures
from gateway.storage.owners import OwnerBook
from gateway.storage.shared_leases import SharedCoordinator
from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError

_log = logging.getLogger(__name__)

READ_EVERY_S: Final = 5.0
"""Seconds between two reads, which are as old as that at a scrape."""


class ClusterWatch:
    """What this process knows of the others. Run `run` as a supervised task."""

    def __init__(self, owners: OwnerBook, coordinator: SharedCoordinator, clock: Clock) -> None:
        self._owners = owners
        self._coordinator = coordinator
        self._clock = clock
        self._alive: Counter[str] = Counter()
        self._unowned: int | None = None

    def figures(self) -> ClusterFigures:
        """Those of the last read, and the age of this process's own report now."""
        reported = self._coordinator.reported_at
        age_s = None if reported is None else max(0.0, self._clock.monotonic() - reported)
        return ClusterFigures(owners=dict(self._alive), unowned=self._unowned, beat_age_s=age_s)

    async def run(self) -> NoReturn:
        """Read, for ever."""
        while True:
            try:
                await self._read()
            except StorageError as error:
                _log.warning("the processes are not counted", extra={"reason": str(error)})
                self._alive.clear()
                self._unowned = None
            await self._clock.sleep(READ_EVERY_S)

    async def _read(self) -> None:
        listed = await self._owners.listed(now=self._clock.now())
        unowned = await self._coordinator.unowned()
        self._alive = Counter(one.owner.role for one in listed if one.left_s > 0)
        self._unowned = unowned

"""Monitor whether the store accepts writes and is undamaged; /readyz reports it. Repairs nothing."""

from __future__ import annotations

import logging

from gateway.storage.ports import Store
from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError

_log = logging.getLogger(__name__)
CHECK_EVERY_S = 5.0
"""Interval of write checks while writes fail."""
QUIET_CHECKS = 12
"""While writes work, one in this many checks is made: a disk can fill up without messages."""


DAMAGE_CHECK_EVERY_S = 24 * 3600.0


class StoreHealth:
    """The state of the store. Callers report their writes with `note`, `watch` writes a probe when there are
    none, and `watch_for_damage` reads the whole file."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self.writable = True
        self.damage: tuple[str, ...] = ()
        """The findings of the last check, one line each."""

    def note(self, *, writable: bool) -> None:
        """Record whether a write succeeded."""
        if writable == self.writable:
            return
        self.writable = writable
        if writable:
            _log.info("the store takes writes again")
        else:
            _log.error("the store does not take writes; new messages are refused until it does")

    async def watch(self) -> None:
        """Check until cancelled."""
        quiet = 0
        while True:
            await self._clock.sleep(CHECK_EVERY_S)
            quiet = quiet + 1 if self.writable else 0
            if self.writable and quiet < QUIET_CHECKS:
                continue
            quiet = 0
            try:
                await self._store.check_writable()
            except StorageError:
                self.note(writable=False)
            else:
                self.note(writable=True)

    async def watch_for_damage(self) -> None:
        """Check the store for damage now and once a day, until cancelled."""
        while True:
            try:
                found = await self._store.find_damage()
            except StorageError as error:
                _log.warning("the store could not be checked for damage", extra={"reason": str(error)})
            else:
                self._note_damage(found)
            await self._clock.sleep(DAMAGE_CHECK_EVERY_S)

    def _note_damage(self, found: tuple[str, ...]) -> None:
        if found and not self.damage:
            _log.error("the store is damaged; stop the gateway and restore a backup", extra={"found": found})
        elif self.damage and not found:
            _log.info("the store is whole again")
        self.damage = found

"""Whether the store takes writes and is whole: what /readyz says of a full disk or a damaged file.

It mends nothing.
"""

from __future__ import annotations

import logging

from gateway.storage.ports import Store
from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError

_log = logging.getLogger(__name__)
CHECK_EVERY_S = 5.0
"""While writes fail."""
QUIET_CHECKS = 12
"""While they do not, one in so many of those checks is made: a disk fills up without messages too."""


DAMAGE_CHECK_EVERY_S = 24 * 3600.0


class StoreHealth:
    """Told by whoever writes; while nobody does, `watch` writes a probe. `watch_for_damage` reads it all."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self.writable = True
        self.damage: tuple[str, ...] = ()
        """What the last look found, a line each."""

    def note(self, *, writable: bool) -> None:
        """A write has failed, or has not."""
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
        """Look through the store now and once a day, until cancelled."""
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

"""In which time zone people live: what somebody named for themselves, or else what is configured."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Protocol

from pipeline.domain.clock import Clock
from pipeline.runtime.ports import Workspace
from pipeline.runtime.scope import TurnScope
from pipeline.tools.moments import zone_of
from pipeline.tools.tool import ToolFailed


class ZoneBook(Workspace, Protocol):
    """The workspace, which also keeps the zone that a person names."""

    async def keep_time_zone(self, scope: TurnScope, name: str) -> None:
        """Keep the zone for the turn's owner. Raises ToolFailed where the disk does not let us."""
        ...


class TimeZones:
    """The zones of turns' owners; `default` is an IANA name that there is."""

    def __init__(self, book: ZoneBook, clock: Clock, default: str = "UTC") -> None:
        self._book = book
        self._clock = clock
        self._default = default

    async def now(self, scope: TurnScope, zone: str = "") -> datetime:
        """The time in `zone`, an IANA name or a city, or else in the owner's. Raises ToolFailed."""
        named = zone or self._book.texts(scope).time_zone
        try:
            # A zone, or the list of cities, that was not asked for before is read from the disk.
            found = await asyncio.to_thread(zone_of, named or self._default)
        except ToolFailed:
            if zone:
                raise
            found = await asyncio.to_thread(zone_of, self._default)
        return datetime.fromtimestamp(self._clock.now(), found)

    async def keep(self, scope: TurnScope, zone: str) -> datetime:
        """Let `zone` be the owner's from now on; the time there. Raises ToolFailed for no zone."""
        found = await asyncio.to_thread(zone_of, zone)
        await self._book.keep_time_zone(scope, found.key)
        return datetime.fromtimestamp(self._clock.now(), found)

"""The time zones of people: the one that a person has named, or else the configured one."""

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
    """The workspace, which also stores the zone that a person names."""

    async def keep_time_zone(self, scope: TurnScope, name: str) -> None:
        """Store the zone of the turn's owner. Raises ToolFailed for an error of the disk."""
        ...


class TimeZones:
    """The time zones of turns' owners; `default` is a valid IANA name."""

    def __init__(self, book: ZoneBook, clock: Clock, default: str = "UTC") -> None:
        self._book = book
        self._clock = clock
        self._default = default

    async def now(self, scope: TurnScope, zone: str = "") -> datetime:
        """The time in `zone`, an IANA name or a city, or else in the owner's zone. Raises ToolFailed."""
        named = zone or self._book.texts(scope).time_zone
        try:
            # In a thread: a zone, or the list of cities, is read from the disk at its first use.
            found = await asyncio.to_thread(zone_of, named or self._default)
        except ToolFailed:
            if zone:
                raise
            found = await asyncio.to_thread(zone_of, self._default)
        return datetime.fromtimestamp(self._clock.now(), found)

    async def keep(self, scope: TurnScope, zone: str) -> datetime:
        """Store `zone` as the owner's. Returns the time there. Raises ToolFailed for an unknown zone."""
        found = await asyncio.to_thread(zone_of, zone)
        await self._book.keep_time_zone(scope, found.key)
        return datetime.fromtimestamp(self._clock.now(), found)

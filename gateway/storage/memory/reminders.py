"""Reminders in a dictionary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gateway.storage.json_bodies import decode_body, encode_body, storable_text
from gateway.storage.reminders import Reminder


class MemoryReminders:
    """A part of `MemoryStore`. `require_open` raises StorageError if the store is closed."""

    def __init__(self, require_open: Callable[[], None]) -> None:
        self._require_open = require_open
        self._reminders: dict[str, Reminder] = {}

    async def add(self, reminder: Reminder, *, limit: int) -> bool:
        self._require_open()
        if reminder.id in self._reminders:
            return True
        if len(await self.of(reminder.owner)) >= limit:
            return False
        body = decode_body(encode_body(reminder.body))
        self._reminders[reminder.id] = replace(reminder, text=storable_text(reminder.text), body=body)
        return True

    async def of(self, owner: str) -> tuple[Reminder, ...]:
        self._require_open()
        return tuple(one for one in self._soonest_first() if one.owner == owner)

    async def remove(self, owner: str, reminder_id: str) -> bool:
        self._require_open()
        known = self._reminders.get(reminder_id)
        if known is None or known.owner != owner:
            return False
        del self._reminders[reminder_id]
        return True

    async def due(self, *, now: float, limit: int) -> tuple[Reminder, ...]:
        self._require_open()
        return tuple(one for one in self._soonest_first() if one.due <= now)[:limit]

    async def next_due(self) -> float | None:
        self._require_open()
        return min((one.due for one in self._reminders.values()), default=None)

    def _soonest_first(self) -> list[Reminder]:
        return sorted(self._reminders.values(), key=lambda one: (one.due, one.id))

"""Port for reminders. A part of `Store`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Protocol

from pipeline.domain.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Reminder:
    """A text to post in a thread at a given time."""

    id: str
    thread: str
    owner: str
    """See `TurnScope.owner`: only the owner sees or cancels it."""
    due: float
    """Unix time."""
    text: str
    body: Mapping[str, Any] = field(default_factory=dict)
    """Further data that posting it needs."""


class ReminderBook(Protocol):
    """Reminders that are not due yet, or not posted yet."""

    async def add(self, reminder: Reminder, *, limit: int) -> bool:
        """Store it durably; False if its owner has `limit` already. An existing one is not changed."""
        ...

    async def of(self, owner: str) -> tuple[Reminder, ...]:
        """The owner's reminders, soonest first."""
        ...

    async def remove(self, owner: str, reminder_id: str) -> bool:
        """Delete one of the owner's reminders; False if there is no such one."""
        ...

    async def due(self, *, now: float, limit: int) -> tuple[Reminder, ...]:
        """The reminders that are due at `now`, soonest first."""
        ...

    async def next_due(self) -> float | None:
        """The due time of the next reminder, as Unix time; None without any."""
        ...

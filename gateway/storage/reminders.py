"""What the store keeps of reminders: what, for whom, and when. A part of `Store`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Reminder:
    """Something to be said in a thread at a time."""

    id: str
    thread: str
    owner: str
    """See `TurnScope.owner`: nobody else sees or cancels it."""
    due: float
    """Unix time."""
    text: str
    body: Mapping[str, Any] = field(default_factory=dict)
    """What else saying it needs."""


class ReminderBook(Protocol):
    """Reminders that are not due yet, or not handed over."""

    async def add(self, reminder: Reminder, *, limit: int) -> bool:
        """Keep it, durably; False where its owner has `limit` already. One that is there is left as it is."""
        ...

    async def of(self, owner: str) -> tuple[Reminder, ...]:
        """The owner's, soonest first."""
        ...

    async def remove(self, owner: str, reminder_id: str) -> bool:
        """Take back one of the owner's; False where there is none."""
        ...

    async def due(self, *, now: float, limit: int) -> tuple[Reminder, ...]:
        """Those that are due at `now`, soonest first."""
        ...

    async def next_due(self) -> float | None:
        """When the soonest is due, as Unix time; None without any."""
        ...

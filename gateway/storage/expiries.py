"""Port for questions whose time to answer is over. A part of `Store`."""

from __future__ import annotations

from typing import Literal, Protocol

InteractionKind = Literal["gate", "tool", "command"]
"""`gate`: a paused run waits for the answer; `tool`: a running turn does; `command`: nothing waits, and the
answer is the argument of a session command."""


class ExpiryBook(Protocol):
    """Unanswered interactions, by their expiry."""

    async def due(self, kind: InteractionKind, *, now: float, limit: int) -> tuple[str, ...]:
        """Ids of those of `kind` that have expired at `now` and are not closed, soonest first."""
        ...

    async def next_due(self, kind: InteractionKind) -> float | None:
        """When the soonest of `kind` expires, as Unix time; None without any."""
        ...

    async def close(self, interaction_id: str, *, at: float) -> bool:
        """Resolve it with EXPIRED: every later answer is `expired`. False where it is answered or unknown."""
        ...

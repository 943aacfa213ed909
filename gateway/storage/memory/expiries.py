"""Expired questions among the interactions of a `MemoryStore`."""

from __future__ import annotations

from collections.abc import Callable

from gateway.storage.expiries import InteractionKind
from gateway.storage.memory.rows import InteractionRow
from pipeline.domain.events import EXPIRED


class MemoryExpiries:
    """A part of `MemoryStore`, which passes its rows and its check that the store is open."""

    def __init__(self, require_open: Callable[[], None], rows: dict[str, InteractionRow]) -> None:
        self._require_open = require_open
        self._rows = rows

    async def due(self, kind: InteractionKind, *, now: float, limit: int) -> tuple[str, ...]:
        over = [row.interaction for row in self._open(kind) if row.interaction.expires_at <= now]
        over.sort(key=lambda one: one.expires_at)
        return tuple(one.id for one in over[:limit])

    async def next_due(self, kind: InteractionKind) -> float | None:
        return min((row.interaction.expires_at for row in self._open(kind)), default=None)

    async def close(self, interaction_id: str, *, at: float) -> bool:  # noqa: ARG002 - no row holds the time
        self._require_open()
        row = self._rows.get(interaction_id)
        if row is None or row.choice is not None:
            return False
        row.choice = EXPIRED
        return True

    def _open(self, kind: InteractionKind) -> list[InteractionRow]:
        self._require_open()
        return [row for row in self._rows.values() if row.interaction.kind == kind and row.choice is None]

"""SQL on expired questions, and the part of the store that runs it in its threads."""

from __future__ import annotations

from collections.abc import Callable

from gateway.storage.expiries import InteractionKind
from gateway.storage.sqlite.worker_thread import DatabaseThread
from pipeline.domain.events import EXPIRED

# The index is given, because SQLite has no statistics and would read every question ever asked.
_DUE = """
    SELECT id FROM interactions INDEXED BY interactions_pending
    WHERE answered_at IS NULL AND kind = ? AND expires_at <= ?
    ORDER BY expires_at, n LIMIT ?"""
_NEXT = """
    SELECT min(expires_at) FROM interactions INDEXED BY interactions_pending
    WHERE answered_at IS NULL AND kind = ?"""
_CLOSE = "UPDATE interactions SET choice = ?, answered_at = ? WHERE id = ? AND answered_at IS NULL"


class SqliteExpiries:
    """Expired questions in one SQLite file: a part of `SqliteStore`."""

    def __init__(self, writer: Callable[[], DatabaseThread], reader: Callable[[], DatabaseThread]) -> None:
        # Fetched at each call, because a reopened store has new threads.
        self._writer = writer
        self._reader = reader

    async def due(self, kind: InteractionKind, *, now: float, limit: int) -> tuple[str, ...]:
        return await self._reader().submit(
            lambda db: tuple(identity for (identity,) in db.execute(_DUE, (kind, now, limit)))
        )

    async def next_due(self, kind: InteractionKind) -> float | None:
        soonest: float | None = await self._reader().submit(
            lambda db: db.execute(_NEXT, (kind,)).fetchone()[0]
        )
        return soonest

    async def close(self, interaction_id: str, *, at: float) -> bool:
        values = (EXPIRED, at, interaction_id)
        return await self._writer().submit(lambda db: db.execute(_CLOSE, values).rowcount > 0)

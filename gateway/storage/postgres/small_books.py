"""The books of the core with a few statements each: kept states, expired questions, joined entries."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.storage.expiries import InteractionKind
from gateway.storage.json_bodies import decode_body
from gateway.storage.ports import Lease
from gateway.storage.postgres import operations
from gateway.storage.postgres.database import Database
from gateway.storage.postgres.statements import changed
from gateway.storage.states import KeptState
from pipeline.domain.events import EXPIRED

_READ = "SELECT revision, body FROM states WHERE owner = $1 AND graph = $2"
_FORGET = "DELETE FROM states WHERE owner = $1"
_DUE = """
    SELECT id FROM interactions WHERE answered_at IS NULL AND kind = $1 AND expires_at <= $2
    ORDER BY expires_at, n LIMIT $3"""
_NEXT = "SELECT min(expires_at) FROM interactions WHERE answered_at IS NULL AND kind = $1"
_CLOSE = "UPDATE interactions SET choice = $1, answered_at = $2 WHERE id = $3 AND answered_at IS NULL"


class PostgresStates:
    """Kept states in a Postgres database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self, owner: str, graph: str) -> KeptState | None:
        rows = await self._database.fetch(_READ, owner, graph)
        if not rows:
            return None
        return KeptState(owner=owner, graph=graph, revision=rows[0][0], body=decode_body(rows[0][1]))

    async def forget(self, owner: str) -> int:
        return changed(await self._database.write(lambda db: db.execute(_FORGET, owner)))


class PostgresExpiries:
    """Expired questions in a Postgres database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def due(self, kind: InteractionKind, *, now: float, limit: int) -> tuple[str, ...]:
        return tuple(row[0] for row in await self._database.fetch(_DUE, kind, now, limit))

    async def next_due(self, kind: InteractionKind) -> float | None:
        soonest: float | None = (await self._database.fetch(_NEXT, kind))[0][0]
        return soonest

    async def close(self, interaction_id: str, *, at: float) -> bool:
        closed = await self._database.write(lambda db: db.execute(_CLOSE, EXPIRED, at, interaction_id))
        return changed(closed) > 0


class PostgresBursts:
    """Joined entries in a Postgres database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def join(self, lease: Lease, turn: int, seqs: Sequence[int], *, steered: bool = False) -> None:
        await self._database.apply(operations.join(lease, turn, seqs, steered=steered))

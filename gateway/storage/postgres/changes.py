"""SQL on what other processes have changed. Triggers count the changes, so that no writer can forget it."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.storage.changes import COPIED, CopiedBook
from gateway.storage.postgres.database import Database

_REVISIONS = "SELECT book, n FROM revisions"
_STOPPED = """
    SELECT seq FROM inbox AS running
        JOIN unnest($1::bigint[], $2::float8[]) AS turn(seq, began_at) USING (seq)
    WHERE outcome IS NULL AND (cancelled OR EXISTS (
        SELECT FROM inbox AS spoken WHERE spoken.thread = running.thread AND spoken.outcome IS NULL
            AND spoken.seq > running.seq AND spoken.kind = 'barge_in'
            AND spoken.received_at >= turn.began_at))"""


class PostgresChanges:
    """What has changed in a Postgres database, whichever process has written it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def revisions(self) -> Mapping[CopiedBook, int]:
        found = {row[0]: row[1] for row in await self._database.fetch(_REVISIONS)}
        return {book: found.get(book, 0) for book in COPIED}

    async def stopped(self, running: Mapping[int, float]) -> frozenset[int]:
        rows = await self._database.fetch(_STOPPED, list(running), list(running.values()))
        return frozenset(row[0] for row in rows)

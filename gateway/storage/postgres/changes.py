"""SQL on what other processes have changed. Triggers count the changes, so that no writer can forget it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from gateway.storage.changes import COPIED, CopiedBook
from gateway.storage.postgres.database import Database

_REVISIONS = "SELECT book, n FROM revisions"
_STOPPED = "SELECT seq FROM inbox WHERE seq = ANY ($1::bigint[]) AND cancelled AND outcome IS NULL"


class PostgresChanges:
    """What has changed in a Postgres database, whichever process has written it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def revisions(self) -> Mapping[CopiedBook, int]:
        found = {row[0]: row[1] for row in await self._database.fetch(_REVISIONS)}
        return {book: found.get(book, 0) for book in COPIED}

    async def stopped(self, seqs: Collection[int]) -> frozenset[int]:
        return frozenset(row[0] for row in await self._database.fetch(_STOPPED, list(seqs)))

"""What has changed: one process has the file, and beside it commands of the operator write to it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Mapping

from gateway.storage.changes import COPIED, CopiedBook
from gateway.storage.sqlite.worker_thread import DatabaseThread

_VERSION = "PRAGMA data_version"
_STOPPED = "SELECT seq FROM inbox WHERE seq = ? AND cancelled AND outcome IS NULL"


class SqliteChanges:
    """A part of `SqliteStore`. Every commit gives every book a new revision."""

    def __init__(self, reader: Callable[[], DatabaseThread]) -> None:
        # Fetched at each call, because a reopened store has a new thread.
        self._reader = reader

    async def revisions(self) -> Mapping[CopiedBook, int]:
        version = await self._reader().submit(lambda db: int(db.execute(_VERSION).fetchone()[0]))
        return dict.fromkeys(COPIED, version)

    async def stopped(self, seqs: Collection[int]) -> frozenset[int]:
        return await self._reader().submit(lambda db: _stopped(db, seqs))


def _stopped(db: sqlite3.Connection, seqs: Collection[int]) -> frozenset[int]:
    return frozenset(seq for seq in seqs if db.execute(_STOPPED, (seq,)).fetchone())

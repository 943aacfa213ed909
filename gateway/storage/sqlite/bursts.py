"""SQL on entries that are answered together, and the part of the store that runs it in its thread."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence

from gateway.storage.ports import Lease
from gateway.storage.sqlite import threads
from gateway.storage.sqlite.worker_thread import DatabaseThread
from pipeline.domain.errors import AlreadyDone

_IS_OPEN = "SELECT 1 FROM inbox WHERE seq = ? AND thread = ? AND outcome IS NULL"
_JOIN = """
    UPDATE inbox SET joined = ?1, steered = CASE joined WHEN ?1 THEN steered ELSE ?2 END
    WHERE seq = ?3 AND seq > ?1 AND thread = ?4 AND outcome IS NULL AND joined IN (0, ?1)"""


class SqliteBursts:
    """The joined entries of one SQLite file: a part of `SqliteStore`."""

    def __init__(self, writer: Callable[[], DatabaseThread]) -> None:
        # Fetched at each call, because a reopened store has a new thread.
        self._writer = writer

    async def join(self, lease: Lease, turn: int, seqs: Sequence[int], *, steered: bool = False) -> None:
        joining = tuple(seqs)
        await self._writer().submit(lambda db: _join(db, lease, turn, joining, steered=steered))


def _join(db: sqlite3.Connection, lease: Lease, turn: int, seqs: Sequence[int], *, steered: bool) -> None:
    thread = threads.require_fence(db, lease)
    if db.execute(_IS_OPEN, (turn, thread)).fetchone() is None:
        raise AlreadyDone(f"inbox entry {turn} has no turn that others can join")
    for seq in seqs:
        if db.execute(_JOIN, (turn, steered, seq, thread)).rowcount == 0:
            raise AlreadyDone(f"inbox entry {seq} cannot join the turn of entry {turn}")

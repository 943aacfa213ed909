"""SQL on process deaths, and the part of the store that runs it in its thread."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping

from gateway.storage.crash_counts import Deaths
from gateway.storage.sqlite.worker_thread import DatabaseThread

_CUT_OFF = """
    SELECT inbox.seq, attempts - excused, coalesce(alone, 0) FROM inbox LEFT JOIN deaths USING (seq)
    WHERE outcome IS NULL AND attempts - excused > coalesce(total, 0)"""
_COUNT = "INSERT OR REPLACE INTO deaths (seq, total, alone) VALUES (?, ?, ?)"
_FORGET = "DELETE FROM deaths WHERE seq NOT IN (SELECT seq FROM inbox WHERE outcome IS NULL)"
_ALL = "SELECT seq, total, alone FROM deaths"


class SqliteDeaths:
    """Process deaths in one SQLite file: a part of `SqliteStore`."""

    def __init__(self, writer: Callable[[], DatabaseThread]) -> None:
        # Fetched at each call, because a reopened store has a new thread.
        self._writer = writer

    async def note(self) -> Mapping[int, Deaths]:
        return await self._writer().submit(_note)


def _note(db: sqlite3.Connection) -> dict[int, Deaths]:
    db.execute(_FORGET)
    found = db.execute(_CUT_OFF).fetchall()
    db.executemany(_COUNT, [(seq, total, alone + (len(found) == 1)) for seq, total, alone in found])
    return {seq: Deaths(total=total, alone=alone) for seq, total, alone in db.execute(_ALL)}

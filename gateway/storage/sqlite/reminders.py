"""SQL on reminders, and the part of the store that runs it in its threads."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from gateway.storage.json_bodies import decode_body, encode_body, storable_text
from gateway.storage.reminders import Reminder
from gateway.storage.sqlite.worker_thread import DatabaseThread

_KNOWN = "SELECT 1 FROM reminders WHERE id = ?"
_COUNT = "SELECT count(*) FROM reminders WHERE owner = ?"
_ADD = "INSERT INTO reminders (id, thread, owner, due, text, body) VALUES (?, ?, ?, ?, ?, ?)"
_OF = "SELECT id, thread, owner, due, text, body FROM reminders WHERE owner = ? ORDER BY due, id"
_REMOVE = "DELETE FROM reminders WHERE owner = ? AND id = ?"
_DUE = "SELECT id, thread, owner, due, text, body FROM reminders WHERE due <= ? ORDER BY due, id LIMIT ?"
_NEXT = "SELECT min(due) FROM reminders"

_Row = tuple[str, str, str, float, str, str]


class SqliteReminders:
    """The reminder book in one SQLite file: a part of `SqliteStore`."""

    def __init__(self, writer: Callable[[], DatabaseThread], reader: Callable[[], DatabaseThread]) -> None:
        # Fetched at each call, because a reopened store has new threads.
        self._writer = writer
        self._reader = reader

    async def add(self, reminder: Reminder, *, limit: int) -> bool:
        row = (
            reminder.id,
            reminder.thread,
            reminder.owner,
            reminder.due,
            storable_text(reminder.text),
            encode_body(reminder.body),
        )

        def work(db: sqlite3.Connection) -> bool:
            if db.execute(_KNOWN, (reminder.id,)).fetchone():
                return True
            if db.execute(_COUNT, (reminder.owner,)).fetchone()[0] >= limit:
                return False
            db.execute(_ADD, row)
            return True

        return await self._writer().submit(work)

    async def of(self, owner: str) -> tuple[Reminder, ...]:
        return await self._reader().submit(
            lambda db: tuple(_reminder(row) for row in db.execute(_OF, (owner,)))
        )

    async def remove(self, owner: str, reminder_id: str) -> bool:
        return await self._writer().submit(lambda db: db.execute(_REMOVE, (owner, reminder_id)).rowcount > 0)

    async def due(self, *, now: float, limit: int) -> tuple[Reminder, ...]:
        return await self._reader().submit(
            lambda db: tuple(_reminder(row) for row in db.execute(_DUE, (now, limit)))
        )

    async def next_due(self) -> float | None:
        soonest: float | None = await self._reader().submit(lambda db: db.execute(_NEXT).fetchone()[0])
        return soonest


def _reminder(row: _Row) -> Reminder:
    identity, thread, owner, due, text, body = row
    return Reminder(id=identity, thread=thread, owner=owner, due=due, text=text, body=decode_body(body))

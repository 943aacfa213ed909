"""SQL on feedback, and the part of the store that runs it in its threads."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping

from gateway.storage.feedback import LOOKED_THROUGH, Feedback, ShownPart, ShownReply, Value, shown_reply
from gateway.storage.json_bodies import decode_body, storable_text
from gateway.storage.sqlite.worker_thread import DatabaseThread

_COLUMNS = "message_id, channel, account, user, thread, name, value, run_id, agent, at"
_INSERT = f"INSERT INTO feedback ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - a constant
_GIVE = f"""{_INSERT} ON CONFLICT (message_id, channel, account, user)
    DO UPDATE SET value = excluded.value, name = excluded.name, at = excluded.at
    WHERE excluded.at >= feedback.at AND excluded.value <> feedback.value"""
# A row without a value stays: an older reaction that arrives later must not count.
_TAKE_BACK = f"""{_INSERT} ON CONFLICT (message_id, channel, account, user)
    DO UPDATE SET value = '', at = excluded.at WHERE feedback.value = ? AND excluded.at >= feedback.at"""
_KNOWN = "SELECT 1 FROM feedback WHERE message_id = ? AND channel = ? AND account = ? AND user = ?"
_OF_THREAD = "SELECT message_id, value FROM feedback WHERE thread = ? AND value <> '' ORDER BY at"
_LISTED = f"SELECT {_COLUMNS} FROM feedback WHERE at >= ? AND value <> '' ORDER BY at DESC LIMIT ?"  # noqa: S608 - a constant
_IN_CHAT = "(t.key = :chat OR (t.key > :chat || ':' AND t.key < :chat || ';'))"
_REPLY = "SELECT o.message_id, t.key, o.body FROM outbox AS o JOIN threads AS t ON t.id = o.thread "
_SHOWN_BY = f"""{_REPLY}
    WHERE o.id > (SELECT max(id) FROM outbox) - {LOOKED_THROUGH} AND o.state = 'sent' AND {_IN_CHAT}
        AND instr(',' || o.receipt || ',', ',' || :native || ',') > 0
    ORDER BY o.id DESC LIMIT 1"""  # noqa: S608 - a constant
_REPLY_TO = f"{_REPLY} WHERE o.key = ?"
_PART = f"""
    SELECT t.key, s.part FROM inbox AS i INDEXED BY inbox_open CROSS JOIN shown AS s ON s.key = i.message_id
        JOIN threads AS t ON t.id = i.thread
    WHERE s.native_id = :native AND s.final AND i.outcome IS NULL AND {_IN_CHAT} LIMIT 1"""  # noqa: S608 - a constant


class SqliteFeedback:
    """Feedback in one SQLite file: a part of `SqliteStore`."""

    def __init__(self, writer: Callable[[], DatabaseThread], reader: Callable[[], DatabaseThread]) -> None:
        # Fetched at each call, because a reopened store has new threads.
        self._writer = writer
        self._reader = reader

    async def give(self, feedback: Feedback) -> bool:
        return await self._writer().submit(
            lambda db: db.execute(_GIVE, _values(feedback, feedback.value)).rowcount > 0
        )

    async def take_back(self, feedback: Feedback) -> bool:
        def work(db: sqlite3.Connection) -> bool:
            identity = (feedback.message_id, feedback.channel, feedback.account, storable_text(feedback.user))
            known = db.execute(_KNOWN, identity).fetchone() is not None
            changed = db.execute(_TAKE_BACK, (*_values(feedback, ""), feedback.value)).rowcount > 0
            return known and changed

        return await self._writer().submit(work)

    async def of_thread(self, thread: str) -> Mapping[str, Value]:
        return await self._reader().submit(lambda db: dict(db.execute(_OF_THREAD, (thread,)).fetchall()))

    async def listed(self, *, since: float = 0.0, limit: int) -> tuple[Feedback, ...]:
        rows = await self._reader().submit(lambda db: db.execute(_LISTED, (since, limit)).fetchall())
        return tuple(Feedback(**dict(zip(_COLUMNS.split(", "), row, strict=True))) for row in rows)

    async def reply_shown_by(self, chat: str, native_id: str) -> ShownReply | None:
        values = {"chat": chat, "native": storable_text(native_id)}
        row = await self._reader().submit(lambda db: db.execute(_SHOWN_BY, values).fetchone())
        return None if row is None else shown_reply(row[0], row[1], decode_body(row[2]))

    async def reply_to(self, message_id: str) -> ShownReply | None:
        row = await self._reader().submit(lambda db: db.execute(_REPLY_TO, (message_id,)).fetchone())
        return None if row is None else shown_reply(row[0], row[1], decode_body(row[2]))

    async def part_shown_by(self, chat: str, native_id: str) -> ShownPart | None:
        values = {"chat": chat, "native": storable_text(native_id)}
        row = await self._reader().submit(lambda db: db.execute(_PART, values).fetchone())
        return None if row is None else ShownPart(thread=row[0], part=row[1])


def _values(feedback: Feedback, value: str) -> tuple[str | float, ...]:
    return (
        feedback.message_id,
        feedback.channel,
        feedback.account,
        storable_text(feedback.user),
        feedback.thread,
        storable_text(feedback.name),
        value,
        feedback.run_id,
        feedback.agent,
        feedback.at,
    )

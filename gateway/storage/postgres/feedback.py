"""SQL on feedback, and on what a platform's message shows."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.storage.feedback import LOOKED_THROUGH, Feedback, ShownPart, ShownReply, Value, shown_reply
from gateway.storage.json_bodies import decode_body
from gateway.storage.postgres.database import Connection, Database
from gateway.storage.postgres.statements import changed, plain

_NAMES = ("message_id", "channel", "account", "user", "thread", "name", "value", "run_id", "agent", "at")
_COLUMNS = 'message_id, channel, account, "user", thread, name, value, run_id, agent, at'
_INSERT = f"INSERT INTO feedback ({_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"  # noqa: S608 - a constant
_GIVE = f"""{_INSERT} ON CONFLICT (message_id, channel, account, "user")
    DO UPDATE SET value = excluded.value, name = excluded.name, at = excluded.at
    WHERE excluded.at >= feedback.at AND excluded.value <> feedback.value"""
# A row without a value stays: an older reaction that arrives later must not count.
_TAKE_BACK = f"""{_INSERT} ON CONFLICT (message_id, channel, account, "user")
    DO UPDATE SET value = '', at = excluded.at WHERE feedback.value = $11 AND excluded.at >= feedback.at"""
_KNOWN = """
    SELECT 1 FROM feedback WHERE message_id = $1 AND channel = $2 AND account = $3 AND "user" = $4
    FOR UPDATE"""
_OF_THREAD = "SELECT message_id, value FROM feedback WHERE thread = $1 AND value <> '' ORDER BY at"
_LISTED = f"SELECT {_COLUMNS} FROM feedback WHERE at >= $1 AND value <> '' ORDER BY at DESC LIMIT $2"  # noqa: S608 - a constant
_IN_CHAT = "(t.key = $1 OR starts_with(t.key, $1 || ':'))"
_REPLY = "SELECT o.message_id, t.key, o.body FROM outbox AS o JOIN threads AS t ON t.id = o.thread "
_SHOWN_BY = f"""{_REPLY}
    WHERE o.id > (SELECT max(id) FROM outbox) - {LOOKED_THROUGH} AND o.state = 'sent' AND {_IN_CHAT}
        AND strpos(',' || o.receipt || ',', ',' || $2 || ',') > 0
    ORDER BY o.id DESC LIMIT 1"""  # noqa: S608 - a constant
_REPLY_TO = f"{_REPLY} WHERE o.key = $1"
_PART = f"""
    SELECT t.key, s.part FROM inbox AS i JOIN shown AS s ON s.key = i.message_id
        JOIN threads AS t ON t.id = i.thread
    WHERE s.native_id = $2 AND s.final AND i.outcome IS NULL AND {_IN_CHAT} LIMIT 1"""  # noqa: S608 - a constant


class PostgresFeedback:
    """Feedback in a Postgres database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def give(self, feedback: Feedback) -> bool:
        async def change(db: Connection) -> bool:
            return changed(await db.execute(_GIVE, *_values(feedback, feedback.value))) > 0

        return await self._database.write(change)

    async def take_back(self, feedback: Feedback) -> bool:
        async def change(db: Connection) -> bool:
            values = _values(feedback, "")
            known = await db.fetchrow(_KNOWN, *values[:4]) is not None
            taken = changed(await db.execute(_TAKE_BACK, *values, feedback.value)) > 0
            return known and taken

        return await self._database.write(change)

    async def of_thread(self, thread: str) -> Mapping[str, Value]:
        rows = await self._database.read(lambda db: db.fetch(_OF_THREAD, thread))
        return {row["message_id"]: row["value"] for row in rows}

    async def listed(self, *, since: float = 0.0, limit: int) -> tuple[Feedback, ...]:
        rows = await self._database.read(lambda db: db.fetch(_LISTED, since, limit))
        return tuple(Feedback(**dict(zip(_NAMES, row, strict=True))) for row in rows)

    async def reply_shown_by(self, chat: str, native_id: str) -> ShownReply | None:
        row = await self._database.read(lambda db: db.fetchrow(_SHOWN_BY, chat, plain(native_id)))
        return None if row is None else shown_reply(row[0], row[1], decode_body(row[2]))

    async def reply_to(self, message_id: str) -> ShownReply | None:
        row = await self._database.read(lambda db: db.fetchrow(_REPLY_TO, message_id))
        return None if row is None else shown_reply(row[0], row[1], decode_body(row[2]))

    async def part_shown_by(self, chat: str, native_id: str) -> ShownPart | None:
        row = await self._database.read(lambda db: db.fetchrow(_PART, chat, plain(native_id)))
        return None if row is None else ShownPart(thread=row[0], part=row[1])


def _values(feedback: Feedback, value: str) -> tuple[str | float, ...]:
    return (
        feedback.message_id,
        feedback.channel,
        feedback.account,
        plain(feedback.user),
        feedback.thread,
        plain(feedback.name),
        value,
        feedback.run_id,
        feedback.agent,
        feedback.at,
    )

"""SQL on the messages that were finished last."""

from __future__ import annotations

from gateway.storage.finished import LOOKED_THROUGH
from gateway.storage.inbox_items import item_of
from gateway.storage.json_bodies import decode_body
from gateway.storage.postgres.database import Database
from pipeline.domain.messages import InboundMessage

_NEWEST = f"""
    WITH newest AS (SELECT * FROM inbox WHERE seq > (SELECT max(seq) FROM inbox) - {LOOKED_THROUGH})
    SELECT key, message_id, received_at, body FROM newest JOIN threads ON threads.id = newest.thread
    WHERE kind = 'message' AND outcome <> 'declined'
        AND finished_at >= (SELECT max(finished_at) FROM newest) - $1
    ORDER BY seq DESC"""  # noqa: S608 - a constant


class PostgresFinished:
    """Finished messages in a Postgres database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def newest(self, *, within_s: float) -> tuple[InboundMessage, ...]:
        rows = await self._database.read(lambda db: db.fetch(_NEWEST, within_s))
        items = [
            item_of("message", row["key"], row["message_id"], row["received_at"], decode_body(row["body"]))
            for row in rows
        ]
        return tuple([item for item in items if isinstance(item, InboundMessage)])

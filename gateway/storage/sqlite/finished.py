"""SQL on the messages that were finished last, and the part of the store that runs it in its thread."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from gateway.storage.finished import LOOKED_THROUGH
from gateway.storage.inbox_items import item_of
from gateway.storage.json_bodies import decode_body
from gateway.storage.sqlite.worker_thread import DatabaseThread
from pipeline.domain.messages import InboundMessage

_NEWEST = f"""
    WITH newest AS (SELECT * FROM inbox WHERE seq > (SELECT max(seq) FROM inbox) - {LOOKED_THROUGH})
    SELECT key, message_id, received_at, body FROM newest JOIN threads ON threads.id = newest.thread
    WHERE kind = 'message' AND outcome <> 'declined'
        AND finished_at >= (SELECT max(finished_at) FROM newest) - ?
    ORDER BY seq DESC"""  # noqa: S608 - a constant


class SqliteFinished:
    """Finished messages in one SQLite file: a part of `SqliteStore`."""

    def __init__(self, reader: Callable[[], DatabaseThread]) -> None:
        # Fetched at each call, because a reopened store has a new thread.
        self._reader = reader

    async def newest(self, *, within_s: float) -> tuple[InboundMessage, ...]:
        return await self._reader().submit(lambda db: _newest(db, within_s))


def _newest(db: sqlite3.Connection, within_s: float) -> tuple[InboundMessage, ...]:
    items = [
        item_of("message", thread, message_id, received_at, decode_body(body))
        for thread, message_id, received_at, body in db.execute(_NEWEST, (within_s,))
    ]
    return tuple([item for item in items if isinstance(item, InboundMessage)])

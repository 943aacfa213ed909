"""SQL that reads everything the store has of a person, for an export."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from typing import Any, Final

from gateway.storage.erasure import PersonKeys
from gateway.storage.identities import Identity
from gateway.storage.json_bodies import decode_body
from gateway.storage.sqlite.erasure import keys_of, prefix_of, private_threads
from gateway.storage.sqlite.worker_thread import DatabaseThread

Rows = dict[str, list[dict[str, Any]]]

_OF_IDENTITY: Final = {
    "messages": """SELECT threads.key AS thread, message_id, kind, body, received_at, outcome
        FROM inbox JOIN threads ON threads.id = inbox.thread
        WHERE substr(threads.key, 1, length(:prefix)) = :prefix
        AND json_extract(body, '$.author') = :user ORDER BY seq""",
    "feedback": "SELECT * FROM feedback WHERE channel = :channel AND account = :account AND user = :user",
    "preferences": "SELECT * FROM speakers WHERE channel = :channel AND account = :account AND user = :user",
    "pairings": "SELECT * FROM pairings WHERE channel = :channel AND account = :account AND user = :user",
    "pairing_requests": """SELECT chat, name, asked_at, expires_at FROM pairing_requests
        WHERE channel = :channel AND account = :account AND user = :user""",
    "links": """SELECT channel, account, user, thread, person FROM identities
        WHERE channel = :channel AND account = :account AND user = :user""",
    "page_account": "SELECT id, name, invited_at, joined_at FROM page_people WHERE id = :user",
    "page_devices": "SELECT name, signed_in_at, seen_at FROM page_devices WHERE person = :user",
    "permissions": """SELECT thread, type, target, at FROM permissions
        WHERE person = :user AND substr(thread, 1, length(:prefix)) = :prefix""",
    "files_changed_by_tools": """SELECT tool, root, path, thread, at, undone_at FROM file_changes
        WHERE author = :user AND substr(thread, 1, length(:prefix)) = :prefix""",
    "unfinished_speech": """SELECT body, at FROM speech_buffers
        WHERE json_valid(key) AND json_extract(key, '$[1]') = :user
        AND substr(json_extract(key, '$[0]'), 1, length(:prefix)) = :prefix""",
    "jobs": """SELECT kind, thread, due, body FROM jobs WHERE json_extract(body, '$.author') = :user
        AND substr(thread, 1, length(:prefix)) = :prefix""",
    "actions": """SELECT CAST(line AS TEXT) AS body FROM audit WHERE json_valid(CAST(line AS TEXT))
        AND json_extract(CAST(line AS TEXT), '$.details.person') = :user
        AND substr(json_extract(CAST(line AS TEXT), '$.details.thread'), 1, length(:prefix)) = :prefix
        ORDER BY n""",
}
_OF_KEY: Final = {
    "use": "SELECT day, tokens, cost FROM usage WHERE scope = :key ORDER BY day",
    "kept_state": "SELECT graph, body FROM states WHERE owner = :key",
    "reminders": "SELECT kind, thread, due, body FROM jobs WHERE owner = :key ORDER BY due",
    "crisis_responses": """SELECT at, level, path, reason, completed, kept_until, kept_because FROM crises
        WHERE user = :key ORDER BY at""",
}
_LOG: Final = """SELECT threads.key AS thread, kind, session_id, message_id, body, at
    FROM log JOIN threads ON threads.id = log.thread WHERE threads.key = ? ORDER BY log.id"""


class SqlitePersonRecords:
    """What one SQLite file has of people."""

    def __init__(self, _writer: Callable[[], DatabaseThread], reader: Callable[[], DatabaseThread]) -> None:
        # As for the parts of `SqliteStore`: an offline store has one thread for both.
        self._reader = reader

    async def keys_of(self, identity: Identity) -> PersonKeys:
        """See `ErasureBook.keys_of`."""
        return await self._reader().submit(lambda db: keys_of(db, identity))

    async def counts(self, person: PersonKeys) -> dict[str, int]:
        """How many rows of each kind there are. Raises StorageError."""
        found = await self.records(person)
        return {name.replace("_", " "): len(rows) for name, rows in found.items()}

    async def records(self, person: PersonKeys) -> Rows:
        """All rows, by kind, with their bodies as plain data; `conversations` are the whole logs of the
        private chats. Raises StorageError."""
        return await self._reader().submit(lambda db: _records(db, person))

    async def private_threads(self, person: PersonKeys) -> tuple[str, ...]:
        """See `ErasureBook.private_threads`."""
        return await self._reader().submit(lambda db: private_threads(db, person))


def _records(db: sqlite3.Connection, person: PersonKeys) -> Rows:
    found: Rows = {"conversations": []}
    for thread in private_threads(db, person):
        found["conversations"] += _rows(db, _LOG, (thread,))
    for one in person.identities:
        whose = {
            "channel": one.channel,
            "account": one.account,
            "user": one.user,
            "prefix": prefix_of(one),
        }
        for name, statement in _OF_IDENTITY.items():
            found.setdefault(name, []).extend(_rows(db, statement, whose))
    for key in person.keys:
        for name, statement in _OF_KEY.items():
            found.setdefault(name, []).extend(_rows(db, statement, {"key": key}))
    return found


def _rows(db: sqlite3.Connection, statement: str, values: Any) -> list[dict[str, Any]]:
    cursor = db.execute(statement, values)
    names = [column[0] for column in cursor.description]
    return [_plain(dict(zip(names, row, strict=True))) for row in cursor]


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    if isinstance(body := row.get("body"), str):
        try:
            row["body"] = decode_body(body)
        except json.JSONDecodeError:
            row["body"] = body
    return row

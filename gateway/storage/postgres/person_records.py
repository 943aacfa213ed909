"""SQL that reads everything the database has of a person, for an export."""

from __future__ import annotations

import json
from typing import Any, Final

from gateway.storage.erasure import PersonKeys
from gateway.storage.identities import Identity
from gateway.storage.json_bodies import decode_body
from gateway.storage.postgres.database import Connection, Database
from gateway.storage.postgres.erasure import keys_of, prefix_of, private_threads
from gateway.storage.postgres.statements import plain

Rows = dict[str, list[dict[str, Any]]]

_MINE = 'channel = $1 AND account = $2 AND "user" = $3'
_OF_IDENTITY: Final = {
    "feedback": f"SELECT * FROM feedback WHERE {_MINE}",  # noqa: S608 - constants of this module
    "preferences": f"SELECT * FROM speakers WHERE {_MINE}",  # noqa: S608 - constants of this module
    "pairings": f"SELECT * FROM pairings WHERE {_MINE}",  # noqa: S608 - constants of this module
    "pairing_requests": f"SELECT chat, name, asked_at, expires_at FROM pairing_requests WHERE {_MINE}",  # noqa: S608 - constants of this module
    "links": f"""SELECT channel, account, "user", thread, person FROM identities WHERE {_MINE}""",  # noqa: S608 - constants of this module
}
_OF_USER: Final = {
    "page_account": "SELECT id, name, invited_at, joined_at FROM page_people WHERE id = $1",
    "page_devices": "SELECT name, signed_in_at, seen_at FROM page_devices WHERE person = $1",
}
_OF_ACCOUNT: Final = {
    "messages": """SELECT threads.key AS thread, message_id, kind, body, received_at, outcome
        FROM inbox JOIN threads ON threads.id = inbox.thread
        WHERE body_json(body)->>'author' = $1 AND starts_with(threads.key, $2) ORDER BY seq""",
    "permissions": """SELECT thread, type, target, at FROM permissions
        WHERE person = $1 AND starts_with(thread, $2) ORDER BY id""",
    "files_changed_by_tools": """SELECT tool, root, path, thread, at, undone_at FROM file_changes
        WHERE author = $1 AND starts_with(thread, $2) ORDER BY id""",
    "unfinished_speech": """SELECT body, at FROM speech_buffers
        WHERE body_json(key)->>1 = $1 AND starts_with(body_json(key)->>0, $2)""",
    "jobs": """SELECT kind, thread, due, body FROM jobs
        WHERE body_json(body)->>'author' = $1 AND starts_with(thread, $2) ORDER BY id""",
}
_OF_KEY: Final = {
    "use": "SELECT day, tokens, cost FROM usage WHERE scope = $1 ORDER BY day",
    "kept_state": "SELECT graph, body FROM states WHERE owner = $1",
    "reminders": "SELECT kind, thread, due, body FROM jobs WHERE owner = $1 ORDER BY due",
    "crisis_responses": """SELECT at, level, path, reason, completed, kept_until, kept_because FROM crises
        WHERE "user" = $1 ORDER BY at""",
}
_LOG: Final = """SELECT threads.key AS thread, kind, session_id, message_id, body, at
    FROM log JOIN threads ON threads.id = log.thread WHERE threads.key = $1 ORDER BY log.id"""
_ACTIONS: Final = "SELECT line FROM audit ORDER BY n"


class PostgresPersonRecords:
    """What a Postgres database has of people."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def keys_of(self, identity: Identity) -> PersonKeys:
        """See `ErasureBook.keys_of`."""
        return await self._database.read(lambda db: keys_of(db, identity))

    async def counts(self, person: PersonKeys) -> dict[str, int]:
        """How many rows of each kind there are. Raises StorageError."""
        found = await self.records(person)
        return {name.replace("_", " "): len(rows) for name, rows in found.items()}

    async def records(self, person: PersonKeys) -> Rows:
        """All rows, by kind, with their bodies as plain data; `conversations` are the whole logs of the
        private chats. Raises StorageError."""
        return await self._database.read(lambda db: _records(db, person))

    async def private_threads(self, person: PersonKeys) -> tuple[str, ...]:
        """See `ErasureBook.private_threads`."""
        return await self._database.read(lambda db: private_threads(db, person))


async def _records(db: Connection, person: PersonKeys) -> Rows:
    found: Rows = {"conversations": []}
    for thread in await private_threads(db, person):
        found["conversations"] += await _rows(db, _LOG, thread)
    for one in person.identities:
        user, prefix = plain(one.user), prefix_of(one)
        parts: tuple[tuple[dict[str, str], tuple[str, ...]], ...] = (
            (_OF_ACCOUNT, (user, prefix)),
            (_OF_IDENTITY, (one.channel, one.account, user)),
            (_OF_USER, (user,)),
        )
        for statements, values in parts:
            for name, statement in statements.items():
                found.setdefault(name, []).extend(await _rows(db, statement, *values))
        found.setdefault("actions", []).extend(await _actions(db, one.user, prefix))
    for key in map(plain, person.keys):
        for name, statement in _OF_KEY.items():
            found.setdefault(name, []).extend(await _rows(db, statement, key))
    return found


async def _actions(db: Connection, user: str, prefix: str) -> list[dict[str, Any]]:
    """The audit's records that name the person. The lines are bytes, which may be damaged."""
    found = []
    async for row in db.cursor(_ACTIONS):
        try:
            body = json.loads(row["line"])
            details = body["details"]
            is_theirs = details["person"] == user and str(details["thread"]).startswith(prefix)
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
        if is_theirs:
            found.append({"body": body})
    return found


async def _rows(db: Connection, statement: str, *values: Any) -> list[dict[str, Any]]:
    return [_plain(dict(row)) for row in await db.fetch(statement, *values)]


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    if isinstance(body := row.get("body"), str):
        try:
            row["body"] = decode_body(body)
        except json.JSONDecodeError:
            row["body"] = body
    return row

"""SQL that erases everything of a person.

Postgres writes a changed row to another place and keeps the old one until a vacuum. `compact` writes every
table again, so the tables hold no deleted words afterwards; the write-ahead log, its archive, replicas and
backups are the operator's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from gateway.storage.erasure import (
    DROPPED,
    PersonKeys,
    Redaction,
    RoomMessage,
    erasure_record,
    quoted_ids,
    redacted_audit,
    redaction_of,
)
from gateway.storage.identities import Identity, counted_twice
from gateway.storage.inbox_items import native_id_of
from gateway.storage.json_bodies import FORGOTTEN, decode_body, encode_body
from gateway.storage.ports import Lease
from gateway.storage.postgres import audit
from gateway.storage.postgres.database import Connection, Database
from gateway.storage.postgres.statements import plain
from gateway.storage.postgres.table_rewriting import compact
from gateway.storage.postgres.thread_rows import require_fence
from pipeline.domain.ids import ThreadKey

_BODIES = """
    SELECT DISTINCT key FROM threads JOIN inbox ON inbox.thread = threads.id,
        LATERAL body_json(inbox.body) AS said
    WHERE starts_with(key, $1) AND """
_WRITTEN_IN = f"""{_BODIES}
    said->>'author' = $2 AND (coalesce(said->>'private', 'true') <> 'false') = $3 ORDER BY key"""
_QUOTED_IN = f"""{_BODIES}
    said->>'private' = 'false' AND said->>'quoted' <> '' AND said->>'quoted_by' IN (
        SELECT own->>'name' FROM threads AS t JOIN inbox AS i ON i.thread = t.id,
            LATERAL body_json(i.body) AS own
        WHERE starts_with(t.key, $1) AND own->>'author' = $2)
    ORDER BY key"""  # noqa: S608 - a constant of this module
# The private chats that the links name, where an earlier attempt has erased the messages.
_LINKED_IN = 'SELECT thread FROM identities WHERE channel = $1 AND account = $2 AND "user" = $3'
_LEFT = """
    SELECT 1 FROM threads WHERE key = $1 AND (
        EXISTS (SELECT 1 FROM log WHERE log.thread = threads.id AND kind <> 'notice')
        OR EXISTS (SELECT 1 FROM inbox WHERE inbox.thread = threads.id AND outcome IS NULL))"""

_THREAD = "SELECT id FROM threads WHERE key = $1"
_ENTRIES = "SELECT seq, message_id, joined, body FROM inbox WHERE thread = $1 ORDER BY seq"
_SAID = "SELECT message_id, body FROM log WHERE thread = $1 AND kind = 'user' ORDER BY id"
_RECORDS = "SELECT id, kind, message_id FROM log WHERE thread = $1 ORDER BY id"
_QUESTIONS = "SELECT n, allowed_users, answered_by, body FROM interactions WHERE thread = $1"
_SET_ENTRY = "UPDATE inbox SET body = $1 WHERE seq = $2"
_SET_RECORD = "UPDATE log SET body = $1 WHERE id = $2"
_DROP_RECORDS = "DELETE FROM log WHERE id = ANY($1::bigint[])"
_SET_REPLIES = "UPDATE outbox SET body = $1 WHERE thread = $2 AND message_id = ANY($3::text[])"
_DROP_QUESTIONS = "DELETE FROM interactions WHERE n = ANY($1::bigint[])"

_OWN = 'channel = $1 AND account = $2 AND "user" = $3'
_OF_IDENTITY: Final = (
    f"DELETE FROM speakers WHERE {_OWN}",  # noqa: S608 - constants of this module
    f"DELETE FROM pairings WHERE {_OWN}",  # noqa: S608 - constants of this module
    f"DELETE FROM pairing_requests WHERE {_OWN}",  # noqa: S608 - constants of this module
    f"DELETE FROM feedback WHERE {_OWN}",  # noqa: S608 - constants of this module
    f"DELETE FROM link_codes WHERE {_OWN}",  # noqa: S608 - constants of this module
    f"DELETE FROM identities WHERE {_OWN}",  # noqa: S608 - constants of this module
)
_OF_ACCOUNT: Final = (
    "DELETE FROM permissions WHERE person = $1 AND starts_with(thread, $2)",
    "UPDATE file_changes SET author = '' WHERE author = $1 AND starts_with(thread, $2)",
    """DELETE FROM speech_buffers
        WHERE body_json(key)->>1 = $1 AND starts_with(body_json(key)->>0, $2)""",
)
_DROP_JOBS_BY = """
    DELETE FROM jobs WHERE body_json(body)->>'author' = $1 AND starts_with(thread, $2) AND kind <> $3"""
_DROP_TRIES = "DELETE FROM link_tries WHERE identity = $1"
_OF_KEY: Final = (
    "DELETE FROM states WHERE owner = $1",
    "DELETE FROM usage WHERE scope = $1",
    "DELETE FROM asked WHERE person = $1",
    'UPDATE crises SET "user" = NULL WHERE "user" = $1',
    "UPDATE identities SET came_from = '' WHERE came_from = $1",
    """DELETE FROM speakers WHERE channel || "user" = $1 AND account = ''""",
)
_DROP_JOBS_OF = "DELETE FROM jobs WHERE owner = $1 AND kind <> $2"
_SCOPES = "SELECT DISTINCT scope FROM usage WHERE starts_with(scope, $1) ORDER BY scope"
_DROP_SCOPES = "DELETE FROM usage WHERE scope = ANY($1::text[])"
_DROP_TRANSCRIPTS = "DELETE FROM transcripts"
_LINKED_AS = 'SELECT person, own FROM identities WHERE channel = $1 AND account = $2 AND "user" = $3'
_MEMBERS = 'SELECT channel, account, "user", own FROM identities WHERE person = $1'
_BOTH_OF = counted_twice("", "").partition("|")[0]


class PostgresErasure:
    """The erasure of people in a Postgres database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def keys_of(self, identity: Identity) -> PersonKeys:
        return await self._database.read(lambda db: keys_of(db, identity))

    async def private_threads(self, person: PersonKeys) -> tuple[str, ...]:
        return await self._database.read(lambda db: private_threads(db, person))

    async def rooms(self, person: PersonKeys) -> tuple[str, ...]:
        return await self._database.read(lambda db: _rooms(db, person))

    async def messages_in_room(self, thread: str, person: PersonKeys) -> tuple[str, ...]:
        async def query(db: Connection) -> tuple[str, ...]:
            row = await db.fetchval(_THREAD, thread)
            if row is None:
                return ()
            gone, _ = await _redaction(db, row, _users_of(thread, person))
            return tuple(sorted(gone.turns))

        return await self._database.read(query)

    async def redact_room(self, thread: str, person: PersonKeys, *, owner: str, fence: int) -> None:
        lease = Lease(thread=thread, owner=owner, fence=fence, expires_at=0.0)

        async def change(db: Connection) -> None:
            await _redact(db, await require_fence(db, lease), _users_of(thread, person))

        await self._database.write(change)

    async def forget_person(self, person: PersonKeys, *, but_jobs: str) -> None:
        await self._database.write(lambda db: _forget(db, person, but_jobs))

    async def forget_usage(self, scopes: Sequence[str]) -> None:
        async def change(db: Connection) -> None:
            await db.execute(_DROP_SCOPES, [plain(scope) for scope in scopes])

        await self._database.write(change)

    async def redact_audit(self, person: PersonKeys, *, at: float) -> int:
        async def change(db: Connection) -> int:
            rows = await audit.rows(db)
            head = await audit.head(db)
            redacted = None if head is None else redacted_audit(rows, head, person)
            if head is None or redacted is None:
                return 0
            await audit.rewrite(db, redacted.rows, redacted.head, quoted_ids(person))
            await audit.append(db, [erasure_record(head, redacted.named, at)])
            return redacted.named

        return await self._database.write(change)

    async def compact(self) -> None:
        await compact(self._database)


async def keys_of(db: Connection, identity: Identity) -> PersonKeys:
    """See `ErasureBook.keys_of`."""
    row = await db.fetchrow(_LINKED_AS, *_values(identity))
    person = identity.key if row is None else str(row["person"])
    found = {identity: identity.key}
    keys = {identity.key: None, person: None} | ({} if row is None else {str(row["own"]): None})
    for channel, account, user, own in await db.fetch(_MEMBERS, plain(person)):
        one = Identity(channel=channel, account=account, user=user)
        found[one] = own
        keys |= {one.key: None, own: None}
    return PersonKeys(identities=tuple(found), keys=tuple(keys))


async def private_threads(db: Connection, person: PersonKeys) -> tuple[str, ...]:
    """See `ErasureBook.private_threads`."""
    found: dict[str, None] = {}
    for one in person.identities:
        written = await db.fetch(_WRITTEN_IN, prefix_of(one), plain(one.user), True)  # noqa: FBT003 - $3
        linked = await db.fetch(_LINKED_IN, *_values(one))
        found |= dict.fromkeys(row[0] for row in (*written, *linked))
    return tuple([key for key in found if await db.fetchrow(_LEFT, key) is not None])


def prefix_of(identity: Identity) -> str:
    """How the keys of the threads of an identity's account begin."""
    key = ThreadKey(channel=identity.channel, account=identity.account, chat="x").encode()
    return key.removesuffix("x")


async def _rooms(db: Connection, person: PersonKeys) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for one in person.identities:
        whose = (prefix_of(one), plain(one.user))
        written = await db.fetch(_WRITTEN_IN, *whose, False)  # noqa: FBT003 - $3
        quoted = await db.fetch(_QUOTED_IN, *whose)
        found |= dict.fromkeys(row[0] for row in (*written, *quoted))
    return tuple(found)


def _users_of(thread: str, person: PersonKeys) -> frozenset[str]:
    account = ThreadKey.decode(thread).account_key
    return frozenset(one.user for one in person.identities if (one.channel, one.account) == account)


async def _redaction(
    db: Connection, thread: int, users: frozenset[str]
) -> tuple[Redaction, Mapping[int, Mapping[str, Any]]]:
    """What goes of a room, and the bodies of its entries by seq."""
    entries = [
        RoomMessage(
            seq=row["seq"],
            message_id=row["message_id"],
            joined=row["joined"],
            body=decode_body(row["body"]),
        )
        for row in await db.fetch(_ENTRIES, thread)
    ]
    said = [(row["message_id"], decode_body(row["body"])) for row in await db.fetch(_SAID, thread)]
    return redaction_of(entries, said, users), {one.seq: one.body for one in entries}


async def _redact(db: Connection, thread: int, users: frozenset[str]) -> None:
    gone, bodies = await _redaction(db, thread, users)
    left = [(encode_body({"native_id": native_id_of(bodies[seq])}), seq) for seq in gone.entries]
    await db.executemany(_SET_ENTRY, left)
    records = [
        (row["id"], gone.left_of(row["kind"], row["message_id"])) for row in await db.fetch(_RECORDS, thread)
    ]
    await db.executemany(_SET_RECORD, [(body, record) for record, body in records if body])
    await db.execute(_DROP_RECORDS, [record for record, body in records if body == DROPPED])
    await db.execute(_SET_REPLIES, FORGOTTEN, thread, sorted(gone.turns))
    questions = [
        n
        for n, allowed, answered_by, body in await db.fetch(_QUESTIONS, thread)
        if gone.concerns(decode_body(body), [answered_by, *json.loads(allowed)], users)
    ]
    await db.execute(_DROP_QUESTIONS, questions)


async def _forget(db: Connection, person: PersonKeys, but_jobs: str) -> None:
    for one in person.identities:
        for statement in _OF_IDENTITY:
            await db.execute(statement, *_values(one))
        user, prefix = plain(one.user), prefix_of(one)
        for statement in _OF_ACCOUNT:
            await db.execute(statement, user, prefix)
        await db.execute(_DROP_JOBS_BY, user, prefix, but_jobs)
        await db.execute(_DROP_TRIES, plain(one.key))
    for key in map(plain, person.keys):
        for statement in _OF_KEY:
            await db.execute(statement, key)
        await db.execute(_DROP_JOBS_OF, key, but_jobs)
    scopes = [row["scope"] for row in await db.fetch(_SCOPES, _BOTH_OF)]
    keys = set(map(plain, person.keys))
    shared = [scope for scope in scopes if set(scope.removeprefix(_BOTH_OF).split("|")) & keys]
    await db.execute(_DROP_SCOPES, shared)
    await db.execute(_DROP_TRANSCRIPTS)


def _values(one: Identity) -> tuple[str, str, str]:
    return one.channel, one.account, plain(one.user)

"""SQL that erases everything of a person, and the part of the store that runs it in its threads."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

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
from gateway.storage.sqlite import audit, threads
from gateway.storage.sqlite.group_commit import GroupCommit
from gateway.storage.sqlite.secure_overwrite import filled
from gateway.storage.sqlite.worker_thread import DatabaseThread
from pipeline.domain.ids import ThreadKey

_WRITTEN_IN = """
    SELECT DISTINCT key FROM inbox JOIN threads ON threads.id = inbox.thread
    WHERE substr(key, 1, length(:account)) = :account AND json_extract(body, '$.author') = :user
        AND coalesce(json_extract(body, '$.private'), 1) = :private"""
_NAMES = """
    SELECT DISTINCT json_extract(body, '$.name') FROM inbox JOIN threads ON threads.id = inbox.thread
    WHERE substr(key, 1, length(:account)) = :account AND json_extract(body, '$.author') = :user"""
_QUOTED_IN = """
    SELECT DISTINCT key FROM inbox JOIN threads ON threads.id = inbox.thread
    WHERE substr(key, 1, length(:account)) = :account AND json_extract(body, '$.private') = 0
        AND json_extract(body, '$.quoted_by') = :name AND json_extract(body, '$.quoted') <> ''"""
# The private chats that the links and the jobs name, where an earlier attempt has erased the messages.
_LINKED_IN = "SELECT thread FROM identities WHERE channel = ? AND account = ? AND user = ?"
_LEFT = """
    SELECT 1 FROM threads WHERE key = ?1 AND (
        EXISTS (SELECT 1 FROM log WHERE log.thread = threads.id AND kind <> 'notice')
        OR EXISTS (SELECT 1 FROM inbox WHERE inbox.thread = threads.id AND outcome IS NULL))"""

_THREAD = "SELECT id FROM threads WHERE key = ?"
_ENTRIES = "SELECT seq, message_id, joined, body FROM inbox WHERE thread = ?"
_SAID = "SELECT message_id, body FROM log WHERE thread = ? AND kind = 'user'"
_RECORDS = "SELECT id, kind, message_id, length(CAST(body AS BLOB)) FROM log WHERE thread = ?"
_REPLIES = "SELECT id, message_id, length(CAST(body AS BLOB)) FROM outbox WHERE thread = ?"
_QUESTIONS = "SELECT n, allowed_users, answered_by, body FROM interactions WHERE thread = ?"
_SET_ENTRY = "UPDATE inbox SET body = ? WHERE seq = ?"
_SET_RECORD = "UPDATE log SET body = ? WHERE id = ?"
_SET_REPLY = "UPDATE outbox SET body = ? WHERE id = ?"
_DROP_QUESTION = "DELETE FROM interactions WHERE n = ?"
_NEWEST = "SELECT max(id) FROM log"
_DROP_RECORD = "DELETE FROM log WHERE id = ?"
_KEEP_RECORD = "UPDATE log SET kind = 'notice', session_id = '' WHERE id = ?"
_MERGE_INDEX = "INSERT INTO said (said) VALUES ('optimize')"

_OF_IDENTITY = (
    "DELETE FROM speakers WHERE channel = :channel AND account = :account AND user = :user",
    "DELETE FROM pairings WHERE channel = :channel AND account = :account AND user = :user",
    "DELETE FROM pairing_requests WHERE channel = :channel AND account = :account AND user = :user",
    "DELETE FROM feedback WHERE channel = :channel AND account = :account AND user = :user",
    "DELETE FROM link_codes WHERE channel = :channel AND account = :account AND user = :user",
    "DELETE FROM identities WHERE channel = :channel AND account = :account AND user = :user",
    "DELETE FROM link_tries WHERE identity = :key",
    "DELETE FROM permissions WHERE person = :user AND substr(thread, 1, length(:prefix)) = :prefix",
    """UPDATE file_changes SET author = ''
        WHERE author = :user AND substr(thread, 1, length(:prefix)) = :prefix""",
    """DELETE FROM jobs WHERE json_extract(body, '$.author') = :user AND kind <> :but
        AND substr(thread, 1, length(:prefix)) = :prefix""",
    """DELETE FROM speech_buffers WHERE json_valid(key) AND json_extract(key, '$[1]') = :user
        AND substr(json_extract(key, '$[0]'), 1, length(:prefix)) = :prefix""",
)
_OF_KEY = (
    "DELETE FROM states WHERE owner = :key",
    "DELETE FROM usage WHERE scope = :key",
    "DELETE FROM jobs WHERE owner = :key AND kind <> :but",
    "DELETE FROM asked WHERE person = :key",
    "UPDATE crises SET user = NULL WHERE user = :key",
    "UPDATE identities SET came_from = '' WHERE came_from = :key",
    "DELETE FROM speakers WHERE channel || user = :key AND account = ''",
)
_SCOPES = "SELECT DISTINCT scope FROM usage WHERE substr(scope, 1, length(?1)) = ?1"
_DROP_SCOPE = "DELETE FROM usage WHERE scope = ?"
_DROP_TRANSCRIPTS = "DELETE FROM transcripts"
_LINKED_AS = "SELECT person, own FROM identities WHERE channel = ? AND account = ? AND user = ?"
_MEMBERS = "SELECT channel, account, user, own FROM identities WHERE person = ?"
_BOTH_OF = counted_twice("", "").partition("|")[0]


class SqliteErasure:
    """The erasure of people in one SQLite file: a part of `SqliteStore`."""

    def __init__(
        self,
        writer: Callable[[], DatabaseThread],
        reader: Callable[[], DatabaseThread],
        group_commit: GroupCommit,
    ) -> None:
        self._writer = writer
        self._reader = reader
        self._group_commit = group_commit

    async def keys_of(self, identity: Identity) -> PersonKeys:
        return await self._reader().submit(lambda db: keys_of(db, identity))

    async def private_threads(self, person: PersonKeys) -> tuple[str, ...]:
        return await self._reader().submit(lambda db: private_threads(db, person))

    async def rooms(self, person: PersonKeys) -> tuple[str, ...]:
        return await self._reader().submit(lambda db: rooms(db, person))

    async def messages_in_room(self, thread: str, person: PersonKeys) -> tuple[str, ...]:
        def work(db: sqlite3.Connection) -> tuple[str, ...]:
            row = db.execute(_THREAD, (thread,)).fetchone()
            gone = None if row is None else _redaction(db, row[0], _users_of(thread, person))[0]
            return () if gone is None else tuple(sorted(gone.turns))

        return await self._reader().submit(work)

    async def redact_room(self, thread: str, person: PersonKeys, *, owner: str, fence: int) -> None:
        lease = Lease(thread=thread, owner=owner, fence=fence, expires_at=0.0)

        def work(db: sqlite3.Connection) -> None:
            _redact(db, threads.require_fence(db, lease), _users_of(thread, person))
            self._group_commit.erased()

        await self._writer().submit(work)

    async def forget_person(self, person: PersonKeys, *, but_jobs: str) -> None:
        def work(db: sqlite3.Connection) -> None:
            _forget(db, person, but_jobs)
            self._group_commit.erased()

        await self._writer().submit(work)

    async def forget_usage(self, scopes: Sequence[str]) -> None:
        def work(db: sqlite3.Connection) -> None:
            db.executemany(_DROP_SCOPE, [(scope,) for scope in scopes])

        await self._writer().submit(work)

    async def redact_audit(self, person: PersonKeys, *, at: float) -> int:
        def work(db: sqlite3.Connection) -> int:
            head = audit.head(db)
            redacted = None if head is None else redacted_audit(audit.rows(db), head, person)
            if head is None or redacted is None:
                return 0
            audit.rewrite(db, redacted.rows, redacted.head, quoted_ids(person))
            audit.append(db, [erasure_record(head, redacted.named, at)])
            self._group_commit.forgot = True
            return redacted.named

        return await self._writer().submit(work)

    async def compact(self) -> None:
        def work(_db: sqlite3.Connection) -> None:
            self._group_commit.compact = True

        await self._writer().submit(work)


def keys_of(db: sqlite3.Connection, identity: Identity) -> PersonKeys:
    """See `ErasureBook.keys_of`."""
    row = db.execute(_LINKED_AS, (identity.channel, identity.account, identity.user)).fetchone()
    person = identity.key if row is None else str(row[0])
    found = {identity: identity.key}
    keys = {identity.key: None, person: None} | ({} if row is None else {str(row[1]): None})
    for channel, account, user, own in db.execute(_MEMBERS, (person,)).fetchall():
        one = Identity(channel=channel, account=account, user=user)
        found[one] = own
        keys |= {one.key: None, own: None}
    return PersonKeys(identities=tuple(found), keys=tuple(keys))


def private_threads(db: sqlite3.Connection, person: PersonKeys) -> tuple[str, ...]:
    """See `ErasureBook.private_threads`."""
    found: dict[str, None] = {}
    for one in person.identities:
        for (key,) in db.execute(_WRITTEN_IN, {**_account_and_user(one), "private": 1}):
            found[key] = None
        for (key,) in db.execute(_LINKED_IN, (one.channel, one.account, one.user)):
            found[key] = None
    return tuple(key for key in found if db.execute(_LEFT, (key,)).fetchone())


def rooms(db: sqlite3.Connection, person: PersonKeys) -> tuple[str, ...]:
    """See `ErasureBook.rooms`."""
    found: dict[str, None] = {}
    for one in person.identities:
        whose = _account_and_user(one)
        for (key,) in db.execute(_WRITTEN_IN, {**whose, "private": 0}):
            found[key] = None
        for (name,) in db.execute(_NAMES, whose).fetchall():
            for (key,) in db.execute(_QUOTED_IN, {**whose, "name": name}):
                found[key] = None
    return tuple(found)


def prefix_of(identity: Identity) -> str:
    """How the keys of the threads of an identity's account begin."""
    key = ThreadKey(channel=identity.channel, account=identity.account, chat="x").encode()
    return key.removesuffix("x")


def _account_and_user(one: Identity) -> dict[str, Any]:
    return {"account": prefix_of(one), "user": one.user}


def _users_of(thread: str, person: PersonKeys) -> frozenset[str]:
    account = ThreadKey.decode(thread).account_key
    return frozenset(one.user for one in person.identities if (one.channel, one.account) == account)


def _redaction(
    db: sqlite3.Connection, thread: int, users: frozenset[str]
) -> tuple[Redaction, dict[int, str]]:
    """What goes of a room, and the bodies of its entries by seq."""
    bodies: dict[int, str] = {}
    entries = []
    for seq, message_id, joined, text in db.execute(_ENTRIES, (thread,)):
        bodies[seq] = text
        entries.append(RoomMessage(seq=seq, message_id=message_id, joined=joined, body=decode_body(text)))
    said = [(message, decode_body(text)) for message, text in db.execute(_SAID, (thread,))]
    return redaction_of(entries, said, users), bodies


def _redact(db: sqlite3.Connection, thread: int, users: frozenset[str]) -> None:
    gone, bodies = _redaction(db, thread, users)
    for seq in gone.entries:
        left = encode_body({"native_id": native_id_of(decode_body(bodies[seq]))})
        db.execute(_SET_ENTRY, (filled(left, len(bodies[seq].encode())), seq))
    _redact_log(db, thread, gone)
    for row, message_id, size in db.execute(_REPLIES, (thread,)).fetchall():
        if message_id in gone.turns:
            db.execute(_SET_REPLY, (filled(FORGOTTEN, size), row))
    for n, allowed, answered_by, body in db.execute(_QUESTIONS, (thread,)).fetchall():
        if gone.concerns(decode_body(body), [answered_by, *json.loads(allowed)], users):
            db.execute(_DROP_QUESTION, (n,))
    db.execute(_MERGE_INDEX)


def _redact_log(db: sqlite3.Connection, thread: int, gone: Redaction) -> None:
    newest = db.execute(_NEWEST).fetchone()[0]
    for record, kind, message_id, size in db.execute(_RECORDS, (thread,)).fetchall():
        left = gone.left_of(kind, message_id)
        if left is None:
            continue
        db.execute(_SET_RECORD, (filled(left or FORGOTTEN, size), record))
        if left == DROPPED:
            # The newest record stays, without its text, because the next id is one more than the greatest.
            db.execute(_KEEP_RECORD if record == newest else _DROP_RECORD, (record,))


def _forget(db: sqlite3.Connection, person: PersonKeys, but_jobs: str) -> None:
    for one in person.identities:
        whose = {
            "channel": one.channel,
            "account": one.account,
            "user": one.user,
            "key": one.key,
            "prefix": prefix_of(one),
            "but": but_jobs,
        }
        for statement in _OF_IDENTITY:
            db.execute(statement, whose)
    for key in person.keys:
        for statement in _OF_KEY:
            db.execute(statement, {"key": key, "but": but_jobs})
    for (scope,) in db.execute(_SCOPES, (_BOTH_OF,)).fetchall():
        if set(scope.removeprefix(_BOTH_OF).split("|")) & set(person.keys):
            db.execute(_DROP_SCOPE, (scope,))
    db.execute(_DROP_TRANSCRIPTS)

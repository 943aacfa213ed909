"""SQL on names and deletions of conversations."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from gateway.storage.heartbeats import state_in
from gateway.storage.inbox_items import native_id_of
from gateway.storage.jobs import NewJob
from gateway.storage.json_bodies import FORGOTTEN, decode_body, encode_body
from gateway.storage.ports import Lease
from gateway.storage.postgres.database import Connection, Database
from gateway.storage.postgres.page_people import PostgresPagePeople
from gateway.storage.postgres.saved_workflows import DROP_RUN, PostgresSavedWorkflows
from gateway.storage.postgres.statements import plain
from gateway.storage.postgres.thread_rows import add_job, require_fence

_RENAME = """
    INSERT INTO page_chats (thread, name, deleted) VALUES ($1, $2, false)
    ON CONFLICT (thread) DO UPDATE SET name = excluded.name"""
_NAMES = """
    SELECT thread, name FROM page_chats WHERE thread = ANY($1::text[]) AND name <> '' AND NOT deleted"""
_DELETED = "SELECT thread FROM page_chats WHERE deleted"
_HIDE = """
    INSERT INTO page_chats (thread, name, deleted) VALUES ($1, '', true)
    ON CONFLICT (thread) DO UPDATE SET name = '', deleted = true"""
_HOLD = "SELECT id FROM threads WHERE key = $1 FOR UPDATE"
_CANCEL = "UPDATE inbox SET cancelled = true WHERE thread = $1 AND outcome IS NULL"
_ENTRIES = "SELECT seq, body FROM inbox WHERE thread = $1"
_EMPTY_ENTRY = """
    UPDATE inbox SET body = $1, finished_at = coalesce(finished_at, received_at),
        outcome = coalesce(outcome, 'cancelled') WHERE seq = $2"""
_EMPTY_REPLIES = """
    UPDATE outbox SET body = $2, error = CASE WHEN state IN ('ready', 'sending') THEN '' ELSE error END,
        state = CASE WHEN state IN ('ready', 'sending') THEN 'failed' ELSE state END WHERE thread = $1"""
# The log names the sessions, so it goes last.
_OF_THREAD: Final = (
    """DELETE FROM states WHERE owner IN (SELECT 'session:' || session_id FROM log WHERE thread = $1)""",
    "DELETE FROM taints WHERE session_id IN (SELECT session_id FROM log WHERE thread = $1)",
    "DELETE FROM log WHERE thread = $1",
    "DELETE FROM said_upto WHERE thread = $1",
    "DELETE FROM interactions WHERE thread = $1",
    "DELETE FROM seal_keys WHERE thread = $1",
)
_OF_KEY: Final = (
    "DELETE FROM states WHERE owner = $1",
    "DELETE FROM feedback WHERE thread = $1",
    "DELETE FROM permissions WHERE thread = $1",
    DROP_RUN,
)
_DROP_HEARTBEATS = "DELETE FROM states WHERE graph = $1"
_DROP_JOBS = "DELETE FROM jobs WHERE thread = $1 AND kind <> $2"


class PostgresPage:
    """The page's books in a Postgres database."""

    def __init__(self, database: Database) -> None:
        self.people = PostgresPagePeople(database)
        self.chats = PostgresPageChats(database)
        self.workflows = PostgresSavedWorkflows(database)


class PostgresPageChats:
    """Names and deletions of conversations in a Postgres database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def rename(self, thread: str, name: str) -> None:
        async def change(db: Connection) -> None:
            await db.execute(_RENAME, thread, plain(name))

        await self._database.write(change)

    async def names(self, threads: Collection[str]) -> Mapping[str, str]:
        rows = await self._database.read(lambda db: db.fetch(_NAMES, list(threads)))
        return {row["thread"]: row["name"] for row in rows}

    async def deleted(self) -> frozenset[str]:
        rows = await self._database.read(lambda db: db.fetch(_DELETED))
        return frozenset(row["thread"] for row in rows)

    async def begin_deletion(self, thread: str, job: NewJob) -> None:
        body = encode_body(job.body)

        async def change(db: Connection) -> None:
            await db.execute(_HIDE, thread)
            held = await db.fetchval(_HOLD, thread)
            if held is not None:
                await db.execute(_CANCEL, held)
            await add_job(db, job, body)

        await self._database.write(change)

    async def erase(self, thread: str, *, owner: str, fence: int, but_jobs: str) -> None:
        lease = Lease(thread=thread, owner=owner, fence=fence, expires_at=0.0)

        async def change(db: Connection) -> None:
            await _erase(db, await require_fence(db, lease), thread, but_jobs)

        await self._database.write(change)


async def _erase(db: Connection, thread: int, key: str, but_jobs: str) -> None:
    left = [
        (encode_body({"native_id": native_id_of(decode_body(row["body"]))}), row["seq"])
        for row in await db.fetch(_ENTRIES, thread)
    ]
    await db.executemany(_EMPTY_ENTRY, left)
    await db.execute(_EMPTY_REPLIES, thread, FORGOTTEN)
    for statement in _OF_THREAD:
        await db.execute(statement, thread)
    for statement in _OF_KEY:
        await db.execute(statement, key)
    await db.execute(_DROP_HEARTBEATS, state_in(key))
    await db.execute(_DROP_JOBS, key, but_jobs)

"""SQL on names and deletions of conversations, and the part of the store that runs it in its threads."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Mapping

from gateway.storage.heartbeats import state_in
from gateway.storage.jobs import NewJob
from gateway.storage.json_bodies import FORGOTTEN, encode_body, storable_text
from gateway.storage.ports import Lease
from gateway.storage.sqlite import inbox, jobs, threads
from gateway.storage.sqlite.group_commit import GroupCommit
from gateway.storage.sqlite.page_people import SqlitePagePeople
from gateway.storage.sqlite.saved_workflows import DROP_RUN, SqliteSavedWorkflows
from gateway.storage.sqlite.seals import OF_THREAD
from gateway.storage.sqlite.secure_overwrite import filled
from gateway.storage.sqlite.worker_thread import DatabaseThread

_RENAME = """
    INSERT INTO page_chats (thread, name, deleted) VALUES (?, ?, 0)
    ON CONFLICT (thread) DO UPDATE SET name = excluded.name"""
_NAME = "SELECT name FROM page_chats WHERE thread = ? AND name <> '' AND NOT deleted"
_DELETED = "SELECT thread FROM page_chats WHERE deleted"
_HIDE = """
    INSERT INTO page_chats (thread, name, deleted) VALUES (?, '', 1)
    ON CONFLICT (thread) DO UPDATE SET name = '', deleted = 1"""
_BODIES = {
    "log": "id",
    "inbox": "seq",
    "outbox": "id",
    "interactions": "n",
}
"""The tables whose rows hold the texts of a thread, each with its key."""
_NATIVE_ID = "SELECT seq, json_extract(body, '$.native_id') FROM inbox WHERE thread = ?"
_FINISH = """
    UPDATE inbox SET outcome = 'cancelled', finished_at = received_at WHERE thread = ? AND outcome IS NULL"""
_FAIL = "UPDATE outbox SET state = 'failed', error = '' WHERE thread = ? AND state IN ('ready', 'sending')"
# The newest record stays, without its text, because the next id is one more than the greatest one.
_DROP_RECORDS = "DELETE FROM log WHERE thread = ? AND id < (SELECT max(id) FROM log)"
_KEEP_LAST = "UPDATE log SET kind = 'notice', session_id = '' WHERE thread = ?"
_DROP_QUESTIONS = "DELETE FROM interactions WHERE thread = ?"
_DROP_JOBS = "DELETE FROM jobs WHERE thread = ? AND kind <> ?"
_DROP_STATES = "DELETE FROM states WHERE owner = ?"
_DROP_HEARTBEATS = "DELETE FROM states WHERE graph = ?"
# Those of its sessions, which the log names.
_DROP_SESSION_STATES = """
    DELETE FROM states WHERE owner IN (SELECT 'session:' || session_id FROM log WHERE thread = ?)"""
_DROP_TAINTS = """
    DELETE FROM taints WHERE session_id IN (SELECT session_id FROM log WHERE thread = ?)"""
_DROP_PERMISSIONS = "DELETE FROM permissions WHERE thread = ?"
_DROP_FEEDBACK = "DELETE FROM feedback WHERE thread = ?"
# Deleted words stay in the index's segments until they are merged.
_MERGE_INDEX = "INSERT INTO said (said) VALUES ('optimize')"


class SqlitePage:
    """The page's books in one SQLite file: a part of `SqliteStore`."""

    def __init__(
        self,
        writer: Callable[[], DatabaseThread],
        reader: Callable[[], DatabaseThread],
        group_commit: GroupCommit,
    ) -> None:
        self.people = SqlitePagePeople(writer, reader)
        self.chats = SqlitePageChats(writer, reader, group_commit)
        self.workflows = SqliteSavedWorkflows(writer, reader)


class SqlitePageChats:
    """Names and deletions of conversations in one SQLite file."""

    def __init__(
        self,
        writer: Callable[[], DatabaseThread],
        reader: Callable[[], DatabaseThread],
        group_commit: GroupCommit,
    ) -> None:
        self._writer = writer
        self._reader = reader
        self._group_commit = group_commit

    async def rename(self, thread: str, name: str) -> None:
        def work(db: sqlite3.Connection) -> None:
            db.execute(_RENAME, (thread, storable_text(name)))

        await self._writer().submit(work)

    async def names(self, threads: Collection[str]) -> Mapping[str, str]:
        def work(db: sqlite3.Connection) -> dict[str, str]:
            found = {thread: db.execute(_NAME, (thread,)).fetchone() for thread in threads}
            return {thread: str(row[0]) for thread, row in found.items() if row is not None}

        return await self._reader().submit(work)

    async def deleted(self) -> frozenset[str]:
        return await self._reader().submit(lambda db: frozenset(row[0] for row in db.execute(_DELETED)))

    async def begin_deletion(self, thread: str, job: NewJob) -> None:
        body = encode_body(job.body)

        def work(db: sqlite3.Connection) -> None:
            db.execute(_HIDE, (thread,))
            inbox.cancel_open(db, thread, None, 0)
            jobs.add(db, job, body)

        await self._writer().submit(work)

    async def erase(self, thread: str, *, owner: str, fence: int, but_jobs: str) -> None:
        lease = Lease(thread=thread, owner=owner, fence=fence, expires_at=0.0)

        def work(db: sqlite3.Connection) -> None:
            _erase(db, threads.require_fence(db, lease), lease.thread, but_jobs)
            self._group_commit.erased()

        await self._writer().submit(work)


def _erase(db: sqlite3.Connection, thread: int, key: str, but_jobs: str) -> None:
    native = {int(seq): str(native_id or "") for seq, native_id in db.execute(_NATIVE_ID, (thread,))}
    # Overwritten first and deleted afterwards: a deletion may move rows, which leaves copies of their texts.
    for table, column in _BODIES.items():
        sizes = f"SELECT {column}, length(CAST(body AS BLOB)) FROM {table} WHERE thread = ?"  # noqa: S608 - constants of this module
        for row, size in db.execute(sizes, (thread,)).fetchall():
            left = encode_body({"native_id": native[row]}) if table == "inbox" else FORGOTTEN
            overwrite = f"UPDATE {table} SET body = ? WHERE {column} = ?"  # noqa: S608 - constants of this module
            db.execute(overwrite, (filled(left, size), row))
    db.execute(OF_THREAD, (thread,))
    of_sessions = (_DROP_SESSION_STATES, _DROP_TAINTS)
    for statement in (_FINISH, _FAIL, *of_sessions, _DROP_RECORDS, _KEEP_LAST, _DROP_QUESTIONS):
        db.execute(statement, (thread,))
    db.execute(_DROP_JOBS, (key, but_jobs))
    db.execute(_DROP_STATES, (key,))
    db.execute(_DROP_HEARTBEATS, (state_in(key),))
    db.execute(_DROP_FEEDBACK, (key,))
    db.execute(_DROP_PERMISSIONS, (key,))
    db.execute(DROP_RUN, (key,))
    db.execute(_MERGE_INDEX)

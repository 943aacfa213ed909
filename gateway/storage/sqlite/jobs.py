"""SQL on jobs, and the part of the store that runs it in its threads."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from typing import Any

from gateway.storage.jobs import Job, JobState, NewJob
from gateway.storage.json_bodies import decode_body, encode_body, storable_text
from gateway.storage.sqlite.worker_thread import DatabaseThread

_COLUMNS = "SELECT id, kind, key, due, thread, owner, body, state, ready, attempts, fence, claimed, error"
_BURY = "DELETE FROM jobs WHERE kind = ? AND key = ? AND state = 'dead'"
_ADD = """
    INSERT INTO jobs (kind, key, due, ready, thread, owner, body) SELECT ?1, ?2, ?3, ?3, ?4, ?5, ?6
    WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE kind = ?1 AND key = ?2)"""
_KNOWN = "SELECT 1 FROM jobs WHERE kind = ? AND key = ? AND state = 'open'"
_COUNT = "SELECT count(*) FROM jobs WHERE kind = ? AND owner = ? AND state = 'open'"
_CLAIM = """
    UPDATE jobs SET attempts = attempts + 1, fence = fence + 1, claimed = 1, ready = :until
    WHERE id = (
        SELECT id FROM jobs WHERE kind = :kind AND state = 'open' AND ready <= :now
        ORDER BY ready, id LIMIT 1)
    RETURNING
        id, kind, key, due, thread, owner, body, state, ready, attempts, fence, claimed, error"""
_NEXT = "SELECT min(ready) FROM jobs WHERE kind = ? AND state = 'open'"
_DONE = "DELETE FROM jobs WHERE id = ? AND fence = ? AND state = 'open'"
_RETRY = """
    UPDATE jobs SET ready = ?, error = ?, attempts = attempts - ?, claimed = 0
    WHERE id = ? AND fence = ? AND state = 'open'"""
_GIVE_UP = """
    UPDATE jobs SET state = 'dead', error = ?, claimed = 0
    WHERE id = ? AND fence = ? AND state = 'open'"""
_OF = f"{_COLUMNS} FROM jobs WHERE kind = ? AND owner = ? AND state = 'open' ORDER BY due, id"
_ALL_OF = f"{_COLUMNS} FROM jobs WHERE kind = ? AND state = 'open' ORDER BY id"
_CHANGE = """
    UPDATE jobs SET due = ?1, ready = ?1, body = ?2, fence = fence + 1, attempts = 0, claimed = 0
    WHERE kind = ?3 AND owner = ?4 AND key = ?5 AND state = 'open'"""
_REMOVE = "DELETE FROM jobs WHERE kind = ? AND owner = ? AND key = ?"
_LISTED = f"{_COLUMNS} FROM jobs WHERE ?1 IS NULL OR state = ?1 ORDER BY state, ready, id LIMIT ?2"
_REOPEN = """
    UPDATE jobs SET state = 'open', ready = due, attempts = 0, error = '' WHERE id = ? AND state = 'dead'"""
_DROP = "DELETE FROM jobs WHERE id = ?"
_BREAK = "UPDATE jobs SET claimed = 0, ready = due WHERE claimed"


class SqliteJobs:
    """The job book in one SQLite file: a part of `SqliteStore`."""

    def __init__(self, writer: Callable[[], DatabaseThread], reader: Callable[[], DatabaseThread]) -> None:
        # Fetched at each call, because a reopened store has new threads.
        self._writer = writer
        self._reader = reader

    async def add(self, job: NewJob, *, limit: int | None = None) -> bool:
        body = encode_body(job.body)

        def work(db: sqlite3.Connection) -> bool:
            is_known = db.execute(_KNOWN, (job.kind, job.key)).fetchone() is not None
            owned = db.execute(_COUNT, (job.kind, job.owner)).fetchone()[0]
            if limit is not None and not is_known and owned >= limit:
                return False
            add(db, job, body)
            return True

        return await self._writer().submit(work)

    async def claim(self, kind: str, *, now: float, until: float, by: str = "") -> Job | None:  # noqa: ARG002 - one process has the file
        values = {"kind": kind, "now": now, "until": until}
        return await self._writer().submit(lambda db: _one(db.execute(_CLAIM, values).fetchone()))

    async def next_ready(self, kind: str) -> float | None:
        soonest: float | None = await self._reader().submit(
            lambda db: db.execute(_NEXT, (kind,)).fetchone()[0]
        )
        return soonest

    async def done(self, job: Job) -> bool:
        return await self._write(_DONE, job.id, job.fence)

    async def retry(self, job: Job, *, at: float, error: str = "", counted: bool = True) -> bool:
        return await self._write(_RETRY, at, storable_text(error), int(not counted), job.id, job.fence)

    async def give_up(self, job: Job, *, error: str) -> bool:
        return await self._write(_GIVE_UP, storable_text(error), job.id, job.fence)

    async def of(self, kind: str, owner: str) -> tuple[Job, ...]:
        return await self._read(_OF, kind, owner)

    async def all_of(self, kind: str) -> tuple[Job, ...]:
        return await self._read(_ALL_OF, kind)

    async def change(self, kind: str, owner: str, key: str, *, due: float, body: Mapping[str, Any]) -> bool:
        return await self._write(_CHANGE, due, encode_body(body), kind, owner, key)

    async def remove(self, kind: str, owner: str, key: str) -> bool:
        return await self._write(_REMOVE, kind, owner, key)

    async def listed(self, *, limit: int, state: JobState | None = None) -> tuple[Job, ...]:
        return await self._read(_LISTED, state, limit)

    async def reopen(self, job_id: int) -> bool:
        return await self._write(_REOPEN, job_id)

    async def drop(self, job_id: int) -> bool:
        return await self._write(_DROP, job_id)

    async def break_leases(self) -> int:
        return await self._writer().submit(lambda db: db.execute(_BREAK).rowcount)

    async def _write(self, sql: str, *values: Any) -> bool:
        return await self._writer().submit(lambda db: db.execute(sql, values).rowcount > 0)

    async def _read(self, sql: str, *values: Any) -> tuple[Job, ...]:
        return await self._reader().submit(lambda db: tuple(_job(row) for row in db.execute(sql, values)))


def add(db: sqlite3.Connection, job: NewJob, body: str) -> None:
    """Add the job inside the caller's transaction, unless an open one has its kind and key."""
    db.execute(_BURY, (job.kind, job.key))
    db.execute(_ADD, (job.kind, job.key, job.due, job.thread, job.owner, body))


def change(db: sqlite3.Connection, job: NewJob, body: str) -> None:
    """Give the owner's open job another due time and body inside the caller's transaction."""
    db.execute(_CHANGE, (job.due, body, job.kind, job.owner, job.key))


def _one(row: tuple[Any, ...] | None) -> Job | None:
    return None if row is None else _job(row)


def _job(row: tuple[Any, ...]) -> Job:
    identity, kind, key, due, thread, owner, body, state, ready, attempts, fence, claimed, error = row
    return Job(
        id=identity,
        kind=kind,
        key=key,
        due=due,
        thread=thread,
        owner=owner,
        body=_readable(body),
        state=state,
        ready=ready,
        attempts=attempts,
        fence=fence,
        claimed=bool(claimed),
        error=error,
    )


def _readable(body: str) -> dict[str, Any]:
    """The decoded body; an empty one if it is damaged, which the handler refuses."""
    try:
        return decode_body(body)
    except ValueError:
        return {}

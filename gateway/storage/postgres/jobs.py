"""SQL on jobs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from gateway.storage.jobs import Job, JobState, NewJob
from gateway.storage.json_bodies import decode_body, encode_body
from gateway.storage.postgres.call_queue import Row
from gateway.storage.postgres.database import Connection, Database
from gateway.storage.postgres.operations import as_json, job, plain
from gateway.storage.postgres.statements import changed, lock

_COLUMNS = "id, kind, key, due, thread, owner, body, state, ready, attempts, fence, claimed, error"
_KNOWN = "SELECT 1 FROM jobs WHERE kind = $1 AND key = $2 AND state = 'open'"
_COUNT = "SELECT count(*) FROM jobs WHERE kind = $1 AND owner = $2 AND state = 'open'"
_ADD = "SELECT add_job($1::jsonb)"
# Two processes that look at the same time claim two jobs.
_CLAIM = f"""
    UPDATE jobs SET attempts = attempts + 1, fence = fence + 1, claimed = true, ready = $3, claimed_by = $4
    WHERE id = (
        SELECT id FROM jobs WHERE kind = $1 AND state = 'open' AND ready <= $2
        ORDER BY ready, id LIMIT 1 FOR UPDATE SKIP LOCKED)
    RETURNING {_COLUMNS}"""  # noqa: S608 - a constant
_GONE = """
    FROM jobs WHERE claimed AND claimed_by <> ''
        AND NOT EXISTS (SELECT 1 FROM owners WHERE owners.id = claimed_by AND expires_at > unix_now())"""
# Two processes that look at the same time do not wait for each other.
_TAKE_BACK = f"""
    UPDATE jobs SET claimed = false, ready = due
    WHERE id IN (SELECT id {_GONE} FOR UPDATE OF jobs SKIP LOCKED)"""  # noqa: S608 - a constant
_ANY_GONE = f"SELECT EXISTS (SELECT 1 {_GONE})"
_SOONEST = """
    SELECT kind, (SELECT min(ready) FROM jobs WHERE jobs.kind = wanted.kind AND state = 'open')
    FROM unnest($1::text[]) AS wanted(kind)"""
_NEXT = "SELECT min(ready) FROM jobs WHERE kind = $1 AND state = 'open'"
_DONE = "DELETE FROM jobs WHERE id = $1 AND fence = $2 AND state = 'open'"
_RETRY = """
    UPDATE jobs SET ready = $3, error = $4, attempts = attempts - $5, claimed = false
    WHERE id = $1 AND fence = $2 AND state = 'open'"""
_GIVE_UP = """
    UPDATE jobs SET state = 'dead', error = $3, claimed = false
    WHERE id = $1 AND fence = $2 AND state = 'open'"""
_SELECT = f"SELECT {_COLUMNS} FROM jobs "  # noqa: S608 - a constant
_OF = _SELECT + "WHERE kind = $1 AND owner = $2 AND state = 'open' ORDER BY due, id"
_ALL_OF = _SELECT + "WHERE kind = $1 AND state = 'open' ORDER BY id"
CHANGE: Final = """
    UPDATE jobs SET due = $4, ready = $4, body = $5, fence = fence + 1, attempts = 0, claimed = false
    WHERE kind = $1 AND owner = $2 AND key = $3 AND state = 'open'"""
_REMOVE = "DELETE FROM jobs WHERE kind = $1 AND owner = $2 AND key = $3"
_LISTED = _SELECT + "WHERE $1::text IS NULL OR state = $1 ORDER BY state, ready, id LIMIT $2"
_REOPEN = """
    UPDATE jobs SET state = 'open', ready = due, attempts = 0, error = '' WHERE id = $1 AND state = 'dead'"""
_DROP = "DELETE FROM jobs WHERE id = $1"
_BREAK = "UPDATE jobs SET claimed = false, ready = due WHERE claimed"


class PostgresJobs:
    """The job book in a Postgres database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, new: NewJob, *, limit: int | None = None) -> bool:
        given = as_json(job(new))

        async def work(db: Connection) -> bool:
            if limit is not None:
                # Other processes count too.
                await lock(db, f"jobs {new.kind} {new.owner}")
                known = await db.fetchval(_KNOWN, new.kind, new.key)
                if known is None and await db.fetchval(_COUNT, new.kind, new.owner) >= limit:
                    return False
            await db.execute(_ADD, given)
            return True

        return await self._database.write(work)

    async def claim(self, kind: str, *, now: float, until: float, by: str = "") -> Job | None:
        row = await self._database.write(lambda db: db.fetchrow(_CLAIM, kind, now, until, by))
        return None if row is None else _job(row)

    async def take_back(self, *, now: float) -> int:  # noqa: ARG002 - the database has a clock
        # Read first, because each process looks each second, and there is seldom one.
        if not (await self._database.fetch(_ANY_GONE))[0][0]:
            return 0
        return changed(await self._database.write(lambda db: db.execute(_TAKE_BACK)))

    async def soonest(self, kinds: Collection[str]) -> Mapping[str, float]:
        found = await self._database.fetch(_SOONEST, list(kinds))
        return {row[0]: row[1] for row in found if row[1] is not None}

    async def next_ready(self, kind: str) -> float | None:
        soonest: float | None = (await self._database.fetch(_NEXT, kind))[0][0]
        return soonest

    async def done(self, job: Job) -> bool:
        return await self._write(_DONE, job.id, job.fence)

    async def retry(self, job: Job, *, at: float, error: str = "", counted: bool = True) -> bool:
        return await self._write(_RETRY, job.id, job.fence, at, plain(error), int(not counted))

    async def give_up(self, job: Job, *, error: str) -> bool:
        return await self._write(_GIVE_UP, job.id, job.fence, plain(error))

    async def of(self, kind: str, owner: str) -> tuple[Job, ...]:
        return await self._read(_OF, kind, owner)

    async def all_of(self, kind: str) -> tuple[Job, ...]:
        return await self._read(_ALL_OF, kind)

    async def change(self, kind: str, owner: str, key: str, *, due: float, body: Mapping[str, Any]) -> bool:
        return await self._write(CHANGE, kind, owner, key, due, encode_body(body))

    async def remove(self, kind: str, owner: str, key: str) -> bool:
        return await self._write(_REMOVE, kind, owner, key)

    async def listed(self, *, limit: int, state: JobState | None = None) -> tuple[Job, ...]:
        return await self._read(_LISTED, state, limit)

    async def reopen(self, job_id: int) -> bool:
        return await self._write(_REOPEN, job_id)

    async def drop(self, job_id: int) -> bool:
        return await self._write(_DROP, job_id)

    async def break_leases(self) -> int:
        return changed(await self._database.write(lambda db: db.execute(_BREAK)))

    async def _write(self, sql: str, *values: Any) -> bool:
        return changed(await self._database.write(lambda db: db.execute(sql, *values))) > 0

    async def _read(self, sql: str, *values: Any) -> tuple[Job, ...]:
        return tuple(_job(row) for row in await self._database.fetch(sql, *values))


def _job(row: Row) -> Job:
    values = dict(row)
    return Job(**values | {"body": _readable(values["body"])})


def _readable(body: str) -> dict[str, Any]:
    """The decoded body; an empty one if it is damaged, which the handler refuses."""
    try:
        return decode_body(body)
    except ValueError:
        return {}

"""SQL on the rows of threads and jobs that the books write with their own, in the caller's transaction."""

from __future__ import annotations

from gateway.storage.append_errors import fence_lost
from gateway.storage.jobs import NewJob
from gateway.storage.ports import Lease
from gateway.storage.postgres.database import Connection
from gateway.storage.postgres.statements import plain

# The row stays locked, as in every write to a thread.
_FENCED = "SELECT id FROM threads WHERE key = $1 AND fence = $2 AND owner = $3 FOR UPDATE"
_BURY = "DELETE FROM jobs WHERE kind = $1 AND key = $2 AND state = 'dead'"
_ADD = """
    INSERT INTO jobs (kind, key, due, ready, thread, owner, body) VALUES ($1, $2, $3, $3, $4, $5, $6)
    ON CONFLICT (kind, key) DO NOTHING"""


async def require_fence(db: Connection, lease: Lease) -> int:
    """The short id of the lease's thread. Raises FenceLost if the lease is no longer current."""
    found = await db.fetchval(_FENCED, lease.thread, lease.fence, lease.owner)
    if found is None:
        raise fence_lost(lease)
    return int(found)


async def add_job(db: Connection, job: NewJob, body: str) -> None:
    """Add a job, unless there is one with its key. One that was given up goes before."""
    await db.execute(_BURY, job.kind, job.key)
    await db.execute(_ADD, job.kind, job.key, job.due, job.thread, plain(job.owner), body)

"""What the SQL of every book shares: counts of changed rows, texts that Postgres can hold, and locks."""

from __future__ import annotations

from gateway.storage.json_bodies import storable_text
from gateway.storage.memories import storable_owner
from gateway.storage.postgres.database import Connection


def changed(status: str) -> int:
    """How many rows a statement has changed, by the status that it returned, such as `UPDATE 3`."""
    return int(status.rpartition(" ")[2])


def plain(text: str) -> str:
    """`text` with question marks for characters that Postgres cannot hold."""
    return storable_text(text).replace("\0", "?")


def memory_key(key: str) -> str:
    """The key of an owner of memories, or of something of theirs, as Postgres can hold it: different for
    different keys."""
    return storable_owner(key).replace("\0", "\\x00")


async def lock(db: Connection, name: str) -> None:
    """Wait until no other transaction, of any process, holds the lock `name`. It is held until this one ends.

    Statements that first read and then write what they depend on need it: other processes write too.
    """
    await db.execute("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", name)

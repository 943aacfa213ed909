"""Blobs in a Postgres database: every process of a gateway reads them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from gateway.storage.blobs import NewBlob
from gateway.storage.chunked_blobs import ChunkedBlobs, StoredBlob, already_there, no_room
from gateway.storage.postgres import seals
from gateway.storage.postgres.database import Connection, Database
from gateway.storage.postgres.statements import changed, plain

_BEGIN = """
    INSERT INTO blobs (name, thread, expires_at, sealed) VALUES ($1, $2, unix_now() + $3, $4)
    ON CONFLICT (name) DO NOTHING"""
_USED = "SELECT coalesce(sum(used), 0)::bigint FROM blobs"
_OLDEST = "SELECT name, used FROM blobs WHERE NOT kept AND name <> $1 ORDER BY expires_at"
_ADD = "INSERT INTO blob_chunks (name, n, content) VALUES ($1, $2, $3)"
_COUNT = "UPDATE blobs SET used = used + $1 WHERE name = $2"
_FINISH = "UPDATE blobs SET size = $1, digest = $2 WHERE name = $3"
_KEEP = "UPDATE blobs SET kept = true, expires_at = unix_now() + $2 WHERE name = ANY($1::text[])"
_ONE = """
    SELECT size, digest, sealed FROM blobs
    WHERE name = $1 AND size IS NOT NULL AND expires_at > unix_now()"""
_CHUNKS = "SELECT content FROM blob_chunks WHERE name = $1 ORDER BY n"
_NAMED = "SELECT name FROM blobs WHERE name = ANY($1::text[]) FOR UPDATE"
_OF_THREADS = "SELECT name FROM blobs WHERE starts_with(thread, $1) FOR UPDATE"
_EXPIRED = "SELECT name FROM blobs WHERE expires_at <= unix_now() FOR UPDATE SKIP LOCKED"
_DROP_KEYS = "DELETE FROM seal_keys WHERE name = ANY($1::text[])"
_DROP = (
    "DELETE FROM blob_chunks WHERE name = ANY($1::text[])",
    "DELETE FROM blobs WHERE name = ANY($1::text[])",
)


class PostgresBlobs(ChunkedBlobs):
    """See `BlobBook`. Two processes that store at the same time may exceed the bound by what both add."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def keep(self, names: Collection[str], *, ttl_s: float) -> None:
        await self._database.write(lambda db: db.execute(_KEEP, list(names), ttl_s))

    async def delete(self, names: Collection[str]) -> int:
        return await self._drop(_NAMED, [plain(name) for name in names])

    async def delete_of(self, threads: str) -> int:
        return await self._drop(_OF_THREADS, plain(threads))

    async def expire(self) -> int:
        return await self._drop(_EXPIRED)

    async def total_bytes(self) -> int:
        return int((await self._database.fetch(_USED))[0][0])

    async def _begin(self, blob: NewBlob, key: bytes) -> bool:
        async def work(db: Connection) -> bool:
            is_sealed = bool(await db.fetchval(seals.IS_OFF_RECORD, blob.thread))
            begun = await db.execute(_BEGIN, blob.name, blob.thread, blob.ttl_s, is_sealed)
            if not changed(begun):
                raise already_there(blob.name)
            if is_sealed:
                await db.execute(seals.PUT, blob.name, blob.thread, key)
            return is_sealed

        return await self._database.write(work)

    async def _add(self, name: str, number: int, content: bytes, most_bytes: int) -> None:
        async def work(db: Connection) -> None:
            left = most_bytes - len(content) - await db.fetchval(_USED)
            going = []
            for other, used in await db.fetch(_OLDEST, name) if left < 0 else ():
                if left < 0:
                    going.append(other)
                    left += used
            await _dropped(db, going)
            if left < 0 or not changed(await db.execute(_COUNT, len(content), name)):
                raise no_room()
            await db.execute(_ADD, name, number, content)

        await self._database.write(work)

    async def _finish(self, name: str, size: int, digest: bytes) -> None:
        if not changed(await self._database.write(lambda db: db.execute(_FINISH, size, digest, name))):
            raise no_room()

    async def _stored(self, name: str) -> StoredBlob | None:
        async def work(db: Connection) -> StoredBlob | None:
            row = await db.fetchrow(_ONE, name)
            if row is None:
                return None
            chunks = [one["content"] for one in await db.fetch(_CHUNKS, name)]
            keys = await db.fetch(seals.KEYS, [name]) if row["sealed"] else ()
            key = keys[0]["key"] if keys else None
            return StoredBlob(
                size=row["size"], digest=row["digest"], chunks=chunks, is_sealed=row["sealed"], key=key
            )

        return await self._database.read(work)

    async def _drop(self, which: str, *values: Any) -> int:
        async def work(db: Connection) -> tuple[int, int]:
            names = [row["name"] for row in await db.fetch(which, *values)]
            return len(names), await _dropped(db, names)

        blobs, keys = await self._database.write(work)
        if keys:
            seals.overwrite_keys(self._database)
        return blobs


async def _dropped(db: Connection, names: Collection[str]) -> int:
    """Delete blobs; how many had a key."""
    if not names:
        return 0
    for statement in _DROP:
        await db.execute(statement, list(names))
    return changed(await db.execute(_DROP_KEYS, list(names)))

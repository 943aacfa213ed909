"""Blobs in one SQLite file: a part of `SqliteStore`."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection
from typing import Any

from gateway.storage.blobs import NewBlob
from gateway.storage.chunked_blobs import ChunkedBlobs, StoredBlob, already_there, no_room
from gateway.storage.sqlite import seals
from gateway.storage.sqlite.group_commit import GroupCommit
from gateway.storage.sqlite.worker_thread import DatabaseThread

_NOW = "(julianday('now') - 2440587.5) * 86400.0"
_BEGIN = f"""
    INSERT INTO blobs (name, thread, expires_at, sealed) VALUES (?, ?, {_NOW} + ?, ?)
    ON CONFLICT (name) DO NOTHING"""  # noqa: S608 - a constant
_USED = "SELECT coalesce(sum(used), 0) FROM blobs"
_OLDEST = "SELECT name, used FROM blobs WHERE NOT kept AND name <> ? ORDER BY expires_at"
_ADD = "INSERT INTO blob_chunks (name, n, content) VALUES (?, ?, ?)"
_COUNT = "UPDATE blobs SET used = used + ? WHERE name = ?"
_FINISH = "UPDATE blobs SET size = ?, digest = ? WHERE name = ?"
_KEEP = f"UPDATE blobs SET kept = 1, expires_at = {_NOW} + ? WHERE name = ?"  # noqa: S608 - a constant
_ONE = f"""
    SELECT size, digest, sealed FROM blobs
    WHERE name = ? AND size IS NOT NULL AND expires_at > {_NOW}"""  # noqa: S608 - a constant
_CHUNKS = "SELECT content FROM blob_chunks WHERE name = ? ORDER BY n"
_NAMED = "SELECT name FROM blobs WHERE name IN (SELECT value FROM json_each(?))"
_OF_THREADS = "SELECT name FROM blobs WHERE substr(thread, 1, length(?1)) = ?1"
_EXPIRED = f"SELECT name FROM blobs WHERE expires_at <= {_NOW}"  # noqa: S608 - a constant
_DROP = (
    "DELETE FROM blob_chunks WHERE name = ?",
    "DELETE FROM seal_keys WHERE name = ?",
    "DELETE FROM blobs WHERE name = ?",
)


class SqliteBlobs(ChunkedBlobs):
    """See `BlobBook`."""

    def __init__(
        self,
        writer: Callable[[], DatabaseThread],
        reader: Callable[[], DatabaseThread],
        group_commit: GroupCommit,
    ) -> None:
        self._writer = writer
        self._reader = reader
        self._group_commit = group_commit

    async def keep(self, names: Collection[str], *, ttl_s: float) -> None:
        rows = [(ttl_s, name) for name in names]
        await self._writer().submit(lambda db: db.executemany(_KEEP, rows).rowcount)

    async def delete(self, names: Collection[str]) -> int:
        return await self._drop(_NAMED, json.dumps(list(names)))

    async def delete_of(self, threads: str) -> int:
        return await self._drop(_OF_THREADS, threads)

    async def expire(self) -> int:
        return await self._drop(_EXPIRED)

    async def total_bytes(self) -> int:
        return await self._reader().submit(lambda db: int(db.execute(_USED).fetchone()[0]))

    async def _begin(self, blob: NewBlob, key: bytes) -> bool:
        def work(db: sqlite3.Connection) -> bool:
            is_sealed = seals.is_off_record(db, blob.thread)
            if not db.execute(_BEGIN, (blob.name, blob.thread, blob.ttl_s, is_sealed)).rowcount:
                raise already_there(blob.name)
            if is_sealed:
                seals.put(db, blob.name, blob.thread, key)
            return is_sealed

        return await self._writer().submit(work)

    async def _add(self, name: str, number: int, content: bytes, most_bytes: int) -> None:
        def work(db: sqlite3.Connection) -> None:
            left = most_bytes - len(content) - db.execute(_USED).fetchone()[0]
            for other, used in db.execute(_OLDEST, (name,)).fetchall() if left < 0 else ():
                if left < 0:
                    self._drop_now(db, [other])
                    left += used
            if left < 0 or not db.execute(_COUNT, (len(content), name)).rowcount:
                raise no_room()
            db.execute(_ADD, (name, number, content))

        await self._writer().submit(work)

    async def _finish(self, name: str, size: int, digest: bytes) -> None:
        def work(db: sqlite3.Connection) -> None:
            if not db.execute(_FINISH, (size, digest, name)).rowcount:
                raise no_room()

        await self._writer().submit(work)

    async def _stored(self, name: str) -> StoredBlob | None:
        def work(db: sqlite3.Connection) -> StoredBlob | None:
            row = db.execute(_ONE, (name,)).fetchone()
            if row is None:
                return None
            size, digest, is_sealed = row
            chunks = [content for (content,) in db.execute(_CHUNKS, (name,))]
            key = seals.key_of(db, name) if is_sealed else None
            return StoredBlob(size=size, digest=digest, chunks=chunks, is_sealed=bool(is_sealed), key=key)

        return await self._reader().submit(work)

    async def _drop(self, which: str, *values: Any) -> int:
        def work(db: sqlite3.Connection) -> int:
            names = [name for (name,) in db.execute(which, values)]
            self._drop_now(db, names)
            return len(names)

        return await self._writer().submit(work)

    def _drop_now(self, db: sqlite3.Connection, names: Collection[str]) -> None:
        for statement in _DROP:
            db.executemany(statement, [(name,) for name in names])
        self._group_commit.forgot |= bool(names)

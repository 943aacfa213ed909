"""Blobs in dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from gateway.storage.blobs import NewBlob
from gateway.storage.chunked_blobs import ChunkedBlobs, StoredBlob, already_there, no_room
from gateway.storage.memory.rows import ThreadRow
from gateway.storage.memory.seals import Keys
from pipeline.domain.clock import SystemClock


@dataclass(slots=True, kw_only=True)
class _Row:
    thread: str
    expires_at: float
    is_sealed: bool
    size: int = -1
    digest: bytes = b""
    kept: bool = False
    chunks: list[bytes] = field(default_factory=list)

    @property
    def bytes_used(self) -> int:
        return sum(map(len, self.chunks))


class MemoryBlobs(ChunkedBlobs):
    """A part of `MemoryStore`, whose threads and keys it shares. `require_open` raises StorageError if the
    store is closed."""

    def __init__(
        self, require_open: Callable[[], None], threads: Mapping[str, ThreadRow], keys: Keys
    ) -> None:
        self._require_open = require_open
        self._threads = threads
        self._keys = keys
        self._rows: dict[str, _Row] = {}
        """By name, the oldest first."""
        self._now = SystemClock().now

    async def keep(self, names: Collection[str], *, ttl_s: float) -> None:
        self._require_open()
        for row in [self._rows[name] for name in names if name in self._rows]:
            row.kept, row.expires_at = True, self._now() + ttl_s

    async def delete(self, names: Collection[str]) -> int:
        self._require_open()
        return self._drop([name for name in names if name in self._rows])

    async def delete_of(self, threads: str) -> int:
        self._require_open()
        return self._drop([name for name, row in self._rows.items() if row.thread.startswith(threads)])

    async def expire(self) -> int:
        self._require_open()
        return self._drop([name for name, row in self._rows.items() if row.expires_at <= self._now()])

    async def total_bytes(self) -> int:
        self._require_open()
        return sum(row.bytes_used for row in self._rows.values())

    async def _begin(self, blob: NewBlob, key: bytes) -> bool:
        self._require_open()
        if blob.name in self._rows:
            raise already_there(blob.name)
        thread = self._threads.get(blob.thread)
        is_sealed = thread is not None and thread.seals
        if is_sealed:
            self._keys[blob.name] = key
        self._rows[blob.name] = _Row(
            thread=blob.thread, expires_at=self._now() + blob.ttl_s, is_sealed=is_sealed
        )
        return is_sealed

    async def _add(self, name: str, number: int, content: bytes, most_bytes: int) -> None:
        self._require_open()
        left = most_bytes - len(content) - await self.total_bytes()
        for other, row in list(self._rows.items()):
            if left < 0 and other != name and not row.kept:
                left += row.bytes_used
                self._drop([other])
        if left < 0 or name not in self._rows:
            raise no_room()
        self._rows[name].chunks[number:] = [content]

    async def _finish(self, name: str, size: int, digest: bytes) -> None:
        self._require_open()
        if name not in self._rows:
            raise no_room()
        self._rows[name].size, self._rows[name].digest = size, digest

    async def _stored(self, name: str) -> StoredBlob | None:
        self._require_open()
        row = self._rows.get(name)
        if row is None or row.size < 0 or row.expires_at <= self._now():
            return None
        key = self._keys.get(name) if row.is_sealed else None
        return StoredBlob(
            size=row.size, digest=row.digest, chunks=row.chunks, is_sealed=row.is_sealed, key=key
        )

    def _drop(self, names: Iterable[str]) -> int:
        dropped = 0
        for name in names:
            del self._rows[name]
            self._keys.pop(name, None)
            dropped += 1
        return dropped

"""What the blobs of every store share: chunks, sizes, hashes and seals. The stores add their rows."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Collection, Sequence

from gateway.storage.blobs import CHUNK_BYTES, BlobGone, BlobTooLarge, NewBlob
from gateway.storage.sealing import new_key, opened_bytes, sealed_bytes
from pipeline.domain.errors import StorageError
from pipeline.domain.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBlob:
    """A blob as a store keeps it."""

    size: int
    digest: bytes
    """SHA-256 of the content."""
    chunks: Sequence[bytes]
    is_sealed: bool
    key: bytes | None


class ChunkedBlobs(ABC):
    """The methods of `BlobBook` that are the same in every store, on the others."""

    async def put(
        self, blob: NewBlob, chunks: AsyncIterator[bytes], *, max_bytes: int, most_bytes: int
    ) -> int:
        """See `BlobBook.put`."""
        key = new_key()
        is_sealed = await self._begin(blob, key)
        try:
            size, digest = 0, hashlib.sha256()
            async for number, piece in _pieces(chunks, max_bytes):
                size += len(piece)
                digest.update(piece)
                stored = sealed_bytes(piece, key) if is_sealed else piece
                await self._add(blob.name, number, stored, most_bytes)
            await self._finish(blob.name, size, digest.digest())
        except BaseException:
            await self.delete((blob.name,))
            raise
        return size

    async def get(self, name: str, *, max_bytes: int) -> bytes:
        """See `BlobBook.get`."""
        found = await self._stored(name)
        if found is None or (found.is_sealed and found.key is None):
            raise BlobGone("the file is no longer stored")
        if found.size > max_bytes:
            raise BlobTooLarge(f"the file has {found.size} bytes")
        chunks = found.chunks
        if found.key is not None:
            chunks = [opened_bytes(one, found.key) for one in chunks]
        content = b"".join(chunks)
        if len(content) != found.size or hashlib.sha256(content).digest() != found.digest:
            raise StorageError("a stored file is damaged: its content has another hash")
        return content

    @abstractmethod
    async def delete(self, names: Collection[str]) -> int:
        """See `BlobBook.delete`."""

    @abstractmethod
    async def _begin(self, blob: NewBlob, key: bytes) -> bool:
        """Add the row of a blob without content. Whether its thread is off the record: its key is kept."""

    @abstractmethod
    async def _add(self, name: str, number: int, content: bytes, most_bytes: int) -> None:
        """Add the chunk `number`, from 0, after making room for it."""

    @abstractmethod
    async def _finish(self, name: str, size: int, digest: bytes) -> None:
        """Note that the blob is whole."""

    @abstractmethod
    async def _stored(self, name: str) -> StoredBlob | None:
        """The whole blob; None if there is none or its time is over."""


def no_room() -> StorageError:
    """The error for a blob that does not fit."""
    return StorageError("there is no room for the file now; try again later")


def already_there(name: str) -> StorageError:
    """The error for a second blob of a name."""
    return StorageError(f"a file is stored under the name {name} already")


async def _pieces(chunks: AsyncIterator[bytes], max_bytes: int) -> AsyncIterator[tuple[int, bytes]]:
    """The content in chunks of one size, with their numbers. Raises BlobTooLarge."""
    waiting, size, number = bytearray(), 0, 0
    async for chunk in chunks:
        size += len(chunk)
        if size > max_bytes:
            raise BlobTooLarge(f"the file has more than {max_bytes} bytes")
        waiting += chunk
        while len(waiting) >= CHUNK_BYTES:
            yield number, bytes(waiting[:CHUNK_BYTES])
            del waiting[:CHUNK_BYTES]
            number += 1
    if waiting:
        yield number, bytes(waiting)

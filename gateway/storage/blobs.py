"""Port for the bytes of files between their arrival and the end of their turn, for a limited time. A part of
`Store`.

A blob is stored in rows of 256 kB. It belongs to a thread, and is sealed like the thread's messages while
that is off the record (`gateway.storage.sealing`). Every method raises StorageError when the store fails.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from typing import Final, Protocol

from pipeline.domain.errors import StorageError
from pipeline.domain.frozen import dataclass

CHUNK_BYTES: Final = 256 * 1024


class BlobGone(StorageError):
    """There is no such blob, or its time is over, or it was off the record and its key is gone."""


class BlobTooLarge(StorageError):
    """The blob has more bytes than allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewBlob:
    """A blob to store."""

    name: str
    """Unique; a second blob of the name is refused."""
    thread: str
    """The key of the thread that it belongs to."""
    ttl_s: float
    """For how many seconds it is stored at most, by the store's clock."""


class BlobBook(Protocol):
    """Files that wait for their turn."""

    async def put(
        self, blob: NewBlob, chunks: AsyncIterator[bytes], *, max_bytes: int, most_bytes: int
    ) -> int:
        """Store a blob durably while it arrives; its size in bytes.

        While all blobs together have more than `most_bytes`, the oldest ones that are not kept are deleted.
        Raises BlobTooLarge, StorageError if there is no room, and what `chunks` raises; then nothing is left
        of it.
        """
        ...

    async def get(self, name: str, *, max_bytes: int) -> bytes:
        """The content. Raises BlobGone, BlobTooLarge, and StorageError if it is damaged."""
        ...

    async def keep(self, names: Collection[str], *, ttl_s: float) -> None:
        """Note that these blobs belong to a message: they are stored for `ttl_s` seconds from now, and not
        deleted for new ones."""
        ...

    async def delete(self, names: Collection[str]) -> int:
        """Delete the blobs; how many there were."""
        ...

    async def delete_of(self, threads: str) -> int:
        """Delete the blobs of the threads whose keys begin with `threads`; how many there were."""
        ...

    async def expire(self) -> int:
        """Delete the blobs whose time is over; how many there were."""
        ...

    async def total_bytes(self) -> int:
        """The size of all blobs together, in bytes."""
        ...

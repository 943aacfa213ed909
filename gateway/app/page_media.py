"""Uploads and voice notes of the page, in the store or in a folder, until their turn has ended.

With several processes the page is served by one and the turn runs in another, so there they are blobs of the
store. One process on SQLite keeps files: they stream past the database and its log. What the other place has,
after the store was moved (`parlour store migrate`), is found there.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import AsyncIterator, Collection, Iterable

from adapters.web.inbound import thread_of
from adapters.web.media import MediaInbox, TooLarge, upload_name
from adapters.web.settings import CHANNEL
from gateway.storage.blobs import BlobBook, BlobGone, BlobTooLarge, NewBlob
from pipeline.domain.attachments import file_size
from pipeline.domain.clock import Clock
from pipeline.domain.errors import MediaUnavailable, StorageError
from pipeline.domain.messages import MediaRef

_log = logging.getLogger(__name__)

_MOST_BYTES = 1_000_000_000
"""The most of all uploads together; those whose message has not come make room for new ones."""
_WAITING_S = 3_600.0
_KEPT_S = 7 * 86_400.0
"""How long an upload waits for the turn of its message."""
_EXPIRE_EVERY_S = 300.0


class PageMedia:
    """The `adapters.web.media.UploadStore` of a gateway: new files go into `blobs` if `in_store`, else into
    the `folder`."""

    def __init__(self, folder: MediaInbox, blobs: BlobBook, clock: Clock, *, in_store: bool) -> None:
        self._folder = folder
        self._blobs = blobs
        self._clock = clock
        self._in_store = in_store

    async def receive(self, chunks: AsyncIterator[bytes], *, chat: str, max_bytes: int) -> tuple[str, int]:
        """See `UploadStore.receive`."""
        if not self._in_store:
            return await self._folder.receive(chunks, chat=chat, max_bytes=max_bytes)
        handle = f"u_{secrets.token_hex(16)}"
        return handle, await self._put(upload_name(chat, handle), chunks, chat, max_bytes, _WAITING_S)

    async def store(self, content: bytes, *, mime: str, chat: str) -> MediaRef:
        """See `UploadStore.store`."""
        if not self._in_store:
            return await self._folder.store(content, mime=mime, chat=chat)
        name = f"v_{secrets.token_hex(16)}"
        await self._put(name, _whole(content), chat, len(content), _KEPT_S)
        return MediaRef(channel=CHANNEL, handle=name, mime=mime, size=len(content))

    async def claim(self, names: Iterable[str]) -> None:
        """See `UploadStore.claim`."""
        named = list(names)
        if not self._in_store or not named:
            return await self._folder.claim(named)
        try:
            await self._blobs.keep(named, ttl_s=_KEPT_S)
        except StorageError as error:
            # Their message is accepted: its turn has the time of a waiting upload to take them.
            _log.warning("uploads are kept for an hour only", extra={"reason": str(error)})

    async def download(self, ref: MediaRef, *, max_bytes: int) -> bytes:
        """See `UploadStore.download`."""
        if not self._in_store:
            try:
                return await self._folder.download(ref, max_bytes=max_bytes)
            except MediaUnavailable as gone:
                return await self._from_store(ref, max_bytes, gone)
        name = self._folder.checked(ref)
        try:
            return await self._blobs.get(name, max_bytes=max_bytes)
        except BlobGone:
            return await self._folder.download(ref, max_bytes=max_bytes)
        except BlobTooLarge:
            raise MediaUnavailable(f"It is larger than {file_size(max_bytes)}.") from None
        except StorageError as error:
            _log.warning("an upload could not be read", extra={"reason": str(error)})
            raise MediaUnavailable("It cannot be read now; please send it again later.") from error

    async def discard(self, ref: MediaRef) -> None:
        """See `UploadStore.discard`."""
        await self._folder.discard(ref)
        if self._in_store:
            await self._blobs.delete((ref.handle,))

    async def discard_waiting(self, chats: str) -> None:
        """See `UploadStore.discard_waiting`. In the store those whose message has come go too."""
        await self._folder.discard_waiting(chats)
        await self._blobs.delete_of(thread_of(f"{chats}x").encode().removesuffix("x"))

    async def sweep(self, keep: Collection[str]) -> int:
        """See `UploadStore.sweep`. In the store only those go whose time is over: others may belong to
        another process."""
        return await self._folder.sweep(keep) + await self._blobs.expire()

    async def expire(self) -> None:
        """Delete blobs whose time is over, now and every five minutes, until cancelled."""
        while True:
            try:
                await self._blobs.expire()
            except StorageError as error:
                _log.warning("old uploads could not be removed", extra={"reason": str(error)})
            await self._clock.sleep(_EXPIRE_EVERY_S)

    async def _from_store(self, ref: MediaRef, max_bytes: int, gone: MediaUnavailable) -> bytes:
        try:
            return await self._blobs.get(ref.handle, max_bytes=max_bytes)
        except StorageError:
            raise gone from None

    async def _put(
        self, name: str, chunks: AsyncIterator[bytes], chat: str, max_bytes: int, ttl_s: float
    ) -> int:
        blob = NewBlob(name=name, thread=thread_of(chat).encode(), ttl_s=ttl_s)
        try:
            size = await self._blobs.put(blob, chunks, max_bytes=max_bytes, most_bytes=_MOST_BYTES)
        except BlobTooLarge:
            raise TooLarge(f"It is larger than {file_size(max_bytes)}.") from None
        if ttl_s == _KEPT_S:
            await self._blobs.keep((name,), ttl_s=ttl_s)
        return size


async def _whole(content: bytes) -> AsyncIterator[bytes]:
    yield content

"""Store the web channel's voice notes and uploads on disk, from their arrival until the end of their turn.

Not a decoder: the content is opaque here. Files have random names; no client input
becomes part of a path.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import secrets
import stat
from collections.abc import AsyncIterator, Collection, Iterable
from pathlib import Path
from typing import IO, Protocol

from adapters.guests import person_of
from adapters.web.settings import CHANNEL
from pipeline.domain.attachments import file_size
from pipeline.domain.clock import Clock
from pipeline.domain.errors import MediaUnavailable, StorageError
from pipeline.domain.frozen import dataclass
from pipeline.domain.messages import MediaRef

_HANDLE = re.compile(r"[uv]_[0-9a-f]{32}")
_WAITING_BYTES = 400_000_000
"""The most of uploads whose message has not come; the oldest are removed for new ones."""
_WAITING_S = 3_600.0
_PARTIAL_SUFFIX = ".part"
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# Non-blocking: a FIFO in the file's place must not block the thread.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class TooLarge(MediaUnavailable):
    """The upload is larger than allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Waiting:
    """An upload whose message has not come."""

    chat: str
    size: int
    arrived_at: float


def upload_name(chat: str, handle: str) -> str:
    """The name under which the upload is stored that the person of `chat` calls `handle`. With another
    person's handle it names nothing."""
    named = hashlib.sha256(f"{person_of(chat)}:{handle}".encode()).hexdigest()
    return f"u_{named[:32]}"


class UploadStore(Protocol):
    """Where the page's voice notes and uploads are, from their arrival until the end of their turn."""

    async def receive(self, chunks: AsyncIterator[bytes], *, chat: str, max_bytes: int) -> tuple[str, int]:
        """Store an upload for a message in `chat` durably while it arrives; its handle, which only the person
        of the chat can use, and its size in bytes.

        Raises TooLarge, StorageError, and what `chunks` raises; then nothing is left of it.
        """
        ...

    async def store(self, content: bytes, *, mime: str, chat: str) -> MediaRef:
        """Store a voice note of `chat` durably. Raises StorageError."""
        ...

    async def claim(self, names: Iterable[str]) -> None:
        """Note that these uploads belong to a message: `discard` or `sweep` removes them."""
        ...

    async def download(self, ref: MediaRef, *, max_bytes: int) -> bytes:
        """The bytes of `ref`. Raises MediaUnavailable when gone, foreign, or over `max_bytes`."""
        ...

    async def discard(self, ref: MediaRef) -> None:
        """Remove the bytes of `ref`, if they exist. Raises MediaUnavailable, StorageError."""
        ...

    async def discard_waiting(self, chats: str) -> None:
        """Remove the uploads for the chats whose ids begin with `chats`, if their message has not come.

        Raises StorageError.
        """
        ...

    async def sweep(self, keep: Collection[str]) -> int:
        """Remove every file that a crash has left and whose handle is not in `keep`; their number. Call it at
        a start, with the handles of the accepted and unfinished messages."""
        ...


class MediaInbox:
    """Voice notes and uploads under one directory (mode 0700), one file each (mode 0600)."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        self._directory = directory
        self._clock = clock
        self._waiting: dict[str, _Waiting] = {}
        """By name, the oldest first."""

    async def receive(self, chunks: AsyncIterator[bytes], *, chat: str, max_bytes: int) -> tuple[str, int]:
        """Store an upload for a message in `chat` durably while it arrives; its handle, which only the person
        of the chat can use, and its size in bytes.

        Raises TooLarge, StorageError, and what `chunks` raises; then nothing is left of it.
        """
        handle = f"u_{secrets.token_hex(16)}"
        name = upload_name(chat, handle)
        partial = self._directory / (name + _PARTIAL_SUFFIX)
        try:
            file = await asyncio.to_thread(self._open, partial)
            with file:
                size = await _written(file, chunks, max_bytes)
                await asyncio.to_thread(self._finish, file, partial, name)
        except OSError as error:
            partial.unlink(missing_ok=True)
            reason = error.strerror or "I/O error"
            raise StorageError(f"the upload could not be stored: {reason}") from error
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
        await self._make_room(size)
        self._waiting[name] = _Waiting(chat=chat, size=size, arrived_at=self._clock.monotonic())
        return handle, size

    async def claim(self, names: Iterable[str]) -> None:
        """Note that these uploads belong to a message: `discard` or `sweep` removes them."""
        for name in names:
            self._waiting.pop(name, None)

    async def discard_waiting(self, chats: str) -> None:
        """Remove the uploads for the chats whose ids begin with `chats`, if their message has not come.

        Raises StorageError.
        """
        found = [name for name, one in self._waiting.items() if one.chat.startswith(chats)]
        for name in found:
            self._waiting.pop(name, None)
            await self.discard(MediaRef(channel=CHANNEL, handle=name))

    async def _make_room(self, size: int) -> None:
        """Remove uploads whose message has not come within an hour, and the oldest until `size` fits."""
        used = size + sum(one.size for one in self._waiting.values())
        for name, one in list(self._waiting.items()):
            if used > _WAITING_BYTES or self._clock.monotonic() - one.arrived_at > _WAITING_S:
                used -= one.size
                self._waiting.pop(name, None)
                await asyncio.to_thread((self._directory / name).unlink, missing_ok=True)

    async def store(self, content: bytes, *, mime: str, chat: str = "") -> MediaRef:  # noqa: ARG002 - all share a folder
        """Store `content` durably: file and directory are flushed to disk when this returns.

        Raises StorageError when the directory is not writable.
        """
        handle = f"v_{secrets.token_hex(16)}"
        try:
            await asyncio.to_thread(self._write, handle, content)
        except OSError as error:
            reason = error.strerror or "I/O error"
            raise StorageError(f"the voice note could not be stored: {reason}") from error
        return MediaRef(channel=CHANNEL, handle=handle, mime=mime, size=len(content))

    async def download(self, ref: MediaRef, *, max_bytes: int) -> bytes:
        """The bytes of `ref`. Raises MediaUnavailable when gone, foreign, or over `max_bytes`."""
        name = self.checked(ref)
        try:
            return await asyncio.to_thread(self._read, name, max_bytes)
        except OSError as error:
            raise MediaUnavailable("It is no longer stored; please send it again.") from error

    async def discard(self, ref: MediaRef) -> None:
        """Remove the bytes of `ref`, if they exist. Raises MediaUnavailable, StorageError."""
        name = self.checked(ref)
        try:
            await asyncio.to_thread((self._directory / name).unlink, missing_ok=True)
        except OSError as error:
            reason = error.strerror or "I/O error"
            raise StorageError(f"an upload could not be removed: {reason}") from error

    async def sweep(self, keep: Collection[str]) -> int:
        """Remove every file whose handle is not in `keep`; their number.

        Removes the orphans of a crash: at a start, before anything new is stored, `keep` contains the handles
        of the accepted and unfinished messages.
        """
        return await asyncio.to_thread(self._sweep, frozenset(keep))

    def checked(self, ref: MediaRef) -> str:
        """The name under which `ref` is stored. Raises MediaUnavailable if it is none of the page."""
        if ref.channel != CHANNEL or not _HANDLE.fullmatch(ref.handle):
            raise MediaUnavailable("This is no file of the web channel.")
        return ref.handle

    def _write(self, handle: str, content: bytes) -> None:
        partial = self._directory / (handle + _PARTIAL_SUFFIX)
        file = self._open(partial)
        try:
            with file:
                file.write(content)
                self._finish(file, partial, handle)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise

    def _open(self, partial: Path) -> IO[bytes]:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.fdopen(os.open(partial, _CREATE, 0o600), "wb")

    def _finish(self, file: IO[bytes], partial: Path, handle: str) -> None:
        """Flush a whole file to disk, and give it its name."""
        file.flush()
        os.fsync(file.fileno())
        partial.replace(self._directory / handle)
        self._flush_directory()

    def _flush_directory(self) -> None:
        descriptor = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _read(self, name: str, max_bytes: int) -> bytes:
        descriptor = os.open(self._directory / name, _READ)
        with open(descriptor, "rb") as file:  # noqa: PTH123 - Path.open takes no descriptor
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise MediaUnavailable("This is no file of the web channel.")
            content = file.read(max_bytes + 1)
        if len(content) > max_bytes:
            raise MediaUnavailable(f"It is larger than {file_size(max_bytes)}.")
        return content

    def _sweep(self, keep: frozenset[str]) -> int:
        removed = 0
        if not self._directory.is_dir():
            return removed
        with os.scandir(self._directory) as files:
            for file in files:
                ours = _HANDLE.fullmatch(file.name.removesuffix(_PARTIAL_SUFFIX))
                if ours and file.name not in keep:
                    Path(file.path).unlink(missing_ok=True)
                    removed += 1
        return removed


async def _written(file: IO[bytes], chunks: AsyncIterator[bytes], max_bytes: int) -> int:
    """Write `chunks`; their size. Raises TooLarge."""
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size > max_bytes:
            raise TooLarge(f"It is larger than {file_size(max_bytes)}.")
        await asyncio.to_thread(file.write, chunk)
    return size

"""Store the web channel's voice notes on disk, from their arrival until the end of their turn.

Not a decoder: the content is opaque here. Files have random names; no client input
becomes part of a path.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import stat
from collections.abc import Collection
from pathlib import Path

from adapters.web.settings import CHANNEL
from pipeline.domain.errors import MediaUnavailable, StorageError
from pipeline.domain.messages import MediaRef

_HANDLE = re.compile(r"v_[0-9a-f]{32}")
_PARTIAL_SUFFIX = ".part"
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# Non-blocking: a FIFO in the file's place must not block the thread.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class MediaInbox:
    """Voice notes under one directory (mode 0700), one file each (mode 0600)."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    async def store(self, content: bytes, *, mime: str) -> MediaRef:
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
        name = self._checked(ref)
        try:
            return await asyncio.to_thread(self._read, name, max_bytes)
        except OSError as error:
            raise MediaUnavailable("the voice note is no longer stored; please send it again") from error

    async def discard(self, ref: MediaRef) -> None:
        """Remove the bytes of `ref`, if they exist. Raises MediaUnavailable, StorageError."""
        name = self._checked(ref)
        try:
            await asyncio.to_thread((self._directory / name).unlink, missing_ok=True)
        except OSError as error:
            reason = error.strerror or "I/O error"
            raise StorageError(f"a voice note could not be removed: {reason}") from error

    async def sweep(self, keep: Collection[str]) -> int:
        """Remove every file whose handle is not in `keep`; their number.

        Removes the orphans of a crash: at a start, before anything new is stored, `keep` contains the handles
        of the accepted and unfinished messages.
        """
        return await asyncio.to_thread(self._sweep, frozenset(keep))

    def _checked(self, ref: MediaRef) -> str:
        if ref.channel != CHANNEL or not _HANDLE.fullmatch(ref.handle):
            raise MediaUnavailable("this is not a voice note of the web channel")
        return ref.handle

    def _write(self, handle: str, content: bytes) -> None:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        partial = self._directory / (handle + _PARTIAL_SUFFIX)
        descriptor = os.open(partial, _CREATE, 0o600)
        try:
            with open(descriptor, "wb") as file:  # noqa: PTH123 - Path.open takes no descriptor
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(self._directory / handle)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
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
                raise MediaUnavailable("this is not a voice note of the web channel")
            content = file.read(max_bytes + 1)
        if len(content) > max_bytes:
            raise MediaUnavailable(f"the voice note is larger than {max_bytes} bytes")
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

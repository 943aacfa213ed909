"""Store the files of conversations in a folder: one subfolder for each thread, one file for each content.

A thread's folder is named by a hash of its key and a file by its id, so no input from outside becomes part of
a path. Names and types are in the references, not here.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError
from pipeline.domain.files import FileGone, StoredFile, stored_file
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import MediaKind
from pipeline.tools.folders import flush_folder

_ID = re.compile(r"[0-9a-f]{64}")
_PARTIAL_SUFFIX = ".part"
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_DAY_S = 86_400.0
_OFF_RECORD_S = 3_600.0
"""How long a file off the record is stored at most, if nothing discards it."""
_log = logging.getLogger(__name__)

_Result = TypeVar("_Result")
_GONE = "the file is no longer stored; please send it again"


class FolderFileStore:
    """Files below `directory` (mode 0700), for `keep_days` days. A thread has at most `thread_bytes`: its
    oldest files are removed for new ones."""

    def __init__(self, directory: Path, *, keep_days: int, thread_bytes: int, clock: Clock) -> None:
        self._directory = directory
        self._keep_s = keep_days * _DAY_S
        self._thread_bytes = thread_bytes
        self._clock = clock
        self._lock = asyncio.Lock()

    async def put(
        self,
        thread: ThreadKey,
        content: bytes,
        *,
        kind: MediaKind,
        mime: str,
        name: str = "",
        about: str = "",
        scope: str = "",
        off_record: bool = False,
    ) -> StoredFile:
        """See `FileStore.put`."""
        file = stored_file(content, kind=kind, mime=mime, name=name, about=about, scope=scope)
        # A file off the record is discarded after its use; should that not happen, it ages soon.
        written = self._clock.now() - (self._keep_s - _OFF_RECORD_S if off_record else 0.0)
        async with self._lock:
            await _in_thread(partial(self._write, self._folder(thread), file.id, content, written))
        return file

    async def get(self, thread: ThreadKey, file_id: str) -> bytes:
        """See `FileStore.get`."""
        return await self.get_from(folder_name(thread), file_id)

    async def get_from(self, folder_name: str, file_id: str) -> bytes:
        """The content of a file in the folder of a thread, by the folder's name. Raises FileGone,
        StorageError."""
        if not _ID.fullmatch(folder_name) or not _ID.fullmatch(file_id):
            raise FileGone(_GONE)
        try:
            return await _in_thread(partial(_read, self._directory / folder_name / file_id))
        except FileNotFoundError:
            raise FileGone(_GONE) from None

    async def discard(self, thread: ThreadKey, file_ids: Iterable[str]) -> None:
        """See `FileStore.discard`."""
        folder = self._folder(thread)
        wanted = [folder / one for one in file_ids if _ID.fullmatch(one)]
        async with self._lock:
            await _in_thread(partial(_remove, wanted))

    async def discard_thread(self, thread: ThreadKey) -> None:
        """See `FileStore.discard_thread`."""
        async with self._lock:
            await _in_thread(partial(_remove_folder, self._folder(thread)))

    async def remove_old(self) -> None:
        """Remove old files now and once a day, until cancelled."""
        while True:
            try:
                removed = await self.sweep()
            except StorageError as error:
                _log.warning("old files could not be removed", extra={"reason": str(error)})
            else:
                if removed:
                    _log.info("old files removed", extra={"files": removed})
            await self._clock.sleep(_DAY_S)

    async def sweep(self) -> int:
        """Remove the files that are older than `keep_days` days, and what a crash left half written; returns
        how many. Raises StorageError."""
        async with self._lock:
            return await _in_thread(partial(self._sweep, self._clock.now() - self._keep_s))

    def _folder(self, thread: ThreadKey) -> Path:
        return self._directory / folder_name(thread)

    def _write(self, folder: Path, file_id: str, content: bytes, now: float) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._directory.chmod(0o700)
        path = folder / file_id
        if not path.exists():
            self._make_room(folder, len(content))
            unfinished = folder / (file_id + _PARTIAL_SUFFIX)
            with os.fdopen(os.open(unfinished, _CREATE, 0o600), "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
        os.utime(path, (now, now))
        for one in (folder, self._directory):
            flush_folder(one)

    def _make_room(self, folder: Path, size: int) -> None:
        """Remove the oldest files of `folder` until `size` more bytes fit."""
        files = sorted(_files(folder), key=lambda entry: (entry.stat().st_mtime_ns, entry.name))
        used = sum(entry.stat().st_size for entry in files)
        for entry in files:
            if used + size <= self._thread_bytes:
                return
            used -= entry.stat().st_size
            Path(entry.path).unlink(missing_ok=True)

    def _sweep(self, before: float) -> int:
        removed = 0
        if not self._directory.is_dir():
            return removed
        for folder in [Path(entry.path) for entry in os.scandir(self._directory) if entry.is_dir()]:
            left = 0
            for entry in _files(folder):
                if entry.name.endswith(_PARTIAL_SUFFIX) or entry.stat().st_mtime < before:
                    Path(entry.path).unlink(missing_ok=True)
                    removed += 1
                else:
                    left += 1
            if not left:
                shutil.rmtree(folder, ignore_errors=True)
        return removed


def folder_name(thread: ThreadKey) -> str:
    """The name of the thread's folder: 64 hexadecimal digits."""
    return hashlib.sha256(thread.encode().encode("utf-8", "surrogatepass")).hexdigest()


def stored_at(directory: Path, thread: ThreadKey, file_id: str) -> Path:
    """Where a store in `directory` has a file of `thread`, for the person who runs the gateway."""
    return directory / folder_name(thread) / file_id


async def _in_thread(work: Callable[[], _Result]) -> _Result:
    """The result of `work`, run in a thread. Raises FileNotFoundError, and StorageError for other errors of
    the disk."""
    try:
        return await asyncio.to_thread(work)
    except FileNotFoundError:
        raise
    except OSError as error:
        reason = error.strerror or "I/O error"
        raise StorageError(f"the folder of the files cannot be used: {reason}") from error


def _files(folder: Path) -> Iterator[os.DirEntry[str]]:
    """The files of a thread's folder."""
    with os.scandir(folder) as entries:
        yield from [entry for entry in entries if entry.is_file(follow_symlinks=False)]


def _read(path: Path) -> bytes:
    with os.fdopen(os.open(path, _READ), "rb") as file:
        return file.read()


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def _remove_folder(folder: Path) -> None:
    if folder.is_dir():
        shutil.rmtree(folder)

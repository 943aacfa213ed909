"""Store the contents of files in a folder, each under its SHA-256, and the lock that processes share.

`put`, `get` and `remove_others` read and write files: call them in a thread.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pipeline.domain.errors import StorageError
from pipeline.tools.folders import Place, flush_folder

_HASH = re.compile(r"[0-9a-f]{64}")
_LOCK = "lock"
_ASIDE = ".aside"
_LOCK_PLACES = 1 << 62


class Contents:
    """The contents below `directory` (mode 0700)."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock_file = -1

    def put(self, data: bytes) -> str:
        """Store `data` durably; its SHA-256 in hexadecimal. Repeating it changes nothing. Raises OSError."""
        digest = hashlib.sha256(data).hexdigest()
        place = self._place(digest)
        with suppress(FileNotFoundError):
            # Its age counts from its last use: no clean-up may remove it before the change is recorded.
            os.utime(place.path)
            return digest
        self._prepare()
        place.replace_with(data)
        for folder in (place.path.parent, self._directory):
            flush_folder(folder)
        return digest

    def get(self, digest: str) -> bytes:
        """The content with this SHA-256. Raises StorageError if it is missing or was changed."""
        if not _HASH.fullmatch(digest):
            raise StorageError("the record of the change is damaged: it names no content")
        path = self._place(digest).path
        try:
            try:
                data = path.read_bytes()
            except FileNotFoundError:
                # The process that had set it aside may have died.
                data = path.with_name(digest + _ASIDE).read_bytes()
        except OSError as error:
            reason = error.strerror or "I/O error"
            raise StorageError(f"the kept content {digest[:12]} cannot be read: {reason}") from error
        if hashlib.sha256(data).hexdigest() != digest:
            raise StorageError(f"the kept content {digest[:12]} was changed on the disk, so it is not used")
        return data

    def remove_others(self, kept: frozenset[str], *, older_than: float) -> int:
        """Remove the contents that are not in `kept` and were written before the Unix time `older_than`; how
        many were removed."""
        removed = 0
        for path in self._paths():
            if path.name.removesuffix(_ASIDE) in kept:
                continue
            with suppress(FileNotFoundError):
                if path.stat().st_mtime < older_than:
                    path.unlink()
                    removed += 1
        return removed

    def has(self, digest: str) -> bool:
        """Whether the content with this SHA-256 is stored."""
        return self._place(digest).path.is_file()

    def set_aside(self, digest: str) -> None:
        """Take a content out of use, before it is known whether a change needs it. Storing it again is
        possible meanwhile. Raises OSError."""
        path = self._place(digest).path
        with suppress(FileNotFoundError):
            path.replace(path.with_name(digest + _ASIDE))

    def resolve_aside(self, digest: str, *, needed: bool) -> None:
        """Take a content that was set aside into use again, or remove it. Raises OSError."""
        path = self._place(digest).path
        aside = path.with_name(digest + _ASIDE)
        with suppress(FileNotFoundError):
            if needed:
                aside.replace(path)
            else:
                aside.unlink()

    def try_lock(self, name: str) -> bool:
        """Keep other processes from getting the lock of `name` until `unlock`; False if one of them has it.
        Raises OSError."""
        try:
            fcntl.lockf(self._opened_lock(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _lock_place(name))
        except BlockingIOError:
            return False
        return True

    def unlock(self, name: str) -> None:
        """Release the lock of `name`."""
        fcntl.lockf(self._opened_lock(), fcntl.LOCK_UN, 1, _lock_place(name))

    def _opened_lock(self) -> int:
        """The file of the locks. It stays open: closing it would release all locks of the process."""
        if self._lock_file < 0:
            self._prepare()
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self._lock_file = os.open(self._directory / _LOCK, flags, 0o600)
        return self._lock_file

    def _place(self, digest: str) -> Place:
        return Place(self._directory, (digest[:2], digest))

    def _prepare(self) -> None:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _paths(self) -> Iterator[Path]:
        if not self._directory.is_dir():
            return
        for folder in [Path(entry.path) for entry in os.scandir(self._directory) if entry.is_dir()]:
            yield from sorted(folder.iterdir())


def _lock_place(name: str) -> int:
    """The byte of the lock file that is locked for `name`."""
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8]) % _LOCK_PLACES

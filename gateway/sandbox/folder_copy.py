"""Copy a folder from one open folder into another: files, folders and links, and nothing else.

What is copied was written by a command: no link is followed, special files are left out, and permissions are
reduced to those of the owner. Two names of one file become two files.
"""

from __future__ import annotations

import os
import stat
from contextlib import closing

from pipeline.domain.frozen import dataclass

_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = _OPEN | os.O_DIRECTORY
_DEEPEST = 40
_AT_ONCE = 1 << 20


class TooMuch(Exception):
    """The folder is larger than the limits allow; the message gives the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyLimits:
    """The most that is copied."""

    bytes: int
    """Of all files together; the holes of a file count."""
    files: int


class FolderCopy:
    """Copies folders under common limits, and notes the files by path."""

    def __init__(self, limits: CopyLimits) -> None:
        self._limits = limits
        self._bytes = 0
        self._entries = 0
        self.files: dict[bytes, tuple[int, int]] = {}
        """Of each copied file: its size in bytes, and when it was changed, in nanoseconds."""

    def copy(self, source: int, target: int, path: bytes = b"", depth: int = 0) -> None:
        """Copy everything in the open folder `source` into the open folder `target`, which is empty. Raises
        TooMuch, and OSError for an error of the disk."""
        if depth > _DEEPEST:
            raise TooMuch(f"its folders are nested more than {_DEEPEST} deep")
        for name in map(os.fsencode, os.listdir(source)):
            self._copy_entry(source, target, name, path + name, depth)

    def _copy_entry(self, source: int, target: int, name: bytes, path: bytes, depth: int) -> None:
        status = os.stat(name, dir_fd=source, follow_symlinks=False)
        self._entries += 1
        if self._entries > self._limits.files:
            raise TooMuch(f"it has more than {self._limits.files} files")
        if stat.S_ISLNK(status.st_mode):
            os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
        elif stat.S_ISDIR(status.st_mode):
            os.mkdir(name, 0o700, dir_fd=target)
            with closing(_Open(name, _FOLDER, source)) as old, closing(_Open(name, _FOLDER, target)) as new:
                self.copy(old.number, new.number, path + b"/", depth + 1)
        elif stat.S_ISREG(status.st_mode):
            self._copy_file(source, target, name, status)
            self.files[path] = (status.st_size, status.st_mtime_ns)

    def _copy_file(self, source: int, target: int, name: bytes, status: os.stat_result) -> None:
        self._bytes += status.st_size
        if self._bytes > self._limits.bytes:
            raise TooMuch(f"its files have more than {self._limits.bytes / 1e6:g} MB, empty parts included")
        mode = 0o700 if status.st_mode & stat.S_IXUSR else 0o600
        with closing(_Open(name, _OPEN, source)) as old, closing(_Open(name, _CREATE, target, mode)) as new:
            left = status.st_size
            while left and (data := os.read(old.number, min(left, _AT_ONCE))):
                _write_all(new.number, data)
                left -= len(data)
        os.utime(name, ns=(status.st_mtime_ns, status.st_mtime_ns), dir_fd=target, follow_symlinks=False)


class _Open:
    """An open file or folder."""

    def __init__(self, name: bytes, flags: int, folder: int, mode: int = 0) -> None:
        self.number = os.open(name, flags, mode, dir_fd=folder)

    def close(self) -> None:
        os.close(self.number)


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]

"""Open files and folders part by part from an open folder, without following links.

Between the check of a path and its opening, another process may replace a folder by a link. Here each part
is opened in the one before it, so that the checked file is the one that is read and written. Everything
accesses the disk: call it in a thread.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from pipeline.domain.frozen import dataclass
from pipeline.tools.failures import Refused, ToolFailed

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NO_LINK = frozenset({errno.ELOOP, errno.ENOTDIR})
_LONGEST_NAME = 255
"""Bytes of one name on the file systems in use."""


Stamp = tuple[int, int]
"""The time of the last change of a file in nanoseconds, and its size in bytes."""
NO_STAMP: Stamp = (0, 0)
"""Of a file that is missing or cannot be reached."""


@dataclass(frozen=True, slots=True)
class Place:
    """A file or a folder `parts` below `anchor`; it may not exist. Links are followed up to `anchor` and not
    below.

    Its methods raise Refused if one of the parts is a link or not a folder. For errors of the disk, `status`
    raises ToolFailed and the others OSError.
    """

    anchor: Path
    parts: tuple[str, ...] = ()

    def __truediv__(self, name: str) -> Place:
        return Place(self.anchor, (*self.parts, name))

    @property
    def path(self) -> Path:
        """The path, for messages and for callers that may follow links."""
        return self.anchor.joinpath(*self.parts)

    def status(self) -> os.stat_result | None:
        """The status of the entry itself, not of a link's target; None if nothing is there."""
        try:
            with self.folder() as folder:
                return os.stat(self.parts[-1], dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ToolFailed(f"it cannot be reached ({reason(error)})") from None

    def stamps(self, names: Sequence[str]) -> tuple[Stamp, ...]:
        """The stamp of each of the entries `names` in this folder; of a link its own."""
        try:
            with (self / "").folder() as folder:
                return tuple(stamp_of(name, folder) for name in names)
        except (OSError, Refused):
            return (NO_STAMP,) * len(names)

    def exists(self) -> bool:
        return self.status() is not None

    def is_file(self) -> bool:
        """Whether an ordinary file is there."""
        status = self.status()
        return status is not None and stat.S_ISREG(status.st_mode)

    def unlink(self) -> None:
        with self.folder() as folder:
            os.unlink(self.parts[-1], dir_fd=folder)

    def missing_folders(self) -> tuple[Place, ...]:
        """The folders that contain this place and are not there, the outermost first."""
        above = [Place(self.anchor, self.parts[:count]) for count in range(1, len(self.parts))]
        there = next((at for at, folder in enumerate(above) if not folder.exists()), len(above))
        return tuple(above[there:])

    def remove_if_empty(self) -> bool:
        """Remove this folder unless something is in it; whether it is gone. A link or a file stays."""
        try:
            with self.folder() as folder:
                os.rmdir(self.parts[-1], dir_fd=folder)
        except FileNotFoundError:
            return True
        except (OSError, Refused):
            return False
        return True

    def open_to_read(self) -> int:
        """A descriptor of an ordinary file; the caller closes it."""
        with self.folder() as folder:
            # Opening or reading a pipe or a device may block or have side effects.
            flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
            opened = _no_link(self.parts[-1], flags, folder)
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            os.close(opened)
            raise Refused("it is not an ordinary file")
        return opened

    def replace_with(self, data: bytes, mode: int = 0o600) -> None:
        """Write a file with `data` and these permission bits there, atomically. By default, only the
        process's own account gets access."""
        with self.folder(make=True) as folder:
            name, beside = self.parts[-1], f".{secrets.token_hex(8)}.new"
            with suppress(FileNotFoundError):
                if not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                    raise Refused("it is not an ordinary file")
            try:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                with os.fdopen(os.open(beside, flags, 0o600, dir_fd=folder), "wb") as file:
                    file.write(data)
                    os.fchmod(file.fileno(), mode)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(beside, dir_fd=folder)

    def files(self) -> Iterator[tuple[str, Place]]:
        """The ordinary files below this folder with their paths relative to it, by name, without hidden files
        and links; none if this is not a folder."""
        try:
            with (self / "").folder() as top:
                for inside, folders, names, folder in os.fwalk(dir_fd=top):
                    folders[:] = sorted(name for name in folders if not name.startswith("."))
                    below = [part for part in inside.split("/") if part != "."]
                    for name in sorted(names):
                        if not name.startswith(".") and _is_ordinary(name, folder):
                            yield "/".join((*below, name)), Place(self.anchor, (*self.parts, *below, name))
        except (OSError, Refused):
            return

    @contextmanager
    def folder(self, *, make: bool = False) -> Iterator[int]:
        """A descriptor of the folder that contains this place."""
        if make:
            _make_folders(self.anchor)
        opened = os.open(self.anchor, _FOLDER)
        try:
            for part in self.parts[:-1]:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, 0o700, dir_fd=opened)
                inner = _no_link(part, _FOLDER | os.O_NOFOLLOW, opened)
                os.close(opened)
                opened = inner
            yield opened
        finally:
            os.close(opened)


def flush_folder(folder: Path) -> None:
    """Make the entries of a folder durable. Raises OSError."""
    descriptor = os.open(folder, _FOLDER)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def stamp_of(path: str | Path, folder: int | None = None) -> Stamp:
    """The stamp of the file at `path`: with links followed, or of the entry itself in the open `folder`."""
    try:
        found = os.stat(path, dir_fd=folder, follow_symlinks=folder is None)
    except (OSError, ValueError):
        return NO_STAMP
    return (found.st_mtime_ns, found.st_size)


def followed(path: Path) -> Place:
    """The place of `path` with links followed: for the operator's own files."""
    real = path.resolve()
    return Place(real.parent, (real.name,))


def check_name(name: str) -> None:
    """Raise Refused for a text that no file system accepts as a name."""
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise Refused("path: it holds half a character (a lone surrogate)") from None
    if size > _LONGEST_NAME:
        raise Refused(f"path: a name in it takes {size} bytes; at most {_LONGEST_NAME} are possible")


def reason(error: OSError) -> str:
    """The reason of a failed operation as readable text, without a path."""
    return error.strerror or type(error).__name__


def _no_link(name: str, flags: int, folder: int) -> int:
    try:
        return os.open(name, flags, dir_fd=folder)
    except OSError as error:
        if error.errno in _NO_LINK:
            raise Refused("path: it leads over a link, or over something that is no folder") from None
        raise


def _is_ordinary(name: str, folder: int) -> bool:
    with suppress(OSError):
        return stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    return False


def _make_folders(folder: Path) -> None:
    missing: list[Path] = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for one in reversed(missing):
        one.mkdir(mode=0o700, exist_ok=True)

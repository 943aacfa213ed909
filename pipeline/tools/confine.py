"""Folders that a tool cannot leave: which path a model means, and how files are read and written there.

Everything here touches the disk: call it in a thread. Nothing is created but by `write_private`, and all of
that is the owner's account's alone (0700, 0600).
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from pipeline.tools.tool import Refused, ToolFailed

_SLUG_CHARS = 40
_LONGEST_PATH = 300
_BINARY_LOOKED_AT = 8_192
_UNPRINTED = re.compile(r"[\x00-\x1f\x7f]")


def slug(name: str) -> str:
    """A folder's or file's name for any text: readable, and never the same for two texts."""
    readable = re.sub(r"[^a-z0-9]+", "-", name.casefold()).strip("-")[:_SLUG_CHARS].strip("-")
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{readable}-{digest}" if readable else digest


def person_folder(root: Path, owner: str) -> Path:
    """Where a turn's owner has what is theirs (see `TurnScope.owner`); it may not exist yet."""
    return root / "people" / slug(owner)


def inside(root: Path, given: str) -> Path:
    """The path below `root` that `given` leads to, symlinks followed; it may not exist yet.

    Raises Refused for what leads outside, and for what no path is.
    """
    if _UNPRINTED.search(given):
        raise Refused("path: it must not contain control characters")
    if len(given) > _LONGEST_PATH:
        raise Refused(f"path: it is longer than {_LONGEST_PATH} characters")
    parts = PurePosixPath(given.replace("\\", "/")).parts
    if not parts or given.startswith(("/", "\\", "~")) or re.match(r"[A-Za-z]:", given):
        raise Refused("path: give one such as notes.txt or plans/june.md, not an absolute one")
    if ".." in parts:
        raise Refused("path: it must not contain ..")
    # Symlinks of the last part count as well: what they lead to is what would be opened.
    real_root = os.path.realpath(root)
    real = Path(os.path.realpath(Path(real_root, *parts)))
    if Path(real_root) not in real.parents:
        raise Refused("path: it leads out of the folder")
    return real


def read_text(path: Path, *, most_bytes: int) -> str:
    """A text file's words. Raises ToolFailed where there is none, it is too large or no text, and Refused
    for what is no ordinary file."""
    try:
        # A pipe or a device would block or do something when it is opened or read.
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        raise ToolFailed("there is no such file") from None
    except OSError as error:
        raise ToolFailed(f"it cannot be read ({error.strerror})") from None
    try:
        kind = os.fstat(opened)
        if not stat.S_ISREG(kind.st_mode):
            raise Refused("it is not an ordinary file")
        if kind.st_size > most_bytes:
            raise ToolFailed(f"it is too large: {kind.st_size} bytes, at most {most_bytes} can be read")
        with os.fdopen(opened, "rb", closefd=False) as file:
            data = file.read(most_bytes)
    finally:
        os.close(opened)
    if b"\0" in data[:_BINARY_LOOKED_AT]:
        raise ToolFailed("it is not text")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ToolFailed("it is not text in UTF-8") from None


def write_private(path: Path, text: str) -> None:
    """Put `text` in place of the file, whole or not at all. Missing folders are made. Raises
    ToolFailed where the disk does not let us, and Refused for what is no ordinary file."""
    try:
        _make_folders(path.parent)
        if path.exists() and not path.is_file():
            raise Refused("it is not an ordinary file")
        beside = path.with_name(f".{secrets.token_hex(8)}.new")
        try:
            opened = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(opened, "wb") as file:
                file.write(text.encode("utf-8", "replace"))
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise ToolFailed(f"it cannot be written ({error.strerror})") from None


def text_files(root: Path, *, most: int) -> Iterator[tuple[str, Path]]:
    """Up to `most` ordinary files below `root` with their paths relative to it, by name. Hidden ones and
    symlinks are left out."""
    found = 0
    for folder, folders, files in os.walk(root, followlinks=False):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = Path(folder, name)
            if name.startswith(".") or path.is_symlink() or not path.is_file():
                continue
            found += 1
            if found > most:
                return
            yield path.relative_to(root).as_posix(), path


def _make_folders(folder: Path) -> None:
    missing: list[Path] = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for one in reversed(missing):
        one.mkdir(mode=0o700, exist_ok=True)

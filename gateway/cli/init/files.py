"""Write several files so that either all of them are there or nothing has changed.

Every file that is replaced is kept as a copy beside the new one. An interruption or an error in between takes
everything back; only a kill can leave staged files, whose names begin with a point.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import shutil
from collections.abc import Callable, Sequence
from dataclasses import field
from pathlib import Path

from pipeline.domain.frozen import dataclass

_PRIVATE_FOLDER = 0o700


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFile:
    """A file to write."""

    path: Path
    text: str = field(repr=False)
    mode: int


def write_all(files: Sequence[NewFile]) -> tuple[Path, ...]:
    """Write `files`; the paths of the copies of those that were there before. Missing folders are made for
    this user alone. Raises OSError, and whatever interrupts it, with nothing changed."""
    undo: list[Callable[[], object]] = []
    try:
        staged = [(file, _stage(file, undo)) for file in files]
        return tuple(copy for file, temporary in staged if (copy := _put(file, temporary, undo)) is not None)
    except BaseException:
        for step in reversed(undo):
            with contextlib.suppress(OSError):
                step()
        raise


def copy_name(path: Path) -> Path:
    """The first unused name for a copy of `path`: parlour.toml.bak, parlour.toml.bak2."""
    names = (path.with_name(f"{path.name}.bak{number}") for number in itertools.count(2))
    return next(
        name for name in itertools.chain([path.with_name(f"{path.name}.bak")], names) if not _is(name)
    )


def _stage(file: NewFile, undo: list[Callable[[], object]]) -> Path:
    """The text of `file` in a temporary file beside it."""
    folder = file.path.parent
    for missing in reversed([one for one in (folder, *folder.parents) if not one.exists()]):
        missing.mkdir(mode=_PRIVATE_FOLDER)
        undo.append(missing.rmdir)
    temporary = folder / f".{file.path.name}.{secrets.token_hex(4)}"
    undo.append(lambda: temporary.unlink(missing_ok=True))
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, file.mode)
    with os.fdopen(descriptor, "w", encoding="utf-8") as out:
        out.write(file.text)
        out.flush()
        os.fsync(descriptor)
    return temporary


def _put(file: NewFile, temporary: Path, undo: list[Callable[[], object]]) -> Path | None:
    """Give the staged file its name; the copy of the one that had it."""
    copy = copy_name(file.path) if _is(file.path) else None
    undo.append(lambda: _take_back(file.path, temporary, copy))
    if copy is not None:
        _copy(file.path, copy)
    temporary.replace(file.path)
    return copy


def _take_back(path: Path, temporary: Path, copy: Path | None) -> None:
    """Undo `_put`, however far it came: the temporary file is there until it got the name `path`."""
    if not _is(temporary):
        path.unlink() if copy is None else copy.replace(path)
    elif copy is not None:
        copy.unlink(missing_ok=True)


def _copy(path: Path, copy: Path) -> None:
    try:
        # A second name for the same file: `path` exists at every moment.
        os.link(path, copy, follow_symlinks=False)
    except (OSError, NotImplementedError):  # a file system without links
        shutil.copy2(path, copy, follow_symlinks=False)


def _is(path: Path) -> bool:
    """Whether there is something at `path`, also a link that leads nowhere."""
    return os.path.lexists(path)

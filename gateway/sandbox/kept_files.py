"""Bring the files of a conversation into a sandbox, and write them back when a command has ended.

On the disk they change as a whole: a crash leaves the files from before the command, or those after it.
"""

from __future__ import annotations

import os
import shutil

from gateway.sandbox.folder_copy import CopyLimits, FolderCopy, TooMuch
from gateway.sandbox.protocol import CURRENT, REPLACED, WRITTEN

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_NAMED = 50


class KeptFiles:
    """The files in the open `folder` of a conversation, while one command runs."""

    def __init__(self, folder: int, limits: CopyLimits) -> None:
        self._folder = folder
        self._limits = limits
        self._before: dict[bytes, tuple[int, int]] = {}

    def bring_into(self, path: str) -> None:
        """Copy the files into the folder at `path`. Raises OSError, and TooMuch where the limits are lower
        than before."""
        present = _names(self._folder)
        # Without the current files, a crash came between two renames.
        name = CURRENT if CURRENT in present else REPLACED if REPLACED in present else ""
        if not name:
            return
        source, target = os.open(name, _FOLDER, dir_fd=self._folder), os.open(path, _FOLDER)
        copy = FolderCopy(self._limits)
        copy.copy(source, target)
        os.close(source)
        os.close(target)
        self._before = copy.files

    def keep(self, path: str) -> tuple[tuple[str, int], ...]:
        """Replace the files by those at `path`; returns up to 50 that are new or changed. Raises TooMuch or
        OSError; the files on the disk are then those from before."""
        _remove(WRITTEN, self._folder)
        os.mkdir(WRITTEN, 0o700, dir_fd=self._folder)
        source, target = os.open(path, _FOLDER), os.open(WRITTEN, _FOLDER, dir_fd=self._folder)
        copy = FolderCopy(self._limits)
        try:
            copy.copy(source, target)
        except (OSError, TooMuch):
            _remove(WRITTEN, self._folder)
            raise
        finally:
            os.close(source)
            os.close(target)
        self._swap()
        changed = sorted(name for name, stamp in copy.files.items() if self._before.get(name) != stamp)
        return tuple((name.decode("utf-8", "replace"), copy.files[name][0]) for name in changed[:_MOST_NAMED])

    def _swap(self) -> None:
        if CURRENT in _names(self._folder):
            _remove(REPLACED, self._folder)
            os.rename(CURRENT, REPLACED, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        os.rename(WRITTEN, CURRENT, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        os.fsync(self._folder)
        _remove(REPLACED, self._folder)


def _remove(name: str, folder: int) -> None:
    if name in _names(folder):
        shutil.rmtree(name, dir_fd=folder)


def _names(folder: int) -> set[str]:
    with os.scandir(folder) as entries:
        return {entry.name for entry in entries}

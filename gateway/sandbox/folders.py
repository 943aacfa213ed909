"""The folders in which commands work: one for each conversation, removed with it or when it is unused.

    <thread>/<session>/files

Both are named by a hash, so no input from outside becomes part of a path. What is in `files` was written by
commands: no link in it is followed.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gateway.files.folder_store import folder_name
from gateway.sandbox.protocol import COMMAND_USER, CURRENT
from pipeline.domain.clock import Clock
from pipeline.domain.ids import ThreadKey
from pipeline.tools.confine import inside, read_bytes
from pipeline.tools.folders import Place

_DAY_S = 86_400.0
_log = logging.getLogger(__name__)


class CommandFolders:
    """The folders below `directory` (mode 0700). All but `remove_old` access the disk: call them in a
    thread."""

    def __init__(self, directory: Path, *, keep_days: int, clock: Clock) -> None:
        # The sandbox process has another working directory.
        self._directory = directory.absolute()
        self._keep_s = keep_days * _DAY_S
        self._clock = clock

    def open(self, thread: ThreadKey, session_id: str) -> Path:
        """Create the folder of a conversation if it is missing, note its use, and remove those of earlier
        conversations of the thread. Raises OSError."""
        now = self._clock.now()
        folder = self._path(thread, session_id)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._directory.chmod(0o700)
        for other in os.scandir(folder.parent):
            if other.name != folder.name:
                shutil.rmtree(other.path)
        _give_to_commands(folder)
        os.utime(folder, (now, now))
        return folder

    def read(self, thread: ThreadKey, session_id: str, name: str, most_bytes: int) -> bytes:
        """The content of a file in the folder of a conversation. Raises ToolFailed, and Refused for a path
        that leads outside."""
        place = Place(self._directory, (folder_name(thread), _hashed(session_id), CURRENT))
        return read_bytes(inside(place, name), most_bytes=most_bytes)

    def remove(self, thread: ThreadKey) -> None:
        """Remove the folders of a thread's conversations. Raises OSError."""
        folder = self._directory / folder_name(thread)
        if folder.is_dir():
            shutil.rmtree(folder)

    async def remove_old(self) -> None:
        """Remove unused folders now and once a day, until cancelled."""
        while True:
            try:
                removed = await asyncio.to_thread(self.sweep)
            except OSError as error:
                _log.warning("old folders of commands are not removed", extra={"reason": str(error)})
            else:
                if removed:
                    _log.info("old folders of commands removed", extra={"folders": removed})
            await self._clock.sleep(_DAY_S)

    def sweep(self) -> int:
        """Remove the folders that no command has used for `keep_days` days; returns how many. Raises
        OSError."""
        removed, now = 0, self._clock.now()
        if not self._directory.is_dir():
            return removed
        for thread in [entry for entry in os.scandir(self._directory) if entry.is_dir()]:
            for session in list(os.scandir(thread.path)):
                if session.stat(follow_symlinks=False).st_mtime < now - self._keep_s:
                    shutil.rmtree(session.path)
                    removed += 1
            if not any(Path(thread.path).iterdir()):
                Path(thread.path).rmdir()
        return removed

    def _path(self, thread: ThreadKey, session_id: str) -> Path:
        return self._directory / folder_name(thread) / _hashed(session_id)


@contextmanager
def owned_folder() -> Iterator[Path]:
    """A new folder as those of conversations, for a trial; removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="parlour-"))
    try:
        _give_to_commands(folder)
        yield folder
    finally:
        shutil.rmtree(folder)


def _give_to_commands(folder: Path) -> None:
    """Commands of a gateway that runs as root run as another user, who must own the folder."""
    if os.getuid() == 0:
        os.chown(folder, COMMAND_USER, COMMAND_USER)


def _hashed(session_id: str) -> str:
    return hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()

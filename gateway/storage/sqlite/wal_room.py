"""Keep the file of the write-ahead log longer than what is written to it.

A commit that makes a file longer waits for more than its data: the file system writes the new length to its
own journal. Zeros that are there already only become data. They end the log as any other bytes do that are no
frame of its generation: https://www.sqlite.org/fileformat2.html#the_write_ahead_log
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Final

_STEP_BYTES: Final = 256 * 1024
_AHEAD_BYTES: Final = 128 * 1024
"""So much of the zeros is left when more are written: a transaction mostly writes less."""
_LOOKED_AT: Final = 4096 + 64
"""Longer than a page, so that any part of the log with frames has the header of one, which is never zeros; a
page may be."""
_UNWRITTEN: Final = bytes(_LOOKED_AT)

_log = logging.getLogger(__name__)


class LogRoom:
    """Zeros at the end of the log of `database`, up to `most` bytes of the whole file."""

    def __init__(self, database: Path, *, most: int) -> None:
        self._path = database.with_name(database.name + "-wal")
        self._most = most
        self._descriptor = -1
        self._place = 0
        """Where it looks for zeros."""

    def open(self) -> None:
        """Begin to look after the file, which exists. Without it nothing is kept."""
        try:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            _log.info("the log of the store gets no room in advance", extra={"reason": str(error)})

    def keep(self) -> None:
        """Write zeros if few are left. Only within a transaction that writes: no other process may add to the
        log meanwhile."""
        if self._descriptor < 0:
            return
        try:
            if os.pread(self._descriptor, _LOOKED_AT, self._place) != _UNWRITTEN:
                self._add()
        except OSError as error:
            # Commits still have the room that the file has; the first that does not fit says so.
            _log.info("the log of the store gets no more room in advance", extra={"reason": str(error)})
            self.close()

    def _add(self) -> None:
        size = os.fstat(self._descriptor).st_size
        if size < self._most:
            written = os.pwrite(self._descriptor, bytes(_STEP_BYTES), size)
            self._place = max(0, size + written - _AHEAD_BYTES)

    def close(self) -> None:
        """Look after the file no more."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

"""Measure how much was written to the write-ahead log, from the log file itself.

SQLite reuses the log from its start after a checkpoint, so the file's size says little. Its header
has a generation number and a salt, and each frame of the current generation repeats the salt:
https://www.sqlite.org/fileformat2.html#the_write_ahead_log
"""

from __future__ import annotations

import os
import struct
import threading
from pathlib import Path

from pipeline.domain.frozen import dataclass

WAL_HEADER_BYTES = 32
_FRAME_HEADER_BYTES = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class WalState:
    """The current generation of the log and the number of its frames."""

    generation: int
    frames: int
    frame_bytes: int


def read_wal(path: Path) -> WalState | None:
    """The state of the log file `path`; None if it does not exist, or nothing is written in it."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        header = os.pread(descriptor, WAL_HEADER_BYTES, 0)
        if len(header) < WAL_HEADER_BYTES or header == bytes(WAL_HEADER_BYTES):
            return None
        page_bytes, generation = struct.unpack(">8xII", header[:16])
        frame_bytes = page_bytes + _FRAME_HEADER_BYTES
        salt = header[16:24]
        low, high = 0, (os.fstat(descriptor).st_size - WAL_HEADER_BYTES) // frame_bytes
        # Frames of this generation come first, so a binary search finds their number.
        while low < high:
            middle = (low + high) // 2
            found = os.pread(descriptor, 8, WAL_HEADER_BYTES + middle * frame_bytes + 8)
            low, high = (middle + 1, high) if found == salt else (low, middle)
        return WalState(generation=generation, frames=low, frame_bytes=frame_bytes)
    finally:
        os.close(descriptor)


class WalMeter:
    """Adds up the log's bytes over its generations. Call `note` before every checkpoint."""

    def __init__(self, database: Path) -> None:
        self._path = database.with_name(database.name + "-wal")
        self._lock = threading.Lock()
        self._earlier = 0
        self._seen: WalState | None = None

    def start(self) -> None:
        """Start counting; existing frames in the log are left out."""
        with self._lock:
            self._seen = read_wal(self._path)
            self._earlier = -_size(self._seen)

    def frames(self) -> int:
        """Frames in the current generation, checkpointed or not."""
        state = self.note()
        return state.frames if state else 0

    def note(self) -> WalState | None:
        """Record the current state, before a checkpoint lets SQLite overwrite it."""
        with self._lock:
            state = read_wal(self._path)
            if state is not None:
                if self._seen is not None and self._seen.generation != state.generation:
                    self._earlier += _size(self._seen)
                self._seen = state
            return state

    def total(self) -> int:
        """Bytes written to the log since `start`, including frame headers."""
        self.note()
        with self._lock:
            return self._earlier + _size(self._seen)


def _size(state: WalState | None) -> int:
    return state.frames * state.frame_bytes if state else 0

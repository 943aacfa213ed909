"""The last seconds of a stream's audio, addressed by frame number.

Not here: what the frames mean.
"""

from __future__ import annotations


class AudioBuffer:
    """A buffer that grows at the end and drops old frames; frames count from 0 for the whole stream."""

    def __init__(self, *, frame_bytes: int) -> None:
        self._frame_bytes = frame_bytes
        self._kept = bytearray()
        self._first = 0

    @property
    def frames(self) -> int:
        """Whole frames received so far."""
        return self._first + len(self._kept) // self._frame_bytes

    def add(self, pcm: bytes) -> None:
        """Append audio."""
        self._kept += pcm

    def between(self, start: int, end: int) -> bytes:
        """Frames `start` to `end` (excluded), as far as they are kept."""
        first = max(0, start - self._first) * self._frame_bytes
        return bytes(self._kept[first : max(0, end - self._first) * self._frame_bytes])

    def forget_before(self, frame: int) -> None:
        """Drop the frames before `frame`."""
        count = min(max(0, frame - self._first), len(self._kept) // self._frame_bytes)
        del self._kept[: count * self._frame_bytes]
        self._first += count

    def take_back(self, frame: int) -> bytes:
        """Remove and return the audio from `frame` on: the next audio added is frame `frame` again."""
        at = max(0, frame - self._first) * self._frame_bytes
        taken = bytes(self._kept[at:])
        del self._kept[at:]
        return taken

"""Cuts the speech of a recording into pieces for the recogniser, while the recording is still decoded.

Pure. Pauses are left out; no sample of speech is lost or doubled. Not here: where speech lies (`voice.vad`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

import numpy as np

from voice.pieces import Piece
from voice.speech import SAMPLE_RATE

# Whisper's window is 30 s. Up to 25 s in one go and longer recordings in pieces of at most 20 s were the
# fastest at the same word error rate; pieces under 14 s raised it.
_WHOLE = 25 * SAMPLE_RATE
_PIECE = 20 * SAMPLE_RATE
_SEARCH = 5 * SAMPLE_RATE

_FRAME = 512
_NEARBY = 2
"""Frames on each side that a place is judged by as well: a fifth of a second is a breath, less is a stop."""


class Cutter:
    """One recording. Speech of up to 25 s becomes one piece; more is cut into pieces of at most 20 s.

    A cut lies in the last 5 s of a piece: at a pause, or where speech is least likely.
    """

    def __init__(self) -> None:
        self._pcm = bytearray()
        self._probabilities: list[float] = []
        self._stretches: deque[tuple[int, int]] = deque()
        self._waiting = 0
        self._pieces = 0

    def hear(self, pcm: bytes, probabilities: Sequence[float]) -> None:
        """More of the recording: 16-bit samples, and how likely each frame of 512 of them is speech."""
        self._pcm += pcm
        self._probabilities += probabilities

    def add(self, start: int, end: int) -> Iterator[Piece]:
        """A stretch of speech, in samples that were heard; one that starts where the last ended goes on with
        it. Yields the pieces that are certain now."""
        self._waiting += end - start
        if self._stretches and self._stretches[-1][1] == start:
            start = self._stretches.pop()[0]
        self._stretches.append((start, end))
        while self._waiting > _WHOLE:
            yield self._cut_off(_PIECE)

    def finish(self) -> Iterator[Piece]:
        """The last pieces."""
        if self._pieces and self._waiting > _PIECE:
            yield self._cut_off((self._waiting + _SEARCH) // 2)
        if self._waiting:
            yield self._piece(self._taken(self._waiting))

    def _cut_off(self, most: int) -> Piece:
        """A piece of at most `most` samples, and at most 5 s less."""
        return self._piece(self._taken(self._best_length(most)))

    def _best_length(self, most: int) -> int:
        """How many samples of speech to take: up to the last pause in reach, else the least likely place."""
        length = 0
        at_pause = 0
        for start, end in self._stretches:
            if length + end - start > most:
                break
            length += end - start
            at_pause = length
        if at_pause >= most - _SEARCH:
            return at_pause
        first = start + most - _SEARCH - length
        return length + self._least_likely(first, first + _SEARCH) - start

    def _least_likely(self, first: int, last: int) -> int:
        """The sample between two, in the middle of the frame where it hurts least."""
        frames = range(-(-first // _FRAME), last // _FRAME)
        best = min(frames, key=lambda frame: (self._likelihood(frame), self._loudness(frame)))
        return min(last, max(first, best * _FRAME + _FRAME // 2))

    def _likelihood(self, frame: int) -> float:
        """How likely speech is around a frame, in steps of a tenth."""
        near = self._probabilities[max(0, frame - _NEARBY) : frame + _NEARBY + 1]
        return round(sum(near) / len(near), 1) if near else 0.0

    def _loudness(self, frame: int) -> float:
        near = bytes(self._pcm[2 * _FRAME * max(0, frame - _NEARBY) : 2 * _FRAME * (frame + _NEARBY + 1)])
        return float(np.square(np.frombuffer(near, dtype="<i2").astype(np.float64)).mean())

    def _taken(self, length: int) -> list[tuple[int, int]]:
        """The first `length` samples of the speech that waits."""
        self._waiting -= length
        taken = []
        while length:
            start, end = self._stretches.popleft()
            cut = min(end, start + length)
            taken.append((start, cut))
            length -= cut - start
            if cut < end:
                self._stretches.appendleft((cut, end))
        return taken

    def _piece(self, stretches: list[tuple[int, int]]) -> Piece:
        index = self._pieces
        self._pieces += 1
        return Piece(
            index=index,
            pcm=b"".join(bytes(self._pcm[2 * start : 2 * end]) for start, end in stretches),
            spans=tuple((start / SAMPLE_RATE, end / SAMPLE_RATE) for start, end in stretches),
        )

"""Cuts the speech of a recording into pieces for the recogniser, while the recording is still decoded.

Pure. Pauses are left out; no sample of speech is lost or doubled. Not here: where speech lies
(`voice.audio.vad`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from voice.audio.segments import SpeechSegment
from voice.transcript import SAMPLE_RATE

# Whisper's window is 30 s. Up to 25 s in one go and longer speech in pieces of at most 20 s were the
# fastest at the same word error rate; shorter ones, cut in the middle of speech, raised it.
_WHOLE = 25 * SAMPLE_RATE
_PIECE = 20 * SAMPLE_RATE
_SEARCH = 5 * SAMPLE_RATE

_FRAME = 512
_NEARBY = 2
"""Frames on each side that a place is judged by as well: a fifth of a second is a breath, less is a stop."""


class Cutter:
    """One recording. A span of up to 25 s of speech becomes one piece, a longer one pieces of at most 20 s.

    A cut inside a span lies in the last 5 s of a piece, where speech is least likely. No piece holds two
    spans: Whisper takes a long pause for the end, and what is joined behind it is often not transcribed.
    """

    def __init__(self) -> None:
        self._pcm = bytearray()
        self._probabilities: list[float] = []
        self._start = 0
        self._end = 0
        """Of the span that waits to be cut, in samples of the recording."""
        self._span_is_cut = False
        """A piece was cut off this span's beginning."""
        self._pieces = 0

    def hear(self, pcm: bytes, probabilities: Sequence[float]) -> None:
        """More of the recording: 16-bit samples, and how likely each frame of 512 of them is speech."""
        self._pcm += pcm
        self._probabilities += probabilities

    def add(self, start: int, end: int) -> Iterator[SpeechSegment]:
        """A stretch of speech, in samples that were heard; one that starts where the last ended goes on with
        its span, any other begins a span. Yields the pieces that are certain now."""
        if start != self._end:
            yield from self.finish()
            self._start = start
        self._end = end
        while self._end - self._start > _WHOLE:
            yield self._cut_off(_PIECE)

    def finish(self) -> Iterator[SpeechSegment]:
        """The last pieces of the span that waits."""
        if self._span_is_cut and self._end - self._start > _PIECE:
            yield self._cut_off((self._end - self._start + _SEARCH) // 2)
        if self._end > self._start:
            yield self._piece(self._end)
        self._span_is_cut = False

    def _cut_off(self, most: int) -> SpeechSegment:
        """A piece of at most `most` samples, and at most 5 s less."""
        self._span_is_cut = True
        last = self._start + most
        return self._piece(self._least_likely(last - _SEARCH, last))

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

    def _piece(self, end: int) -> SpeechSegment:
        """What waits, up to `end`."""
        start, self._start = self._start, end
        index = self._pieces
        self._pieces += 1
        return SpeechSegment(
            index=index,
            pcm=bytes(self._pcm[2 * start : 2 * end]),
            spans=((start / SAMPLE_RATE, end / SAMPLE_RATE),),
        )

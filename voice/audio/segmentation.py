"""Split a recording's speech into segments for the recogniser, while the recording is still decoded.

Pure. Pauses are left out; no sample of speech is lost or doubled. Not here: voice activity detection
(`voice.audio.vad`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from voice.audio.segments import SpeechSegment
from voice.transcript import SAMPLE_RATE

# Whisper's window is 30 s. Up to 25 s as one segment and longer speech in segments of at most 20 s were the
# fastest at the same word error rate; shorter ones, cut in the middle of speech, raised it.
_WHOLE = 25 * SAMPLE_RATE
_SEGMENT = 20 * SAMPLE_RATE
_SEARCH = 5 * SAMPLE_RATE

_FRAME = 512
_NEARBY = 2
"""Frames on each side that are also judged: a fifth of a second is a breath, less is a stop consonant."""


class Cutter:
    """Splits one recording. A span of up to 25 s of speech is one segment; longer ones are cut every 20 s or
    less.

    A cut inside a span is made in the last 5 s of a segment, where speech is least likely. No segment
    contains two spans: Whisper takes a long pause for the end, and often omits what follows it.
    """

    def __init__(self) -> None:
        self._pcm = bytearray()
        self._probabilities: list[float] = []
        self._start = 0
        self._end = 0
        """The end of the present span, in samples of the recording."""
        self._span_is_cut = False
        """Whether a segment was already cut off the present span."""
        self._segments = 0

    def feed(self, pcm: bytes, probabilities: Sequence[float]) -> None:
        """Add audio: 16-bit samples, and the speech probability of each frame of 512 of them."""
        self._pcm += pcm
        self._probabilities += probabilities

    def add(self, start: int, end: int) -> Iterator[SpeechSegment]:
        """Add speech, in samples of the recording. If it starts where the last speech ended, it continues
        that span; otherwise it starts a new one. Yields the segments that are certain now."""
        if start != self._end:
            yield from self.finish()
            self._start = start
        self._end = end
        while self._end - self._start > _WHOLE:
            yield self._cut_off(_SEGMENT)

    def finish(self) -> Iterator[SpeechSegment]:
        """The last segments of the present span."""
        if self._span_is_cut and self._end - self._start > _SEGMENT:
            yield self._cut_off((self._end - self._start + _SEARCH) // 2)
        if self._end > self._start:
            yield self._segment_to(self._end)
        self._span_is_cut = False

    def _cut_off(self, most: int) -> SpeechSegment:
        """A segment of at most `most` samples, and at most 5 s less."""
        self._span_is_cut = True
        last = self._start + most
        return self._segment_to(self._least_likely(last - _SEARCH, last))

    def _least_likely(self, first: int, last: int) -> int:
        """The sample between `first` and `last` where speech is least likely: the middle of a frame."""
        frames = range(-(-first // _FRAME), last // _FRAME)
        best = min(frames, key=lambda frame: (self._likelihood(frame), self._loudness(frame)))
        return min(last, max(first, best * _FRAME + _FRAME // 2))

    def _likelihood(self, frame: int) -> float:
        """The speech probability around a frame, in steps of a tenth."""
        near = self._probabilities[max(0, frame - _NEARBY) : frame + _NEARBY + 1]
        return round(sum(near) / len(near), 1) if near else 0.0

    def _loudness(self, frame: int) -> float:
        near = bytes(self._pcm[2 * _FRAME * max(0, frame - _NEARBY) : 2 * _FRAME * (frame + _NEARBY + 1)])
        return float(np.square(np.frombuffer(near, dtype="<i2").astype(np.float64)).mean())

    def _segment_to(self, end: int) -> SpeechSegment:
        """The segment from the present start to `end`."""
        start, self._start = self._start, end
        index = self._segments
        self._segments += 1
        return SpeechSegment(
            index=index,
            pcm=bytes(self._pcm[2 * start : 2 * end]),
            spans=((start / SAMPLE_RATE, end / SAMPLE_RATE),),
        )

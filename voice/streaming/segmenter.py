"""Find where speech begins, pauses and ends in a running stream, from voice probabilities.

Pure: one probability per frame of 32 ms in, decisions out; frame counts are the only clock. Not here:
the audio itself, its words, and which segments form a message.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from voice.transcript import SAMPLE_RATE

FRAME_SAMPLES = 512
FRAME_S = FRAME_SAMPLES / SAMPLE_RATE

_BACK_FRAMES = 2
"""Frames above the threshold that end a pause: a single one is a click."""
_GAP_FRAMES = 5
"""A gap between words is judged over 160 ms: words also contain single low frames."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentRules:
    """Thresholds (0 to 1) and times in seconds. Raises ValueError, naming the field."""

    threshold: float = 0.5
    """What counts as a voice outside a segment."""
    keep_threshold: float = 0.35
    """What counts as a voice within a segment: words end more softly than they begin."""
    onset_s: float = 0.128
    pre_roll_s: float = 0.5
    """Audio before the onset that belongs to the segment: soft consonants do not count as a voice yet."""
    pause_s: float = 0.35
    commit_s: float = 0.8
    cap_s: float = 15.0
    """Speech without a pause is cut after this time."""
    cut_window_s: float = 5.0
    """The last seconds of the segment, in which the best gap for the cut is searched."""
    min_speech_s: float = 0.3

    def __post_init__(self) -> None:
        if not 0 < self.keep_threshold <= self.threshold <= 1:
            raise ValueError("live speech: 0 < keep_threshold <= threshold <= 1 must hold")
        if not 0 < self.onset_s <= self.pause_s <= self.commit_s:
            raise ValueError("live speech: commit_s must not be smaller than pause_s, nor that than onset_s")
        if self.pre_roll_s < 0 or self.min_speech_s < 0:
            raise ValueError("live speech: pre_roll_s and min_speech_s must not be negative")
        if not _GAP_FRAMES * FRAME_S < self.cut_window_s < self.cap_s:
            raise ValueError("live speech: cut_window_s must be longer than a gap and shorter than cap_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Decision:
    segment: int
    """Counts the segments of a stream, from 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Began(_Decision):
    """The user began to speak. The segment's audio begins at frame `start`."""

    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused(_Decision):
    """Possibly the end: frames `start` to `end` (excluded) can be transcribed already."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed(_Decision):
    """The pause was not the end: the segment continues."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended(_Decision):
    """The segment ended: frames `start` to `end`, as in its last pause where there was one."""

    start: int
    end: int
    voice_end: int
    """The frame after the last one with a voice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut(_Decision):
    """The speech continues, but frames `start` to `end` are finished; the next segment begins at `end`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TooShort(_Decision):
    """There was too little voice for a word."""


Decision = Began | Paused | Resumed | Ended | Cut | TooShort


@dataclass(slots=True, kw_only=True)
class _Open:
    """The open segment."""

    number: int
    start: int
    probabilities: deque[float]
    """One per frame since `start`."""
    voiced: int
    """Frames with a voice."""
    voice_end: int
    carried: bool = False
    """It is the tail of a cut: its words belong to the segment before, however short it is."""
    silent: int = 0
    back: int = 0
    paused_at: int = 0
    """The end frame of the last pause; 0 while the user speaks."""


class Segmenter:
    """The state of one stream."""

    def __init__(self, rules: SegmentRules | None = None) -> None:
        self._rules = rules or SegmentRules()
        self._frames = 0
        self._segments = 0
        self._floor = 0
        self._open: _Open | None = None
        self._pre_roll = _frames(self._rules.pre_roll_s)
        self._onset = _frames(self._rules.onset_s)
        self._recent: deque[float] = deque(maxlen=self._pre_roll + self._onset)

    @property
    def frames(self) -> int:
        """Frames judged so far."""
        return self._frames

    @property
    def speaking(self) -> int:
        """The number of the open segment, also in a pause; 0 where there is none."""
        return self._open.number if self._open else 0

    @property
    def pausing(self) -> bool:
        """Whether the open segment is in a pause."""
        return self._open is not None and self._open.paused_at > 0

    @property
    def keep_from(self) -> int:
        """The first frame whose audio may still be needed."""
        if self._open is not None:
            return self._open.start
        return max(self._floor, self._frames - len(self._recent))

    def feed(self, probability: float) -> tuple[Decision, ...]:
        """Judge the next frame. Rarely more than one decision."""
        self._frames += 1
        self._recent.append(probability)
        if self._open is None:
            return self._listen()
        self._open.probabilities.append(probability)
        if self._open.paused_at:
            return self._wait(self._open, probability)
        return self._follow(self._open, probability)

    def finish(self) -> tuple[Decision, ...]:
        """End the open segment: the stream ended, or the user said so. More frames may follow."""
        return (self._over(self._open),) if self._open is not None else ()

    def _listen(self) -> tuple[Decision, ...]:
        """Look for the onset of speech."""
        last = list(self._recent)[-self._onset :]
        if len(last) < self._onset or min(last) < self._rules.threshold:
            return ()
        start = max(self._floor, self._frames - len(self._recent))
        self._segments += 1
        self._open = _Open(
            number=self._segments,
            start=start,
            probabilities=deque(list(self._recent)[start - self._frames :]),
            voiced=self._onset,
            voice_end=self._frames,
        )
        return (Began(segment=self._segments, start=start),)

    def _follow(self, it: _Open, probability: float) -> tuple[Decision, ...]:
        """Extend the open segment."""
        rules = self._rules
        if probability >= rules.keep_threshold:
            it.silent = 0
            it.voiced += 1
            it.voice_end = self._frames
            # Cut only on a voiced frame, so that the tail has a voice; silence ends the segment soon anyway.
            return self._cut(it) if self._frames - it.start >= _frames(rules.cap_s) else ()
        it.silent += 1
        if it.silent < _frames(rules.pause_s):
            return ()
        it.paused_at, it.back = self._frames, 0
        paused: tuple[Decision, ...] = ()
        if not self._is_too_short(it):
            paused = (Paused(segment=it.number, start=it.start, end=self._frames),)
        return (*paused, self._over(it)) if it.silent >= _frames(rules.commit_s) else paused

    def _wait(self, it: _Open, probability: float) -> tuple[Decision, ...]:
        """Look for the end of a pause."""
        it.silent += 1
        it.back = it.back + 1 if probability >= self._rules.threshold else 0
        if it.back >= _BACK_FRAMES:
            known = not self._is_too_short(it)
            it.silent, it.paused_at = 0, 0
            it.voiced += it.back
            it.voice_end = self._frames
            return (Resumed(segment=it.number),) if known else ()
        return (self._over(it),) if it.silent >= _frames(self._rules.commit_s) else ()

    def _over(self, it: _Open) -> Ended | TooShort:
        self._open = None
        if self._is_too_short(it):
            return TooShort(segment=it.number)
        self._floor = it.paused_at or self._frames
        return Ended(segment=it.number, start=it.start, end=self._floor, voice_end=it.voice_end)

    def _cut(self, it: _Open) -> tuple[Decision, ...]:
        probabilities = list(it.probabilities)
        at = _best_gap(probabilities, first=len(probabilities) - _frames(self._rules.cut_window_s))
        tail = probabilities[at:]
        self._segments += 1
        self._floor = it.start + at
        self._open = _Open(
            number=self._segments,
            start=self._floor,
            probabilities=deque(tail),
            voiced=sum(one >= self._rules.keep_threshold for one in tail),
            voice_end=self._frames,
            carried=True,
        )
        return (Cut(segment=it.number, start=it.start, end=self._floor),)

    def _is_too_short(self, it: _Open) -> bool:
        return not it.carried and it.voiced < _frames(self._rules.min_speech_s)


def _best_gap(probabilities: list[float], *, first: int) -> int:
    """The middle frame of the 160 ms, from `first` on, that are least like a voice; the latest of equals,
    which keeps the segment longest."""
    half = _GAP_FRAMES // 2
    middles = range(max(half, first), len(probabilities) - half)
    return min(reversed(middles), key=lambda at: sum(probabilities[at - half : at + half + 1]))


def _frames(seconds: float) -> int:
    """Frames that last at least `seconds`."""
    return math.ceil(seconds / FRAME_S - 1e-9)

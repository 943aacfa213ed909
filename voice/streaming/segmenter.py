"""Where speech begins, pauses and ends in a running stream, decided from voice probabilities.

Pure: one probability per frame of 32 ms in, decisions out; the audio's own time is the only clock. Not here:
the sound itself, its words, and which segments together make a message.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from voice.transcript import SAMPLE_RATE

FRAME_SAMPLES = 512
FRAME_S = FRAME_SAMPLES / SAMPLE_RATE

_BACK_FRAMES = 2
"""Frames over the threshold that end a pause: one alone is a click."""
_GAP_FRAMES = 5
"""A gap between words is judged over 160 ms: single low frames also stand inside of words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentRules:
    """Thresholds (0 to 1) and times in seconds. Raises ValueError, naming the field."""

    threshold: float = 0.5
    """What counts as a voice while nobody speaks."""
    keep_threshold: float = 0.35
    """What counts as a voice while somebody speaks: words end more softly than they begin."""
    onset_s: float = 0.128
    pre_roll_s: float = 0.5
    """Sound before the onset that belongs to the segment: soft consonants are not a voice yet."""
    pause_s: float = 0.35
    commit_s: float = 0.8
    cap_s: float = 15.0
    """Speech without a pause is cut after so long."""
    cut_window_s: float = 5.0
    """Where the best gap for the cut is looked for, back from its end."""
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
    """Somebody speaks. The segment's sound begins at frame `start`."""

    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused(_Decision):
    """Perhaps the end: frames `start` to `end` (excluded) can be heard already."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed(_Decision):
    """It was not the end: the segment goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended(_Decision):
    """The segment is over: frames `start` to `end`, the same as in its last pause where there was one."""

    start: int
    end: int
    voice_end: int
    """The frame after the last one with a voice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut(_Decision):
    """The speech goes on, but its frames `start` to `end` are over; the next segment begins at `end`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TooShort(_Decision):
    """There was a sound, but too little of a voice for a word."""


Decision = Began | Paused | Resumed | Ended | Cut | TooShort


@dataclass(slots=True, kw_only=True)
class _Open:
    """The segment that is being spoken."""

    number: int
    start: int
    probabilities: deque[float]
    """Of every frame since `start`."""
    voiced: int
    """Frames with a voice."""
    voice_end: int
    carried: bool = False
    """It is the tail of a cut: however short, its words belong to what stands before."""
    silent: int = 0
    back: int = 0
    paused_at: int = 0
    """The end of the sound as the last pause told it; 0 while somebody speaks."""


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
        """Frames that were judged."""
        return self._frames

    @property
    def speaking(self) -> int:
        """The segment that is being spoken or pauses; 0 while there is none."""
        return self._open.number if self._open else 0

    @property
    def pausing(self) -> bool:
        """Whether the open segment is in a pause."""
        return self._open is not None and self._open.paused_at > 0

    @property
    def keep_from(self) -> int:
        """The first frame whose sound may still be asked for."""
        if self._open is not None:
            return self._open.start
        return max(self._floor, self._frames - len(self._recent))

    def feed(self, probability: float) -> tuple[Decision, ...]:
        """Judge the next frame. Seldom more than one decision."""
        self._frames += 1
        self._recent.append(probability)
        if self._open is None:
            return self._listen()
        self._open.probabilities.append(probability)
        if self._open.paused_at:
            return self._wait(self._open, probability)
        return self._follow(self._open, probability)

    def finish(self) -> tuple[Decision, ...]:
        """The stream ends here, or its speaker says that they are through. It may go on afterwards."""
        return (self._over(self._open),) if self._open is not None else ()

    def _listen(self) -> tuple[Decision, ...]:
        """Nobody speaks yet."""
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
        """Somebody speaks."""
        rules = self._rules
        if probability >= rules.keep_threshold:
            it.silent = 0
            it.voiced += 1
            it.voice_end = self._frames
            # Only here, so that the tail always has a voice in it; a silence ends the segment soon anyway.
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
        """There is a pause in the speech."""
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
    """The middle of the 160 ms from `first` on that sound least like a voice; of equals the latest, which
    leaves most in one piece."""
    half = _GAP_FRAMES // 2
    middles = range(max(half, first), len(probabilities) - half)
    return min(reversed(middles), key=lambda at: sum(probabilities[at - half : at + half + 1]))


def _frames(seconds: float) -> int:
    """Frames that last at least so long."""
    return math.ceil(seconds / FRAME_S - 1e-9)

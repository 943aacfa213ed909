"""Decide when buffered speech becomes a message: values in, a verdict out.

Nothing here waits, stores or sends. Times are seconds of one monotonic clock.

| the speech | the verdict |
|---|---|
| the user is speaking | buffered, up to the maximum time |
| a complete sentence of the minimum length | flushed at once |
| a pause after a complete thought of the minimum length | flushed |
| a long silence | flushed, however short it is |
| the maximum time since the first words | flushed in every case |
| speech marked as complete | flushed, however short it is |
"""

from __future__ import annotations

from dataclasses import dataclass

from voice.endpointing.completeness import is_complete_thought, sentence_end
from voice.endpointing.speech_buffer import FlushReason, SpeechBuffer

_TOLERANCE_S = 1e-6
"""Float sums are inexact: a time within this distance is due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlushSettings:
    """Times in seconds and lengths in characters. Raises ValueError, naming the field."""

    pause_s: float = 1.5
    silence_s: float = 3.0
    max_s: float = 15.0
    min_chars: int = 20
    max_chars: int = 100_000
    """Longer text is flushed as if the maximum time were over."""

    def __post_init__(self) -> None:
        if not 0 < self.pause_s <= self.silence_s <= self.max_s:
            raise ValueError("speech: pause_s, silence_s and max_s must be greater than zero, in this order")
        if self.min_chars < 0 or self.max_chars <= 0:
            raise ValueError(
                "speech: min_chars must not be negative, and max_chars must be greater than zero"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Flush:
    """Flush the buffer now."""

    reason: FlushReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Decide again at `until`, or earlier when the buffer changes."""

    until: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """There is nothing to flush."""


Verdict = Flush | Wait | Idle


def decide(buffer: SpeechBuffer, now: float, settings: FlushSettings) -> Verdict:
    """Whether to flush `buffer` at `now`, a monotonic time in seconds."""
    if not buffer.content:
        return Idle()
    deadline = buffer.created_at + settings.max_s
    if buffer.complete and not buffer.gap:
        return Flush(reason="complete")
    if _is_due(deadline, now) or len(buffer.content) > settings.max_chars:
        return Flush(reason="max_time")
    if buffer.complete or buffer.gap or buffer.speaking:
        return Wait(until=deadline)
    return _in_a_pause(buffer, now, settings, deadline)


def _in_a_pause(buffer: SpeechBuffer, now: float, settings: FlushSettings, deadline: float) -> Verdict:
    silence = buffer.last_activity + settings.silence_s
    if len(buffer.content) >= settings.min_chars and is_complete_thought(buffer.content, buffer.language):
        if sentence_end(buffer.content, buffer.language) == "strong":
            return Flush(reason="sentence")
        pause = buffer.last_activity + settings.pause_s
        if not _is_due(pause, now):
            return Wait(until=min(pause, deadline))
        if not _is_due(silence, now):
            return Flush(reason="complete_thought")
    return Flush(reason="silence") if _is_due(silence, now) else Wait(until=min(silence, deadline))


def _is_due(at: float, now: float) -> bool:
    return now >= at - _TOLERANCE_S

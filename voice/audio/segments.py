"""The decoder's output: speech segments, split at the pauses of a recording."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechSegment:
    """Speech to recognise in one pass: at most the length of Whisper's window, usually less."""

    index: int
    """Its number in the recording, from 0."""
    pcm: bytes
    """16 kHz, mono, 16 bit little endian; pauses are left out."""
    spans: tuple[tuple[float, float], ...]
    """Its place: `(start, end)` in seconds of the recording, in order and disjoint. Not empty."""

    @property
    def seconds(self) -> float:
        """Length of the speech without pauses."""
        return len(self.pcm) / 32_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """The summary at a recording's end."""

    seconds: float
    """Seconds of audio processed, silence included."""
    truncated: bool
    """Whether the recording was longer than allowed; the rest is ignored."""
    container: str
    """`ogg`, `webm`, `mp4`, `mp3`, `wav`, `flac`, `amr` or `aac`; `pcm` for raw samples."""
    segments: int

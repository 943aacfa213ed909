"""What the decoder hands to the recogniser: stretches of speech, cut out of a recording at its pauses."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechSegment:
    """Speech to recognise in one go: at most the length of Whisper's window, usually less."""

    index: int
    """Its place in the recording, from 0."""
    pcm: bytes
    """16 kHz, mono, 16 bit little endian; pauses are left out."""
    spans: tuple[tuple[float, float], ...]
    """Where it comes from: `(start, end)` in seconds of the recording, in order and apart. Not empty."""

    @property
    def seconds(self) -> float:
        """Length of the speech alone."""
        return len(self.pcm) / 32_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """A recording's end: what was decoded altogether."""

    seconds: float
    """Seconds of audio that were listened to, silence included."""
    truncated: bool
    """The recording was longer than allowed; the rest is left out."""
    container: str
    """`ogg`, `webm`, `mp4`, `mp3`, `wav`, `flac`, `amr` or `aac`; `pcm` for bare samples."""
    pieces: int

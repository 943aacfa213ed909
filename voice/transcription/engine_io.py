"""The engine's job and result types, one per speech segment."""

from __future__ import annotations

from dataclasses import dataclass

from voice.transcript import SAMPLE_RATE, SpeechChunk

MAX_SEGMENT_S = 30.0
"""The length of Whisper's window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineJob:
    """Speech to recognise. Raises ValueError where it does not fit into Whisper's window."""

    pcm: bytes
    """16 kHz, mono, 16 bit little endian; at most 30 s."""
    spans: tuple[tuple[float, float], ...]
    """Its place: `(start, end)` in seconds of the recording, in order and disjoint. Not empty."""
    language: str | None = None
    """A code that is certain; None, or a code that the model does not know, means detection."""
    likely_language: str | None = None
    """Used where detection is unsure."""
    prompt: str = ""
    """The words before it."""
    beam_size: int = 5

    def __post_init__(self) -> None:
        if not self.pcm or len(self.pcm) % 2 or self.seconds > MAX_SEGMENT_S:
            raise ValueError(f"a piece must be 16 bit samples of at most {MAX_SEGMENT_S:g} s")

    @property
    def seconds(self) -> float:
        """Length of the speech without pauses."""
        return len(self.pcm) / (2 * SAMPLE_RATE)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineResult:
    """The words of a segment; no chunks where the checks find no speech."""

    chunks: tuple[SpeechChunk, ...]
    language: str
    """Empty where there is no speech."""
    language_probability: float
    low: bool
    """The words are probably wrong; their confidence is below 0.37."""
    tokens: int = 0
    """Tokens of Whisper's vocabulary in all chunks: an amount of speech that is independent of the script."""

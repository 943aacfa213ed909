"""What the recogniser is asked, piece by piece, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass

from voice.transcript import SAMPLE_RATE, SpeechChunk

MAX_PIECE_S = 30.0
"""The length of Whisper's window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceJob:
    """Speech to recognise. Raises ValueError where it does not fit into Whisper's window."""

    pcm: bytes
    """16 kHz, mono, 16 bit little endian; at most 30 s."""
    spans: tuple[tuple[float, float], ...]
    """Where it comes from: `(start, end)` in seconds of the recording, in order and apart. Not empty."""
    language: str | None = None
    """A code that is certain; None, or one that the model does not know, detects it."""
    likely_language: str | None = None
    """Taken where detection is unsure."""
    prompt: str = ""
    """The words before it."""
    beam_size: int = 5

    def __post_init__(self) -> None:
        if not self.pcm or len(self.pcm) % 2 or self.seconds > MAX_PIECE_S:
            raise ValueError(f"a piece must be 16 bit samples of at most {MAX_PIECE_S:g} s")

    @property
    def seconds(self) -> float:
        """Length of the speech alone."""
        return len(self.pcm) / (2 * SAMPLE_RATE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceHeard:
    """What is said in a piece; no chunks where the checks find no speech."""

    chunks: tuple[SpeechChunk, ...]
    language: str
    """Empty where nobody spoke."""
    language_probability: float
    low: bool
    """The words may well be wrong; their confidence is below 0.37."""
    tokens: int = 0
    """Of Whisper's vocabulary, in all chunks: how much was said, whatever the script."""

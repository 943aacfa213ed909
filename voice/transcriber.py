"""The speech recognition port: a recording in, a transcript out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from voice.transcript import Transcript

Urgency = Literal["final", "note", "partial"]
"""The order of recognition: the end of a live utterance, then voice notes, then partial text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """Audio to transcribe."""

    data: bytes
    """An audio file in any accepted container, or bare samples."""
    form: Literal["file", "pcm"] = "file"
    """`pcm`: 16 kHz, mono, 16 bit little endian, and nothing else."""
    language: str | None = None
    """A code such as `de` that is certain; None detects it."""
    likely_language: str | None = None
    """The speaker's last language: used where detection is unsure."""
    speaker: str = ""
    """The person it counts for: waiting recordings are transcribed in turns of speakers."""
    urgency: Urgency = "note"
    prompt: str = ""
    """The words before it, if it was cut out of continuous speech."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """The recording waits for its turn."""

    ahead: int
    """Recordings before it."""
    eta_s: float
    """Seconds until its transcription starts, estimated from the queue and the recent speed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Growing:
    """The words of a long recording's beginning, while the rest is transcribed. Never retracted."""

    text: str
    covered_s: float
    """Seconds of the recording that the words cover."""


OnProgress = Callable[[Waiting | Growing], None]


class Transcriber(Protocol):
    """A speech recogniser. One serves many concurrent callers."""

    async def transcribe(self, recording: Recording, *, on_progress: OnProgress | None = None) -> Transcript:
        """What is said in `recording`. Silence and noise give a transcript without chunks.

        Raises AudioRefused, TranscriberUnavailable, TranscriptionTimeout or TranscriberBusy; a `partial`
        is refused with TranscriberBusy at once unless a recogniser is idle. Cancelling the call stops
        the work.
        """
        ...

    async def warm_up(self) -> None:
        """Start and load everything that the first call needs. Safe to call more than once.

        Raises TranscriberUnavailable or TranscriptionTimeout.
        """
        ...

    async def close(self) -> None:
        """Stop every child process. Waiting calls fail with TranscriberUnavailable."""
        ...

    def status(self) -> str:
        """One line for the operator: `ready`, `loading`, `not started`, or the problem and its remedy."""
        ...

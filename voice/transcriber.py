"""The port to a speech recogniser: a recording in, a transcript out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from voice.transcript import Transcript

Urgency = Literal["final", "note", "partial"]
"""What is heard first: the end of a live utterance, then voice notes, then what is only shown meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """Something to hear."""

    data: bytes
    """An audio file in any accepted container, or bare samples."""
    form: Literal["file", "pcm"] = "file"
    """`pcm`: 16 kHz, mono, 16 bit little endian, and nothing else."""
    language: str | None = None
    """A code such as `de` that is certain; None detects it."""
    likely_language: str | None = None
    """What the speaker spoke last: taken where detection is unsure."""
    speaker: str = ""
    """Whose turn it counts as: waiting recordings are heard in turns of speakers."""
    urgency: Urgency = "note"
    prompt: str = ""
    """The words before it, where it was cut out of continuous speech."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """The recording waits for its turn."""

    ahead: int
    """Recordings before it."""
    eta_s: float
    """Seconds until it is heard, estimated from what waits and how fast hearing has been."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Growing:
    """The words of a long recording's beginning, while the rest is being heard. Never retracted."""

    text: str
    heard_s: float
    """Seconds of the recording that the words cover."""


OnProgress = Callable[[Waiting | Growing], None]


class Transcriber(Protocol):
    """A recogniser. One serves many concurrent callers."""

    async def transcribe(self, recording: Recording, *, on_progress: OnProgress | None = None) -> Transcript:
        """What is said in `recording`. Silence and noise give a transcript without chunks.

        Raises AudioRefused, TranscriberUnavailable, TranscriptionTimeout or TranscriberBusy; a `partial`
        is refused with TranscriberBusy at once unless a recogniser is idle. Cancelling the call stops
        the work.
        """
        ...

    async def warm_up(self) -> None:
        """Do now what the first call would otherwise wait for. Safe to call more than once.

        Raises TranscriberUnavailable or TranscriptionTimeout.
        """
        ...

    async def close(self) -> None:
        """Stop every child process. Calls that still wait fail with TranscriberUnavailable."""
        ...

    def status(self) -> str:
        """One line for the operator: `ready`, `loading`, `not started`, or what is wrong and what to do."""
        ...

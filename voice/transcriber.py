"""The port to a speech recogniser: bytes of an audio file in, a transcript out."""

from __future__ import annotations

from typing import Protocol

from voice.speech import Transcript


class Transcriber(Protocol):
    """A recogniser. One serves many concurrent callers, in the order of their calls."""

    async def transcribe(self, data: bytes, *, language: str | None = None) -> Transcript:
        """What is said in `data`, the bytes of an audio file in any accepted container.

        `language` is a code such as `de`; None detects it. Silence and noise give a transcript
        without chunks. Raises AudioRefused, TranscriberUnavailable, TranscriptionTimeout or
        TranscriberBusy. Cancelling the call stops the work.
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
        """One line for people: `ready`, `loading`, `not started`, or what is wrong and what to do."""
        ...

"""The port to a voice that reads answers aloud: text in, a voice message out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class SpokenAudio:
    """Something said, as phones send it."""

    data: bytes
    """OGG with Opus, mono, 48 kHz."""
    seconds: float
    waveform: bytes
    """Loudness over time, 0 to 255, at most 256 values: what players draw."""
    mime: str = "audio/ogg"


class SpeechSynthesizer(Protocol):
    """A voice. One serves many callers, one after the other."""

    def speaks(self, language: str) -> bool:
        """Whether there is a voice for the language, a code such as `en`."""
        ...

    async def speak(self, text: str, *, language: str = "en") -> SpokenAudio:
        """`text`, plain words without markup, said. Raises SpeakerUnavailable with words for the log."""
        ...

    async def warm_up(self) -> None:
        """Do now what the first call would otherwise wait for. Raises SpeakerUnavailable."""
        ...

    async def close(self) -> None:
        """Stop every child process."""
        ...

    def status(self) -> str:
        """One line for people: `ready`, `loading`, `not started`, or what is wrong and what to do."""
        ...

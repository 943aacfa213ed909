"""The speech synthesis port: text in, a voice message out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class SpokenAudio:
    """A voice message."""

    data: bytes
    """OGG with Opus, mono, 48 kHz."""
    seconds: float
    waveform: bytes
    """Loudness over time, 0 to 255, at most 256 values, for the players' display."""
    mime: str = "audio/ogg"


class SpeechSynthesizer(Protocol):
    """A speech synthesiser. One serves many callers, one after the other."""

    def speaks(self, language: str) -> bool:
        """Whether there is a voice for the language, a tag such as `en` or `en-GB`; its region does not
        count."""
        ...

    async def speak(
        self, text: str, *, language: str = "en", voice: str = "", speed: float = 1.0
    ) -> SpokenAudio:
        """Speak `text`, plain words without markup. `voice` is the name of the preferred voice; without it,
        or where it is missing or speaks another language, the first voice of the language is used, of its
        region if there is one. `speed` is a factor from 0.5 to 2. Raises SpeakerUnavailable with a message
        for the log."""
        ...

    async def warm_up(self) -> None:
        """Start and load everything that the first call needs. Raises SpeakerUnavailable."""
        ...

    async def close(self) -> None:
        """Stop every child process."""
        ...

    def status(self) -> str:
        """One line for people: `ready`, `loading`, `not started`, or the problem and its remedy."""
        ...

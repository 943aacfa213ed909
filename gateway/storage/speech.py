"""Port for speech data: buffers of dictation, speakers' preferences and transcripts. A part of `Store`.

Bodies are plain JSON data; times are Unix seconds. Every method raises StorageError when the store fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol

from pipeline.domain.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeakerKey:
    """One person on one account of a channel."""

    channel: str
    account: str
    user: str


ReadAloudMode = Literal["off", "on", "auto"]
"""Which answers are read aloud: none, all, or those to spoken messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadAloudWishes:
    """How a person wants answers read aloud."""

    mode: ReadAloudMode = "off"
    speed: float = 1.0
    """A factor: 1.25 is a quarter faster."""
    brief: bool = False
    """Whether only the beginning of a long answer is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeakerPreferences:
    """A person's stored speech settings."""

    language: str = ""
    """The language that they spoke last; empty before that."""
    reading: ReadAloudWishes = ReadAloudWishes()
    voice_command: str = ""
    """The message ids of the commands that last changed that, newest last, with a space between them."""


class SpeakerPreferenceStore(Protocol):
    """Speech buffers, speakers' preferences and transcripts."""

    async def keep_buffer(self, key: str, body: Mapping[str, Any], *, at: float) -> None:
        """Store a speech buffer under its key, replacing an earlier one."""
        ...

    async def drop_buffer(self, key: str) -> None:
        """Delete a buffer; does nothing if there is none."""
        ...

    async def buffers(self) -> tuple[tuple[str, Mapping[str, Any]], ...]:
        """Every buffer with its key, oldest change first."""
        ...

    async def preferences_of(self, speaker: SpeakerKey) -> SpeakerPreferences:
        """The speaker's preferences; the defaults for an unknown speaker."""
        ...

    async def remember_language(self, speaker: SpeakerKey, language: str) -> None: ...

    async def want_reading(self, speaker: SpeakerKey, wanted: ReadAloudWishes, *, command: str) -> None:
        """Store what the command with the message id `command` asked for, and that id."""
        ...

    async def transcript(self, key: str, *, newer_than: float) -> Mapping[str, Any] | None:
        """The transcript stored under `key` after the time `newer_than`; None if there is none."""
        ...

    async def keep_transcript(self, key: str, body: Mapping[str, Any], *, at: float, limit: int) -> None:
        """Store a transcript; the oldest above `limit` are deleted."""
        ...

    async def forget_transcripts(self) -> None:
        """Delete every transcript: none says to which chat it belongs."""
        ...

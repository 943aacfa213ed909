"""Port for speech data: buffers of dictation, speakers' preferences and transcripts. A part of `Store`.

Bodies are plain JSON data; times are Unix seconds. Every method raises StorageError when the store fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from pipeline.domain.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeakerKey:
    """One person on one account of a channel."""

    channel: str
    account: str
    user: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeakerPreferences:
    """A person's stored speech settings."""

    language: str = ""
    """The language that they spoke last; empty before that."""
    voice_replies: bool = False
    """Whether they want answers read aloud."""
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

    async def want_voice_replies(self, speaker: SpeakerKey, *, wanted: bool, command: str) -> None:
        """Store what the command with the message id `command` asked for, and that id."""
        ...

    async def transcript(self, key: str, *, newer_than: float) -> Mapping[str, Any] | None:
        """The transcript stored under `key` after the time `newer_than`; None if there is none."""
        ...

    async def keep_transcript(self, key: str, body: Mapping[str, Any], *, at: float, limit: int) -> None:
        """Store a transcript; the oldest above `limit` are deleted."""
        ...

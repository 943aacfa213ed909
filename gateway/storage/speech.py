"""What is kept about speech: dictation that is not a message yet, how people speak, what recordings said.

A part of the store's port. Bodies are plain JSON data; times are Unix seconds. Every method raises
StorageError when the store cannot do it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeakerKey:
    """One person on one account of a channel."""

    channel: str
    account: str
    user: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeakerPreferences:
    """What is remembered about how a person speaks and listens."""

    language: str = ""
    """What they spoke last; empty until they spoke."""
    voice_replies: bool = False
    """Whether they want answers read aloud."""
    voice_command: str = ""
    """The message ids of the commands that last changed that, newest last, with a space between them."""


class SpeakerPreferenceStore(Protocol):
    """Buffers, habits and transcripts."""

    async def keep_buffer(self, key: str, body: Mapping[str, Any], *, at: float) -> None:
        """Keep a speech buffer under its key, in place of what was kept under it."""
        ...

    async def drop_buffer(self, key: str) -> None:
        """Forget a buffer; does nothing when it is not there."""
        ...

    async def buffers(self) -> tuple[tuple[str, Mapping[str, Any]], ...]:
        """Every buffer with its key, longest untouched first."""
        ...

    async def preferences_of(self, speaker: SpeakerKey) -> SpeakerPreferences:
        """What is remembered; the defaults for somebody unknown."""
        ...

    async def remember_language(self, speaker: SpeakerKey, language: str) -> None: ...

    async def want_voice_replies(self, speaker: SpeakerKey, *, wanted: bool, command: str) -> None:
        """Remember what the command with that message id asked for, and that it was this one."""
        ...

    async def transcript(self, key: str, *, newer_than: float) -> Mapping[str, Any] | None:
        """What was kept under `key` after that time; None where there is nothing."""
        ...

    async def keep_transcript(self, key: str, body: Mapping[str, Any], *, at: float, limit: int) -> None:
        """Keep a transcript; beyond `limit` of them the oldest are forgotten."""
        ...

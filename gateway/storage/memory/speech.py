"""Speech buffers, speakers' preferences and transcripts, in dictionaries."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from gateway.storage.identities import Identity, wrote
from gateway.storage.json_bodies import decode_body, encode_body, storable_text
from gateway.storage.speech import ReadAloudWishes, SpeakerKey, SpeakerPreferences


class MemoryVoices:
    """A part of `MemoryStore`. `require_open` raises StorageError if the store is closed."""

    def __init__(self, require_open: Callable[[], None]) -> None:
        self._require_open = require_open
        self._buffers: dict[str, tuple[float, str]] = {}
        self._preferences: dict[SpeakerKey, SpeakerPreferences] = {}
        self._transcripts: dict[str, tuple[float, str]] = {}

    async def keep_buffer(self, key: str, body: Mapping[str, Any], *, at: float) -> None:
        self._require_open()
        self._buffers[key] = (at, encode_body(body))

    async def drop_buffer(self, key: str) -> None:
        self._require_open()
        self._buffers.pop(key, None)

    async def buffers(self) -> tuple[tuple[str, Mapping[str, Any]], ...]:
        self._require_open()
        oldest = sorted(self._buffers.items(), key=lambda kept: (kept[1][0], kept[0]))
        return tuple((key, decode_body(body)) for key, (_, body) in oldest)

    async def preferences_of(self, speaker: SpeakerKey) -> SpeakerPreferences:
        self._require_open()
        return self._preferences.get(speaker, SpeakerPreferences())

    async def remember_language(self, speaker: SpeakerKey, language: str) -> None:
        self._preferences[speaker] = replace(
            await self.preferences_of(speaker), language=storable_text(language)
        )

    async def want_reading(self, speaker: SpeakerKey, wanted: ReadAloudWishes, *, command: str) -> None:
        self._preferences[speaker] = replace(
            await self.preferences_of(speaker), reading=wanted, voice_command=storable_text(command)
        )

    async def transcript(self, key: str, *, newer_than: float) -> Mapping[str, Any] | None:
        self._require_open()
        at, body = self._transcripts.get(key, (0.0, ""))
        return decode_body(body) if body and at > newer_than else None

    async def keep_transcript(self, key: str, body: Mapping[str, Any], *, at: float, limit: int) -> None:
        self._require_open()
        self._transcripts[key] = (at, encode_body(body))
        newest = sorted(self._transcripts.items(), key=lambda kept: (-kept[1][0], kept[0]))
        self._transcripts = dict(newest[:limit])

    def drop_of(self, people: Collection[str], identities: Collection[Identity]) -> None:
        """Forget preferences and speech of these, and all transcripts."""
        places = {(one.channel, one.account, one.user) for one in identities}
        self._preferences = {
            one: kept
            for one, kept in self._preferences.items()
            if (one.channel, one.account, one.user) not in places and f"{one.channel}{one.user}" not in people
        }
        self._buffers = {key: one for key, one in self._buffers.items() if not _is_of(key, identities)}
        self._transcripts.clear()

    async def forget_transcripts(self) -> None:
        self._require_open()
        self._transcripts.clear()


def _is_of(key: str, identities: Collection[Identity]) -> bool:
    """Whether a buffer of that key holds speech of one of these."""
    try:
        thread, user = json.loads(key)
    except ValueError:
        return False
    return wrote(identities, str(thread), user)

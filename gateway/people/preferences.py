"""One set of speech preferences for all identities of a person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.people.directory import PersonDirectory
from gateway.storage.identities import GROUP_PREFIX, Identity, JoinResult
from gateway.storage.speech import (
    ReadAloudWishes,
    SpeakerKey,
    SpeakerPreferences,
    SpeakerPreferenceStore,
)


class SharedPreferences:
    """A `SpeakerPreferenceStore` that finds the preferences of a linked identity under its person.

    Buffers and transcripts are passed on unchanged: they belong to a chat and to an identity.
    """

    def __init__(self, store: SpeakerPreferenceStore, people: PersonDirectory) -> None:
        self._store = store
        self._people = people

    async def preferences_of(self, speaker: SpeakerKey) -> SpeakerPreferences:
        return await self._store.preferences_of(self._shared(speaker))

    async def remember_language(self, speaker: SpeakerKey, language: str) -> None:
        await self._store.remember_language(self._shared(speaker), language)

    async def want_reading(self, speaker: SpeakerKey, wanted: ReadAloudWishes, *, command: str) -> None:
        await self._store.want_reading(self._shared(speaker), wanted, command=command)

    async def carry_over(self, joined: JoinResult, identity: Identity) -> None:
        """Fill in what the person of `joined` has not set: from the owner of the code, if the person is new,
        and then from `identity`, which has joined. May be repeated. Raises StorageError."""
        known = {one.identity.key: one.identity for one in joined.others} | {identity.key: identity}
        person = _speaker(joined.person, known)
        for key in filter(None, (joined.source, joined.before)):
            own = await self._store.preferences_of(person)
            more = await self._store.preferences_of(_speaker(key, known))
            if more.language and not own.language:
                await self._store.remember_language(person, more.language)
            if more.voice_command and not own.voice_command:
                await self._store.want_reading(person, more.reading, command=more.voice_command)

    async def keep_buffer(self, key: str, body: Mapping[str, Any], *, at: float) -> None:
        await self._store.keep_buffer(key, body, at=at)

    async def drop_buffer(self, key: str) -> None:
        await self._store.drop_buffer(key)

    async def buffers(self) -> tuple[tuple[str, Mapping[str, Any]], ...]:
        return await self._store.buffers()

    async def transcript(self, key: str, *, newer_than: float) -> Mapping[str, Any] | None:
        return await self._store.transcript(key, newer_than=newer_than)

    async def keep_transcript(self, key: str, body: Mapping[str, Any], *, at: float, limit: int) -> None:
        await self._store.keep_transcript(key, body, at=at, limit=limit)

    async def forget_transcripts(self) -> None:
        await self._store.forget_transcripts()

    def _shared(self, speaker: SpeakerKey) -> SpeakerKey:
        person = self._people.linked_as(speaker.channel, speaker.account, speaker.user)
        return _speaker(person, {}) if person else speaker


def _speaker(person: str, known: Mapping[str, Identity]) -> SpeakerKey:
    """The key of the preferences of a person: with linked identities, or one of the identities `known`."""
    if person.startswith(GROUP_PREFIX):
        return SpeakerKey(channel=GROUP_PREFIX, account="", user=person.removeprefix(GROUP_PREFIX))
    one = known[person]
    return SpeakerKey(channel=one.channel, account=one.account, user=one.user)

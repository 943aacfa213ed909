"""Read a person's speech preferences, and store the language that they spoke last: a hint for the next
recording, in place of the agent's language. Store failures are logged and ignored."""

from __future__ import annotations

import logging
from typing import Protocol

from gateway.config import AgentSpeech
from gateway.storage.speech import SpeakerKey, SpeakerPreferences, SpeakerPreferenceStore
from pipeline.domain.errors import StorageError
from pipeline.domain.ids import ThreadKey

_log = logging.getLogger(__name__)


class AgentSpeechOf(Protocol):
    """Finds the speech settings of an agent."""

    async def __call__(
        self, thread: ThreadKey, author: str, *, private: bool, message_id: str = ""
    ) -> AgentSpeech:
        """Those of the agent that answers the author's message `message_id`, or the next one without it. A
        failure of the store is logged, and the built-in settings count."""
        ...


def speaker_of(thread: ThreadKey, user: str) -> SpeakerKey:
    """The key of the person `user` on the account of `thread`, the same in every chat."""
    return SpeakerKey(channel=thread.channel, account=thread.account, user=user)


async def preferences_or_none(preferences: SpeakerPreferenceStore, speaker: SpeakerKey) -> SpeakerPreferences:
    """The speaker's preferences; those of an unknown speaker if the store fails."""
    try:
        return await preferences.preferences_of(speaker)
    except StorageError as error:
        _log.warning("a speaker's preferences are not known", extra={"reason": str(error)})
        return SpeakerPreferences()


async def likely_language(
    preferences: SpeakerPreferenceStore,
    speech_of: AgentSpeechOf,
    thread: ThreadKey,
    user: str,
    *,
    private: bool,
) -> str:
    """The language that `user` spoke last, else that of the agent that answers; empty if there is none."""
    known = await preferences_or_none(preferences, speaker_of(thread, user))
    return known.language or (await speech_of(thread, user, private=private)).spoken


async def spoke(
    preferences: SpeakerPreferenceStore, speaker: SpeakerKey, language: str, *, before: str
) -> None:
    """Store the language, if it is known and differs from `before`."""
    if not language or language == before:
        return
    try:
        await preferences.remember_language(speaker, language)
    except StorageError as error:
        _log.warning("a speaker's language is not remembered", extra={"reason": str(error)})

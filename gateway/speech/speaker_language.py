"""Read and store the language that a person spoke last, as a hint for the next recording; without one, the
agent's language is the hint. Store failures are logged and ignored."""

from __future__ import annotations

import logging
from typing import Protocol

from gateway.config import AgentSpeech
from gateway.storage.speech import SpeakerKey, SpeakerPreferenceStore
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


async def spoken_last(preferences: SpeakerPreferenceStore, speaker: SpeakerKey) -> str:
    """The language's code; empty if it is unknown or the store fails."""
    try:
        return (await preferences.preferences_of(speaker)).language
    except StorageError as error:
        _log.warning("a speaker's language is not known", extra={"reason": str(error)})
        return ""


async def likely_language(
    preferences: SpeakerPreferenceStore,
    speech_of: AgentSpeechOf,
    thread: ThreadKey,
    user: str,
    *,
    private: bool,
) -> str:
    """The language that `user` spoke last, else that of the agent that answers; empty if there is none."""
    known = await spoken_last(preferences, speaker_of(thread, user))
    return known or (await speech_of(thread, user, private=private)).spoken


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

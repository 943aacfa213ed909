"""What a person spoke last, looked up and remembered: a help for the next recording, which nothing waits or
fails for."""

from __future__ import annotations

import logging

from gateway.storage.speech import SpeakerKey, SpeakerPreferenceStore
from pipeline.domain.errors import StorageError
from pipeline.domain.ids import ThreadKey

_log = logging.getLogger(__name__)


def speaker_of(thread: ThreadKey, user: str) -> SpeakerKey:
    """The person `user` on the account of `thread`, whatever the chat."""
    return SpeakerKey(channel=thread.channel, account=thread.account, user=user)


async def spoken_last(book: SpeakerPreferenceStore, speaker: SpeakerKey) -> str:
    """The language's code; empty where it is not known, or the store cannot say."""
    try:
        return (await book.preferences_of(speaker)).language
    except StorageError as error:
        _log.warning("a speaker's language is not known", extra={"reason": str(error)})
        return ""


async def spoke(book: SpeakerPreferenceStore, speaker: SpeakerKey, language: str, *, before: str) -> None:
    """Remember the language, if one is known and it is another than `before`."""
    if not language or language == before:
        return
    try:
        await book.remember_language(speaker, language)
    except StorageError as error:
        _log.warning("a speaker's language is not remembered", extra={"reason": str(error)})

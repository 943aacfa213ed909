"""Read answers aloud: choose the text to speak and the language."""

from __future__ import annotations

import logging

from adapters.channel import (
    ReadAloud,
    VoiceClip,
)
from adapters.formatting.spoken import spoken_text
from gateway.storage.speech import SpeakerKey, SpeakerPreferenceStore
from pipeline.domain.errors import MediaUnavailable, StorageError
from voice.errors import VoiceError
from voice.synthesis.synthesizer import SpeechSynthesizer

_log = logging.getLogger(__name__)


DEFAULT_LANGUAGE = "en"
_LAST_LATIN = "\u024f"


class AnswerReader:
    """Implements ReadAloud with a `SpeechSynthesizer`."""

    def __init__(self, speaker: SpeechSynthesizer) -> None:
        self._speaker = speaker

    async def read(self, text: str, *, language: str = "") -> VoiceClip:
        said = spoken_text(text)
        if not said:
            raise MediaUnavailable("There is nothing in this answer that can be read aloud.")
        language = language or DEFAULT_LANGUAGE
        if not self._speaker.speaks(language) or _other_script(said, language):
            raise MediaUnavailable("There is no voice here for the language of this answer.")
        try:
            spoken = await self._speaker.speak(said, language=language)
        except VoiceError as error:
            # The error's text is for the operator: it names folders and quotes libraries.
            _log.warning("an answer was not read aloud", extra={"reason": str(error)})
            raise MediaUnavailable("This answer could not be read aloud. It is there in writing.") from error
        return VoiceClip(data=spoken.data, mime=spoken.mime, seconds=spoken.seconds, waveform=spoken.waveform)


class OwnReader:
    """Implements ReadAloud for one person. Without a given language it uses the one they spoke last."""

    def __init__(self, reader: ReadAloud, preferences: SpeakerPreferenceStore, person: SpeakerKey) -> None:
        self._reader = reader
        self._preferences = preferences
        self._person = person

    async def read(self, text: str, *, language: str = "") -> VoiceClip:
        return await self._reader.read(text, language=language or await self._spoken_last())

    async def _spoken_last(self) -> str:
        try:
            return (await self._preferences.preferences_of(self._person)).language
        except StorageError as error:
            _log.warning("a person's language was not found", extra={"reason": str(error)})
            return ""


def _other_script(text: str, language: str) -> bool:
    """Whether most letters are in a script that an English voice can only spell out."""
    if language != DEFAULT_LANGUAGE:
        return False
    letters = [char for char in text if char.isalpha()]
    return sum(char > _LAST_LATIN for char in letters) * 2 > len(letters)

"""Read answers aloud: choose the text to speak and the language."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from adapters.channel import VoiceClip
from adapters.formatting.spoken import spoken_text
from gateway.speech.speaker_language import AgentSpeechOf, preferences_or_none
from gateway.speech.voice_download import VoiceDownload
from gateway.storage.speech import ReadAloudWishes, SpeakerKey, SpeakerPreferenceStore
from pipeline.domain.errors import MediaUnavailable
from pipeline.domain.ids import ThreadKey
from voice.errors import VoiceError
from voice.synthesis.synthesizer import SpeechSynthesizer
from voice.text import shortened

_log = logging.getLogger(__name__)


DEFAULT_LANGUAGE = "en"
BRIEF_CHARACTERS = 300
"""About 20 seconds."""
_LAST_LATIN = "\u024f"


class AnswerReader:
    """Turns an answer into audio with a `SpeechSynthesizer`."""

    def __init__(self, speaker: SpeechSynthesizer, download: VoiceDownload | None = None) -> None:
        """`download` fetches a voice where there is none."""
        self._speaker = speaker
        self._download = download

    async def read(
        self,
        text: str,
        *,
        language: str = "",
        voice: str = "",
        wishes: ReadAloudWishes = ReadAloudWishes(),  # noqa: B008 - it is immutable
    ) -> VoiceClip:
        """`text` (Markdown) as audio, in English without a given language. `voice` is the preferred voice.
        The `mode` of the wishes does not count. Raises MediaUnavailable with text."""
        said = spoken_text(text)
        if wishes.brief:
            said = shortened(said, BRIEF_CHARACTERS)
        if not said:
            raise MediaUnavailable("There is nothing in this answer that can be read aloud.")
        if self._download is not None and (words := self._download.request()):
            raise MediaUnavailable(words)
        language = language or DEFAULT_LANGUAGE
        if not self._speaker.speaks(language) or _other_script(said, language):
            raise MediaUnavailable("There is no voice here for the language of this answer.")
        try:
            spoken = await self._speaker.speak(said, language=language, voice=voice, speed=wishes.speed)
        except VoiceError as error:
            # The error's text is for the operator: it names folders and quotes libraries.
            _log.warning("an answer was not read aloud", extra={"reason": str(error)})
            raise MediaUnavailable("This answer could not be read aloud. It is there in writing.") from error
        return VoiceClip(data=spoken.data, mime=spoken.mime, seconds=spoken.seconds, waveform=spoken.waveform)


class OwnReader:
    """Implements ReadAloud for private chats, whose people `person_of` names: in the language that they spoke
    last, else in the agent's, with the agent's voice."""

    def __init__(
        self,
        reader: AnswerReader,
        preferences: SpeakerPreferenceStore,
        person_of: Callable[[ThreadKey], SpeakerKey],
        speech_of: AgentSpeechOf,
    ) -> None:
        self._reader = reader
        self._preferences = preferences
        self._person_of = person_of
        self._speech_of = speech_of

    async def read(self, text: str, *, thread: ThreadKey, message_id: str) -> VoiceClip:
        person = self._person_of(thread)
        agent = await self._speech_of(thread, person.user, private=True, message_id=message_id)
        own = await preferences_or_none(self._preferences, person)
        language = agent.read_in(own.language)
        # The page reads an answer in parts, so only the speed counts here.
        wishes = replace(own.reading, brief=False)
        return await self._reader.read(text, language=language, voice=agent.voice, wishes=wishes)


def _other_script(text: str, language: str) -> bool:
    """Whether most letters are in a script that an English voice can only spell out."""
    if language.partition("-")[0] != DEFAULT_LANGUAGE:
        return False
    letters = [char for char in text if char.isalpha()]
    return sum(char > _LAST_LATIN for char in letters) * 2 > len(letters)

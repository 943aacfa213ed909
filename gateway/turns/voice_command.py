"""Run `/voice`: which answers are read aloud to a person, how fast and how much of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

from gateway.speech.speaker_language import speaker_of
from gateway.storage.speech import ReadAloudMode, ReadAloudWishes, SpeakerPreferenceStore
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import SessionCommand

VOICE_ON_TEXT = "Voice replies are on: after each answer I send it as a voice message too."
VOICE_AUTO_TEXT = (
    "Voice replies are automatic: I answer a voice note by voice message too, "
    "and typed messages in writing only."
)
VOICE_OFF_TEXT = "Voice replies are off."
NO_VOICE_TEXT = "I cannot send voice messages here."
_BRIEF_TEXT = "Of long answers I read the beginning."
_PACE_TEXTS = {0.8: "I speak slowly.", 1.25: "I speak fast."}
_MORE_TEXT = (
    "`/voice off` turns them off, `/voice auto` limits them to voice notes, "
    "and `slow`, `normal`, `fast`, `short` and `long` change how I read."
)
_UNKNOWN_TEXT = (
    "`/voice` takes `on`, `off` or `auto`, and `slow`, `normal`, `fast`, `short` or `long`, not `{word}`."
)
_PACES = {"slow": 0.8, "normal": 1.0, "fast": 1.25}
_LENGTHS = {"short": True, "long": False}
_MODES: tuple[ReadAloudMode, ...] = get_args(ReadAloudMode)
_KNOWN_COMMANDS = 8
"""The newest `/voice` commands of one person, over all their chats, that are recognised when repeated."""


FetchVoice = Callable[[SessionCommand], str]
"""Begins to fetch a missing voice; returns a line about it for the author, empty if a voice is there."""


def no_voice_to_fetch(_command: SessionCommand) -> str:
    """For a gateway that fetches no voice."""
    return ""


class VoiceCommand:
    """Changes and shows what a person wants read aloud. Keeps no state between two commands."""

    def __init__(
        self,
        preferences: SpeakerPreferenceStore,
        can_speak: Callable[[ThreadKey], bool],
        fetch_voice: FetchVoice = no_voice_to_fetch,
    ) -> None:
        """`fetch_voice` begins to fetch a missing voice and says so."""
        self._preferences = preferences
        self._can_speak = can_speak
        self._fetch_voice = fetch_voice

    async def run(self, command: SessionCommand) -> str:
        """Change the author's wishes; return the line to show. Turning off works everywhere. Raises
        StorageError.

        The wishes are stored with the command's id before the line is shown. A command that is repeated after
        a crash between the two changes nothing and shows the same line.
        """
        words = command.argument.lower().split()
        for word in words:
            if word not in (*_MODES, *_PACES, *_LENGTHS):
                return _UNKNOWN_TEXT.format(word=_quotable(word))
        speaker = speaker_of(command.thread, command.author.id)
        preferences = await self._preferences.preferences_of(speaker)
        # Another chat's command may have come between the writing and the crash.
        known = preferences.voice_command.split()
        if command.message_id in known:
            return self._said(preferences.reading, command)
        wanted = wished(preferences.reading, words)
        if wanted.mode != "off" and not self._can_speak(command.thread):
            return NO_VOICE_TEXT
        newest = " ".join([*known[1 - _KNOWN_COMMANDS :], command.message_id])
        await self._preferences.want_reading(speaker, wanted, command=newest)
        return self._said(wanted, command)

    def _said(self, wishes: ReadAloudWishes, command: SessionCommand) -> str:
        fetching = "" if wishes.mode == "off" else self._fetch_voice(command)
        return f"{wishes_text(wishes)}\n\n{fetching}".strip()


def wished(before: ReadAloudWishes, words: list[str]) -> ReadAloudWishes:
    """The wishes after `/voice` with `words`, each of which it knows; without any it turns on or off. A word
    about how to read also turns reading on."""
    named = [mode for mode in _MODES if mode in words]
    if named:
        mode = named[-1]
    elif words:
        mode = "on" if before.mode == "off" else before.mode
    else:
        mode = "on" if before.mode == "off" else "off"
    speeds = [_PACES[word] for word in words if word in _PACES]
    lengths = [_LENGTHS[word] for word in words if word in _LENGTHS]
    return ReadAloudWishes(mode=mode, speed=[before.speed, *speeds][-1], brief=[before.brief, *lengths][-1])


def wishes_text(wishes: ReadAloudWishes) -> str:
    """The line that tells a person their wishes."""
    if wishes.mode == "off":
        return VOICE_OFF_TEXT
    first = VOICE_ON_TEXT if wishes.mode == "on" else VOICE_AUTO_TEXT
    how = (_PACE_TEXTS.get(wishes.speed, ""), _BRIEF_TEXT if wishes.brief else "")
    return " ".join(part for part in (first, *how, _MORE_TEXT) if part)


def _quotable(word: str) -> str:
    return word.replace("`", "'")[:40]

"""Turn a voice note's transcript into the user's words, and find out whether a text names the bot.

Not here: the transcription itself, which the host's `SpeechToText` makes.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from pipeline.domain.messages import InboundMessage, Speech
from pipeline.intake.quotes import in_context, room_name, with_files
from pipeline.runtime.attachments import Taken
from pipeline.runtime.ports import Transcription, UserWords

_CUT = "[Only the first {minutes} of the recording were heard.]"
_FUZZY_FROM = 5
"""The letters from which one may be wrong in a name: shorter names are too similar to other words."""
_LONGEST_NAME_WORDS = 4
_UNSPACED = (("\u0e00", "\u0eff"), ("\u3040", "\u30ff"), ("\u3400", "\u9fff"))
"""Thai and Lao, Kana, Han: scripts without spaces, where a name may be anywhere in a run of letters."""


def spoken_words(
    message: InboundMessage, transcription: Transcription, taken: Taken | None = None
) -> UserWords:
    """The words of a voice note with its caption above them, as they are stored."""
    caption = message.text.strip()
    said = f"{caption}\n\n{transcription.text}" if caption else transcription.text
    if transcription.cut_after_s is not None:
        said = f"{said}\n\n{_CUT.format(minutes=_minutes(transcription.cut_after_s))}"
    speech = Speech(
        language=transcription.language,
        confidence=transcription.confidence,
        seconds=transcription.seconds,
        forwarded=message.forwarded,
    )
    words = UserWords(text=in_context(message, said, taken), speech=speech, by=room_name(message))
    return words if taken is None else with_files(words, taken)


def names_one_of(text: str, names: Sequence[str]) -> bool:
    """Whether one of `names` is among the words of `text`. Case, accents and punctuation do not count, and
    a name of five letters or more may have one letter wrong: recognisers often misspell names."""
    words = _words(text)
    for name in filter(None, map(_words, names)):
        wanted = "".join(name)
        if _is_unspaced(wanted) and wanted in "".join(words):
            return True
        # A recogniser may write a name in one word or in several.
        for length in range(1, _LONGEST_NAME_WORDS + 1):
            for start in range(len(words) - length + 1):
                if _sounds_like("".join(words[start : start + length]), wanted):
                    return True
    return False


def _is_unspaced(name: str) -> bool:
    return any(first <= sign <= last for sign in name for first, last in _UNSPACED)


def _sounds_like(spoken: str, wanted: str) -> bool:
    if spoken == wanted:
        return True
    if len(wanted) < _FUZZY_FROM or abs(len(spoken) - len(wanted)) > 1:
        return False
    return _one_edit_apart(spoken, wanted)


def _one_edit_apart(first: str, second: str) -> bool:
    """Whether inserting, removing or replacing one letter makes the two equal."""
    shorter, longer = sorted((first, second), key=len)
    for index, letter in enumerate(shorter):
        if letter != longer[index]:
            rest = shorter[index:] if len(shorter) < len(longer) else shorter[index + 1 :]
            return rest == longer[index + 1 :]
    return True


def _words(text: str) -> list[str]:
    # Marks are removed first as well: normalisation sorts a long row of them in quadratic time.
    bare = "".join(char for char in text if not unicodedata.combining(char))
    folded = unicodedata.normalize("NFKD", bare).casefold()
    kept = (char if char.isalnum() else " " for char in folded if not unicodedata.combining(char))
    return "".join(kept).split()


def _minutes(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    minutes = seconds / 60
    return f"{minutes:.0f} minutes" if minutes == round(minutes) else f"{minutes:.1f} minutes"

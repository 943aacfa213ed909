"""Words that nobody said: the labels and stock phrases Whisper writes over noise.

Labels in brackets are dropped always. Stock phrases can be meant ("thank you" is an answer), so
they are dropped only together with weak acoustics; that judgement takes the whole speech chunk.
"""

from __future__ import annotations

import re

from voice.speech import SpeechChunk
from voice.wer import normalised_words

_LABELS = (
    "blank audio", "silence", "no audio", "no speech", "inaudible", "music", "music playing", "applause",
    "laughter", "noise", "background noise", "static", "beep", "wind", "typing", "foreign",
)  # fmt: skip
_LABEL = re.compile(
    r"[\[(*]\s*(?:" + "|".join(label.replace(" ", r"[\s_]+") for label in _LABELS) + r")\s*[\])*]",
    re.IGNORECASE,
)
_NOTES = re.compile("[♩♪♫♬]+")

_STOCK_PHRASES = frozenset(
    {
        "thank you", "thanks", "thank you very much", "thank you for watching", "thanks for watching",
        "thank you so much for watching", "please subscribe", "like and subscribe", "you", "the end",
        "bye", "bye bye", "see you next time", "see you in the next video",
        "subtitles by the amara org community",
        "vielen dank", "vielen dank fürs zuschauen", "danke fürs zuschauen",
        "untertitel im auftrag des zdf", "untertitel der amara org community",
        "merci davoir regardé cette vidéo", "sous titres réalisés par la communauté damara org",
        "gracias por ver el video", "subtítulos realizados por la comunidad de amara org",
        "ご視聴ありがとうございました",
    }
)  # fmt: skip
"""As `normalised_words` writes them."""

_SHORT_S = 1.0
_WEAK_CONFIDENCE = 0.5
_LIKELY_SILENCE = 0.4


def spoken_text(chunk: SpeechChunk) -> str:
    """The chunk's words without artefacts, on one line; empty when nothing is left."""
    text = " ".join(_NOTES.sub(" ", _LABEL.sub(" ", chunk.text)).split())
    words = normalised_words(text)
    if not words or (_is_weak(chunk) and " ".join(words) in _STOCK_PHRASES):
        return ""
    return text


def _is_weak(chunk: SpeechChunk) -> bool:
    """Whether the sound gives little reason to believe in the words."""
    unsure = chunk.confidence < _WEAK_CONFIDENCE
    brief = chunk.end_s - chunk.start_s < _SHORT_S and chunk.confidence < 0.6
    return unsure or brief or chunk.no_speech_probability > _LIKELY_SILENCE

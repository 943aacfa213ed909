"""Filter out invented words: the labels and stock phrases that Whisper writes over noise.

Labels in brackets are always removed. Stock phrases can be meant ("thank you" is an answer), so
they are removed only together with weak acoustics; that decision takes the whole speech chunk.
"""

from __future__ import annotations

import re

from voice.transcript import SpeechChunk
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

_PHRASES = """
thank you; thanks; thank you very much; thank you for watching; thanks for watching
thank you so much for watching; please subscribe; like and subscribe; you; the end; bye; bye bye
see you next time; see you in the next video; please subscribe to my channel
subtitles by the amara org community
vielen dank; vielen dank fürs zuschauen; danke fürs zuschauen; bis zum nächsten mal
untertitel im auftrag des zdf; untertitel im auftrag des zdf für funk; untertitel der amara org community
untertitelung des zdf 2020
merci; merci davoir regardé cette vidéo; abonnez vous; sous titrage société radio canada
sous titres réalisés par la communauté damara org; sous titres réalisés para la communauté damara org
gracias; gracias por ver el video; gracias por ver; suscríbete
subtítulos realizados por la comunidad de amara org
obrigado; obrigada; obrigado por assistir; legendas pela comunidade amara org; inscreva se no canal
grazie; grazie a tutti; grazie per la visione; sottotitoli creati dalla comunità amara org
sottotitoli e revisione a cura di qtss
bedankt; bedankt voor het kijken; tot de volgende keer; ondertitels ingediend door de amara org gemeenschap
dziękuję; dziękuję za uwagę; dziękuję za obejrzenie; dzięki za oglądanie
napisy stworzone przez społeczność amara org
спасибо; спасибо за просмотр; продолжение следует; подписывайтесь на канал
субтитры сделал dimatorzok; субтитры создавал dimatorzok; редактор субтитров а семкин корректор а егорова
teşekkürler; teşekkür ederim; izlediğiniz için teşekkürler
izlediğiniz için teşekkür ederim; İzlediğiniz için teşekkürler; İzlediğiniz için teşekkür ederim
altyazı m k; abone olmayı unutmayın
ご視聴ありがとうございました; ありがとうございました; チャンネル登録をお願いいたします; おやすみなさい
시청해주셔서 감사합니다; 감사합니다; 구독과 좋아요 부탁드립니다; mbc 뉴스 이덕영입니다
"""  # noqa: RUF001 - Cyrillic and Turkish letters are meant
"""What Whisper writes over noise: thanks, farewells and credits at the ends of the videos it learned from.
One line or more per language: en, de, fr, es, pt, it, nl, pl, ru, tr, ja, ko. An entry is there twice where
the capital letter folds into two characters, as the Turkish dotted I does."""
_STOCK_PHRASES = frozenset(
    " ".join(normalised_words(phrase)) for line in _PHRASES.splitlines() for phrase in line.split(";")
) - {""}

_SHORT_S = 1.0
_WEAK_CONFIDENCE = 0.5
_LIKELY_SILENCE = 0.4


def spoken_text(chunk: SpeechChunk) -> str:
    """The chunk's words without artefacts, on one line; empty when none remain."""
    text = without_labels(chunk.text)
    return "" if _is_weak(chunk) and _is_stock(text) else text


def shown_text(text: str) -> str:
    """Words to show as a partial; empty where there are none, or only a stock phrase.

    The acoustics are not known yet, so a phrase that can be meant waits for the final text.
    """
    text = without_labels(text)
    return "" if _is_stock(text) else text


def without_labels(text: str) -> str:
    """`text` without labels and notes, on one line; empty where no word remains."""
    text = " ".join(_NOTES.sub(" ", _LABEL.sub(" ", text)).split())
    return text if normalised_words(text) else ""


def _is_stock(text: str) -> bool:
    return " ".join(normalised_words(text)) in _STOCK_PHRASES


def _is_weak(chunk: SpeechChunk) -> bool:
    """Whether the acoustics make the words doubtful."""
    unsure = chunk.confidence < _WEAK_CONFIDENCE
    brief = chunk.end_s - chunk.start_s < _SHORT_S and chunk.confidence < 0.6
    return unsure or brief or chunk.no_speech_probability > _LIKELY_SILENCE

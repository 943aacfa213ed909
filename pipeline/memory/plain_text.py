"""The plain form of a text, by which the write policy compares words.

Lower case, no accents, one apostrophe, single spaces.
"""

from __future__ import annotations

import functools
import re
from typing import Final

from pipeline.memory.words import lexicon, normalised

_APOSTROPHES: Final = dict.fromkeys(map(ord, "\u2018\u2019\u201b\u02bc\u02b9\u00b4`\u2032\uff07"), "'")
_INVISIBLE: Final = dict.fromkeys((0x00AD, 0x200B, 0x200C, 0x200E, 0x200F, 0x2060, 0xFEFF))
_CJK: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_WORD: Final = re.compile(rf"[{_CJK}]|[^\W_{_CJK}]+(?:'[^\W_{_CJK}]+)*")
"""A character of a script without spaces is a word."""
_FIRST_CJK: Final = "\u3040"


def plain(text: str) -> str:
    """`text` in its plain form."""
    return " ".join(normalised(text.translate(_APOSTROPHES).translate(_INVISIBLE)).split())


@functools.lru_cache(maxsize=512)
def words(text: str) -> tuple[str, ...]:
    """The words of `text` in their order, in the plain form. Punctuation is no part of them."""
    return tuple(_WORD.findall(plain(text)))


@functools.lru_cache(maxsize=512)
def meaningful(text: str) -> frozenset[str]:
    """The different words that say something about a topic: no stop words, no single letters."""
    return frozenset(word for word in words(text) if not _is_empty(word))


def has_phrase(text: str, phrase: str) -> bool:
    """Whether the words of `phrase` follow each other in `text`, whole words only; False for no words."""
    wanted = words(phrase)
    return bool(wanted) and f" {' '.join(wanted)} " in f" {' '.join(words(text))} "


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """The share of common words, 0 to 1; 0 for two empty sets."""
    union = one | other
    return len(one & other) / len(union) if union else 0.0


def _is_empty(word: str) -> bool:
    if word >= _FIRST_CJK:
        return False
    return all(len(part) == 1 or part in lexicon().stop_words for part in word.split("'"))

"""The terms by which memory compares texts: the same for what is kept and for what is asked.

Case, accents and common endings do not count. Writing without spaces is cut into pairs of characters. Stop
words are left out on the side of the question alone, because a fact may consist of them.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

WORDS_VERSION: Final = 1
"""Grows with each change of the terms of a text, or of `lexicon.toml`: stored terms are made again."""

_RUN = re.compile(r"[^\W_]+")
_MARKS = re.compile("[\u0300-\u036f]")
# Chinese, Japanese, Korean, Thai, Lao, Burmese, Khmer: no spaces, or none where a word ends.
_UNSPACED_RANGES: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0002fa1f"
)
_PARTS = re.compile(f"[{_UNSPACED_RANGES}]+|[^{_UNSPACED_RANGES}]+")
_UNSPACED = re.compile(f"[{_UNSPACED_RANGES}]")
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f]")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")

_SHORTEST_STEM = 3
_ENDINGS: Final = (
    *("ungen", "ments", "iendo", "erung", "ation", "ments"),
    *("ment", "ings", "ness", "ions", "heit", "keit", "lich", "ando", "ente"),
    *("ing", "ion", "ung", "ern", "est", "ers", "ent", "ons", "ado", "ada", "ido", "ida", "aux"),
    *("er", "en", "em", "es", "ed", "ly", "os", "as", "ez", "ar", "ir", "re"),
    *("e", "s", "o", "a", "n", "t"),
)
"""Endings of English, German, French and Spanish words, longest first; one is cut off a word."""


def normalised(text: str) -> str:
    """`text` in one form of Unicode, in lower case, without accents."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    if plain.isascii():
        return plain
    return unicodedata.normalize("NFC", _MARKS.sub("", unicodedata.normalize("NFD", plain)))


def words_of(text: str) -> list[str]:
    """The words of `text` in order, as they are compared; each character of unspaced writing is a word."""
    found: list[str] = []
    for part in _parts(text):
        found += list(part) if _UNSPACED.match(part) else [part]
    return [word for word in found if len(word) >= 2 or _UNSPACED.match(word)]


def terms_of(text: str) -> tuple[str, ...]:
    """The terms of a text that is kept, with repetitions: each word and its stem, and pairs of characters of
    unspaced writing."""
    return tuple(_terms(text))


def terms_of_question(text: str) -> dict[str, float]:
    """The terms of a question, each with its weight: 1 for the words and the stems said, less for words that
    mean the same. Empty for a text of stop words alone."""
    weights: dict[str, float] = {}
    asked: list[str] = []
    for part in _parts(text):
        if _UNSPACED.match(part):
            weights.update(dict.fromkeys(_pairs(part), 1.0))
            asked.append(part)
        elif len(part) >= 2 and part not in lexicon().stop_words:
            weights.update(dict.fromkeys(_forms(part), 1.0))
            asked.append(part)
    for term in lexicon().related(asked):
        weights.setdefault(term, _RELATED_WEIGHT)
    return weights


_RELATED_WEIGHT: Final = 0.5


def stem_of(word: str) -> str:
    """`word` without one common ending; the same for most forms of a word. Not a word of any language."""
    if word in lexicon().irregular:
        word = lexicon().irregular[word]
    if len(word) <= _SHORTEST_STEM or not word.isalpha():
        return word
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            word = word.removesuffix(ending)
            break
    if len(word) > _SHORTEST_STEM and word[-1] == word[-2] and word[-1] not in "aeiou":
        word = word[:-1]
    return word[:-1] + "i" if word.endswith("y") else word


def _parts(text: str) -> Iterator[str]:
    for run in _RUN.findall(normalised(_CAMEL.sub(" ", text))):
        if run.isascii():
            yield run
        else:
            yield from _PARTS.findall(run)


def _terms(text: str) -> Iterator[str]:
    for part in _parts(text):
        if _UNSPACED.match(part):
            yield from _pairs(part)
        elif len(part) >= 2:
            yield from _forms(part)


def _forms(word: str) -> tuple[str, ...]:
    """The word, and its stem with a mark, so that the same word counts more than the same stem."""
    return (word, f"~{stem_of(word)}")


def _pairs(part: str) -> list[str]:
    pairs = [part[at : at + 2] for at in range(len(part) - 1)]
    return pairs + (_HAN.findall(part) if pairs else [part])


class Lexicon:
    """The words of `lexicon.toml`."""

    def __init__(self, document: Mapping[str, Mapping[str, object]]) -> None:
        stop = " ".join(str(words) for words in document["stop_words"].values())
        self.stop_words = frozenset(normalised(stop).split())
        self.irregular: dict[str, str] = {}
        for words in document["irregular"].values():
            for pair in normalised(str(words)).split():
                form, _, plain = pair.partition("=")
                self.irregular[form] = plain
        self.groups: list[tuple[str, ...]] = []
        self._of_word: dict[str, list[int]] = {}
        for words in document["related"].values():
            self.groups.append(tuple(normalised(str(words)).split()))

    def related(self, asked: list[str]) -> Iterator[str]:
        """The terms of words that mean about the same as one of `asked`."""
        if not self._of_word:
            for number, group in enumerate(self.groups):
                for word in group:
                    self._of_word.setdefault(_key(word), []).append(number)
        numbers: dict[int, None] = {}
        for part in asked:
            keys = _pairs(part) if _UNSPACED.match(part) else [_key(part)]
            for key in keys:
                numbers.update(dict.fromkeys(self._of_word.get(key, ())))
        for number in numbers:
            for word in self.groups[number]:
                yield from (_key(word),) if not _UNSPACED.match(word) else (word,)


def _key(word: str) -> str:
    return word if _UNSPACED.match(word) else f"~{stem_of(word)}"


@lru_cache(maxsize=1)
def lexicon() -> Lexicon:
    """The shipped words, read at the first use."""
    return Lexicon(tomllib.loads(Path(__file__).with_name("lexicon.toml").read_text("utf-8")))

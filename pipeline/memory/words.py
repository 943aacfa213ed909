"""The terms by which memory compares texts: the same for what is kept and for what is asked.

Case, accents and common endings do not count. Writing without spaces is cut into pairs of characters. Stop
words are left out on the side of the question alone, because a fact may consist of them.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
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
"""Endings of English, German, French and Spanish words; the longest that fits is cut off a word."""
_ENDINGS_BY_LENGTH: Final = tuple(
    (length, frozenset(ending for ending in _ENDINGS if len(ending) == length))
    for length in sorted({len(ending) for ending in _ENDINGS}, reverse=True)
)


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
    """The terms of a text that is kept, with repetitions: each word and its stem, pairs of characters of
    unspaced writing, and the concepts that it names."""
    parts = list(_parts(text))
    return (*_plain_terms(parts), *(f"={name}" for name in lexicon().concepts.named_in(parts)))


def terms_of_question(text: str) -> dict[str, float]:
    """The terms of a question, each with its weight: 1 for the words and the stems said, less for concepts
    and for the category that it asks for. Empty for a text of stop words alone."""
    parts = list(_parts(text))
    asked = [part for part in parts if part not in lexicon().stop_words]
    weights = dict.fromkeys(_plain_terms(asked), _WORD_WEIGHT)
    for word in (part for part in asked if len(part) >= 2 and not _UNSPACED.match(part)):
        weights[f"~{stem_of(word)}"] = _STEM_WEIGHT
    for name in lexicon().concepts.named_in(parts):
        weights[f"={name}"] = _CONCEPT_WEIGHT
    for name in lexicon().cues.named_in(parts):
        weights[f"#{name}"] = _CUE_WEIGHT
    return weights


def asks_about_oneself(text: str) -> bool:
    """Whether the text is a question of a person about themselves, which memory alone can answer."""
    found = lexicon().about_oneself.named_in(list(_parts(text)))
    return "first_person" in found and ("asking" in found or "?" in text or "\uff1f" in text)


_WORD_WEIGHT: Final = 1.0
_STEM_WEIGHT: Final = 1.0
_CONCEPT_WEIGHT: Final = 0.8
_CUE_WEIGHT: Final = 0.6


def _plain_terms(parts: Sequence[str]) -> Iterator[str]:
    for part in parts:
        if _UNSPACED.match(part):
            yield from _pairs(part)
        elif len(part) >= 2:
            yield from _forms(part)


def stem_of(word: str) -> str:
    """`word` without one common ending; the same for most forms of a word. Not a word of any language."""
    word = _irregular().get(word, word)
    if len(word) <= _SHORTEST_STEM or not word.isalpha():
        return word
    for length, endings in _ENDINGS_BY_LENGTH:
        if len(word) - length >= _SHORTEST_STEM and word[-length:] in endings:
            word = word[:-length]
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


def _forms(word: str) -> tuple[str, ...]:
    """The word, and its stem with a mark, so that the same word counts more than the same stem."""
    return (word, f"~{stem_of(word)}")


def _pairs(part: str) -> list[str]:
    pairs = [part[at : at + 2] for at in range(len(part) - 1)]
    return pairs + (_HAN.findall(part) if pairs else [part])


class MemoryLexicon:
    """The words of `lexicon.toml`."""

    def __init__(self, document: Mapping[str, Mapping[str, object]]) -> None:
        stop = " ".join(str(words) for words in document["stop_words"].values())
        self.stop_words = frozenset(normalised(stop).split())
        self.about_oneself = Naming(document["about_oneself"])
        self.concepts = Naming(document["concepts"])
        self.cues = Naming(document["cues"])


class Naming:
    """Groups of words, each with a name."""

    def __init__(self, groups: Mapping[str, object]) -> None:
        self._of_word: dict[str, list[str]] = {}
        self._of_stem: dict[str, list[str]] = {}
        self._of_phrase: dict[str, list[str]] = {}
        self._phrase_begins: set[str] = set()
        """The first word of each phrase."""
        self._unspaced: list[tuple[str, str]] = []
        for name, words in groups.items():
            for word in normalised(str(words)).split():
                if _UNSPACED.match(word):
                    self._unspaced.append((word, name))
                elif "_" in word:
                    phrase = word.replace("_", " ").strip()
                    self._of_phrase.setdefault(phrase, []).append(name)
                    self._phrase_begins.add(phrase.partition(" ")[0])
                else:
                    self._of_word.setdefault(word, []).append(name)
                    self._of_stem.setdefault(stem_of(word), []).append(name)

    def named_in(self, parts: Sequence[str]) -> dict[str, None]:
        """The names of the groups of which `parts`, the words of a text, have a word, in their order."""
        found: dict[str, None] = {}
        for at, part in enumerate(parts):
            if _UNSPACED.match(part):
                found.update(dict.fromkeys(name for word, name in self._unspaced if word in part))
                continue
            # A stop word names only itself: "was" is no form of "Wasser".
            is_stop = part in lexicon().stop_words
            of_word = self._of_word.get(part, ()) if is_stop else self._of_stem.get(stem_of(part), ())
            found.update(dict.fromkeys(of_word))
            for length in (2, 3, 4) if part in self._phrase_begins else ():
                phrase = " ".join(parts[at : at + length])
                found.update(dict.fromkeys(self._of_phrase.get(phrase, ())))
        return found


@lru_cache(maxsize=1)
def lexicon() -> MemoryLexicon:
    """The shipped words, read at the first use."""
    return MemoryLexicon(_document())


@lru_cache(maxsize=1)
def _irregular() -> Mapping[str, str]:
    """The common form of each irregular one."""
    found: dict[str, str] = {}
    for words in _document()["irregular"].values():
        for pair in normalised(str(words)).split():
            form, _, plain = pair.partition("=")
            found[form] = plain
    return found


@lru_cache(maxsize=1)
def _document() -> Mapping[str, Mapping[str, object]]:
    return tomllib.loads(Path(__file__).with_name("lexicon.toml").read_text("utf-8"))

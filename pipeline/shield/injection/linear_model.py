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
        total = np.zeros(features.length + 1, np.int64)
        for grams in features.chars:
            total[1 : len(grams) + 1] += chars[grams]
        np.cumsum(total, out=total)
        size = np.maximum(ends - starts, 1)
        by_char = (total[ends] - total[starts]) / np.sqrt(len(ORDERS) * size)
        sums, counts = _sums(
            ((words, features.words), (concepts, features.concepts), (near, features.near)),
            (features.word_places, features.concept_places, features.near_places),
            (starts, ends),
            features.length,
        )
        logits: npt.NDArray[np.float64] = (
            self.bias
            + self.scales[0] * CHAR_VALUE * by_char
            + self.scales[1] * sums[0] / np.sqrt(np.maximum(counts[0], 1))
            + self.scales[2] * sums[1] / np.sqrt(counts[1] + CONCEPTS)
            + self.scales[3] * sums[2] / np.sqrt(np.maximum(counts[2], 1))
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


def _sums(
    groups: Sequence[tuple[Weights, Any]], places: Sequence[Any], windows: tuple[Any, Any], length: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """For each group the sum of the weights of the features in each window, and their number."""
    width, count = length + 1, len(groups)
    starts, ends = windows
    values = np.concatenate([weights.take(buckets) for weights, buckets in groups])
    firsts = np.repeat(np.arange(count) * width + 1, [len(one) for one in places])
    bins = np.concatenate(places) + firsts
    totals = np.bincount(bins, values, count * width).reshape(count, width).cumsum(axis=1)
    counts = np.bincount(bins, None, count * width).reshape(count, width).cumsum(axis=1)
    return totals[:, ends] - totals[:, starts], counts[:, ends] - counts[:, starts]


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

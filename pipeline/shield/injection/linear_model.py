"""The linear model that ships with the package: the probability that a text holds an injected instruction.

A text is scored in overlapping windows, and the highest score is the text's, so that an instruction in a long
page is found. `tools.injection` trains the weights. Not here: rules and disguises.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.domain.errors import ParlourError
from pipeline.shield.injection.features import (
    BUCKETS,
    VERSION,
    WINDOW,
    concept_bucket,
    concept_numbers,
    run_buckets,
    windows_of,
    word_buckets,
)
from pipeline.shield.injection.lexicon import Lexicon, LexiconReading, Places, lexicon_hash, shipped_lexicon
from pipeline.shield.injection.plain_text import plain

FILE = Path(__file__).with_name("weights.bin")
MAGIC = b"parlour injection weights 1\n"
MOST_CHARS = 64_000
"""Characters of a text that are scored; the scanner reports a text that is longer."""
_HEADER_BYTES = 4_096
_MOST_KNOWN = 20_000
"""Words, and numbers of concepts, of which the value is kept."""

Weights = npt.NDArray[np.int8]
Floats = npt.NDArray[np.float64]


class BadInjectionModel(ParlourError):
    """The file of weights cannot be used; the message names it and says why."""

    code = "bad_weights"


class _Table(dict[Any, float]):
    """Values that are computed once. A table that is full begins again."""

    def __init__(self, value: Callable[[Any], float]) -> None:
        super().__init__()
        self._value = value

    def __missing__(self, key: Any) -> float:
        if len(self) >= _MOST_KNOWN:
            self.clear()
        found = self[key] = self._value(key)
        return found


class LinearModel:
    """Weights by group (words, runs of words, concepts), as int8 with a scale for each group. One instance
    serves every thread."""

    def __init__(
        self,
        *,
        weights: tuple[Weights, Weights, Weights],
        scales: tuple[float, float, float],
        bias: float,
        threshold: float,
        lexicon: Lexicon,
    ) -> None:
        """`threshold` is the probability from which a text counts as an attack, chosen on texts for it."""
        self.weights = weights
        self.scales = scales
        self.bias = bias
        self.threshold = threshold
        self.lexicon = lexicon
        self._word_weights = weights[0].data
        # A word counts the same wherever it is, and few concepts form pairs: neither is summed up again.
        self._words = _Table(self._of_word)
        self._concepts = _Table(lambda number: float(weights[2][concept_bucket(number)]))

    def score(self, text: str) -> float:
        """The probability, from 0 to 1, that one window of `text` holds an injected instruction."""
        return self.score_of(self.lexicon.read(plain(text[:MOST_CHARS])))

    def score_of(self, reading: LexiconReading) -> float:
        """The same of a text that was read with the model's lexicon."""
        return _probability(self.logit(reading))

    async def scores(self, texts: Sequence[str]) -> tuple[float, ...]:
        """See `Classifier.scores`."""
        return tuple(map(self.score, texts))

    def logit(self, reading: LexiconReading) -> float:
        """The logarithm of the odds of the window for which they are highest."""
        concepts = [
            (place, len(numbers), sum(map(self._concepts.__getitem__, numbers)))
            for place, numbers in concept_numbers(reading)
        ]
        if len(reading.text) <= WINDOW:
            return self._of_one_window(reading, concepts)
        windows = windows_of(len(reading.text))
        logits = self._of_concepts(concepts, windows) if concepts else np.zeros(windows.shape[1])
        if reading.words:
            places = reading.word_places
            values = np.array([0.0, *map(self._words.__getitem__, reading.words)])
            values[1:] += self.scales[1] * np.add.reduce(self._of_runs(reading), dtype=np.int32)
            first, after = places.searchsorted(windows)
            sums = values.cumsum()
            logits += (sums.take(after) - sums.take(first)) / _SIZES.take(after - first)
        return self.bias + float(np.maximum.reduce(logits))

    def _of_one_window(self, reading: LexiconReading, concepts: Sequence[tuple[int, int, float]]) -> float:
        """The same of a text without a second window, from plain sums, which are faster."""
        logit = self.bias
        if reading.words:
            runs = self._of_runs(reading)
            by_runs = self.scales[1] * int(np.add.reduce(runs, axis=None, dtype=np.int64))
            by_words = sum(map(self._words.__getitem__, reading.words))
            logit += (by_words + by_runs) / math.sqrt(VALUES * len(reading.words))
        if concepts:
            counts = sum(count for _, count, _ in concepts)
            by_concept = sum(value for _, _, value in concepts)
            logit += self.scales[2] * by_concept / math.sqrt(counts + CONCEPTS)
        return logit

    def _of_concepts(self, concepts: Sequence[tuple[int, int, float]], windows: Places) -> Floats:
        """The value of the concepts in each window."""
        places, counts, values = zip(*concepts, strict=True)
        numbers, sums = (0, *accumulate(counts)), (0.0, *accumulate(values))
        scale, found = self.scales[2], []
        # Window by window: most texts have few, and arrays are slower for them.
        for start, end in windows.T.tolist():
            first, after = bisect_left(places, start), bisect_left(places, end)
            count = numbers[after] - numbers[first]
            found.append(scale * (sums[after] - sums[first]) / math.sqrt(count + CONCEPTS))
        return np.array(found)

    def _of_runs(self, reading: LexiconReading) -> Weights:
        """The weight of each run that begins with each word."""
        return self.weights[1].take(run_buckets(reading, reading.word_places))

    def _of_word(self, word: str) -> float:
        own, parts = word_buckets(word, *self.lexicon.hashes_of(word))
        # As whole numbers of Python: an array makes an object of each.
        weights = self._word_weights
        by_parts = sum(weights[one] for one in parts) / math.sqrt(max(len(parts), 1))
        return self.scales[0] * (sum(weights[one] for one in own) + PARTS * by_parts)


VALUES = 3
"""The squared size of the features of a word and its runs, about."""
PARTS = 1.0
"""The value of the parts of a word beside the whole word."""
CONCEPTS = 4.0
"""Added to the number of concepts' features, so that the few of a short text do not count more."""
_SIZES: Floats = np.sqrt(VALUES * np.maximum(np.arange(WINDOW + 1), 1))
"""The size of the features of so many words and their runs; a window has no more words than characters."""


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
    """The model in the bytes of the file `name`. Raises BadInjectionModel."""
    if not data.startswith(MAGIC):
        raise BadInjectionModel(
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
        raise BadInjectionModel(
            f"{name}: its header cannot be read ({failure}); install the package again"
        ) from None
    if not found or hashlib.sha256(body).hexdigest() != digest or len(body) != sum(buckets):
        raise BadInjectionModel(
            f"{name} is damaged: its weights do not have the hash in its header; install it again"
        )
    if version != VERSION or buckets != BUCKETS or len(scales) != len(BUCKETS):
        raise BadInjectionModel(
            f"{name} was trained for other features: train it with `python -m tools.injection`"
        )
    if lexicon != lexicon_hash():
        raise BadInjectionModel(
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
    """The model in `file`. Raises BadInjectionModel if it is missing, damaged or of another format."""
    try:
        data = file.read_bytes()
    except OSError as failure:
        raise BadInjectionModel(
            f"{file} cannot be read: {failure.strerror}; install the package again"
        ) from None
    return from_bytes(data, str(file))


@functools.cache
def shipped_model() -> LinearModel:
    """The model in the package, loaded once. Raises BadInjectionModel."""
    return load_model()

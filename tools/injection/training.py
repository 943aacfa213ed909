"""Train the linear model: logistic regression by stochastic gradient descent on generated texts.

Deterministic: one thread, one order, one seed. Whole groups of features are left out of some steps, so that
the model learns what words mean and not only the templates.
"""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.shield.injection.features import (
    BUCKETS,
    HALF,
    WINDOW,
    concept_bucket,
    concept_numbers,
    run_buckets,
    windows_of,
    word_buckets,
)
from pipeline.shield.injection.lexicon import LexiconReading, shipped_lexicon
from pipeline.shield.injection.linear_model import CONCEPTS, PARTS, VALUES, LinearModel
from pipeline.shield.injection.plain_text import plain
from tools.injection.texts import Grammar, Sample, lexicon_entries, noise, salads, samples

SEED = 16
ENGLISH = 26_000
OTHER = 2_000
"""Attacks in English and in each other language; there are as many benign texts."""
EPOCHS = 3
MODELS = 4
"""Models that are trained on the same texts in another order, of which the mean is taken."""
THRESHOLD = 0.7
"""Chosen on the development texts of the eval (`evals/injection_texts/`, not its splits) and on a fifth of
the lines of `train_voices_*.txt` that a model had not learned, so that about three in a hundred of the hard
honest English ones are above it."""
_RATE = 0.4
_SHRINK = 1e-3
_WHOLE = 0.9
"""The share of a window that an attack fills at least where it is longer than one."""
_STARTS = (0, BUCKETS[0], BUCKETS[0], BUCKETS[0] + BUCKETS[1])
"""Where the weights of a group begin: words, runs of words, runs of classes, concepts."""
_GROUPS = ((0, 1, 2, 3), (0, 2, 3), (0, 3))
"""The groups that a step uses, chosen at random."""

Floats = npt.NDArray[np.float32]


class Example(NamedTuple):
    """One window: its features in the table of all groups, their values, and its label."""

    indices: npt.NDArray[np.int32]
    values: Floats
    starts: tuple[int, ...]
    """Where each group begins, and the end."""
    label: int

    def of(self, groups: Sequence[int]) -> tuple[npt.NDArray[np.int32], Floats]:
        """The features of these groups, and their values."""
        if len(groups) == len(_STARTS):
            return self.indices, self.values
        used = [slice(self.starts[one], self.starts[one + 1]) for one in groups]
        return np.concatenate([self.indices[one] for one in used]), np.concatenate(
            [self.values[one] for one in used]
        )


def train(
    grammars: Sequence[Grammar], *, english: int = ENGLISH, other: int = OTHER, epochs: int = EPOCHS
) -> LinearModel:
    """The model for the texts of `grammars`. `english` and `other` are numbers of attacks."""
    return fitted(_generated(grammars, english, other, SEED), epochs)


def _generated(grammars: Sequence[Grammar], english: int, other: int, seed: int) -> list[Sample]:
    rng = random.Random(seed)
    found: list[Sample] = []
    for grammar in grammars:
        is_english = grammar.language == "en"
        count = english if is_english else other
        found += samples(grammar, count, rng, synonyms=is_english)
        found += salads(grammar, lexicon_entries(grammar.language), count // 3, rng)
        found += noise(count // 8, rng)
    return found


def fitted(texts: Iterable[Sample], epochs: int) -> LinearModel:
    """The model for `texts`, quantised: the mean of several, which err in different places."""
    choices = [choice for text in texts for choice in examples_of(text)]
    found = [_descended(choices, epochs, random.Random(SEED + number)) for number in range(MODELS)]
    weights = sum((one for one, _ in found), np.zeros(sum(BUCKETS), np.float32)) / np.float32(MODELS)
    return _quantised(weights, sum(bias for _, bias in found) / MODELS)


def _descended(choices: list[list[Example]], epochs: int, rng: random.Random) -> tuple[Floats, float]:
    """The weights and the bias after so many epochs."""
    weights = np.zeros(sum(BUCKETS), np.float32)
    squares = np.full(sum(BUCKETS), 1e-2, np.float32)
    bias = 0.0
    for epoch in range(epochs):
        rate = _RATE / (1 + epoch)
        order = rng.sample(choices, len(choices))
        for choice in order:
            example = choice[0]
            if len(choice) > 1:
                # The first epoch does not know yet which window holds the order.
                example = rng.choice(choice) if epoch == 0 else max(choice, key=weights_of(weights))
            indices, values = example.of(_GROUPS[rng.randrange(len(_GROUPS))])
            old = weights.take(indices)
            logit = bias + float(old @ values)
            error = 1 / (1 + math.exp(-max(-30.0, min(30.0, logit)))) - example.label
            if abs(error) < 0.01:
                continue
            gradient = np.float32(error) * values + np.float32(_SHRINK) * old
            size = squares.take(indices) + gradient * gradient
            squares[indices] = size
            weights[indices] = old - np.float32(rate) * gradient / np.sqrt(size)
            bias -= rate * 0.05 * error
    return weights, bias


def weights_of(weights: Floats) -> Callable[[Example], float]:
    """A function that sums up the weights of a window's features."""
    return lambda example: float(weights.take(example.indices) @ example.values)


def examples_of(sample: Sample) -> list[list[Example]]:
    """The windows of a text: of a benign one all, each alone; of an attack the one that holds most of it, or
    those to choose from if it is longer than a window: one sentence of it may be the order."""
    reading = shipped_lexicon().read(plain(sample.text))
    starts, ends = windows_of(len(reading.text))
    if sample.attack:
        # Plain form may be shorter: the place of the attack is that of the plain beginning.
        offset = len(plain(sample.text[: sample.start]))
        finish = len(plain(sample.text[: sample.end]))
        overlap = np.minimum(ends, finish) - np.maximum(starts, offset)
        most = overlap.max()
        chosen = [np.flatnonzero(overlap >= _WHOLE * most)] if most >= WINDOW else [[int(overlap.argmax())]]
    else:
        chosen = [[one] for one in range(0, len(starts), 2)]
    features = _Read(reading)
    return [
        [features.example(int(starts[one]), int(ends[one]), int(sample.attack)) for one in alike]
        for alike in chosen
    ]


class _Read:
    """The features of a text."""

    def __init__(self, reading: LexiconReading) -> None:
        self._places = np.array(reading.word_places)
        self._words = list(map(_of_word, reading.words, reading.word_hashes, reading.word_kinds))
        self._runs = (
            run_buckets(reading, self._places) if reading.words else np.zeros((2 * HALF, 0), np.uint32)
        )
        self._concepts = list(concept_numbers(reading))

    def example(self, start: int, end: int, label: int) -> Example:
        """The example of one window."""
        first, after = (int(self._places.searchsorted(place)) for place in (start, end))
        size = 1 / math.sqrt(VALUES * max(after - first, 1))
        words = self._words[first:after]
        numbers = [one for place, found in self._concepts if start <= place < end for one in found]
        groups = (
            (np.concatenate([one for one, _ in words]), np.concatenate([two for _, two in words]) * size)
            if words
            else _NOTHING,
            (self._runs[:HALF, first:after].ravel(), size),
            (self._runs[HALF:, first:after].ravel(), size),
            ([concept_bucket(one) for one in numbers], 1 / math.sqrt(len(numbers) + CONCEPTS)),
        )
        indices, values, starts = [], [], [0]
        for bucket, (buckets, value) in zip(_STARTS, groups, strict=True):
            unique, places = np.unique(np.asarray(buckets, np.int64), return_inverse=True)
            weights = np.broadcast_to(value, places.shape)
            indices.append(unique.astype(np.int32) + bucket)
            values.append(np.bincount(places, weights, len(unique)).astype(np.float32))
            starts.append(starts[-1] + len(unique))
        return Example(np.concatenate(indices), np.concatenate(values), tuple(starts), label)


_NOTHING = (np.zeros(0, np.int64), np.zeros(0))


@functools.lru_cache(maxsize=1 << 17)
def _of_word(word: str, hashed: int, kind: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    own, parts = word_buckets(word, hashed, kind)
    values = [1.0] * len(own) + [PARTS / math.sqrt(max(len(parts), 1))] * len(parts)
    return np.array((*own, *parts), np.int64), np.array(values)


def _quantised(weights: Floats, bias: float) -> LinearModel:
    parts = np.split(weights, np.cumsum(BUCKETS)[:-1])
    # The few largest are cut, so that the steps of the others are finer.
    tops = [
        max(float(np.quantile(np.abs(part[part != 0]), 0.9995)), 1e-6) if part.any() else 1.0
        for part in parts
    ]
    small = [
        np.clip(np.rint(part * (127 / top)), -127, 127).astype(np.int8)
        for part, top in zip(parts, tops, strict=True)
    ]
    return LinearModel(
        weights=(small[0], small[1], small[2]),
        scales=(tops[0] / 127, tops[1] / 127, tops[2] / 127),
        bias=round(bias, 6),
        threshold=THRESHOLD,
        lexicon=shipped_lexicon(),
    )

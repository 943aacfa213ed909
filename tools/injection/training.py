"""Train the linear model: logistic regression by stochastic gradient descent on generated texts.

Deterministic: one thread, one order, one seed. Whole groups of features are left out of some steps, so that
the model learns what words mean and not only the templates.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.shield.injection.features import BUCKETS, ORDERS, Features, Numbers, features_of, windows_of
from pipeline.shield.injection.lexicon import shipped_lexicon
from pipeline.shield.injection.linear_model import CHAR_VALUE, CONCEPTS, LinearModel
from pipeline.shield.injection.plain_text import plain
from tools.injection.texts import Grammar, Sample, lexicon_entries, noise, salads, samples

SEED = 16
ENGLISH = 22_000
OTHER = 1_800
"""Attacks in English and in each other language; there are as many benign texts."""
EPOCHS = 3
THRESHOLD = 0.55
"""Chosen on the development texts of the eval (`evals/injection_texts/`, not its test split), so that about
one in a hundred honest ones is above it."""
_RATE = 0.4
_SHRINK = 5e-4
_GROUPS = ((0, 4), (1, 4))
"""The first group that a step uses and the one after the last, chosen at random."""

Floats = npt.NDArray[np.float32]


class Example(NamedTuple):
    """One window: its features in the table of all groups, their values, and its label."""

    indices: npt.NDArray[np.int32]
    values: Floats
    starts: tuple[int, ...]
    """Where each group begins, and the end."""
    label: int


def train(
    grammars: Sequence[Grammar], *, english: int = ENGLISH, other: int = OTHER, epochs: int = EPOCHS
) -> LinearModel:
    """The model for the texts of `grammars`. `english` and `other` are numbers of attacks."""
    return fitted(_generated(grammars, english, other, SEED), epochs)


def _generated(grammars: Sequence[Grammar], english: int, other: int, seed: int) -> list[Sample]:
    rng = random.Random(seed)
    found: list[Sample] = []
    for grammar in grammars:
        count = english if grammar.language == "en" else other
        found += samples(grammar, count, rng)
        found += salads(grammar, lexicon_entries(grammar.language), count // 3, rng)
        found += noise(count // 8, rng)
    return found


def fitted(texts: Iterable[Sample], epochs: int) -> LinearModel:
    """The model for `texts`, quantised."""
    examples = [example for text in texts for example in examples_of(text)]
    rng = random.Random(SEED)
    weights = np.zeros(sum(BUCKETS), np.float32)
    squares = np.full(sum(BUCKETS), 1e-2, np.float32)
    bias = 0.0
    for epoch in range(epochs):
        rate = _RATE / (1 + epoch)
        rng.shuffle(examples)
        for example in examples:
            first, after = _GROUPS[rng.randrange(len(_GROUPS))]
            used = slice(example.starts[first], example.starts[after])
            indices, values = example.indices[used], example.values[used]
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
    return _quantised(weights, bias)


def examples_of(sample: Sample) -> list[Example]:
    """The windows of a text: all of a benign one, of an attack the one that holds most of it."""
    features = features_of(sample.text, shipped_lexicon())
    starts, ends = windows_of(features.length)
    if sample.attack:
        # Plain form may be shorter: the place of the attack is that of the plain beginning.
        offset = len(plain(sample.text[: sample.start]))
        finish = len(plain(sample.text[: sample.end]))
        overlap = np.minimum(ends, finish) - np.maximum(starts, offset)
        chosen = [int(np.argmax(overlap))]
    else:
        chosen = list(range(0, len(starts), 2))
    return [_example(features, int(starts[one]), int(ends[one]), int(sample.attack)) for one in chosen]


def _example(features: Features, start: int, end: int, label: int) -> Example:
    size = max(end - start, 1)
    first, after = (int(features.places.searchsorted(place)) for place in (start, end))
    chars = _within(features.all_chars, features.char_ends, start, end)
    words = _within(features.words, features.word_ends, first, after)
    near = _within(features.near, features.near_ends, first, after)
    concepts = features.concepts[(features.concept_places >= start) & (features.concept_places < end)]
    indices, values, starts = [], [], [0]
    bucket = 0
    scale = (
        CHAR_VALUE / np.sqrt(len(ORDERS) * size),
        1 / np.sqrt(max(len(words), 1)),
        1 / np.sqrt(len(concepts) + CONCEPTS),
        1 / np.sqrt(max(len(near), 1)),
    )
    for number, buckets in enumerate((chars, words, concepts, near)):
        unique, counts = np.unique(buckets, return_counts=True)
        indices.append(unique.astype(np.int32) + bucket)
        values.append((counts * scale[number]).astype(np.float32))
        starts.append(starts[-1] + len(unique))
        bucket += BUCKETS[number]
    return Example(np.concatenate(indices), np.concatenate(values), tuple(starts), label)


def _within(buckets: Numbers, ends: Sequence[int], first: int, after: int) -> Numbers:
    """The buckets of places from `first` up to `after`, in each row that ends at `ends`."""
    rows = [buckets[start:end][first:after] for start, end in pairwise(ends)]
    return np.concatenate(rows)


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
        weights=(small[0], small[1], small[2], small[3]),
        scales=(tops[0] / 127, tops[1] / 127, tops[2] / 127, tops[3] / 127),
        bias=round(bias, 6),
        threshold=THRESHOLD,
        lexicon=shipped_lexicon(),
    )

"""Train the crisis gate's linear model: logistic regression by gradient descent on templates and messages.

Deterministic: each seed gives its texts and their order, and the weights of all seeds are averaged. Whole
groups of features are left out of some steps, so that the model learns what words mean and not only the
templates.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.safety.danger_model import (
    GROUPS,
    Scores,
    features_of,
    from_bytes,
    to_bytes,
    windows_of,
    words_of,
)
from tools.crisis.texts import (
    LANGUAGES,
    Message,
    Sample,
    honest_texts,
    message_samples,
    samples,
    templates,
    worded_messages,
)

SEEDS: Final = (7, 8, 9)
"""The average of models of different texts judges unknown texts better than each."""
EACH: Final = 18
"""Texts of each template."""
MESSAGE_EACH: Final = 7
"""Texts of each message."""
EPOCHS: Final = 5
FOLDS: Final = 5
_RATE: Final = 0.35
_SHRINK: Final = 1e-6
_UNCLEAR_WEIGHT: Final = 0.5
"""What a text of level 1 weighs as one that is not clear: it is near to one that is."""
_GRAVE_WEIGHT: Final = 1.6
"""What a text of a question's level weighs: a miss is worse than an alarm, and there are fewer of them."""
_SURE: Final = 0.02
"""An error that is too small to learn from."""
_USED: Final = ((0, 1, 2), (0, 1, 2), (1, 2), (0, 2), (2,))
"""The groups that a step uses, chosen at random."""

_STARTS: Final = (0, *accumulate(GROUPS.values()))
"""Where the weights of each group begin in the table of all, and its end."""
_AVERAGED: Final = 12
"""Moments of the last epoch whose weights are averaged, for the same reason."""

Floats = npt.NDArray[np.float32]
Map = Callable[..., Iterable["Weights"]]


class Example(NamedTuple):
    """One window: its features by group in one table, their values, and its level."""

    indices: tuple[npt.NDArray[np.int32], ...]
    values: tuple[Floats, ...]
    level: int


class Weights(NamedTuple):
    """What is learned from the texts of one seed."""

    table: Floats
    """A column for each question."""
    biases: Floats


def trained(*, each: int = EACH, epochs: int = EPOCHS, at_once: Map = map) -> bytes:
    """The file of the model for all templates. `at_once`: a `map` that may use other processes."""
    parts = list(at_once(Training(_all_templates(), each, epochs, worded_messages()), SEEDS))
    return file_of(parts, f"{each} texts of a template")


class CrossValidated(NamedTuple):
    """Texts that a model was not trained with, and what it says of them."""

    templates: list[tuple[Sample, Scores]]
    """Of templates that were left out."""
    messages: list[tuple[Sample, Scores]]
    """Of chunks that were left out, in every language."""


def cross_validated(*, each: int = EACH // 3, epochs: int = 2) -> CrossValidated:
    """Texts with the scores of a model that was trained without their templates, and without their chunk."""
    found = CrossValidated([], [])
    for fold in range(FOLDS):
        kept, left_out = _chunks(fold)
        part = Training(_part(fold, left_out=False), each, epochs, kept)(SEEDS[0])
        model = from_bytes(file_of([part], "a fold"), "fold")
        new = samples(_part(fold, left_out=True), 3, SEEDS[1])
        found.templates.extend((one, model.score(one.text)) for one in new)
        unknown = message_samples(left_out, 1, SEEDS[1])
        found.messages.extend((one, model.score(one.text)) for one in unknown)
    return found


def _chunks(fold: int) -> tuple[list[Message], list[Message]]:
    """The messages that are kept for a fold, and those that are left out."""
    everything = worded_messages()
    names = sorted({one.chunk for one in everything})
    chosen = {name for at, name in enumerate(names) if at % FOLDS == fold}
    kept = [one for one in everything if one.chunk not in chosen]
    return kept, [one for one in everything if one.chunk in chosen]


def _all_templates() -> dict[str, Mapping[int, Sequence[str]]]:
    return {language: templates(language) for language in LANGUAGES}


def _part(fold: int, *, left_out: bool) -> dict[str, Mapping[int, Sequence[str]]]:
    return {
        language: {
            level: [one for at, one in enumerate(rows) if (at % FOLDS == fold) == left_out]
            for level, rows in by_level.items()
        }
        for language, by_level in _all_templates().items()
    }


class Training(NamedTuple):
    """The training of one seed: a call, which other processes can make."""

    templates: Mapping[str, Mapping[int, Sequence[str]]]
    each: int
    epochs: int
    messages: Sequence[Message] = ()

    def __call__(self, seed: int) -> Weights:
        texts = [
            *samples(self.templates, self.each, seed),
            *message_samples(self.messages, MESSAGE_EACH, seed),
            *honest_texts(seed),
        ]
        examples = [
            _example(window, one.level)
            for one in texts
            for window in list(windows_of(words_of(one.text)))[:2]
        ]
        return _questions(examples, self.epochs, seed)


def file_of(parts: Sequence[Weights], note: str) -> bytes:
    """The file of the model that is the average of `parts`."""
    rows, scales = [], []
    table = np.mean([one.table for one in parts], axis=0)
    biases = np.mean([one.biases for one in parts], axis=0)
    for weights in table.T:
        groups = np.split(weights, _STARTS[1:-1])
        tops = [max(float(np.quantile(np.abs(part[part != 0]), 0.9995)), 1e-6) for part in groups]
        rows.append(
            [
                np.clip(np.rint(part * (127 / top)), -127, 127).astype(np.int8).tobytes()
                for part, top in zip(groups, tops, strict=True)
            ]
        )
        scales.append([top / 127 for top in tops])
    rounded = [round(float(one), 6) for one in biases]
    return to_bytes(rows, {"scales": scales, "biases": rounded, "note": note})


def _example(words: Sequence[str], level: int) -> Example:
    indices, values = [], []
    for group, buckets in enumerate(features_of(words)):
        unique, counts = np.unique(np.array(buckets, np.int32), return_counts=True)
        indices.append((unique + _STARTS[group]).astype(np.int32))
        values.append((counts / math.sqrt(max(len(buckets), 1))).astype(np.float32))
    return Example(tuple(indices), tuple(values), level)


def _questions(examples: Sequence[Example], epochs: int, seed: int) -> Weights:
    """The weights of the questions whether a text is of a level or higher."""
    rng = random.Random(seed)
    order = list(examples)
    lowest = np.array((1, 2, 3))
    weights = np.zeros((_STARTS[-1], len(lowest)), np.float32)
    squares = np.full_like(weights, 1e-2)
    bias = np.zeros(len(lowest), np.float32)
    sums, bias_sums, moments = np.zeros_like(weights), np.zeros_like(bias), 0
    for epoch in range(epochs):
        rate = np.float32(_RATE / (1 + epoch))
        rng.shuffle(order)
        for at, example in enumerate(order, start=1):
            if epoch == epochs - 1 and at % max(1, len(order) // _AVERAGED) == 0:
                sums, bias_sums, moments = sums + weights, bias_sums + bias, moments + 1
            used = _USED[rng.randrange(len(_USED))]
            indices = np.concatenate([example.indices[group] for group in used])
            values = np.concatenate([example.values[group] for group in used])
            old = weights[indices]
            said = 1 / (1 + np.exp(-np.clip(bias + values @ old, -30, 30)))
            error = said - (example.level >= lowest)
            error[np.abs(error) < _SURE] = 0
            if not error.any():
                continue
            weight = np.where(example.level == lowest - 1, _UNCLEAR_WEIGHT, 1)
            weight = np.where(example.level >= lowest, _GRAVE_WEIGHT, weight)
            error = (error * weight).astype(np.float32)
            gradient = values[:, None] * error + np.float32(_SHRINK) * old * (error != 0)
            size = squares[indices] + gradient * gradient
            squares[indices] = size
            weights[indices] = old - rate * gradient / np.sqrt(size)
            bias -= rate * np.float32(0.05) * error
    return Weights(sums / np.float32(moments), bias_sums / np.float32(moments))

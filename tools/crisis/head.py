"""The head on the vectors of an encoder: one hidden layer, and a logit for each question."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.memory.encoder_file import Floats

UNITS: Final = 128
_DROPPED: Final = 0.5
"""The share of hidden units that a step leaves out, and that of the vector's numbers."""
_DROPPED_INPUT: Final = 0.1
_LEAST_SPREAD: Final = 1e-3
"""A number that hardly differs between texts says nothing of them."""
_SCALE: Final = 1 / 32
"""What one text of a step weighs, so that a text of a small step weighs no more."""


class Learned(NamedTuple):
    """Gradients of one step, and its loss."""

    tables: list[Floats]
    vectors: Floats
    loss: float


class Head:
    """Weights over vectors, which it takes with the mean and the spread of those that it was made with."""

    def __init__(self, vectors: Floats, questions: int, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._mean = vectors.mean(axis=0)
        self._spread = np.maximum(vectors.std(axis=0), np.float32(_LEAST_SPREAD))
        size = vectors.shape[1]
        self.tables: list[Floats] = [
            self._rng.normal(0, (2 / size) ** 0.5, (size, UNITS)).astype(np.float32),
            np.zeros(UNITS, np.float32),
            self._rng.normal(0, (1 / UNITS) ** 0.5, (UNITS, questions)).astype(np.float32),
            np.zeros(questions, np.float32),
        ]

    def whole(self) -> tuple[npt.NDArray[np.float64], ...]:
        """The tables for vectors as they are: their mean and spread are a part of the first two."""
        into, hidden, out, biases = (one.astype(np.float64) for one in self.tables)
        into = into / self._spread[:, None]
        return into, hidden - self._mean @ into, out, biases

    def learned(self, vectors: Floats, wanted: Floats, weights: Floats) -> Learned:
        """The gradients of the logistic loss, with some units and numbers left out."""
        into, hidden, out, biases = self.tables
        given = self._kept(vectors.shape, _DROPPED_INPUT)
        x = (vectors - self._mean) / self._spread * given
        sums = x @ into + hidden
        kept = self._kept(sums.shape, _DROPPED) * (sums > 0)
        units = sums * kept
        logits = np.clip(units @ out + biases, -30, 30)
        error = (1 / (1 + np.exp(-logits)) - wanted) * weights[:, None] * np.float32(_SCALE)
        back = error @ out.T * kept
        losses = (np.logaddexp(0, logits) - wanted * logits) * weights[:, None]
        tables = [x.T @ back, back.sum(axis=0), units.T @ error, error.sum(axis=0)]
        return Learned(tables, back @ into.T * given / self._spread, float(losses.sum()))

    def _kept(self, shape: tuple[int, ...], dropped: float) -> Floats:
        return (self._rng.random(shape) > dropped).astype(np.float32) / np.float32(1 - dropped)

"""`python -m tools.crisis.vectors [FILE]`: train the head of the crisis gate's vectors and write it.

A network of one hidden layer on the vectors of the messages, and of a text of each template. Deterministic:
each seed gives its order and its first weights, and the networks of all seeds are side by side in one.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.domain.clock import SystemClock
from pipeline.memory.embedding import Embedder
from pipeline.memory.local_embedder import LocalEmbedder
from pipeline.safety.danger_model import QUESTIONS
from pipeline.safety.vector_head import FILE, to_bytes
from tools.crisis.texts import LANGUAGES, MANY, MANY_CHOICES, filled, honest_texts, messages, templates

SEEDS: Final = (7, 8, 9)
UNITS: Final = 128
"""Hidden units of each seed."""
EPOCHS: Final = 25
HONEST: Final = 1_500
_BATCH: Final = 64
_RATE: Final = 1e-3
_DECAY: Final = 0.05
_DROPPED: Final = 0.5
"""The share of hidden units that a step leaves out, and that of the vector's numbers."""
_DROPPED_INPUT: Final = 0.1
_GRAVE_WEIGHT: Final = 1.6
_LEAST_SPREAD: Final = 1e-3
"""A number that hardly differs between texts says nothing of them."""
_TEMPLATE_WEIGHT: Final = 0.3
"""What a text of a template weighs: it is less like what people write than a message is."""

Floats = npt.NDArray[np.float64]


class Text(NamedTuple):
    """A text that is learned."""

    text: str
    level: int
    weight: float


class Samples(NamedTuple):
    """What a network learns from."""

    vectors: Floats
    """One row for each text, of mean 0 and deviation 1 in each column."""
    wanted: Floats
    """1 where the text is of the question's level or higher."""
    weights: Floats


def main(arguments: Sequence[str] | None = None) -> int:
    """Embed, train and write: ten minutes of processor time."""
    parser = argparse.ArgumentParser(prog="python -m tools.crisis.vectors", description=__doc__)
    parser.add_argument(
        "file", nargs="?", type=Path, default=FILE, help=f"default: {FILE.name} in the package"
    )
    options = parser.parse_args(arguments)
    options.file.write_bytes(asyncio.run(_trained()))
    sys.stdout.write(f"{options.file} written\n")
    return 0


async def _trained() -> bytes:
    embedder = LocalEmbedder(SystemClock(), timeout_s=600)
    try:
        return await trained(embedder, texts())
    finally:
        await embedder.close()


async def trained(embedder: Embedder, chosen: Sequence[Text], *, epochs: int = EPOCHS) -> bytes:
    """The file of the head for these texts and the vectors of `embedder`."""
    found = np.array([await embedder.question(one.text) for one in chosen])
    mean, spread = found.mean(axis=0), np.maximum(found.std(axis=0), _LEAST_SPREAD)
    levels = np.array([one.level for one in chosen])
    weights = np.array([one.weight for one in chosen]) * np.where(levels >= 2, _GRAVE_WEIGHT, 1.0)
    wanted = (levels[:, None] >= np.array((1, 2, 3))).astype(float)
    known = Samples((found - mean) / spread, wanted, weights)
    networks = [_network(known, epochs, seed) for seed in SEEDS]
    # Side by side, and with the vectors as they are: their mean and spread are a part of the first table.
    into = np.hstack([one[0] for one in networks]) / spread[:, None]
    hidden = np.concatenate([one[1] for one in networks]) - mean @ into
    out = np.vstack([one[2] for one in networks]) / len(networks)
    biases = np.mean([one[3] for one in networks], axis=0)
    return to_bytes((into, hidden, out, biases), {"model": embedder.model, "note": f"{len(chosen)} texts"})


def texts(seed: int = SEEDS[0]) -> list[Text]:
    """Every message as it was written, texts of each template, and prose without danger."""
    rng = random.Random(seed)
    found = [Text(one.text, one.level, 1.0) for one in messages()]
    for language in LANGUAGES:
        for level, rows in templates(language).items():
            for template in rows:
                count = MANY if template.count("|") >= MANY_CHOICES else 1
                found += [Text(filled(template, rng), level, _TEMPLATE_WEIGHT) for _ in range(count)]
    prose = list(honest_texts(seed))
    rng.shuffle(prose)
    return found + [Text(one.text, 0, _TEMPLATE_WEIGHT) for one in prose[:HONEST]]


def _network(known: Samples, epochs: int, seed: int) -> list[Floats]:
    """The tables of a network, trained by Adam with decay of weights."""
    rng = np.random.default_rng(seed)
    size, count = known.vectors.shape[1], len(known.vectors)
    tables: list[Floats] = [
        rng.normal(0, (2 / size) ** 0.5, (size, UNITS)),
        np.zeros(UNITS),
        rng.normal(0, (1 / UNITS) ** 0.5, (UNITS, QUESTIONS)),
        np.zeros(QUESTIONS),
    ]
    means, squares = [np.zeros_like(one) for one in tables], [np.zeros_like(one) for one in tables]
    steps, step = epochs * -(-count // _BATCH), 0
    for _ in range(epochs):
        order = rng.permutation(count)
        for start in range(0, count, _BATCH):
            step += 1
            rate = _RATE * (1 - step / steps) + _RATE / 100
            gradients = _gradients(tables, known, order[start : start + _BATCH], rng)
            for at, gradient in enumerate(gradients):
                means[at] = 0.9 * means[at] + 0.1 * gradient
                squares[at] = 0.999 * squares[at] + 0.001 * gradient**2
                change = means[at] / (1 - 0.9**step) / (np.sqrt(squares[at] / (1 - 0.999**step)) + 1e-8)
                decay = _DECAY if tables[at].ndim > 1 else 0.0
                tables[at] = tables[at] - rate * (change + decay * tables[at])
    return tables


def _gradients(
    tables: Sequence[Floats], known: Samples, chosen: npt.NDArray[np.int64], rng: np.random.Generator
) -> list[Floats]:
    into, hidden, out, biases = tables
    vectors = known.vectors[chosen]
    vectors = vectors * (rng.random(vectors.shape) > _DROPPED_INPUT) / (1 - _DROPPED_INPUT)
    sums = vectors @ into + hidden
    kept = (rng.random(sums.shape) > _DROPPED) / (1 - _DROPPED)
    units = np.maximum(sums, 0) * kept
    said = 1 / (1 + np.exp(-np.clip(units @ out + biases, -30, 30)))
    error = (said - known.wanted[chosen]) * known.weights[chosen][:, None] / len(chosen)
    back = error @ out.T * kept * (sums > 0)
    return [vectors.T @ back, back.sum(axis=0), units.T @ error, error.sum(axis=0)]


if __name__ == "__main__":
    sys.exit(main())

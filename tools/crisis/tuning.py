"""Tune the last layers of an encoder, and a head on its vectors, to the levels of texts.

The layers before them stay, so what they make of each text is computed once. Deterministic: the seed gives
the order of the texts and the head's first weights.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.memory.encoder import Encoder, Kept, Tensors, forward
from pipeline.memory.encoder_file import Floats
from tools.crisis.adam import Adam
from tools.crisis.gradients import gradients
from tools.crisis.head import Head

SEED: Final = 7
LAYERS: Final = 4
EPOCHS: Final = 2
RATE: Final = 2e-4
_HEAD_SHARE: Final = 5.0
"""How much faster the head changes than the layers do."""
_WARM: Final = 100
"""Steps until the rate is whole."""
_DECAY: Final = 0.01
_HEAD_DECAY: Final = 0.05
_HEAD_RATE: Final = 1e-3
_HEAD_EPOCHS: Final = 6
"""Epochs of the head alone, before the layers change."""
_BATCH: Final = 64
_TEXTS: Final = 32
_TOKENS: Final = 900
"""The most texts and tokens of a step."""
_MOST_TOKENS: Final = 200
"""What is learned of a text, at most."""


class Samples(NamedTuple):
    """What is learned."""

    hidden: Sequence[npt.NDArray[np.float16]]
    """What the layers that stay make of each text: tokens by width."""
    wanted: Floats
    """A row for each text: 1 where it is of the question's level or higher."""
    weights: Floats


class Tuned(NamedTuple):
    """What was learned."""

    layers: Sequence[Tensors]
    """The last layers."""
    head: Head


def samples(
    encoder: Encoder, texts: Sequence[str], wanted: Floats, weights: Floats, *, layers: int = LAYERS
) -> Samples:
    """The texts as the last `layers` get them."""
    tokens = [encoder.file.tokens(text)[:_MOST_TOKENS] for text in texts]
    hidden: list[npt.NDArray[np.float16]] = [np.empty(0, np.float16)] * len(texts)
    for chosen in batches([len(one) for one in tokens], random.Random(SEED)):
        first = encoder.first([tokens[at] for at in chosen])
        made = encoder.run(first, encoder.layers[:-layers]).astype(np.float16)
        for at, one in zip(chosen, made, strict=True):
            hidden[at] = one
    return Samples(hidden, wanted, weights)


def tuned(
    encoder: Encoder,
    known: Samples,
    *,
    layers: int = LAYERS,
    epochs: int = EPOCHS,
    rate: float = RATE,
    report: Callable[[str], object] = str,
) -> Tuned:
    """Learn the samples. `report` gets a line after each epoch."""
    return _Tuning(encoder, known, layers).run(epochs, rate, report)


def vectors(encoder: Encoder, hidden: Sequence[npt.NDArray[np.float16]], layers: Sequence[Tensors]) -> Floats:
    """The vectors of texts, one row each, with these last layers."""
    found = np.zeros((len(hidden), encoder.file.width), np.float32)
    for chosen in batches([len(one) for one in hidden], random.Random(SEED)):
        found[chosen], _ = unit(encoder.run(_stacked(hidden, chosen), layers))
    return found


def batches(lengths: Sequence[int], rng: random.Random) -> list[list[int]]:
    """The numbers of texts of one length together, in random order."""
    by_length = defaultdict(list)
    for at, length in enumerate(lengths):
        by_length[length].append(at)
    found = []
    for length, these in by_length.items():
        rng.shuffle(these)
        size = max(1, min(_TEXTS, _TOKENS // length))
        found += [these[at : at + size] for at in range(0, len(these), size)]
    rng.shuffle(found)
    return found


def unit(x: Floats) -> tuple[Floats, Floats]:
    """The mean of each text's tokens, with length 1, and the length that it had."""
    mean = x.mean(axis=1)
    size = np.linalg.norm(mean, axis=1, keepdims=True)
    return mean / size, size


class _Tuning:
    def __init__(self, encoder: Encoder, known: Samples, layers: int) -> None:
        self._heads, self._epsilon = encoder.file.heads, encoder.file.epsilon
        self._known = known
        self._rng = random.Random(SEED)
        self._layers = [
            {name: one.copy() for name, one in layer.items()} for layer in encoder.layers[-layers:]
        ]
        self._adam, self._head_adam = Adam(_DECAY), Adam(_DECAY)
        found = vectors(encoder, known.hidden, self._layers)
        self._head = Head(found, known.wanted.shape[1], SEED)
        self._learn_head(found)

    def run(self, epochs: int, rate: float, report: Callable[[str], object]) -> Tuned:
        lengths = [len(one) for one in self._known.hidden]
        plan = [batches(lengths, self._rng) for _ in range(epochs)]
        steps, step = sum(map(len, plan)), 0
        for epoch, chunks in enumerate(plan, start=1):
            losses = 0.0
            for chosen in chunks:
                losses += self._step(chosen, rate * min(1.0, (step + 1) / _WARM) * (1 - step / steps))
                step += 1
            report(f"epoch {epoch} of {epochs}: loss {losses / max(len(lengths), 1):.4f}")
        return Tuned(self._layers, self._head)

    def _learn_head(self, found: Floats) -> None:
        adam, order = Adam(_HEAD_DECAY), list(range(len(found)))
        for _ in range(_HEAD_EPOCHS):
            self._rng.shuffle(order)
            for begin in range(0, len(order), _BATCH):
                chosen = order[begin : begin + _BATCH]
                learned = self._head.learned(found[chosen], *self._goals(chosen))
                adam.change(_named(self._head.tables), _named(learned.tables), _HEAD_RATE)

    def _step(self, chosen: Sequence[int], rate: float) -> float:
        x, kept = self._forward(_stacked(self._known.hidden, chosen))
        found, size = unit(x)
        learned = self._head.learned(found, *self._goals(chosen))
        along = (learned.vectors * found).sum(axis=1, keepdims=True)
        change = np.broadcast_to(((learned.vectors - found * along) / size / x.shape[1])[:, None, :], x.shape)
        changes = gradients(change, kept, self._layers, self._heads)
        self._adam.change(_flat(self._layers), _flat(changes), rate)
        self._head_adam.change(_named(self._head.tables), _named(learned.tables), rate * _HEAD_SHARE)
        return learned.loss

    def _forward(self, x: Floats) -> tuple[Floats, list[Kept]]:
        kept = []
        for layer in self._layers:
            x, one = forward(x, layer, self._heads, self._epsilon)
            kept.append(one)
        return x, kept

    def _goals(self, chosen: Sequence[int]) -> tuple[Floats, Floats]:
        return self._known.wanted[chosen], self._known.weights[chosen]


def _stacked(hidden: Sequence[npt.NDArray[np.float16]], chosen: Sequence[int]) -> Floats:
    return np.stack([hidden[at] for at in chosen]).astype(np.float32)


def _named(tables: Sequence[Floats]) -> dict[str, Floats]:
    return {str(at): one for at, one in enumerate(tables)}


def _flat(layers: Sequence[Mapping[str, Floats]]) -> dict[str, Floats]:
    return {f"{at}.{name}": one for at, layer in enumerate(layers) for name, one in layer.items()}

"""Tuning an encoder for the crisis gate: right gradients, and what is learned is found in new texts.

Covers: tools/crisis/gradients.py, tools/crisis/tuning.py, tools/crisis/head.py, tools/crisis/adam.py,
tools/crisis/vectors.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from pipeline.memory.encoder import Encoder, Kept, forward
from pipeline.memory.encoder_file import EncoderFile
from pipeline.safety.vector_head import from_bytes
from tests.support.small_encoder import small_encoder
from tools.crisis.gradients import gradients
from tools.crisis.vectors import Text, texts, trained

LEVELS = {"raven": 3, "ebb": 2, "bread": 0, "lamp": 0}
NEW = "xq"
"""Words beside which nothing was learned."""


@pytest.fixture
def file(tmp_path: Path) -> EncoderFile:
    return EncoderFile(small_encoder(tmp_path / "small.bin"), "small")


def test_gradients_are_those_of_small_differences(file: EncoderFile) -> None:
    encoder, rng, step = Encoder(file), np.random.default_rng(4), 1e-5
    # Differences so small need 64 bits.
    layers: Any = [{name: one.astype(np.float64) for name, one in layer.items()} for layer in encoder.layers]
    x: Any = encoder.first([file.tokens("raven ab"), file.tokens("bread cd")]).astype(np.float64)
    change = rng.normal(size=x.shape)

    def run(tried: Any) -> tuple[Any, list[Kept]]:
        kept, out = [], x
        for layer in tried:
            out, one = forward(out, layer, file.heads, file.epsilon)
            kept.append(one)
        return out, kept

    found = gradients(cast("Any", change), run(layers)[1], layers, file.heads)
    for at, tensors in enumerate(found):
        assert set(tensors) == set(layers[at])
        for name, gradient in tensors.items():
            toward = rng.normal(size=gradient.shape)
            sides = []
            for sign in (1, -1):
                tried = [dict(layer) for layer in layers]
                tried[at][name] = layers[at][name] + sign * step * toward
                sides.append((run(tried)[0] * change).sum())
            expected = (gradient * toward).sum()
            assert np.isclose((sides[0] - sides[1]) / (2 * step), expected, rtol=1e-4, atol=1e-6), name


def _texts() -> list[Text]:
    others = [f"{one}{two}" for one in "abcdefg" for two in "klm"]
    return [Text(f"{word} {other}", level, 1.0) for other in others for word, level in LEVELS.items()]


def test_what_was_learned_is_found_in_new_texts(file: EncoderFile) -> None:
    files = trained(file, _texts(), layers=1, epochs=16, rate=3e-3)
    encoder, head = Encoder(file, files.layers), from_bytes(files.head, "trained")
    assert head.model == encoder.name
    found = [head.logits(encoder.vector(f"{word} {NEW}").tolist()) for word in LEVELS]
    raven, ebb, bread, lamp = found
    assert min(raven.clear, ebb.clear) > max(bread.clear, lamp.clear) + 1
    assert raven.imminent > max(ebb.imminent, bread.imminent, lamp.imminent) + 1


def test_the_same_texts_give_the_same_files(file: EncoderFile) -> None:
    one, other = (trained(file, _texts(), layers=1, epochs=1) for _ in range(2))
    assert one == other
    assert one != trained(file, _texts()[::2], layers=1, epochs=1)


def test_every_message_and_template_is_learned() -> None:
    found = texts()
    assert {one.level for one in found} == {0, 1, 2, 3}
    assert len(found) > 14_000
    assert {one.weight for one in found} == {1.0, 0.3}

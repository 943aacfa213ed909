"""A language model of a few kilobytes in GGUF, for tests about the process that serves a model.

llama.cpp loads it in milliseconds, and its answer to everything is `LETTER`, up to the limit of tokens. What
the real model says is tested with the real one.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

LETTER = "o"

Floats = npt.NDArray[np.float32]

_WIDTH = 32
_ALIGNMENT = 32
_SIZES = {
    "context_length": 8192,
    "embedding_length": _WIDTH,
    "block_count": 1,
    "feed_forward_length": _WIDTH,
    "attention.head_count": 1,
    "rope.dimension_count": _WIDTH,
}
_TEMPLATE = "{% for one in messages %}{{ one.content }}{% endfor %}"
_UINT32, _INT32, _FLOAT32, _STRING, _ARRAY = 4, 5, 6, 8, 9
"""Kinds of values in the format."""
_NORMAL, _CONTROL = 1, 3
"""Kinds of tokens."""


def tiny_model(path: Path) -> Path:
    """Write it to `path`, which is returned."""
    tokens = ["<end>", *_bytes_of_gpt2()]
    kinds = [_CONTROL, *[_NORMAL] * (len(tokens) - 1)]
    facts = [
        _fact("general.architecture", _STRING, _text("llama")),
        *(_fact(f"llama.{name}", _UINT32, struct.pack("<I", size)) for name, size in _SIZES.items()),
        _fact("llama.attention.layer_norm_rms_epsilon", _FLOAT32, struct.pack("<f", 1e-5)),
        _fact("tokenizer.ggml.model", _STRING, _text("gpt2")),
        _fact("tokenizer.ggml.pre", _STRING, _text("default")),
        _fact("tokenizer.ggml.tokens", _ARRAY, _array(_STRING, [_text(one) for one in tokens])),
        _fact("tokenizer.ggml.token_type", _ARRAY, _array(_INT32, [struct.pack("<i", one) for one in kinds])),
        _fact("tokenizer.ggml.merges", _ARRAY, _array(_STRING, [_text("a b")])),
        _fact("tokenizer.ggml.eos_token_id", _UINT32, struct.pack("<I", 0)),
        _fact("tokenizer.chat_template", _STRING, _text(_TEMPLATE)),
    ]
    tensors = _tensors(len(tokens), 1 + ord(LETTER))
    places, body = b"", b""
    for name, values in tensors.items():
        shape = struct.pack(f"<I{values.ndim}Q", values.ndim, *reversed(values.shape))
        places += _text(name) + shape + struct.pack("<IQ", 0, len(body))
        body += values.tobytes()
        body += bytes(-len(body) % _ALIGNMENT)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(facts)) + b"".join(facts) + places
    path.write_bytes(head + bytes(-len(head) % _ALIGNMENT) + body)
    return path


def _tensors(words: int, answer: int) -> dict[str, Floats]:
    """Weights of a network whose only layer adds nothing, so that each token leads to `answer`."""
    ones, nothing = np.ones(_WIDTH, np.float32), np.zeros((_WIDTH, _WIDTH), np.float32)
    out = np.zeros((words, _WIDTH), np.float32)
    out[answer] = 1
    found: dict[str, Floats] = {"token_embd.weight": np.ones((words, _WIDTH), np.float32)}
    found |= {"output_norm.weight": ones, "output.weight": out}
    for name in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
        found[f"blk.0.{name}.weight"] = nothing
    for name in ("attn_norm", "ffn_norm"):
        found[f"blk.0.{name}.weight"] = ones
    return found


def _bytes_of_gpt2() -> list[str]:
    """The character of each byte in GPT-2's vocabulary."""
    shown = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256, 512))
    return [chr(byte if byte in shown else next(others)) for byte in range(256)]


def _text(words: str) -> bytes:
    raw = words.encode()
    return struct.pack("<Q", len(raw)) + raw


def _array(kind: int, values: Sequence[bytes]) -> bytes:
    return struct.pack("<IQ", kind, len(values)) + b"".join(values)


def _fact(name: str, kind: int, value: bytes) -> bytes:
    return _text(name) + struct.pack("<I", kind) + value

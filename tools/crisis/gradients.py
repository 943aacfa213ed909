"""The gradients of the encoder's layers, by backpropagation; checked against differences in the tests."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from pipeline.memory.encoder import CUBE, ROOT, Kept, Tensors, split
from pipeline.memory.encoder_file import Floats


def gradients(change: Floats, kept: Sequence[Kept], layers: Sequence[Tensors], heads: int) -> list[Tensors]:
    """Those of the tensors of `layers`, from that of what the last one made. `kept`: what `forward` gave."""
    found = []
    for layer, one in zip(reversed(layers), reversed(kept), strict=True):
        change, tensors = backward(change, one, layer, heads)
        found.append(tensors)
    return found[::-1]


def backward(change: Floats, kept: Kept, layer: Mapping[str, Floats], heads: int) -> tuple[Floats, Tensors]:
    """The gradients of a layer's input and of its tensors, from that of its output."""
    x, q, k, v, shares, context, first, *middle, inner, bent, active, scaled, spread = kept
    found: Tensors = {}
    summed = _normal_back(change, (scaled, spread), layer, "oln", found)
    _linear_back(summed, active, "fo", found)
    wide = summed @ layer["fo.w"]
    wide *= _slope(inner, bent)
    _linear_back(wide, first, "fi", found)
    summed += wide @ layer["fi.w"]
    summed = _normal_back(summed, tuple(middle), layer, "aln", found)
    _linear_back(summed, context, "ao", found)
    by_head = split(summed @ layer["ao.w"], heads)
    of_shares = by_head @ v.transpose(0, 1, 3, 2)
    of_scores = shares * (of_shares - (of_shares * shares).sum(axis=-1, keepdims=True))
    of_scores *= np.float32(1 / math.sqrt(x.shape[-1] // heads))
    parts = {
        "q": of_scores @ k,
        "k": of_scores.transpose(0, 1, 3, 2) @ q,
        "v": shares.transpose(0, 1, 3, 2) @ by_head,
    }
    for name, part in parts.items():
        joined = part.transpose(0, 2, 1, 3).reshape(x.shape)
        _linear_back(joined, x, name, found)
        summed = summed + joined @ layer[f"{name}.w"]
    return summed, found


def _slope(inner: Floats, bent: Floats) -> Floats:
    """The derivative of GELU, where `bent` is its tanh."""
    slope = inner * inner
    slope *= np.float32(3 * CUBE)
    slope += 1
    slope *= inner
    slope *= np.float32(ROOT)
    slope *= 1 - bent * bent
    slope += bent
    slope += 1
    slope *= np.float32(0.5)
    return slope


def _normal_back(
    change: Floats, kept: Kept, layer: Mapping[str, Floats], name: str, found: Tensors
) -> Floats:
    scaled, spread = kept
    found[f"{name}.w"] = (change * scaled).sum(axis=(0, 1))
    found[f"{name}.b"] = change.sum(axis=(0, 1))
    inner = change * layer[f"{name}.w"]
    mean = inner.mean(axis=-1, keepdims=True)
    result: Floats = (inner - mean - scaled * (inner * scaled).mean(axis=-1, keepdims=True)) / spread
    return result


def _linear_back(change: Floats, x: Floats, name: str, found: Tensors) -> None:
    flat = change.reshape(-1, change.shape[-1])
    found[f"{name}.w"] = flat.T @ x.reshape(-1, x.shape[-1])
    found[f"{name}.b"] = flat.sum(axis=0)

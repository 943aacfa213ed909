"""Adam with decay of weights: Kingma and Ba 2014, Loshchilov and Hutter 2017."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from pipeline.memory.encoder_file import Floats

_MEAN: Final = 0.9
_SQUARE: Final = 0.99
"""Shares that the mean of the gradients and that of their squares keep of a step."""
_LEAST: Final = 1e-8


class Adam:
    """Changes tensors in place. `decay`: the share of a matrix that a step of rate 1 takes away."""

    def __init__(self, decay: float) -> None:
        self._decay = decay
        self._steps = 0
        self._means: dict[str, Floats] = {}
        self._squares: dict[str, Floats] = {}

    def change(self, tensors: Mapping[str, Floats], gradients: Mapping[str, Floats], rate: float) -> None:
        """Take one step against the gradients."""
        self._steps += 1
        mean_scale = np.float32(rate / (1 - _MEAN**self._steps))
        square_scale = np.float32(1 / (1 - _SQUARE**self._steps))
        for key, gradient in gradients.items():
            tensor = tensors[key]
            if key not in self._means:
                self._means[key], self._squares[key] = np.zeros_like(tensor), np.zeros_like(tensor)
            mean, square = self._means[key], self._squares[key]
            mean *= np.float32(_MEAN)
            mean += np.float32(1 - _MEAN) * gradient
            square *= np.float32(_SQUARE)
            square += np.float32(1 - _SQUARE) * gradient * gradient
            if tensor.ndim > 1:
                tensor *= np.float32(1 - rate * self._decay)
            tensor -= mean_scale * mean / (np.sqrt(square * square_scale) + np.float32(_LEAST))

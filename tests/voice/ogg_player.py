"""What a player finds in a voice message."""

from __future__ import annotations

import io
from dataclasses import dataclass

import av
import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A voice message, decoded."""

    codec: str
    rate: int
    layout: str
    samples: NDArray[np.float32]

    @property
    def seconds(self) -> float:
        return self.samples.size / self.rate


def play(data: bytes) -> Played:
    """Decode a voice message to the samples that a player would put out."""
    with av.open(io.BytesIO(data), format="ogg") as container:
        stream = container.streams.audio[0]
        frames = [frame.to_ndarray().reshape(-1) for frame in container.decode(stream)]
        return Played(
            codec=stream.codec_context.name,
            rate=stream.rate,
            layout=stream.layout.name,
            samples=np.concatenate(frames).astype(np.float32),
        )

"""Encode speech samples as a voice message, OGG with Opus, and compute the waveform that players draw.

Runs in the synthesis process. Not here: where the samples come from.
"""

from __future__ import annotations

import io
from typing import cast

import av
import numpy as np
from numpy.typing import NDArray

from voice.synthesis.synthesizer import SpokenAudio

SAMPLE_RATE = 48_000
BIT_RATE = 28_000
"""Bits a second. Messengers record voice notes with 16 to 32 thousand."""
WAVEFORM_POINTS = 256
_POINTS_PER_S = 20.0
_OPTIONS = {"application": "voip", "vbr": "on"}


def encode(samples: NDArray[np.int16], *, rate: int) -> SpokenAudio:
    """`samples`: mono, int16, shape [n], n > 0, at `rate` Hz. Raises ValueError when there are none."""
    if samples.ndim != 1 or not samples.size:
        raise ValueError("there is nothing to encode")
    out = io.BytesIO()
    with av.open(out, "w", format="ogg") as container:
        stream = cast(
            "av.AudioStream",
            container.add_stream("libopus", rate=SAMPLE_RATE, layout="mono", options=_OPTIONS),
        )
        stream.bit_rate = BIT_RATE
        resampler = av.AudioResampler(format="s16", layout="mono", rate=SAMPLE_RATE)
        # A second at a time: as one frame, a minute and a half takes a hundred megabytes of memory.
        for start in range(0, samples.size, rate):
            block = np.ascontiguousarray(samples[start : start + rate]).reshape(1, -1)
            frame = av.AudioFrame.from_ndarray(block, format="s16", layout="mono")
            frame.sample_rate = rate
            frame.pts = start
            for resampled in resampler.resample(frame):
                container.mux(stream.encode(resampled))
        for resampled in resampler.resample(None):
            container.mux(stream.encode(resampled))
        container.mux(stream.encode(None))
    seconds = samples.size / rate
    return SpokenAudio(data=out.getvalue(), seconds=seconds, waveform=waveform(samples, seconds=seconds))


def waveform(samples: NDArray[np.int16], *, seconds: float) -> bytes:
    """The peak of each slice, from 0 to 255, the loudest at 255; at most 256 slices, about 20 a second."""
    points = int(max(1, min(WAVEFORM_POINTS, round(seconds * _POINTS_PER_S), samples.size)))
    starts = np.linspace(0, samples.size, points, endpoint=False, dtype=np.int64)
    peaks = np.maximum.reduceat(np.abs(samples.astype(np.int32)), starts)
    loudest = int(peaks.max())
    if not loudest:
        return bytes(points)
    return (peaks * 255 // loudest).astype(np.uint8).tobytes()

"""Voice notes made from samples: the containers and codecs in which phones and browsers send speech.

For tests and benches only: what the product itself encodes is `voice.synthesis.opus_encoding`.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass

import av
import numpy as np

from tests.voice.clips import wav

_SPEECH_HZ = 16_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    muxer: str
    codec: str
    rate: int
    bit_rate: int = 0


# Bit rates as the platforms' own clients choose them: Telegram's about 24 to 32 kbit/s, Discord's 32.
_KINDS: Mapping[str, _Kind] = {
    "ogg": _Kind(muxer="ogg", codec="libopus", rate=48_000, bit_rate=32_000),
    "webm": _Kind(muxer="webm", codec="libopus", rate=48_000, bit_rate=32_000),
    "m4a": _Kind(muxer="ipod", codec="aac", rate=48_000, bit_rate=64_000),
    "mp3": _Kind(muxer="mp3", codec="libmp3lame", rate=16_000, bit_rate=48_000),
    "amr": _Kind(muxer="amr", codec="libopencore_amrnb", rate=8_000, bit_rate=12_200),
    "flac": _Kind(muxer="flac", codec="flac", rate=16_000),
}


def note(pcm: bytes, kind: str) -> bytes:
    """These samples, 16 kHz mono, as a file of `kind`: ogg, webm, m4a, mp3, amr, flac or wav."""
    if kind == "wav":
        return wav(pcm)
    wanted = _KINDS[kind]
    buffer = io.BytesIO()
    with av.open(buffer, "w", format=wanted.muxer) as container:
        stream = container.add_stream(wanted.codec, rate=wanted.rate, layout="mono")
        if wanted.bit_rate:
            stream.bit_rate = wanted.bit_rate
        frame = av.AudioFrame.from_ndarray(np.frombuffer(pcm, np.int16).reshape(1, -1), "s16", "mono")
        frame.sample_rate = _SPEECH_HZ
        # The encoder takes frames in its own format and size.
        size = _frame_size(stream)
        encoder = stream.codec_context
        resampler = av.AudioResampler(encoder.format, "mono", wanted.rate, frame_size=size)
        for piece in (*resampler.resample(frame), *resampler.resample(None)):
            container.mux(stream.encode(piece))
        container.mux(stream.encode(None))
    return buffer.getvalue()


def _frame_size(stream: av.AudioStream) -> int:
    stream.codec_context.open()
    return int(stream.codec_context.frame_size or 1024)

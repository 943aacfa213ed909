"""Videos: their sound is decoded as that of a recording, and their pictures are never decoded."""

from __future__ import annotations

import io

import av
import numpy as np
import pytest

from tests.voice.audio.test_decoder_client import SETTINGS, ignore
from voice.audio.decoder_client import Decoder
from voice.errors import AudioRefused

SECONDS = 2
KINDS = {
    "mp4": ("mp4", "mpeg4", "aac"),
    "quicktime": ("mov", "mpeg4", "pcm_s16le"),
    "3gp": ("3gp", "mpeg4", "aac"),
    "webm": ("webm", "libvpx", "libopus"),
    "matroska": ("matroska", "mpeg4", "aac"),
}
"""The container, and the codecs of pictures and sound."""


def video(container: str, pictures: str, sound: str) -> bytes:
    """A video with a tone; without sound if `sound` is empty."""
    target = io.BytesIO()
    with av.open(target, "w", format=container) as file:
        seen = file.add_stream(pictures, rate=10)
        seen.width, seen.height, seen.pix_fmt = 64, 48, "yuv420p"
        heard = file.add_stream(sound, rate=48_000, layout="mono") if sound else None
        for number in range(SECONDS * 10):
            grey = np.full((48, 64, 3), number * 10, np.uint8)
            file.mux(seen.encode(av.VideoFrame.from_ndarray(grey, format="rgb24")))
        file.mux(seen.encode(None))
        if heard is not None:
            tone = 8_000 * np.sin(np.arange(SECONDS * 48_000) / 20)
            frame = av.AudioFrame.from_ndarray(tone.astype(np.int16)[None], format="s16", layout="mono")
            frame.sample_rate, frame.pts = 48_000, 0
            resampler = av.AudioResampler(
                format=heard.codec_context.format,
                layout="mono",
                rate=48_000,
                frame_size=heard.codec_context.frame_size or 1_024,
            )
            for part in (*resampler.resample(frame), *resampler.resample(None)):
                file.mux(heard.encode(part))
            file.mux(heard.encode(None))
    return target.getvalue()


async def test_the_sound_of_a_video_is_decoded_in_each_common_container() -> None:
    decoder = Decoder(SETTINGS, deadline_s=120.0)
    try:
        for name, kinds in KINDS.items():
            decoded = await decoder.decode(video(*kinds), on_segment=ignore)
            assert decoded.seconds == pytest.approx(SECONDS, abs=0.1), name
            assert decoded.container in ("mp4", "webm"), name
    finally:
        await decoder.close()


async def test_a_silent_film_has_no_sound_and_an_old_container_is_named() -> None:
    decoder = Decoder(SETTINGS, deadline_s=120.0)
    try:
        with pytest.raises(AudioRefused, match="There is no sound in that file"):
            await decoder.decode(video("mp4", "mpeg4", ""), on_segment=ignore)
        with pytest.raises(AudioRefused, match="a video as MP4, MOV or WebM"):
            await decoder.decode(video("avi", "mpeg4", "mp3"), on_segment=ignore)
    finally:
        await decoder.close()

"""Samples to a voice message, and back by a player."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.voice.ogg_player import play
from voice.synthesis.opus_encoding import encode, waveform


def tone(seconds: float, *, rate: int, hertz: float = 440.0, level: int = 12_000) -> NDArray[np.int16]:
    at = np.arange(int(seconds * rate)) / rate
    return (np.sin(2 * np.pi * hertz * at) * level).astype(np.int16)


@pytest.mark.parametrize("rate", [8_000, 16_000, 22_050, 44_100, 48_000])
def test_samples_of_any_rate_come_back_as_opus_of_the_same_length_and_pitch(rate: int) -> None:
    spoken = encode(tone(2.5, rate=rate), rate=rate)
    played = play(spoken.data)
    assert (played.codec, played.rate, played.layout) == ("opus", 48_000, "mono")
    assert played.seconds == pytest.approx(2.5, abs=0.03)
    assert spoken.seconds == pytest.approx(2.5, abs=0.001)
    loudest = np.argmax(np.abs(np.fft.rfft(played.samples))) / played.seconds
    assert loudest == pytest.approx(440, abs=3)


def test_a_minute_is_as_small_as_a_phone_would_make_it() -> None:
    noise = np.random.default_rng(1).integers(-8_000, 8_000, 60 * 16_000, dtype=np.int16)
    spoken = encode(noise, rate=16_000)
    assert len(spoken.data) * 8 / 60 < 36_000
    assert len(spoken.waveform) == 256


def test_a_waveform_follows_the_loudness() -> None:
    quiet, loud = tone(1, rate=16_000, level=3_000), tone(1, rate=16_000, level=30_000)
    drawn = waveform(np.concatenate([quiet, loud]), seconds=2.0)
    assert len(drawn) == 40
    assert all(20 < point < 30 for point in drawn[:19])
    assert all(point > 250 for point in drawn[21:])


def test_silence_has_a_flat_waveform_and_the_loudest_sample_fits_into_a_byte() -> None:
    assert waveform(np.zeros(16_000, dtype=np.int16), seconds=1.0) == bytes(20)
    assert waveform(np.full(16_000, -32_768, dtype=np.int16), seconds=1.0) == b"\xff" * 20


def test_a_moment_is_enough_and_nothing_is_refused() -> None:
    assert play(encode(tone(0.05, rate=8_000), rate=8_000).data).codec == "opus"
    with pytest.raises(ValueError, match="nothing to encode"):
        encode(np.zeros(0, dtype=np.int16), rate=8_000)

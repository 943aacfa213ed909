"""A recording as other machines hear it: variants that no person can tell apart, from fixed seeds.

Processors round differently, so a test of one exact recording may pass on one and fail on another. What is
promised of speech is promised of all its variants; tests assert over several of them.
"""

from __future__ import annotations

from statistics import mean

import numpy as np

from voice.wer import word_error_rate

_FULL_SCALE = 32_767
_GAIN_DB = 1.0


def variants(pcm: bytes, count: int = 3) -> tuple[bytes, ...]:
    """`count` recordings of the same speech, 16 bit mono: the first as it is, each other one by at most 1 dB
    louder or softer, a sample longer or shorter, and with noise in its lowest bit."""
    return (pcm, *(_variant(pcm, seed) for seed in range(1, count)))


def mean_error_rate(transcript: str, heard: list[str]) -> float:
    """The word error rate over what was heard of all variants together."""
    return mean(word_error_rate(transcript, text) for text in heard)


def _variant(pcm: bytes, seed: int) -> bytes:
    chance = np.random.default_rng(seed)
    wave = np.frombuffer(pcm, "<i2").astype(np.float64)
    gain = 10 ** (chance.uniform(-_GAIN_DB, _GAIN_DB) / 20)
    length = len(wave) + int(chance.choice((-1, 1)))
    places = np.linspace(0, len(wave) - 1, length)
    dithered = np.interp(places, np.arange(len(wave)), wave) * gain + chance.integers(-1, 2, length)
    return np.clip(np.rint(dithered), -_FULL_SCALE, _FULL_SCALE).astype("<i2").tobytes()

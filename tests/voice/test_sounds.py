"""The sounds that tests and benches make are what they are called."""

from __future__ import annotations

import numpy as np
import pytest

from tests.voice.clips import CLIPS, SPEECH, samples_of
from tests.voice.sounds import HZ, WITHOUT_SPEECH, cut, in_noise, joined, quiet, voiced

_BYTES_A_SECOND = 2 * HZ


def _power(pcm: bytes) -> float:
    return float(np.mean(np.frombuffer(pcm, "<i2").astype(np.float64) ** 2))


@pytest.mark.parametrize("name", sorted(WITHOUT_SPEECH))
def test_a_sound_is_loud_and_the_same_every_time(name: str) -> None:
    pcm = WITHOUT_SPEECH[name]()
    assert pcm == WITHOUT_SPEECH[name]()
    assert len(pcm) == 5 * _BYTES_A_SECOND
    assert np.abs(np.frombuffer(pcm, "<i2")).max() > 5000


def test_noise_is_as_strong_as_it_is_asked_to_be() -> None:
    speech = samples_of(CLIPS["lv_0890"])
    others = [samples_of(clip) for clip in SPEECH[:3]]
    heard = np.frombuffer(in_noise(speech, others, snr_db=5.0, seed=1), "<i2").astype(np.float64)
    clear = np.frombuffer(speech, "<i2").astype(np.float64)
    scale = float(heard @ clear / (clear @ clear))
    ratio = np.mean((scale * clear) ** 2) / np.mean((heard - scale * clear) ** 2)
    assert 10 * np.log10(ratio) == pytest.approx(5.0, abs=0.3)


def test_joined_recordings_have_pauses_between_them() -> None:
    parts = [samples_of(CLIPS["lv_0880"])] * 3
    whole = joined(parts, seed=1)
    pauses_s = (len(whole) - sum(map(len, parts))) / _BYTES_A_SECOND
    assert 0.8 <= pauses_s <= 1.8
    assert joined(parts, seed=2) != whole


def test_a_cut_is_near_its_place_and_a_short_recording_stays_whole() -> None:
    speech = samples_of(CLIPS["jfk"])
    part = cut(speech, 5.0)
    assert 4.5 < len(part) / _BYTES_A_SECOND < 5.5
    assert part[:-2] in speech or np.allclose(
        np.frombuffer(part, "<i2"), np.frombuffer(speech[: len(part)], "<i2"), atol=1
    )
    assert cut(speech, 30.0) == speech


def test_a_voice_ends_where_the_quiet_begins() -> None:
    speech = samples_of(CLIPS["lv_0890"])
    assert len(voiced(speech + quiet(2.0))) == pytest.approx(len(voiced(speech)), abs=_BYTES_A_SECOND / 10)
    assert _power(quiet(1.0)) < _power(speech) / 1000

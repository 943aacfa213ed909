"""Sounds in which no one speaks, speech in noise, and speech cut and joined: all from fixed seeds.

Samples are 16 kHz mono: float64 arrays between -1 and 1 inside, 16 bit little endian at the edges.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

HZ = 16_000
Wave = npt.NDArray[np.float64]


def music(seconds: float = 5.0) -> bytes:
    """Chords of four notes with overtones, a new one every half a second, as from a small organ."""
    at = np.arange(int(seconds * HZ)) / HZ
    chords = ((220.0, 277.2, 329.6, 440.0), (196.0, 246.9, 293.7, 392.0), (174.6, 220.0, 261.6, 349.2))
    played = np.zeros_like(at)
    for number in range(int(np.ceil(seconds * 2))):
        part = slice(int(number * HZ / 2), int((number + 1) * HZ / 2))
        since = at[part] - number / 2
        fading = np.exp(-2.5 * since) * np.minimum(since / 0.01, 1.0)
        for hertz in chords[number % len(chords)]:
            for overtone in (1, 2, 3):
                played[part] += fading * np.sin(2 * np.pi * hertz * overtone * at[part]) / overtone**2
    return _pcm(played, peak=0.4)


def pink_noise(seconds: float = 5.0) -> bytes:
    """Noise with the same power in every octave, as of rain."""
    spectrum = np.fft.rfft(np.random.default_rng(1).standard_normal(int(seconds * HZ)))
    spectrum /= np.sqrt(np.maximum(np.arange(len(spectrum)), 1.0))
    return _pcm(np.fft.irfft(spectrum), peak=0.3)


def beeps(seconds: float = 5.0) -> bytes:
    """A tone of a kilohertz for a fifth of a second, every second."""
    at = np.arange(int(seconds * HZ)) / HZ
    return _pcm(np.sin(2 * np.pi * 1000 * at) * (at % 1.0 < 0.2), peak=0.3)


def clicks(seconds: float = 5.0) -> bytes:
    """Single clicks, three a second, in a quiet room."""
    chance = np.random.default_rng(2)
    heard = chance.standard_normal(int(seconds * HZ)) * 0.002
    heard[:: HZ // 3] = 0.8
    return _pcm(heard, peak=0.8)


def typing(seconds: float = 5.0) -> bytes:
    """Somebody at a keyboard: short bursts of noise, irregular, seven a second."""
    chance = np.random.default_rng(3)
    heard = chance.standard_normal(int(seconds * HZ)) * 0.001
    at = 0
    while (at := at + int(chance.uniform(0.06, 0.22) * HZ)) < len(heard) - HZ // 50:
        burst = chance.standard_normal(HZ // 50) * np.exp(-np.arange(HZ // 50) / 50)
        heard[at : at + len(burst)] += burst * chance.uniform(0.1, 0.3)
    return _pcm(heard, peak=0.4)


WITHOUT_SPEECH: dict[str, Callable[[], bytes]] = {
    "pink noise": pink_noise,
    "music": music,
    "beeps": beeps,
    "clicks": clicks,
    "typing": typing,
}


def in_noise(pcm: bytes, others: Sequence[bytes], *, snr_db: float, seed: int) -> bytes:
    """Speech under a mixture of white noise and babble: half the power each, `snr_db` below the speech.

    The babble is all of `others` at once, backwards, so that no one in it says a word.
    """
    speech = _wave(pcm)
    babble = sum((_as_long(_wave(other)[::-1], len(speech)) for other in others), np.zeros(len(speech)))
    white = np.random.default_rng(seed).standard_normal(len(speech))
    noise = _levelled(white) + _levelled(babble)
    noise *= np.sqrt(np.mean(speech**2)) / 10 ** (snr_db / 20) / np.sqrt(np.mean(noise**2))
    return _pcm(speech + noise, peak=min(0.99, float(np.max(np.abs(speech + noise)))))


def joined(parts: Sequence[bytes], *, seed: int) -> bytes:
    """Recordings one after the other with the pauses of somebody who thinks: 0.4 to 0.9 seconds of a room."""
    chance = np.random.default_rng(seed)
    heard: list[Wave] = []
    for part in parts:
        if heard:
            heard.append(chance.standard_normal(int(chance.uniform(0.4, 0.9) * HZ)) * 0.0005)
        heard.append(_wave(part))
    return _as_pcm(np.concatenate(heard))


def quiet(seconds: float) -> bytes:
    """A room in which no one speaks."""
    return _as_pcm(np.random.default_rng(4).standard_normal(int(seconds * HZ)) * 0.0005)


def voiced(pcm: bytes) -> bytes:
    """The recording up to its last sound that is louder than a fiftieth of its loudest."""
    wave = _wave(pcm)
    frame = HZ // 50
    loudness = np.sqrt(np.mean(wave[: len(wave) // frame * frame].reshape(-1, frame) ** 2, axis=1))
    last = int(np.flatnonzero(loudness > loudness.max() / 50)[-1])
    return _as_pcm(wave[: (last + 1) * frame])


def cut(pcm: bytes, seconds: float) -> bytes:
    """The recording's beginning, cut at the quietest moment within 0.4 seconds around `seconds`."""
    wave = _wave(pcm)
    if len(wave) <= (seconds + 0.4) * HZ:
        return pcm
    frame = HZ // 50
    places = range(int((seconds - 0.4) * HZ), int((seconds + 0.4) * HZ), frame)
    quietest = min(places, key=lambda place: float(np.mean(wave[place : place + frame] ** 2)))
    return _as_pcm(wave[: quietest + frame])


def _as_long(wave: Wave, length: int) -> Wave:
    return np.resize(wave, length)


def _levelled(wave: Wave) -> Wave:
    return wave / max(float(np.sqrt(np.mean(wave**2))), 1e-9)


def _wave(pcm: bytes) -> Wave:
    return np.frombuffer(pcm, "<i2").astype(np.float64) / 32_768


def _pcm(wave: Wave, *, peak: float) -> bytes:
    return _as_pcm(wave * (peak / max(float(np.max(np.abs(wave))), 1e-9)))


def _as_pcm(wave: Wave) -> bytes:
    return (np.clip(wave, -1.0, 1.0) * 32_767).astype("<i2").tobytes()

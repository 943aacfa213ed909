"""Fit Whisper's 30 s window to a speech segment, and judge whether to believe the result. Pure.

Whisper was trained on windows of 3000 frames, padded where the speech is shorter; the encoder's work grows
faster than the window. Not here: the model.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from voice.wer import normalised_words

FRAMES_PER_SECOND = 100
FULL_FRAMES = 3000

MAX_TOKENS = 448
"""Prompt and answer together: the length of Whisper's decoder."""
_TOKENS_PER_SECOND = 12
"""More than English, German, Russian, Arabic, Korean or Chinese takes in the fastest speech."""
_WORDY = {
    24: "be el fa he ja kk mn ps sd tg th tt ur vi yi yo",
    48: "am hi hy mr ne sa ta",
    96: "as bn bo gu ka km kn lo ml my pa si te",
}
_RATES: Mapping[str, int] = {
    language: rate for rate, languages in _WORDY.items() for language in languages.split()
}
"""Tokens a second of languages that Whisper's vocabulary spells letter by letter, or byte by byte: twice what
article 1 of the Universal Declaration of Human Rights takes, spoken in eleven seconds."""
_TOKENS_FLOOR = 24
_FEWEST_OF_RATE = 0.25
"""As a fraction of the highest rate. Measured in English: 3.1 to 4.6 tokens a second of detected speech, an
old speech with its pauses included; at most 2.8 where one of two sentences was left out."""
_EDGES_S = 0.3
"""Seconds counted as speech before the first and after the last word; significant in short segments."""

_SILENCE_BELOW_PEAK = 2.0
"""The log-mel scale ends 8 decades of power below the loudest frame, and is divided by 4."""

_MAX_COMPRESSION = 2.4
_MIN_LOG_PROBABILITY = -1.0
_MAX_NO_SPEECH = 0.6
_UNSURE_LOG_PROBABILITY = -0.6
_SHORTEST_ECHO_WORDS = 4

_BATCH = 2
_SIMILAR = 0.75

Mel = npt.NDArray[np.float32]
Verdict = Literal["sure", "unsure", "looped", "silent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """How the window is fitted to the speech.

    The defaults are the smallest that keep the error rate of the full window: shorter ones (400 frames and
    a margin of 100, say) raise it to tens of percent, by loops and lost endings.
    """

    floor: int = 1000
    """Frames at least, 10 ms each."""
    margin: int = 500
    """Frames of silence after the speech: Whisper treats speech that reaches the window's end as cut off."""

    def frames(self, speech_frames: int) -> int:
        """Frames to encode for `speech_frames` frames of speech; at most the full window."""
        return min(FULL_FRAMES, max(self.floor, speech_frames + self.margin))


FULL = Window(floor=FULL_FRAMES)


def fitted(mel: Mel, frames: int) -> Mel:
    """The log-mel spectrogram (bands, n) cut or extended with silence to (bands, `frames`).

    Silence is the floor of the logarithmic scale, as in a recording that continues in silence. Zeros,
    which faster-whisper pads with, are a loud hum on this scale.
    """
    bands, length = mel.shape
    padded = np.full((bands, frames), mel.max() - _SILENCE_BELOW_PEAK, dtype=np.float32)
    padded[:, : min(length, frames)] = mel[:, :frames]
    return padded


def token_budget(speech_s: float, *, prompt_tokens: int, language: str) -> int:
    """The longest answer allowed: a loop of invented words ends here and not after 448 tokens."""
    return max(1, min(_wanted(speech_s, language), MAX_TOKENS - prompt_tokens))


def prompt_token_limit(speech_s: float, *, language: str, control_tokens: int) -> int:
    """The most prompt tokens that leave room for the answer: at most half of all."""
    return max(0, min(MAX_TOKENS // 2 - 1, MAX_TOKENS - control_tokens - _wanted(speech_s, language)))


def words_missing(tokens: int, speech_s: float, language: str) -> bool:
    """Whether `tokens` are so few for `speech_s` seconds of speech that words may be missing."""
    return tokens < _FEWEST_OF_RATE * _rate(language) * (speech_s - _EDGES_S)


def compression_ratio(text: str) -> float:
    """By which factor the text shrinks when compressed; repetitions make it large.

    Every letter counts as one byte: in UTF-8 the letters of Hindi or Tamil begin with the same two, and
    ordinary sentences look like loops.
    """
    numbers: dict[str, int] = {}
    data = bytes(numbers.setdefault(char, len(numbers)) % 256 for char in text)
    return len(data) / len(zlib.compress(data))


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """The decoder's text for some speech."""

    text: str
    tokens: int
    log_probability: float
    """Mean over the tokens."""
    no_speech_probability: float


def judge(decoding: Decoding, *, speech_s: float, language: str, budget: int = MAX_TOKENS) -> Verdict:
    """Whether the text is plausible for `speech_s` seconds of speech; one that fills `budget` is cut off."""
    if not any(char.isalnum() for char in decoding.text):
        return "silent"
    looped = compression_ratio(decoding.text) > _MAX_COMPRESSION
    doubtful = looped or decoding.log_probability < _UNSURE_LOG_PROBABILITY
    if doubtful and decoding.no_speech_probability > _MAX_NO_SPEECH:
        return "silent"
    if looped:
        return "looped"
    too_fast = decoding.tokens > _rate(language) * max(1.0, speech_s)
    cut_off = decoding.tokens >= budget
    unlikely = decoding.log_probability < _MIN_LOG_PROBABILITY
    return "unsure" if too_fast or cut_off or unlikely else "sure"


def echoes(text: str, prompt: str) -> bool:
    """Whether `text` is a passage of the prompt, word by word, case and punctuation aside.

    Whisper sometimes repeats its prompt instead of what is said, with high confidence. A passage of fewer
    than 4 words proves nothing.
    """
    said, before = normalised_words(text), normalised_words(prompt)
    if len(said) < _SHORTEST_ECHO_WORDS:
        return False
    passages = (before[start : start + len(said)] for start in range(len(before) - len(said) + 1))
    return any(passage == said for passage in passages)


def confidence(decoding: Decoding, verdict: Verdict) -> float:
    """0 to 1; below 0.37 for an unsure verdict, even if the model's own probability is high."""
    bound = 0.0 if verdict == "sure" else _MIN_LOG_PROBABILITY
    return math.exp(min(bound, decoding.log_probability))


def batches(frames: Sequence[int]) -> list[tuple[int, ...]]:
    """Which windows to encode and decode together: indices into `frames`, each exactly once.

    Two windows of about the same length cost 0.84 (3 and 5 s of speech) to 0.99 (10 s) of one after the other
    on one thread with beam 5, 0.96 for 20 s; 11 s with 3 s costs 1.15, because the short one is padded.
    """
    groups: list[list[int]] = []
    for index in sorted(range(len(frames)), key=lambda index: frames[index], reverse=True):
        group = groups[-1] if groups else []
        if group and len(group) < _BATCH and frames[index] >= _SIMILAR * frames[group[0]]:
            group.append(index)
        else:
            groups.append([index])
    return [tuple(group) for group in groups]


def _wanted(speech_s: float, language: str) -> int:
    return math.ceil(speech_s * _rate(language)) + _TOKENS_FLOOR


def _rate(language: str) -> int:
    return _RATES.get(language, _TOKENS_PER_SECOND)

"""The values of transcription: speech chunks, transcripts, utterances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

SAMPLE_RATE = 16_000
"""Samples per second of everything after decoding."""

Samples = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechChunk:
    """A continuous part of the speech and its words. Times are seconds from the start of the recording."""

    text: str
    start_s: float
    end_s: float
    confidence: float
    """0 to 1: the mean probability of the words, from the model."""
    no_speech_probability: float
    """0 to 1: the model's probability that there is no speech here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """The transcript of a recording. No chunks means no speech."""

    chunks: tuple[SpeechChunk, ...]
    language: str
    """A language code, or empty where there is no speech."""
    language_probability: float
    audio_seconds: float
    """Seconds of audio processed, silence included."""
    truncated: bool = False
    """Whether the recording was longer than allowed; the rest was ignored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Utterance:
    """One utterance of a person, ready to be processed as a message."""

    text: str
    language: str
    language_probability: float
    """0 to 1: the recogniser's probability of the language."""
    confidence: float
    """0 to 1; a hint, not the probability of being correct."""
    audio_seconds: float
    truncated: bool


def mean_confidence(chunks: Sequence[SpeechChunk]) -> float:
    """The chunks' confidence, weighted by the seconds they last; 0 to 1, and 0 for no chunks."""
    weights = [max(0.1, chunk.end_s - chunk.start_s) for chunk in chunks]
    weighted = sum(chunk.confidence * weight for chunk, weight in zip(chunks, weights, strict=True))
    return min(1.0, max(0.0, weighted / sum(weights))) if chunks else 0.0

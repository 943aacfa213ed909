"""Compare the recogniser's answers with the detected speech, and recognise what Whisper left out.

Whisper sometimes stops after a sentence although more is said, mostly before words that it has just written,
and with undiminished confidence. Where there are too few words for the seconds of speech, the segment is cut
at its longest pause and the halves are recognised separately. Not here: the model
(`voice.transcription.whisper_engine`), the detector (`voice.audio.vad`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from voice.audio.spans import split_spans
from voice.transcript import SAMPLE_RATE
from voice.transcription.engine_io import EngineJob, EngineResult
from voice.transcription.mel_window import words_missing

Activity = Callable[[bytes], Sequence[float]]
"""The speech probability of each frame of 512 samples, 0 to 1. Takes 16 kHz, mono, 16 bit little endian."""

_FRAME = 512
_FRAME_S = _FRAME / SAMPLE_RATE
_SPEECH = 0.5
_NO_SPEECH = 0.35
_SHORTEST_HALF_S = 0.8
"""Less rarely contains a whole word, and Whisper invents other words for parts of one."""
_HALVINGS = 2
"""A segment is cut into at most four parts: that bounds the work where words seem to be missing."""
_MORE = 1.2
_MORE_TOKENS = 4
"""Halves that add less than a fifth, or little more than a full stop and a comma, contain the same words: the
speech is slow. Words recognised in one pass are punctuated better."""


class SpeechEngine(Protocol):
    """The needed part of `voice.transcription.whisper_engine.WhisperEngine`."""

    def transcribe(self, jobs: Sequence[EngineJob]) -> list[EngineResult]: ...


class CheckedEngine:
    """An engine that checks its answers for missing words. Blocking."""

    def __init__(self, engine: SpeechEngine, activity: Activity) -> None:
        self._engine = engine
        self._activity = activity

    def transcribe(self, jobs: Sequence[EngineJob]) -> list[EngineResult]:
        """The words of each segment, in the order of `jobs`."""
        results = self._engine.transcribe(jobs)
        return [self._whole(job, first, _HALVINGS) for job, first in zip(jobs, results, strict=True)]

    def _whole(self, job: EngineJob, first: EngineResult, halvings: int) -> EngineResult:
        """`first`, or the words of the two halves where those are more."""
        if not halvings or not first.chunks or not words_missing(first.tokens, job.seconds, first.language):
            return first  # the usual case: no detection needed
        probabilities = self._activity(job.pcm)
        voiced_s = sum(probability >= _SPEECH for probability in probabilities) * _FRAME_S
        at = cutting_frame(probabilities)
        if at is None or not words_missing(first.tokens, voiced_s, first.language):
            return first
        jobs = _halves(job, at * _FRAME, first)
        halves = [
            self._whole(half, result, halvings - 1)
            for half, result in zip(jobs, self._engine.transcribe(jobs), strict=True)
        ]
        gained = sum(half.tokens for half in halves if first.low or not half.low)
        enough = max(_MORE * first.tokens, first.tokens + _MORE_TOKENS)
        return _joined(first, halves) if gained >= enough else first


def cutting_frame(probabilities: Sequence[float]) -> int | None:
    """The frame in the middle of the longest pause; without one, the least likely speech near the middle.

    None where no frame leaves 0.8 s on each side.
    """
    edge = round(_SHORTEST_HALF_S / _FRAME_S)
    places = range(edge, len(probabilities) - edge + 1)
    if not places:
        return None
    best, longest, begun = None, 0, 0
    for frame, probability in enumerate(probabilities):
        if probability >= _NO_SPEECH:
            begun = frame + 1
        elif (middle := (begun + frame + 1) // 2) in places and frame + 1 - begun > longest:
            best, longest = middle, frame + 1 - begun
    return best if best is not None else _least_likely(probabilities, places)


def _least_likely(probabilities: Sequence[float], places: range) -> int:
    """The frame in the middle half of `places` around which 160 ms sound least like speech, to a tenth."""
    quarter, halfway = len(places) // 4, (places[0] + places[-1]) / 2

    def cost(frame: int) -> tuple[float, float]:
        return round(sum(probabilities[frame - 2 : frame + 3]) / 5, 1), abs(frame - halfway)

    return min(places[quarter : len(places) - quarter], key=cost)


def _halves(job: EngineJob, at: int, first: EngineResult) -> list[EngineJob]:
    """The segment cut at sample `at`. Its language is the detected one, where that is certain."""
    before, after = split_spans(job.spans, at / SAMPLE_RATE)
    language = job.language or (first.language if first.language_probability >= _SPEECH else None)
    half = replace(job, language=language, likely_language=first.language or job.likely_language)
    return [
        replace(half, pcm=job.pcm[: 2 * at], spans=before),
        replace(half, pcm=job.pcm[2 * at :], spans=after, prompt=""),
    ]


def _joined(first: EngineResult, halves: Sequence[EngineResult]) -> EngineResult:
    return EngineResult(
        chunks=tuple(chunk for half in halves for chunk in half.chunks),
        language=first.language,
        language_probability=first.language_probability,
        low=any(half.low for half in halves),
        tokens=sum(half.tokens for half in halves),
    )

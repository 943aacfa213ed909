"""The recogniser's answers compared with the speech that a detector finds: what Whisper left out is heard.

Whisper sometimes stops behind a sentence although more is said, mostly before words that it has just written,
and is as sure of itself as ever. Where there are too few words for the seconds of speech, the piece is cut at
its longest pause and the halves are heard apart. Not here: the model (`voice.transcription.whisper_engine`),
the detector (`voice.audio.vad`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from voice.audio.spans import split_spans
from voice.transcript import SAMPLE_RATE
from voice.transcription.engine_io import PieceHeard, PieceJob
from voice.transcription.mel_window import words_missing

Activity = Callable[[bytes], Sequence[float]]
"""How likely each frame of 512 samples is speech, 0 to 1. Given 16 kHz, mono, 16 bit little endian."""

_FRAME = 512
_FRAME_S = _FRAME / SAMPLE_RATE
_SPEECH = 0.5
_NO_SPEECH = 0.35
_SHORTEST_HALF_S = 0.8
"""Less holds hardly a word, and of hardly a word Whisper makes up others."""
_HALVINGS = 2
"""A piece becomes four at most: the work for a piece in which words seem to be missing has a bound."""
_MORE = 1.2
_MORE_TOKENS = 4
"""Halves that say less than a fifth more, or hardly more than another full stop and comma, are the same words
heard again: the speech is slow. What was heard in one go is written better."""


class Hears(Protocol):
    """What this needs of `voice.transcription.whisper_engine.WhisperEngine`."""

    def hear(self, jobs: Sequence[PieceJob]) -> list[PieceHeard]: ...


class CheckedEngine:
    """An engine whose answers hold as many words as were spoken, as far as that can be told. Blocking."""

    def __init__(self, engine: Hears, activity: Activity) -> None:
        self._engine = engine
        self._activity = activity

    def hear(self, jobs: Sequence[PieceJob]) -> list[PieceHeard]:
        """What is said in each piece, in the order of `jobs`."""
        heard = self._engine.hear(jobs)
        return [self._whole(job, first, _HALVINGS) for job, first in zip(jobs, heard, strict=True)]

    def _whole(self, job: PieceJob, first: PieceHeard, halvings: int) -> PieceHeard:
        """`first`, or what the halves of the piece say where that is more."""
        if not halvings or not first.chunks or not words_missing(first.tokens, job.seconds, first.language):
            return first  # the usual case: the detector is not asked
        probabilities = self._activity(job.pcm)
        voiced_s = sum(probability >= _SPEECH for probability in probabilities) * _FRAME_S
        at = cutting_frame(probabilities)
        if at is None or not words_missing(first.tokens, voiced_s, first.language):
            return first
        jobs = _halves(job, at * _FRAME, first)
        halves = [
            self._whole(half, heard, halvings - 1)
            for half, heard in zip(jobs, self._engine.hear(jobs), strict=True)
        ]
        gained = sum(half.tokens for half in halves if first.low or not half.low)
        enough = max(_MORE * first.tokens, first.tokens + _MORE_TOKENS)
        return _joined(first, halves) if gained >= enough else first


def cutting_frame(probabilities: Sequence[float]) -> int | None:
    """The frame in the middle of the longest pause; without one, where speech is least likely about halfway.

    None where no place leaves 0.8 s on each side.
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
    """Of the middle half of `places`, where the 160 ms around it sound least like speech, to a tenth."""
    quarter, halfway = len(places) // 4, (places[0] + places[-1]) / 2

    def cost(frame: int) -> tuple[float, float]:
        return round(sum(probabilities[frame - 2 : frame + 3]) / 5, 1), abs(frame - halfway)

    return min(places[quarter : len(places) - quarter], key=cost)


def _halves(job: PieceJob, at: int, first: PieceHeard) -> list[PieceJob]:
    """The piece cut at sample `at`. Its language is what it was heard in, where that is certain."""
    before, after = split_spans(job.spans, at / SAMPLE_RATE)
    language = job.language or (first.language if first.language_probability >= _SPEECH else None)
    half = replace(job, language=language, likely_language=first.language or job.likely_language)
    return [
        replace(half, pcm=job.pcm[: 2 * at], spans=before),
        replace(half, pcm=job.pcm[2 * at :], spans=after, prompt=""),
    ]


def _joined(first: PieceHeard, halves: Sequence[PieceHeard]) -> PieceHeard:
    return PieceHeard(
        chunks=tuple(chunk for half in halves for chunk in half.chunks),
        language=first.language,
        language_probability=first.language_probability,
        low=any(half.low for half in halves),
        tokens=sum(half.tokens for half in halves),
    )

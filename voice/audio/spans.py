"""The spans of speech in a recording, and the mapping from times in the joined speech to the recording."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

_LEEWAY_S = 0.5

Spans = tuple[tuple[float, float], ...]
"""`(start, end)` in seconds of a recording, in order and disjoint."""


def split_spans(spans: Spans, at_s: float) -> tuple[Spans, Spans]:
    """The spans before and after `at_s` seconds of the joined speech. Each side has at least one span.

    Raises ValueError where `at_s` does not lie inside the speech.
    """
    before: list[tuple[float, float]] = []
    for index, (start, end) in enumerate(spans):
        if 0 < at_s < end - start:
            cut = start + at_s
            return (*before, (start, cut)), ((cut, end), *spans[index + 1 :])
        before.append((start, end))
        at_s -= end - start
        if at_s == 0 and spans[index + 1 :]:
            return tuple(before), spans[index + 1 :]
    raise ValueError("the place to split at must lie inside the speech")


class SpeechSpans:
    """Spans of speech, `(start, end)` in seconds of the recording, in order and disjoint."""

    def __init__(self, spans: Sequence[tuple[float, float]]) -> None:
        if not spans:
            raise ValueError("at least one span of speech is needed")
        self._spans = tuple(spans)
        self._ends = tuple(accumulate(end - start for start, end in self._spans))

    def in_recording(self, start_s: float, end_s: float) -> tuple[float, float]:
        """Times in the recording, from times in the joined speech.

        The recogniser's boundaries are inexact, so each end is assigned to the span that
        contains the audio up to half a second inside it, and kept within that span.
        """
        leeway = min(_LEEWAY_S, max(0.0, end_s - start_s) / 2)
        return self._place(start_s, start_s + leeway), self._place(end_s, end_s - leeway)

    def _place(self, time_s: float, inside_s: float) -> float:
        index = min(bisect_right(self._ends, inside_s), len(self._spans) - 1)
        start, end = self._spans[index]
        before = self._ends[index] - (end - start)
        return min(end, max(start, start + time_s - before))

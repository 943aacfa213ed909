"""The shipped fake of `Transcriber`: answers from a script, decodes nothing, records its calls.

For tests, demonstrations and offline development.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from voice.errors import TranscriberUnavailable, VoiceError
from voice.transcriber import Growing, OnProgress, Recording, Waiting
from voice.transcript import SpeechChunk, Transcript

ScriptedWords = str | Transcript | VoiceError

_SECONDS_PER_WORD = 0.4


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedProgress:
    """An answer with progress reports before it."""

    waiting: tuple[Waiting, ...] = ()
    """Reported first."""
    partials: tuple[str, ...] = ()
    """The growing beginning of the text."""
    then: ScriptedWords


ScriptedAnswer = ScriptedWords | ScriptedProgress


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedCall:
    """One recorded call."""

    recording: Recording

    @property
    def data(self) -> bytes:
        """The bytes of the recording."""
        return self.recording.data

    @property
    def language(self) -> str | None:
        """The language given as certain."""
        return self.recording.language


class ScriptedTranscriber:
    """Implements `Transcriber`.

    An answer is looked up by the SHA-256 of the bytes (hexadecimal) in `by_hash`, else taken from
    `in_order`; when both are exhausted the call fails with TranscriberUnavailable. A text becomes
    a one-chunk transcript (empty text: none), a VoiceError is raised, ScriptedProgress is shown first.
    """

    def __init__(
        self,
        in_order: Iterable[ScriptedAnswer] = (),
        *,
        by_hash: Mapping[str, ScriptedAnswer] | None = None,
        language: str = "en",
        confidence: float = 0.9,
    ) -> None:
        self._in_order: Iterator[ScriptedAnswer] = iter(tuple(in_order))
        self._by_hash = dict(by_hash or {})
        self._language = language
        self._confidence = confidence
        self._status = "not started"
        self.calls: list[ScriptedCall] = []

    @classmethod
    def always(cls, text: str) -> Self:
        """A transcriber that answers `text` to every recording."""
        transcriber = cls()
        transcriber._in_order = itertools.repeat(text)
        return transcriber

    async def transcribe(self, recording: Recording, *, on_progress: OnProgress | None = None) -> Transcript:
        self.calls.append(ScriptedCall(recording=recording))
        if self._status == "closed":
            raise TranscriberUnavailable("The scripted transcriber is closed.")
        self._status = "ready"
        answer = self._by_hash.get(hashlib.sha256(recording.data).hexdigest())
        if answer is None:
            answer = next(self._in_order, None)
        if answer is None:
            raise TranscriberUnavailable("The script has no answer left for this recording.")
        if isinstance(answer, ScriptedProgress):
            _show(answer, on_progress)
            answer = answer.then
        if isinstance(answer, VoiceError):
            raise answer
        if isinstance(answer, Transcript):
            return answer
        return self._spoken(answer, recording.language or self._language)

    async def warm_up(self) -> None:
        if self._status == "closed":
            raise TranscriberUnavailable("The scripted transcriber is closed.")
        self._status = "ready"

    async def close(self) -> None:
        self._status = "closed"

    def status(self) -> str:
        return self._status

    def _spoken(self, text: str, language: str) -> Transcript:
        seconds = _SECONDS_PER_WORD * max(1, len(text.split()))
        chunk = SpeechChunk(
            text=text, start_s=0.0, end_s=seconds, confidence=self._confidence, no_speech_probability=0.0
        )
        return Transcript(
            chunks=(chunk,) if text.strip() else (),
            language=language if text.strip() else "",
            language_probability=1.0 if text.strip() else 0.0,
            audio_seconds=seconds,
        )


def _show(answer: ScriptedProgress, on_progress: OnProgress | None) -> None:
    if on_progress is None:
        return
    for waiting in answer.waiting:
        on_progress(waiting)
    for text in answer.partials:
        on_progress(Growing(text=text, covered_s=_SECONDS_PER_WORD * len(text.split())))

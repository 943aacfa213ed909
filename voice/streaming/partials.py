"""Transcribe one running stream: finals, which are tried twice, and partials.

Not here: where segments begin and end, and what happens to their words.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from voice.clock import Clock
from voice.errors import RecogniserError, VoiceError
from voice.streaming.local_agreement import Agreed, Agreement
from voice.text import joined
from voice.transcriber import Recording, Transcriber, Urgency
from voice.transcript import Transcript, mean_confidence
from voice.transcription.hallucinations import spoken_text

_log = logging.getLogger(__name__)

PARTIAL_EVERY_S = 1.2
"""Seconds. Transcribing a growing segment repeatedly at this interval costs a third of a core."""
RETRY_S = 0.5
"""Seconds before a final is retried: enough for a queue to advance or a process to be replaced."""
PROMPT_CHARS = 200
SURE_OF_LANGUAGE = 0.5
"""A less probable language is no hint for the following segments."""

ResultT = TypeVar("ResultT")


class Spawn(Protocol):
    """Runs work in the background. The caller that provides it makes sure that the tasks end."""

    def __call__(self, work: Coroutine[Any, Any, ResultT], *, name: str) -> asyncio.Task[ResultT]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The words of a segment; empty where none were recognised."""

    text: str
    language: str
    confidence: float
    """0 to 1."""


Final = asyncio.Task[Words | VoiceError]
"""The words, or the error that prevented them. Raises only when it is cancelled."""


class LiveTranscription:
    """Transcribes one stream. `speaker` is the person whose turn it counts as in the queue."""

    def __init__(
        self,
        *,
        transcriber: Transcriber,
        clock: Clock,
        spawn: Spawn,
        speaker: str,
        language: str | None = None,
        likely_language: str | None = None,
    ) -> None:
        self._transcriber = transcriber
        self._clock = clock
        self._spawn = spawn
        self._speaker = speaker
        self._language = language
        self._likely_language = likely_language
        self._agreement = Agreement()
        self._finals: set[Final] = set()
        self._partial: asyncio.Task[None] | None = None
        self._next_partial = 0.0

    def begin(self) -> None:
        """Begin a segment: later partials belong to it."""
        self.stop_partial()
        self._agreement = Agreement()
        self._next_partial = self._clock.monotonic() + PARTIAL_EVERY_S

    def final(self, pcm: bytes, *, after: Final | None = None) -> Final:
        """Transcribe a whole segment; stops a partial. `after`: the segment that this one was cut from."""
        self.stop_partial()
        task = self._spawn(self._transcribe(pcm, after), name="live speech: a final")
        self._finals.add(task)
        task.add_done_callback(self._finals.discard)
        return task

    def is_due(self) -> bool:
        """Whether `partial` may be called now: at most once in PARTIAL_EVERY_S, and never during a final."""
        at_work = self._finals or self._partial is not None
        return not at_work and self._clock.monotonic() >= self._next_partial

    def partial(self, pcm: bytes, on_text: Callable[[Agreed], None], *, after: Final | None = None) -> None:
        """Start transcribing the segment so far. `on_text` gets the agreed words and the rest."""
        self._next_partial = self._clock.monotonic() + PARTIAL_EVERY_S
        self._partial = self._spawn(self._send_partial(pcm, on_text, after), name="live speech: a partial")
        self._partial.add_done_callback(self._partial_done)

    def stop_partial(self) -> None:
        """Cancel the running partial."""
        if self._partial is not None:
            self._partial.cancel()

    async def _transcribe(self, pcm: bytes, after: Final | None) -> Words | VoiceError:
        recording = self._recording(pcm, "final", await _prompt(after))
        try:
            try:
                transcript = await self._transcriber.transcribe(recording)
            except RecogniserError:
                await self._clock.sleep(RETRY_S)
                transcript = await self._transcriber.transcribe(recording)
        except VoiceError as error:
            if error.detail:
                _log.warning("live speech was not heard: %s", error.detail)
            return error
        words = _words(transcript)
        if words.text and transcript.language_probability >= SURE_OF_LANGUAGE:
            self._likely_language = transcript.language
        return words

    async def _send_partial(self, pcm: bytes, on_text: Callable[[Agreed], None], after: Final | None) -> None:
        recording = self._recording(pcm, "partial", await _prompt(after))
        try:
            transcript = await self._transcriber.transcribe(recording)
        except VoiceError:
            return  # a partial is only displayed; the final reports the error
        on_text(self._agreement.add(_words(transcript).text))

    def _recording(self, pcm: bytes, urgency: Urgency, prompt: str) -> Recording:
        return Recording(
            data=pcm,
            form="pcm",
            language=self._language,
            likely_language=self._likely_language,
            speaker=self._speaker,
            urgency=urgency,
            prompt=prompt,
        )

    def _partial_done(self, task: asyncio.Task[None]) -> None:
        if self._partial is task:
            self._partial = None


async def _prompt(after: Final | None) -> str:
    """The last words of the segment before, once they are known."""
    if after is None:
        return ""
    await asyncio.wait((after,))  # not the task itself: cancelling the waiter must not cancel it
    words = None if after.cancelled() else after.result()
    return words.text[-PROMPT_CHARS:] if isinstance(words, Words) else ""


def _words(transcript: Transcript) -> Words:
    said = [(text, chunk) for chunk in transcript.chunks if (text := spoken_text(chunk))]
    return Words(
        text=joined([text for text, _ in said]),
        language=transcript.language,
        confidence=mean_confidence([chunk for _, chunk in said]),
    )

"""A recording on its way through the pool: what is asked about it, and who waits for the answers.

Mutable, and the pool's own: callers make a `TranscriptionJob` and hand it over. Not here: the order of
things.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from voice.audio.segments import SpeechSegment
from voice.errors import VoiceError
from voice.transcriber import Urgency, Waiting
from voice.transcription.fair_queue import Rank
from voice.transcription.protocol import TranscribedSegment
from voice.workers.frames import Frame

_TELL_EVERY_S = 1.0
_NOTICEABLE = 0.25
"""A part of the wait: what changes by less is not worth telling."""


@dataclass(slots=True, kw_only=True, eq=False)
class TranscriptionJob:
    """One recording."""

    speaker: str
    urgency: Urgency
    beam: int
    language: str | None = None
    """Certain."""
    likely: str | None = None
    """Taken where detection is unsure; what the recording's first words were in, once they are heard."""
    prompt: str = ""
    on_waiting: Callable[[Waiting], None] | None = None
    begun: bool = False
    """A recogniser has taken its first piece."""
    requests: list[SegmentJob] = field(default_factory=list)
    detected: bool = False
    """`likely` comes from the recording itself."""
    _told: tuple[float, Waiting] | None = None

    def tell(self, waiting: Waiting) -> None:
        """Tell whoever listens, if the recording still waits."""
        if self.on_waiting is not None and not self.begun:
            self.on_waiting(waiting)

    def is_news(self, waiting: Waiting, *, now: float) -> bool:
        """Whether to tell it: the first time, then what changed noticeably, at most once a second."""
        if self._told is not None:
            at, last = self._told
            moved = abs(waiting.eta_s - last.eta_s) > max(_TELL_EVERY_S, _NOTICEABLE * last.eta_s)
            if now - at < _TELL_EVERY_S or not (moved or waiting.ahead != last.ahead):
                return False
        self._told = (now, waiting)
        return True


@dataclass(slots=True, kw_only=True, eq=False)
class SegmentJob:
    """One piece of a recording, and the promise of what is heard in it."""

    hearing: TranscriptionJob
    piece: SpeechSegment
    heard: asyncio.Future[TranscribedSegment]
    tries: int = 0

    @property
    def rank(self) -> Rank:
        """Its place in the order of the queue."""
        if self.hearing.urgency != "note":
            return Rank.FINAL
        return Rank.NOTE if self.piece.index == 0 else Rank.REST

    def settle(self, heard: TranscribedSegment) -> None:
        """Keep the promise; what comes later in the recording is likely in the same language."""
        if heard.language and not self.hearing.detected:
            self.hearing.detected, self.hearing.likely = True, heard.language
        if not self.heard.done():
            self.heard.set_result(heard)

    def fail(self, error: VoiceError) -> None:
        """Break the promise, unless it is kept or nobody waits for it any more."""
        if not self.heard.done():
            self.heard.set_exception(error)
            self.heard.exception()  # whoever waits sees it; nobody waiting is no error


def request_frame(requests: Sequence[SegmentJob]) -> Frame:
    """The question that a worker process answers about some pieces at once."""
    return Frame(
        header={
            "kind": "hear",
            "pieces": [
                {
                    "bytes": len(request.piece.pcm),
                    "spans": request.piece.spans,
                    "language": request.hearing.language,
                    "likely": request.hearing.likely,
                    "prompt": request.hearing.prompt if request.piece.index == 0 else "",
                    "beam": request.hearing.beam,
                }
                for request in requests
            ],
        },
        body=b"".join(request.piece.pcm for request in requests),
    )

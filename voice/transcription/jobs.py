"""The state of a recording in the pool: its requests and their results.

Mutable, and used by the pool only: callers create a `TranscriptionJob` and pass it in. Not here: the order
of requests.
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
from voice.workers.frames import WorkerFrame

_TELL_EVERY_S = 1.0
_NOTICEABLE = 0.25
"""As a fraction of the wait: smaller changes are not reported."""


@dataclass(slots=True, kw_only=True, eq=False)
class TranscriptionJob:
    """One recording."""

    speaker: str
    urgency: Urgency
    beam: int
    language: str | None = None
    """A language that is certain."""
    likely: str | None = None
    """Used where detection is unsure; the language of the first words, once they are transcribed."""
    prompt: str = ""
    on_waiting: Callable[[Waiting], None] | None = None
    begun: bool = False
    """A recogniser has taken its first segment."""
    requests: list[SegmentJob] = field(default_factory=list)
    detected: bool = False
    """Whether `likely` was detected in the recording itself."""
    _reported: tuple[float, Waiting] | None = None

    def report(self, waiting: Waiting) -> None:
        """Call `on_waiting`, if the recording still waits."""
        if self.on_waiting is not None and not self.begun:
            self.on_waiting(waiting)

    def is_news(self, waiting: Waiting, *, now: float) -> bool:
        """Whether to report `waiting`: the first time, then noticeable changes, at most once a second."""
        if self._reported is not None:
            at, last = self._reported
            moved = abs(waiting.eta_s - last.eta_s) > max(_TELL_EVERY_S, _NOTICEABLE * last.eta_s)
            if now - at < _TELL_EVERY_S or not (moved or waiting.ahead != last.ahead):
                return False
        self._reported = (now, waiting)
        return True


@dataclass(slots=True, kw_only=True, eq=False)
class SegmentJob:
    """One segment of a recording, and the future of its result."""

    job: TranscriptionJob
    segment: SpeechSegment
    result: asyncio.Future[TranscribedSegment]
    tries: int = 0

    @property
    def rank(self) -> Rank:
        """Its rank in the queue."""
        if self.job.urgency != "note":
            return Rank.FINAL
        return Rank.NOTE if self.segment.index == 0 else Rank.REST

    def settle(self, result: TranscribedSegment) -> None:
        """Set the result; the rest of the recording is likely in the same language."""
        if result.language and not self.job.detected:
            self.job.detected, self.job.likely = True, result.language
        if not self.result.done():
            self.result.set_result(result)

    def fail(self, error: VoiceError) -> None:
        """Set an exception, unless the request is done or cancelled."""
        if not self.result.done():
            self.result.set_exception(error)
            self.result.exception()  # avoids asyncio's warning where no caller waits


def request_frame(requests: Sequence[SegmentJob]) -> WorkerFrame:
    """The request to a worker process for some segments at once."""
    return WorkerFrame(
        header={
            "kind": "hear",
            "pieces": [
                {
                    "bytes": len(request.segment.pcm),
                    "spans": request.segment.spans,
                    "language": request.job.language,
                    "likely": request.job.likely,
                    "prompt": request.job.prompt if request.segment.index == 0 else "",
                    "beam": request.job.beam,
                }
                for request in requests
            ],
        },
        body=b"".join(request.segment.pcm for request in requests),
    )

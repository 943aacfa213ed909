"""Transcribe a voice note with a limit on the time without progress, not on the whole time.

Not here: the transcription itself and the limits of its parts, which the host's `SpeechToText` has.
"""

from __future__ import annotations

import asyncio

from pipeline.domain.clock import Clock
from pipeline.domain.errors import TurnFailed
from pipeline.domain.messages import InboundMessage
from pipeline.runtime.ports import (
    OnTranscription,
    PartialTranscription,
    SpeechToText,
    Transcription,
    TranscriptionQueued,
)

_LONGEST_WAIT_S = 3_600.0
"""A longer announced wait counts as this long: no user waits longer for an answer."""
_WORDS = (
    "Hearing that recording took longer than {seconds} seconds and was given up. "
    "Please send it again, or a shorter one."
)


async def transcribe_in_time(
    transcriber: SpeechToText,
    message: InboundMessage,
    on_progress: OnTranscription,
    *,
    clock: Clock,
    limit_s: float,
) -> Transcription:
    """The transcription of `message`. Raises TurnFailed `timeout` after `limit_s` seconds without progress.

    An announced wait is added to the limit, so that a note does not fail because it waits in the queue.
    """
    until = clock.monotonic() + limit_s

    async def extend_limit(progress: TranscriptionQueued | PartialTranscription) -> None:
        nonlocal until
        wait_s = min(progress.eta_s, _LONGEST_WAIT_S) if isinstance(progress, TranscriptionQueued) else 0.0
        until = clock.monotonic() + wait_s + limit_s
        await on_progress(progress)

    async def fail_at_limit() -> None:
        while (left_s := until - clock.monotonic()) > 0:
            await clock.sleep(left_s)
        raise TurnFailed("timeout", _WORDS.format(seconds=round(limit_s)), recoverable=True)

    try:
        async with asyncio.TaskGroup() as group:
            watch = group.create_task(fail_at_limit())
            try:
                return await transcriber.transcribe(message, extend_limit)
            finally:
                watch.cancel()
    except ExceptionGroup as failed:
        # There is only ever one error, and callers handle each kind differently.
        raise failed.exceptions[0] from None

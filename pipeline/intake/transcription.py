"""Hearing a voice note with patience: it may wait for its turn and be long, but not fall silent for ever.

Not here: how it is heard, and how long each part of that may take; that is the host's ears.
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
"""Nobody reads what was heard of a wait that is announced longer."""
_WORDS = (
    "Hearing that recording took longer than {seconds} seconds and was given up. "
    "Please send it again, or a shorter one."
)


async def heard_in_time(
    ears: SpeechToText, message: InboundMessage, on_progress: OnTranscription, *, clock: Clock, limit_s: float
) -> Transcription:
    """What `ears` hear, or TurnFailed `timeout` when they gave no sign for `limit_s`.

    An announced wait comes on top of that: a note that stands in the queue honestly does not fail for it.
    """
    until = clock.monotonic() + limit_s

    async def sign_of_life(progress: TranscriptionQueued | PartialTranscription) -> None:
        nonlocal until
        wait_s = min(progress.eta_s, _LONGEST_WAIT_S) if isinstance(progress, TranscriptionQueued) else 0.0
        until = clock.monotonic() + wait_s + limit_s
        await on_progress(progress)

    async def run_out_of_patience() -> None:
        while (left_s := until - clock.monotonic()) > 0:
            await clock.sleep(left_s)
        raise TurnFailed("timeout", _WORDS.format(seconds=round(limit_s)), recoverable=True)

    try:
        async with asyncio.TaskGroup() as group:
            watch = group.create_task(run_out_of_patience())
            try:
                return await ears.hear(message, sign_of_life)
            finally:
                watch.cancel()
    except ExceptionGroup as failed:
        # Callers tell the errors apart, and there is only ever one.
        raise failed.exceptions[0] from None

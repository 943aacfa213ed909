"""A note may wait for its turn and be long; speech_to_text that fall silent are given up."""

from __future__ import annotations

import asyncio

import pytest

from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import StorageError, TurnFailed
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Author, InboundMessage, MediaRef
from pipeline.intake.transcription import transcribe_in_time
from pipeline.runtime.ports import OnTranscription, PartialTranscription, Transcription, TranscriptionQueued

NOTE = InboundMessage(
    message_id="m1",
    native_id="1",
    thread=ThreadKey(channel="console", account="local", chat="c1"),
    author=Author(id="owner"),
    received_at=0.0,
    voice=MediaRef(channel="console", handle="1", kind="voice"),
)
HEARD = Transcription(text="by milk", language="de", confidence=0.9)
Sign = TranscriptionQueued | PartialTranscription


class SlowSpeechToText:
    """Say each sign after so many seconds, and then the words, or an error, after the last."""

    def __init__(
        self, clock: ManualClock, *steps: tuple[float, Sign | None], error: Exception | None = None
    ) -> None:
        self._clock = clock
        self._steps = steps
        self._error = error
        self.cancelled = False

    async def transcribe(self, message: InboundMessage, on_progress: OnTranscription) -> Transcription:
        assert message is NOTE
        try:
            for seconds, sign in self._steps:
                await self._clock.sleep(seconds)
                if sign is not None:
                    await on_progress(sign)
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        if self._error is not None:
            raise self._error
        return HEARD


async def listen(
    clock: ManualClock, speech_to_text: SlowSpeechToText, for_s: float
) -> tuple[Transcription, list[Sign]]:
    signs: list[Sign] = []

    async def note_down(sign: Sign) -> None:
        signs.append(sign)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(
            transcribe_in_time(speech_to_text, NOTE, note_down, clock=clock, limit_s=60.0)
        )
        await clock.advance(for_s)
        await asyncio.wait((task,))
        if error := task.exception():
            raise error
    return task.result(), signs


async def test_a_note_that_waits_as_announced_does_not_run_out_of_time() -> None:
    clock = ManualClock()
    queued = TranscriptionQueued(ahead=9, eta_s=300.0)
    heard, signs = await listen(clock, SlowSpeechToText(clock, (0.0, queued), (340.0, None)), 400)
    assert (heard, signs) == (HEARD, [queued])


async def test_a_long_note_whose_words_keep_coming_is_heard_to_its_end() -> None:
    clock = ManualClock()
    grown = [PartialTranscription(text="once " * count) for count in range(1, 9)]
    heard, signs = await listen(
        clock, SlowSpeechToText(clock, *[(50.0, sign) for sign in grown], (50.0, None)), 500
    )
    assert (heard, signs) == (HEARD, grown)


@pytest.mark.parametrize(
    ("signs", "after_s"),
    [
        ((), 61.0),
        (((0.0, TranscriptionQueued(ahead=1, eta_s=20.0)),), 81.0),
        (((50.0, PartialTranscription(text="once")),), 111.0),
        (((0.0, TranscriptionQueued(ahead=1, eta_s=float("inf"))),), 3_661.0),
    ],
)
async def test_a_silent_recognition_ends_with_a_reason(
    signs: tuple[tuple[float, Sign], ...], after_s: float
) -> None:
    clock = ManualClock()
    speech_to_text = SlowSpeechToText(clock, *signs, (100_000.0, None))
    with pytest.raises(ExceptionGroup) as raised:
        await listen(clock, speech_to_text, after_s)
    (failed,) = raised.value.exceptions
    assert isinstance(failed, TurnFailed)
    assert (failed.reason, failed.recoverable, speech_to_text.cancelled) == ("timeout", True, True)
    assert "Hearing that recording took longer than 60 seconds" in str(failed)


async def test_errors_of_the_recognition_are_raised_unchanged() -> None:
    clock = ManualClock()
    with pytest.raises(ExceptionGroup) as raised:
        await listen(clock, SlowSpeechToText(clock, error=StorageError("disk full")), 1)
    assert [str(error) for error in raised.value.exceptions] == ["disk full"]

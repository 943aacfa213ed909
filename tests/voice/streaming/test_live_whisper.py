"""One open microphone with real speech, the real detector and the real Whisper."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from gateway.runtime.tasks import Supervisor
from pipeline.domain.clock import ManualClock
from tests.voice.clips import CLIPS, samples_of
from tests.voice.live_harness import Notes
from voice.endpointing.stream_buffer import Flushed, StreamBufferManager
from voice.settings import TranscriptionSettings
from voice.streaming.session import LiveListener
from voice.streaming.vad_client import VadClient
from voice.transcription.whisper_transcriber import WhisperTranscriber
from voice.wer import word_error_rate

pytestmark = [pytest.mark.models, pytest.mark.asyncio(loop_scope="session")]

SECOND_OF_SILENCE = bytes(32_000)


class Watching(Notes):
    """Notes that can be waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.reported = {name: asyncio.Event() for name in ("started", "partial", "ended")}

    def started(self) -> None:
        super().started()
        self.reported["started"].set()

    def partial(self, text: str, stable_chars: int) -> None:
        super().partial(text, stable_chars)
        self.reported["partial"].set()

    def ended(self) -> None:
        super().ended()
        self.reported["ended"].set()


@asynccontextmanager
async def open_microphone(
    transcriber: WhisperTranscriber,
    settings: TranscriptionSettings,
    notes: Notes,
    flushed: asyncio.Queue[Flushed],
) -> AsyncIterator[tuple[LiveListener, ManualClock, VadClient]]:
    clock, supervisor = ManualClock(), Supervisor()
    detector = VadClient(settings)
    manager = StreamBufferManager(on_flush=flushed.put, clock=clock)
    microphone = LiveListener(
        transcriber=transcriber,
        detector=detector,
        manager=manager,
        key="somebody",
        speaker="ann",
        events=notes,
        spawn=supervisor.spawn,
        clock=clock,
    )
    try:
        await microphone.open()
        yield microphone, clock, detector
        await microphone.close()
    finally:
        await supervisor.close()
        await manager.close()
        await detector.close()


async def test_real_speech_becomes_a_message_by_its_silence_and_none_in_words_no_one_said(
    transcriber: WhisperTranscriber, settings: TranscriptionSettings
) -> None:
    notes, flushed = Notes(), asyncio.Queue[Flushed]()
    async with open_microphone(transcriber, settings, notes, flushed) as (microphone, _, _):
        clip = CLIPS["lj001-0005"]
        microphone.feed(samples_of(clip) + SECOND_OF_SILENCE)
        async with asyncio.timeout(60):
            message = await flushed.get()
        assert word_error_rate(clip.transcript, message.text) <= 0.1
        assert message.reason in {"sentence", "complete_thought"}
        assert message.language == "en"
        assert notes.events[0] == "started"
        assert notes.events[-1] == "ended"
        microphone.feed(samples_of(CLIPS["hiss"])[: 5 * 32_000] + SECOND_OF_SILENCE)
        await microphone.finish()
        assert flushed.empty()


async def test_words_are_shown_while_they_are_said_and_outlive_the_detector(
    transcriber: WhisperTranscriber, settings: TranscriptionSettings
) -> None:
    notes, flushed = Watching(), asyncio.Queue[Flushed]()
    async with open_microphone(transcriber, settings, notes, flushed) as (microphone, clock, detector):
        clip = CLIPS["lv_0890"]
        sound = samples_of(clip)
        async with asyncio.timeout(60):
            microphone.feed(sound[: 3 * 32_000])
            await notes.reported["started"].wait()
            await clock.advance(1.3)
            microphone.feed(sound[3 * 32_000 :])
            await notes.reported["partial"].wait()
            assert notes.reported["ended"].is_set() is False
            [pid] = detector.pids
            os.kill(pid, signal.SIGKILL)
            await notes.reported["ended"].wait()
            await microphone.finish()
            message = await flushed.get()
        assert word_error_rate(clip.transcript, message.text) <= 0.2
        assert notes.partials[0][0].split()[0].strip(",").casefold() == clip.transcript.split()[0]
        assert not microphone.vad_failed

"""Voice notes among messages that are answered together."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pipeline.domain.events import TranscriptReady
from tests.support.burst_talk import asked_in, held_answer, one_answer, scripted
from tests.support.harness import THREAD, open_gateway
from voice.transcriber import OnProgress, Recording
from voice.transcript import Transcript
from voice.transcription.scripted_transcriber import ScriptedTranscriber

MERGE = "turn.bursts=merge"


class _Listening(ScriptedTranscriber):
    """Writes a note down when the test says so."""

    def __init__(self, *texts: str) -> None:
        super().__init__(texts)
        self.done = asyncio.Event()

    async def transcribe(self, recording: Recording, *, on_progress: OnProgress | None = None) -> Transcript:
        transcript = await super().transcribe(recording, on_progress=on_progress)
        await self.done.wait()
        return transcript


async def test_a_text_that_comes_while_the_note_before_it_is_transcribed_belongs_to_it(
    tmp_path: Path,
) -> None:
    transcriber, llm = _Listening("the red one"), scripted("Both.")
    async with open_gateway(tmp_path, MERGE, llm=llm, transcriber=transcriber) as harness:
        channel = harness.channel
        first = await channel.say("", voice=b"note")
        await channel.until(lambda: transcriber.calls)
        second = await channel.say("in size 4", at=20)
        transcriber.done.set()
        assert await one_answer(harness, first.message_id, second.message_id) == "Both."
    assert asked_in(llm, 0) == "the red one\nin size 4"


async def test_a_voice_note_in_the_window_is_transcribed_for_the_turn_of_the_text(tmp_path: Path) -> None:
    held, _ = held_answer()
    transcriber, llm = _Listening("in size 4"), scripted(held, "Both.")
    transcriber.done.set()
    async with open_gateway(tmp_path, MERGE, llm=llm, transcriber=transcriber) as harness:
        first = await harness.channel.say("the red one")
        await harness.channel.until(lambda: llm.requests)
        second = await harness.channel.say("", voice=b"note", at=1)
        assert await one_answer(harness, first.message_id, second.message_id) == "Both."
        reply = await harness.channel.reply(first.message_id)
        shown = [one for one in harness.channel.events if isinstance(one, TranscriptReady)]
    assert asked_in(llm, 1) == "the red one\nin size 4"
    assert [(one.message_id, one.text) for one in shown] == [(second.message_id, "in size 4")]
    assert reply.heard == "in size 4"


async def test_a_note_of_a_burst_that_cannot_be_heard_is_named_and_the_text_is_answered(
    tmp_path: Path,
) -> None:
    held, _ = held_answer()
    llm = scripted(held, "The red one.")
    async with open_gateway(tmp_path, MERGE, llm=llm, transcriber=ScriptedTranscriber()) as harness:
        first = await harness.channel.say("the red one")
        await harness.channel.until(lambda: llm.requests)
        await harness.channel.say("", voice=b"note", at=1)
        reply = await harness.channel.reply(first.message_id)
        assert await harness.store.open_entries(THREAD) == ()
    problem, answer = reply.text.split("\n\n")
    assert problem
    assert answer == "The red one."

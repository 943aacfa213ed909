"""A voice note the whole way, and every way in which it can fail without becoming a message."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pipeline.domain.events import ErrorEvent, TranscriptReady
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.harness import open_gateway
from voice.errors import NothingHeard, TranscriberBusy, TranscriptionTimeout, VoiceError
from voice.transcription.scripted_transcriber import ScriptedTranscriber


async def test_the_user_sees_what_was_heard_and_then_the_answer(tmp_path: Path) -> None:
    transcriber = ScriptedTranscriber(["what is the time"])
    async with open_gateway(tmp_path, transcriber=transcriber) as harness:
        accepted = await harness.channel.say("", voice=b"opus")
        reply = await harness.channel.reply(accepted.message_id)
        events = harness.channel.events_of(accepted.message_id)
        heard = next(event for event in events if isinstance(event, TranscriptReady))
        assert (heard.text, heard.language) == ("what is the time", "en")
        assert reply.text == "You said: what is the time"
        user = await harness.records("user")
        assert [record.body for record in user] == [
            {"text": "what is the time", "spoken": True, "language": "en", "confidence": 0.9, "seconds": 1.6}
        ]
        assert "(Voice input in en, confidence 90%:" in harness.llm.requests[0].messages[0].content


async def test_a_caption_goes_with_the_words(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, transcriber=ScriptedTranscriber(["spoken words"])) as harness:
        accepted = await harness.channel.say("typed caption", voice=b"opus")
        await harness.channel.reply(accepted.message_id)
        assert harness.llm.requests[0].messages[-1].content == "typed caption\n\nspoken words"


@pytest.mark.parametrize(
    "failure",
    [
        NothingHeard(),
        TranscriberBusy("Too many voice notes are waiting. Please try again in a moment."),
        TranscriptionTimeout("The voice note took too long to understand. Please send a shorter one."),
    ],
)
async def test_a_failure_tells_the_user_why_and_never_becomes_the_message(
    tmp_path: Path, failure: VoiceError
) -> None:
    async with open_gateway(tmp_path, transcriber=ScriptedTranscriber([failure])) as harness:
        accepted = await harness.channel.say("", voice=b"opus")
        event = await harness.channel.terminal(accepted.message_id)
        assert isinstance(event, ErrorEvent)
        assert (event.code, event.message) == (failure.code, str(failure))
        assert (await harness.channel.reply(accepted.message_id)).text == str(failure)
        assert await harness.records("user") == []
        assert harness.llm.requests == []


async def test_a_note_that_is_gone_is_said_to_be_gone(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, transcriber=ScriptedTranscriber(["unused"])) as harness:
        channel = harness.channel
        accepted = await channel.say("", voice=b"opus", native_id="n1")
        channel.media.clear()
        event = await channel.terminal(accepted.message_id)
        assert isinstance(event, ErrorEvent)
        assert event.code == "media_unavailable"


async def test_a_note_heard_before_a_crash_is_not_heard_again(tmp_path: Path) -> None:
    llm = ScriptedLlm([ScriptedAnswer(chunks=("x",), gate=asyncio.Event())])
    transcriber = ScriptedTranscriber(["said once"])
    async with open_gateway(tmp_path, llm=llm, transcriber=transcriber, drain_s=0) as harness:
        accepted = await harness.channel.say("", voice=b"opus")
        await harness.channel.until(lambda: llm.requests)
    deaf = ScriptedTranscriber()
    async with open_gateway(tmp_path, transcriber=deaf) as harness:
        assert (await harness.channel.reply(accepted.message_id)).text == "You said: said once"
        assert deaf.calls == []


async def test_a_note_over_the_limit_is_refused_before_it_is_fetched(tmp_path: Path) -> None:
    transcriber = ScriptedTranscriber(["unused"])
    async with open_gateway(tmp_path, "voice.max_bytes=1024", transcriber=transcriber) as harness:
        accepted = await harness.channel.say("", voice=b"x" * 2000)
        event = await harness.channel.terminal(accepted.message_id)
        assert isinstance(event, ErrorEvent)
        assert "larger than" in event.message
        assert transcriber.calls == []

"""Talking to the whole gateway: real sound and the real voice detector, scripted words."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.gateway_process import free_port
from tests.support.harness import open_gateway
from tests.support.web_client import WebChat
from tests.voice.clips import CLIPS, samples_of
from voice.errors import TranscriberBusy
from voice.transcriber import OnProgress, Recording
from voice.transcript import Transcript
from voice.transcription.scripted_transcriber import ScriptedTranscriber

BEGINNING = "And so my fellow Americans."
REST = "Ask not what your country can do for you."
SPOKEN = samples_of(CLIPS["lv_0880"]) + bytes(40_000)


class FixedWordsTranscriber(ScriptedTranscriber):
    """Hears `words` in whatever is said."""

    words = BEGINNING

    async def transcribe(self, recording: Recording, *, on_progress: OnProgress | None = None) -> Transcript:
        if recording.urgency == "partial":
            raise TranscriberBusy
        return await ScriptedTranscriber([self.words]).transcribe(recording, on_progress=on_progress)


async def test_who_continues_while_it_thinks_is_answered_once_to_the_whole_sentence(tmp_path: Path) -> None:
    thinking = ScriptedAnswer(chunks=("Too early.",), gate=asyncio.Event())
    llm = ScriptedLlm([thinking, ScriptedAnswer(chunks=("Well said.",))])
    web = ("channels.web.enabled=true", f"server.port={free_port()}")
    transcriber = FixedWordsTranscriber()
    async with open_gateway(tmp_path, *web, llm=llm, transcriber=transcriber) as harness, WebChat() as chat:
        token = (tmp_path / "web-token").read_text(encoding="ascii").strip()
        await chat.connect(harness.gateway.url, token)
        await chat.talk("t1")
        await chat.send_sound(SPOKEN)
        await chat.wait_for(lambda frame: _is(frame, "turn_started"))
        transcriber.words = REST
        await chat.send_sound(SPOKEN)
        stopped = await chat.wait_for(lambda frame: _is(frame, "error"))
        assert stopped["event"]["code"] == "stopped"
        final = await chat.wait_for(
            lambda frame: frame["type"] == "live" and frame["event"]["type"] == "speech_final"
        )
        assert final["event"]["text"] == f"{BEGINNING} {REST}"
        answer = await chat.answer(final["event"]["message_id"])
        assert answer.text == "Well said."
        assert llm.requests[-1].messages[-1].content == f"{BEGINNING} {REST}"


def _is(frame: dict[str, object], kind: str) -> bool:
    event = frame.get("event")
    return frame["type"] == "event" and isinstance(event, dict) and event["type"] == kind

"""What a page is shown: durable lines, and what still waits, each once."""

from __future__ import annotations

import asyncio
from pathlib import Path

from gateway.timeline import StoreTimeline
from pipeline.domain.clock import SystemClock
from pipeline.domain.ids import ThreadKey
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.house import THREAD, open_house
from voice.scripted import ScriptedTranscriber


async def test_a_waiting_message_is_shown_until_its_words_are_on_record(tmp_path: Path) -> None:
    gate = asyncio.Event()
    llm = ScriptedLlm([ScriptedAnswer(chunks=("answer",), gate=gate)])
    key = ThreadKey.decode(THREAD)
    async with open_house(tmp_path, llm=llm, transcriber=ScriptedTranscriber(["spoken"])) as house:
        timeline = StoreTimeline(house.store, SystemClock())
        running = await house.channel.say("", voice=b"opus")
        await house.channel.until(lambda: llm.requests)
        waiting = await house.channel.say("typed")
        entries = await timeline.entries(key, after=0, limit=50)
        assert [(e.message_id, e.text, e.entry_id > 0, e.spoken) for e in entries] == [
            (running.message_id, "spoken", True, True),
            (waiting.message_id, "typed", False, False),
        ]
        # A page that already shows the transcript must not be told of a voice note that still waits.
        later = await timeline.entries(key, after=entries[0].entry_id, limit=50)
        assert [e.message_id for e in later] == [waiting.message_id]
        gate.set()
        await house.channel.reply(waiting.message_id)
        roles = [e.role for e in await timeline.entries(key, after=0, limit=50)]
        assert roles == ["user", "assistant", "user", "assistant"]
        newest = await timeline.entries(key, after=0, limit=1)
        assert [e.text for e in newest] == ["You said: typed"]

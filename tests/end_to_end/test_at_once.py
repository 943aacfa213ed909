"""Four messages at once on one thread: all eight entries are kept, and each answer follows its question."""

from __future__ import annotations

import asyncio
from pathlib import Path

from gateway.channels.timeline import StoreTimeline
from pipeline.domain.clock import SystemClock
from pipeline.domain.ids import ThreadKey
from pipeline.llm.scripted import ScriptedLlm
from tests.support.gateway_process import GatewayProcess, slow_echo
from tests.support.harness import THREAD, open_gateway
from tests.support.web_client import WebChat

_TEXTS = [f"message {number}" for number in range(4)]


async def test_four_messages_at_once_keep_all_eight_entries_in_order(tmp_path: Path) -> None:
    llm = ScriptedLlm.echo(delay_s=0.005)
    async with open_gateway(tmp_path, llm=llm) as harness:
        async with asyncio.TaskGroup() as group:
            saying = [group.create_task(harness.channel.say(text)) for text in _TEXTS]
        ids = [task.result().message_id for task in saying]
        for message_id in ids:
            await harness.channel.reply(message_id)
        records = await harness.records("user", "assistant")
        timeline = StoreTimeline(harness.store, SystemClock())
        entries = await timeline.entries(ThreadKey.decode(THREAD), after=0, limit=50)

    expected = [pair for text in _TEXTS for pair in (("user", text), ("assistant", f"You said: {text}"))]
    assert [(record.kind, record.body["text"]) for record in records] == expected
    assert [(entry.role, entry.text) for entry in entries] == expected
    assert [entry.entry_id for entry in entries] == sorted({entry.entry_id for entry in entries})
    assert [entry.message_id for entry in entries] == [one for message_id in ids for one in (message_id,) * 2]
    assert [reply.message_id for reply in harness.channel.sent] == ids
    # Each turn saw the answers before it, and none that came later.
    assert [len(request.messages) for request in llm.requests] == [2, 4, 6, 8]


async def test_four_messages_at_once_through_the_socket_are_shown_as_eight_lines_in_order(
    tmp_path: Path,
) -> None:
    async with GatewayProcess(tmp_path, overrides=slow_echo(0.005)) as gateway, WebChat() as chat:
        await gateway.start()
        await chat.connect(gateway.url, gateway.token)
        for number, text in enumerate(_TEXTS):
            await chat.send_text(f"c{number}", text)
        for number in range(len(_TEXTS)):
            await chat.answer(await chat.accepted(f"c{number}"))
        async with WebChat(chat=chat.chat) as fresh:
            await fresh.connect(gateway.url, gateway.token)
            shown = [(line.role, line.text) for line in fresh.seen.lines]
    assert shown == [pair for text in _TEXTS for pair in (("user", text), ("assistant", f"You said: {text}"))]

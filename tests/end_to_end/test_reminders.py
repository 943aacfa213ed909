"""Reminders, from a message that asks for one to the words in the chat, with a restart in between."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gateway.scheduling.reminders import REMINDER
from pipeline.domain.chat import ToolCall
from pipeline.domain.clock import ManualClock
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.channel import MemoryChannel
from tests.support.harness import open_gateway
from tests.support.jobs import next_reminder
from tests.support.posting_channel import MemoryPosts

MAY = 1_906_459_200.0
"""2030-05-31 12:00 UTC."""
LOAD = ScriptedAnswer.calling(ToolCall(id="l", name="load_tools", arguments='{"groups": ["schedule"]}'))


def asking(name: str, **arguments: Any) -> ScriptedAnswer:
    return ScriptedAnswer.calling(ToolCall(id="c", name=name, arguments=json.dumps(arguments)))


def reminding(**arguments: Any) -> ScriptedLlm:
    return ScriptedLlm([LOAD, asking("remind_me", **arguments), ScriptedAnswer.of("I will.")])


async def test_a_reminder_comes_at_its_time_in_the_chat_where_it_was_asked_for(tmp_path: Path) -> None:
    clock, channel = ManualClock(MAY), MemoryChannel()
    llm = reminding(text="call mum", at="2030-05-31T15:00:00+02:00")
    async with open_gateway(tmp_path, llm=llm, channel=channel, clock=clock) as harness:
        said = await channel.say("remind me at three to call mum")
        await channel.reply(said.message_id)
        assert "is set for Friday 2030-05-31 15:00 (UTC+02:00)" in llm.requests[-1].messages[-1].content
        await clock.advance(3_599)
        assert [reply.role for reply in channel.sent] == ["assistant"]

        # And a moment: when the scheduler read the clock, its time was no whole number of seconds.
        await clock.advance(1.1)
        await channel.until(lambda: len(channel.sent) == 2)

        (notice,) = await harness.records("notice")
        assert notice.body["text"] == "Reminder: call mum"
        assert (channel.sent[-1].role, channel.sent[-1].text) == ("notice", "Reminder: call mum")
        assert await next_reminder(harness.store) is None


async def test_a_reminder_outlives_a_restart_and_is_posted_once(tmp_path: Path) -> None:
    clock, posts = ManualClock(MAY), MemoryPosts()
    async with open_gateway(tmp_path, llm=reminding(text="tea", in_minutes=10), posts=posts, clock=clock):
        await posts.receive("remind me of tea", native_id="1")
        await posts.until(lambda: posts.texts() == ["I will."])
    async with open_gateway(tmp_path, posts=posts, clock=clock):
        await clock.advance(600.1)
        await posts.until(lambda: len(posts.texts()) == 2)
    async with open_gateway(tmp_path, posts=posts, clock=clock) as harness:
        assert await next_reminder(harness.store) is None
        await posts.receive("hi", native_id="2")
        await posts.until(lambda: len(posts.texts()) == 3)

    assert posts.texts() == ["I will.", "Reminder: tea", "You said: hi"]


async def test_a_reminder_that_was_missed_comes_at_the_start_with_its_time(tmp_path: Path) -> None:
    clock, posts = ManualClock(MAY), MemoryPosts()
    async with open_gateway(tmp_path, llm=reminding(text="tea", in_minutes=10), posts=posts, clock=clock):
        await posts.receive("remind me of tea", native_id="1")
        await posts.until(lambda: posts.texts() == ["I will."])
    await clock.advance(7_200)
    async with open_gateway(tmp_path, posts=posts, clock=clock):
        await posts.until(lambda: "(UTC))" in "".join(posts.texts()))

    assert "".join(posts.texts()[1:]) == "Reminder: tea (it was due on Friday 2030-05-31 12:10 (UTC))"


async def test_a_reminder_that_was_cancelled_does_not_come(tmp_path: Path) -> None:
    clock, channel = ManualClock(MAY), MemoryChannel()
    async with open_gateway(
        tmp_path, llm=reminding(text="tea", in_minutes=10), channel=channel, clock=clock
    ) as harness:
        said = await channel.say("remind me of tea")
        await channel.reply(said.message_id)
        (kept,) = await harness.store.jobs.of(REMINDER, "console:local:user:owner")
        harness.llm.script.extend(
            [LOAD, asking("cancel_reminder", id=kept.key), ScriptedAnswer.of("Forgotten.")]
        )
        said = await channel.say("forget it")
        assert (await channel.reply(said.message_id)).text == "Forgotten."
        await clock.advance(1_200)

        assert await next_reminder(harness.store) is None
        assert await harness.records("notice") == []

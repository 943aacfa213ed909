"""What is watched, through a whole gateway: changes in, what the model and the chat read of them out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from gateway.scheduling.heartbeat_log import EVENTS
from pipeline.domain.chat import ToolCall
from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import ConfigurationError
from pipeline.domain.events import ApprovalRequired
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.channel import MemoryChannel
from tests.support.harness import open_gateway
from tests.support.heartbeat_child import settle
from tests.support.heartbeats import (
    HOUR,
    MINUTE,
    NOON,
    OWN,
    ZONE,
    add_damaged,
    allow,
    asked,
    blocked,
    command,
    document,
    done,
    news,
    own_file,
    pass_time,
    until,
)

pytestmark = pytest.mark.usefixtures("days_pass_quickly")


async def test_a_changed_file_wakes_the_model_with_the_new_lines(tmp_path: Path) -> None:
    place = own_file(tmp_path, "list.txt")
    place.write_text("milk\n")
    document(tmp_path, "- watch file own/list.txt -- say what is new\n")
    clock, channel = ManualClock(NOON), MemoryChannel()
    llm = ScriptedLlm([done("There is tea on the list.")])
    async with open_gateway(tmp_path, *OWN, llm=llm, channel=channel, clock=clock) as harness:
        await pass_time(harness, clock, 3 * MINUTE)
        place.write_text("milk\ntea\n")
        await pass_time(harness, clock, 2 * MINUTE)
        assert news(channel) == ["There is tea on the list."]
    words = asked(llm)
    assert "The file own/list.txt, every 1 minute" in words
    assert "What you were asked to do then: say what is new" in words
    assert "tea" in words
    assert "milk" not in words


async def test_a_restart_neither_repeats_nor_misses_an_event(tmp_path: Path) -> None:
    place = own_file(tmp_path, "list.txt")
    place.write_text("milk\n")
    document(tmp_path, "- watch file own/list.txt -- say what is new\n")
    clock = ManualClock(NOON)
    for answers, change in (([], ""), ([done("Tea.")], "tea\n"), ([], "")):
        if change:
            with place.open("a") as file:
                file.write(change)
        channel, llm = MemoryChannel(), ScriptedLlm(answers)
        async with open_gateway(tmp_path, *OWN, llm=llm, channel=channel, clock=clock) as harness:
            await pass_time(harness, clock, 5 * MINUTE)
            await settle(harness)
            if answers:
                assert news(channel) == ["Tea."]
        assert len(llm.requests) == len(answers)


async def test_an_address_that_is_not_public_is_not_fetched_and_the_person_hears_of_it_once(
    tmp_path: Path,
) -> None:
    document(tmp_path, "- watch http://127.0.0.1/ every 10 minutes -- say what is new\n")
    clock, channel, llm = ManualClock(NOON), MemoryChannel(), ScriptedLlm([])
    async with open_gateway(tmp_path, *OWN, llm=llm, channel=channel, clock=clock) as harness:
        await pass_time(harness, clock, 25 * MINUTE)
        assert len(news(channel)) == 1
        await pass_time(harness, clock, 3 * HOUR)
        (notice,) = news(channel)
    assert "I cannot check the page http://127.0.0.1/" in notice
    assert llm.requests == []


async def test_a_person_asks_for_a_watch_which_counts_once_allowed(tmp_path: Path) -> None:
    place = own_file(tmp_path, "list.txt")
    place.write_text("milk\n")
    load = ToolCall(id="l", name="load_tools", arguments='{"groups": ["watch"]}')
    arguments = json.dumps({"what": "file own/list.txt", "text": "tell me what is new"})
    call = ToolCall(id="w", name="watch_for_me", arguments=arguments)
    steps = [ScriptedAnswer.calling(load), ScriptedAnswer.calling(call), ScriptedAnswer.of("I watch it.")]
    clock, channel = ManualClock(NOON), MemoryChannel()
    llm = ScriptedLlm([*steps, done("There is tea."), ScriptedAnswer.of("As I wrote: tea.")])
    on = ("heartbeat.enabled=true", ZONE)
    async with open_gateway(tmp_path, *on, llm=llm, channel=channel, clock=clock) as harness:
        said = await channel.say("watch my list")
        await channel.until(lambda: any(isinstance(one, ApprovalRequired) for one in channel.events))
        (question,) = (one for one in channel.events if isinstance(one, ApprovalRequired))
        assert "I watch the file own/list.txt, every 1 minute." in question.reasoning
        assert await harness.store.jobs.all_of("watch") == ()
        await allow(harness)
        await channel.reply(said.message_id)
        await pass_time(harness, clock, 2 * MINUTE)
        place.write_text("tea\n")
        await pass_time(harness, clock, 2 * MINUTE)
        assert news(channel) == ["There is tea."]
        # What a heartbeat says is a part of the conversation.
        again = await channel.say("what is on it?")
        await channel.reply(again.message_id)
        assert any(one.content == "There is tea." for one in llm.requests[-1].messages)
        assert "1. The file own/list.txt" in await command(channel, "/heartbeat")
        assert "no number 2" in await command(channel, "/heartbeat delete 2")
        assert "I do not watch the file" in await command(channel, "/heartbeat delete 1")
        assert "Nothing is watched" in await command(channel, "/heartbeat")
        assert await harness.store.jobs.all_of("watch") == ()


async def test_a_heartbeat_does_nothing_that_a_person_would_have_to_allow(tmp_path: Path) -> None:
    document(tmp_path, "- `0 13 * * *` -- tidy up\n")
    own_file(tmp_path, "list.txt").write_text("milk\n")
    load = ToolCall(id="l", name="load_tools", arguments='{"groups": ["files"]}')
    call = ToolCall(id="d", name="delete_file", arguments='{"path": "own/list.txt"}')
    clock, channel = ManualClock(NOON), MemoryChannel()
    llm = ScriptedLlm(
        [ScriptedAnswer.calling(load), ScriptedAnswer.calling(call), blocked("I may not delete")]
    )
    async with open_gateway(tmp_path, *OWN, llm=llm, channel=channel, clock=clock) as harness:
        await pass_time(harness, clock, HOUR + MINUTE)
        await settle(harness)
        assert len(news(channel)) == 1
        assert not [one for one in channel.events if isinstance(one, ApprovalRequired)]
    assert own_file(tmp_path, "list.txt").read_text() == "milk\n"
    assert "No one can be asked now" in llm.requests[-1].messages[-1].content


_ASK_ME = "Tell me in this chat to do it, and I ask you here."


async def test_what_a_heartbeat_may_not_do_is_said_in_words_once(tmp_path: Path) -> None:
    document(tmp_path, "- `0 13,14 * * *` -- tidy up\n")
    own_file(tmp_path, "list.txt").write_text("milk\n")
    load = ToolCall(id="l", name="load_tools", arguments='{"groups": ["files"]}')
    call = ToolCall(id="d", name="delete_file", arguments='{"path": "own/list.txt"}')
    # The agent itself says that there is nothing to tell.
    beat = [ScriptedAnswer.calling(load), ScriptedAnswer.calling(call), done("NOTHING")]
    clock, channel = ManualClock(NOON), MemoryChannel()
    llm = ScriptedLlm([*beat, *beat])
    async with open_gateway(tmp_path, *OWN, llm=llm, channel=channel, clock=clock) as harness:
        await pass_time(harness, clock, HOUR + MINUTE)
        (said,) = news(channel)
        assert said.startswith("I have not done this, because it needs your yes and a heartbeat asks no one:")
        assert "- Deleting the file “own/list.txt”" in said
        assert said.endswith(_ASK_ME)
        # The same again is not said again.
        await pass_time(harness, clock, HOUR)
        assert len(news(channel)) == 1
    assert len(llm.requests) == 2 * len(beat)


async def test_stop_ends_a_running_heartbeat_whose_result_the_chat_gets(tmp_path: Path) -> None:
    document(tmp_path, "- `0 13,14 * * *` -- look around\n")
    clock, channel = ManualClock(NOON), MemoryChannel()
    llm = ScriptedLlm([ScriptedAnswer(chunks=("Never.",), gate=asyncio.Event()), done("Fine.")])
    patient = "llm.timeout_s=3600"
    async with open_gateway(tmp_path, *OWN, patient, llm=llm, channel=channel, clock=clock) as harness:
        await settle(harness)
        await clock.advance(HOUR + MINUTE)
        await until(harness, lambda: len(llm.requests) == 1)
        # Another chat does not get its result, and does not stop it.
        other = await channel.say("/stop", chat="c2")
        assert (await channel.reply(other.message_id)).text == "There is nothing to stop."
        assert await command(channel, "/stop") == "Stopped 1 heartbeat."
        await settle(harness)
        assert "stopped, 0 cycles" in await command(channel, "/heartbeat")
        assert await command(channel, "/stop") == "There is nothing to stop."
        # The next one runs.
        await pass_time(harness, clock, HOUR)
        assert "Fine." in news(channel)


async def test_the_person_turns_heartbeats_off_and_on_and_names_the_chat(tmp_path: Path) -> None:
    document(tmp_path, "- `*/10 * * * *` -- look around\n")
    clock, channel = ManualClock(NOON), MemoryChannel()
    llm = ScriptedLlm([done("One."), done("Two.")])
    async with open_gateway(tmp_path, *OWN, llm=llm, channel=channel, clock=clock) as harness:
        assert "are off" in await command(channel, "/heartbeat off")
        await pass_time(harness, clock, 25 * MINUTE)
        assert llm.requests == []
        assert "are on" in await command(channel, "/heartbeat on")
        # What fell into the time in which they were off is not made up for.
        await pass_time(harness, clock, 4 * MINUTE)
        assert llm.requests == []
        await pass_time(harness, clock, 2 * MINUTE)
        await settle(harness)
        assert "One." in news(channel)
        status = await command(channel, "/heartbeat")
        assert "Heartbeats are on. The results go to this chat. HEARTBEAT.md is yours" in status
        assert "Say `/heartbeat`" in await command(channel, "/heartbeat sometimes")
        assert "come to this chat" in await command(channel, "/heartbeat here")
        assert "is a line of HEARTBEAT.md" in await command(channel, "/heartbeat delete 1")


async def test_the_events_of_heartbeats_are_shown_in_words(tmp_path: Path) -> None:
    document(tmp_path, "- `0 13 * * *` -- look around\n- watch the sky -- tell me\n")
    clock, channel = ManualClock(NOON), MemoryChannel()
    async with open_gateway(
        tmp_path, *OWN, llm=ScriptedLlm([done("Fine.")]), channel=channel, clock=clock
    ) as harness:
        await pass_time(harness, clock, HOUR + MINUTE)
        shown = await command(channel, "/heartbeat")
    assert ": a heartbeat began" in shown
    assert ": a heartbeat ended" in shown
    assert [name for name in EVENTS if name in shown] == []


async def test_a_line_that_cannot_be_read_is_shown_and_the_others_count(tmp_path: Path) -> None:
    document(tmp_path, "- watch the sky -- tell me\n- `0 13 * * *` -- say hello\n")
    clock, channel = ManualClock(NOON), MemoryChannel()
    llm = ScriptedLlm([done("Hello.")])
    async with open_gateway(tmp_path, *OWN, llm=llm, channel=channel, clock=clock) as harness:
        await pass_time(harness, clock, HOUR + MINUTE)
        assert news(channel) == ["Hello."]
        assert "- line 1: I do not understand when “the sky” is" in await command(channel, "/heartbeat")


@pytest.mark.parametrize(
    ("overrides", "named"),
    [
        (("heartbeat.every_minutes=0",), "heartbeat.every_minutes"),
        (('heartbeat.active_hours="late"',), "heartbeat.active_hours"),
        (("heartbeat.chat=c1",), "heartbeat.channel"),
        (("heartbeat.channel=pigeon", "heartbeat.chat=c1"), "heartbeat.channel"),
        ((*OWN, "heartbeat.agent=ghost"), "heartbeat.agent"),
        (("agent.graph=heartbeat",), "agent.graph"),
    ],
)
async def test_mistakes_in_the_settings_are_named_at_the_start(
    tmp_path: Path, overrides: Sequence[str], named: str
) -> None:
    with pytest.raises(ConfigurationError, match=named):
        async with open_gateway(tmp_path, *overrides):
            pass


async def test_a_watch_in_the_store_that_cannot_be_read_disturbs_no_other(tmp_path: Path) -> None:
    document(tmp_path, "- `0 13 * * *` -- say hello\n")
    clock, channel = ManualClock(NOON), MemoryChannel()
    llm = ScriptedLlm([done("Hello.")])
    async with open_gateway(tmp_path, *OWN, channel=MemoryChannel(), clock=clock) as harness:
        await add_damaged(harness.store)
    async with open_gateway(tmp_path, *OWN, llm=llm, channel=channel, clock=clock) as harness:
        await pass_time(harness, clock, HOUR + MINUTE)
        assert news(channel) == ["Hello."]

"""What repeats, from the message that asks for it to the words in the chat: restarts, pauses, quiet hours."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from gateway.interactions.approvals import ALLOW, DENY
from gateway.scheduling.reminders import REMINDER
from gateway.storage.jobs import NewJob
from pipeline.domain.chat import ToolCall
from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import ConfigurationError
from pipeline.domain.events import ApprovalRequired
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import ApprovalReply, Author, button_handle
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from pipeline.schedules.repetition import Repetition
from tests.end_to_end.test_workflow_runs import RUN_TRIAGE
from tests.support.channel import MemoryChannel
from tests.support.harness import THREAD, GatewayHarness, open_gateway
from tests.support.posting_channel import MemoryPosts

pytestmark = pytest.mark.usefixtures("days_pass_quickly")

ZONE = 'bot.time_zone="Europe/Berlin"'
BERLIN = ZoneInfo("Europe/Berlin")
FRIDAY = datetime(2027, 3, 26, 12, 0, tzinfo=BERLIN).timestamp()
"""Two days before the clock goes forward."""
LOAD = ScriptedAnswer.calling(ToolCall(id="l", name="load_tools", arguments='{"groups": ["schedule"]}'))


def setting(**arguments: Any) -> ScriptedLlm:
    call = ToolCall(id="c", name="repeat_for_me", arguments=json.dumps(arguments))
    return ScriptedLlm([LOAD, ScriptedAnswer.calling(call), ScriptedAnswer.of("It is set.")])


async def asked_and_answered(harness: GatewayHarness, choice: str = ALLOW) -> str:
    """The words of the question, which is answered."""
    channel = harness.channel
    said = await channel.say("please do this regularly")
    await channel.until(lambda: any(isinstance(event, ApprovalRequired) for event in channel.events))
    (asked,) = (event for event in channel.events if isinstance(event, ApprovalRequired))
    (question,) = await harness.store.pending_interactions(THREAD, now=0.0)
    press = ApprovalReply(
        message_id="m_press",
        native_id="press",
        thread=ThreadKey.decode(THREAD),
        author=Author(id="owner"),
        received_at=FRIDAY,
        interaction_id=button_handle(question.id),
        choice="",
        option=question.options.index(choice),
    )
    await channel.bring(press)
    await channel.reply(said.message_id)
    return asked.reasoning


async def go_to(clock: ManualClock, local: str) -> None:
    """Let the time be a second after `local` in Berlin."""
    moment = datetime.fromisoformat(local).replace(tzinfo=BERLIN).timestamp()
    await clock.advance(moment + 1 - clock.now())


def said(channel: MemoryChannel) -> list[str]:
    return [reply.text for reply in channel.sent if reply.role == "notice"]


async def test_a_repetition_is_shown_back_counts_once_allowed_and_comes_over_a_change_of_the_clock(
    tmp_path: Path,
) -> None:
    clock, channel = ManualClock(FRIDAY), MemoryChannel()
    llm = setting(text="stretch", when="every day at 9")
    async with open_gateway(tmp_path, ZONE, channel=channel, llm=llm, clock=clock) as harness:
        asked = await asked_and_answered(harness)
        assert "When: every day at 09:00 (Europe/Berlin)." in asked
        assert "Saturday 2027-03-27 09:00, Sunday 2027-03-28 09:00, Monday 2027-03-29 09:00" in asked
        assert len(await harness.store.jobs.listed(limit=9)) == 1
        for count, day in enumerate(("27", "28", "29"), 1):
            await go_to(clock, f"2027-03-{day}T08:59")
            assert len(said(channel)) == count - 1
            await go_to(clock, f"2027-03-{day}T09:00")
            await channel.until(lambda count=count: said(channel) == ["Reminder: stretch"] * count)


async def test_what_is_denied_or_not_understood_is_not_kept(tmp_path: Path) -> None:
    clock, channel = ManualClock(FRIDAY), MemoryChannel()
    llm = setting(text="stretch", when="every day at 9")
    async with open_gateway(tmp_path, ZONE, channel=channel, llm=llm, clock=clock) as harness:
        await asked_and_answered(harness, DENY)
        assert await harness.store.jobs.listed(limit=9) == ()
        call = ToolCall(id="d", name="repeat_for_me", arguments='{"text": "x", "when": "every blue moon"}')
        harness.llm.script.extend([LOAD, ScriptedAnswer.calling(call), ScriptedAnswer.of("When?")])
        again = await channel.say("every blue moon then")
        assert (await channel.reply(again.message_id)).text == "When?"
        assert "I do not understand when" in harness.llm.requests[-1].messages[-1].content
        assert await harness.store.jobs.listed(limit=9) == ()


async def test_a_request_is_answered_each_time_as_its_person_and_once_over_a_restart(tmp_path: Path) -> None:
    clock, channel = ManualClock(FRIDAY), MemoryChannel()
    llm = setting(text="What is new?", when="every day at 9", does="answer")
    async with open_gateway(tmp_path, ZONE, channel=channel, llm=llm, clock=clock) as harness:
        await asked_and_answered(harness)
        await go_to(clock, "2027-03-27T09:00")
        await channel.until(lambda: "What is new?" in channel.sent[-1].text)
        assert "(This is asked by a schedule: every day at 09:00 (Europe/Berlin).)" in channel.sent[-1].text
    await go_to(clock, "2027-03-29T15:00")
    asked: list[str] = []
    for _ in range(2):
        channel = MemoryChannel()
        async with open_gateway(tmp_path, ZONE, channel=channel, clock=clock) as harness:
            again = await channel.say("hi")
            await channel.reply(again.message_id)
            asked = [one.body["text"] for one in await harness.records("user") if "new" in one.body["text"]]
    assert len(asked) == 2
    assert "it was due on Monday 2027-03-29" in asked[-1]


async def test_a_missed_time_is_left_out_where_the_schedule_says_so(tmp_path: Path) -> None:
    clock, channel = ManualClock(FRIDAY), MemoryChannel()
    llm = setting(text="stretch", when="every day at 9", if_missed="skip")
    async with open_gateway(tmp_path, ZONE, channel=channel, llm=llm, clock=clock) as harness:
        await asked_and_answered(harness)
    await go_to(clock, "2027-03-28T15:00")
    channel = MemoryChannel()
    async with open_gateway(tmp_path, ZONE, channel=channel, clock=clock):
        await go_to(clock, "2027-03-29T09:00")
        await channel.until(lambda: bool(said(channel)))
        assert said(channel) == ["Reminder: stretch"]


async def test_schedules_are_listed_paused_resumed_and_deleted(tmp_path: Path) -> None:
    clock, channel = ManualClock(FRIDAY), MemoryChannel()
    llm = setting(text="stretch", when="every day at 9")

    async with open_gateway(tmp_path, ZONE, channel=channel, llm=llm, clock=clock) as harness:

        async def command(words: str) -> str:
            before = len(channel.sent)
            await channel.say(words, native_id=f"{before}:{words}")
            await channel.until(lambda: len(channel.sent) > before)
            return channel.sent[-1].text

        await asked_and_answered(harness)
        assert "Say `/schedules`" in await command("/schedules now")
        assert "1. Every day at 09:00 (Europe/Berlin): stretch" in await command("/schedules")
        assert "Paused: Every day" in await command("/schedules pause 1")
        await go_to(clock, "2027-03-28T12:00")
        assert "stretch (paused)" in await command("/schedules")
        assert "Continued: Every day" in await command("/schedules resume 1")
        assert "Reminder: stretch" not in said(channel)
        await go_to(clock, "2027-03-29T09:00")
        await channel.until(lambda: "Reminder: stretch" in said(channel))
        assert "no number 7" in await command("/schedules delete 7")
        assert "Deleted: Every day" in await command("/schedules delete 1")
        assert "Nothing is set" in await command("/schedules")
        assert await harness.store.jobs.listed(limit=9) == ()


async def test_in_quiet_hours_nothing_is_said_and_afterwards_once(tmp_path: Path) -> None:
    clock, channel = ManualClock(FRIDAY), MemoryChannel()
    llm = setting(text="drink", when="every 2 hours")
    quiet = 'bot.quiet_hours="22:00-07:00"'
    async with open_gateway(tmp_path, ZONE, quiet, channel=channel, llm=llm, clock=clock) as harness:
        await asked_and_answered(harness)
        hours = []
        for later in range(1, 25):
            day, hour = 26 + (12 + later) // 24, (12 + later) % 24
            before = len(said(channel))
            await go_to(clock, f"2027-03-{day}T{hour:02}:00")
            if hour in (14, 16, 18, 20, 7, 8, 10, 12):
                await channel.until(lambda before=before: len(said(channel)) > before)
            if len(said(channel)) > before:
                hours.append(hour)
    assert hours == [14, 16, 18, 20, 7, 8, 10, 12]


@pytest.mark.parametrize("value", ["22-7", "always"])
async def test_wrong_quiet_hours_are_named_at_the_start(tmp_path: Path, value: str) -> None:
    with pytest.raises(ConfigurationError, match="quiet_hours"):
        async with open_gateway(tmp_path, f'bot.quiet_hours="{value}"'):
            pass


async def test_a_thousand_schedules_of_one_minute_are_all_done_once(tmp_path: Path) -> None:
    clock, posts = ManualClock(FRIDAY), MemoryPosts()
    repetition = Repetition(start=FRIDAY, zone="Europe/Berlin", cron="0 9 * * *")
    due = repetition.next_after(FRIDAY)
    assert due is not None
    async with open_gateway(tmp_path, posts=posts, clock=clock) as harness:
        for number in range(1_000):
            body = {"text": f"n{number}", "author": f"p{number}", "private": True}
            thread = posts.thread(f"c{number}").encode()
            job = NewJob(
                kind=REMINDER,
                key=f"rem_{number}",
                thread=thread,
                due=due,
                body={**body, "repeats": repetition.plain()},
            )
            await harness.store.jobs.add(job)
        await go_to(clock, "2027-03-27T09:00")
        await posts.until(lambda: len(posts.messages) >= 1_000)
    said_texts = sorted(message.text for message in posts.messages)
    assert said_texts == sorted(f"Reminder: n{number}" for number in range(1_000))


async def test_a_schedule_runs_a_workflow_as_its_person(tmp_path: Path) -> None:
    clock = ManualClock(FRIDAY)
    asks = setting(text="When are you open?", when="every weekday at 9", does="run", workflow="triage")
    llm = ScriptedLlm([*asks.script, ScriptedAnswer.of("question"), ScriptedAnswer.of("From 9 to 18.")])
    async with open_gateway(tmp_path, ZONE, *RUN_TRIAGE, clock=clock, llm=llm) as harness:
        assert "Runs the workflow triage. When: " in await asked_and_answered(harness)
        listed = await harness.channel.say("/schedules")
        words = (await harness.channel.reply(listed.message_id)).text
        assert "I run `triage` with “When are you open?”" in words
        await go_to(clock, "2027-03-29T09:00")
        await harness.channel.until(lambda: harness.channel.sent[-1].text == "From 9 to 18.")
        assert llm.requests[-1].messages[-1].content == "When are you open?"


async def test_a_schedule_runs_a_playbook_that_asks(tmp_path: Path) -> None:
    clock = ManualClock(FRIDAY)
    runs = (
        'agents.onboarding.graph="examples/workflows/onboarding.playbook.json"',
        'routes.1.agent="default"',
        'routes.1.also=["onboarding"]',
    )
    asks = setting(text="I am new", when="every weekday at 9", does="run", workflow="onboarding")
    llm = ScriptedLlm([*asks.script, ScriptedAnswer.of("One, two, three."), ScriptedAnswer.of("MET")])
    async with open_gateway(tmp_path, ZONE, *runs, clock=clock, llm=llm) as harness:
        await asked_and_answered(harness)
        await go_to(clock, "2027-03-29T09:00")
        await harness.channel.until(lambda: "What may I call you?" in harness.channel.sent[-1].text)
        answered = await harness.channel.say("Ada")
        assert "One, two, three." in (await harness.channel.reply(answered.message_id)).text


async def test_a_schedule_of_a_workflow_that_is_gone_says_so(tmp_path: Path) -> None:
    clock = ManualClock(FRIDAY)
    llm = setting(text="Open?", when="every weekday at 9", does="run", workflow="triage")
    async with open_gateway(tmp_path, ZONE, *RUN_TRIAGE, clock=clock, llm=llm) as harness:
        await asked_and_answered(harness)
    async with open_gateway(tmp_path, ZONE, clock=clock) as harness:
        await go_to(clock, "2027-03-29T09:00")
        await harness.channel.until(lambda: said(harness.channel))
        assert said(harness.channel)[0].startswith("There is no workflow `triage` here.")


async def test_only_the_workflows_of_the_chat_can_be_set(tmp_path: Path) -> None:
    llm = setting(text="Open?", when="every weekday at 9", does="run")
    async with open_gateway(tmp_path, ZONE, *RUN_TRIAGE, clock=ManualClock(FRIDAY), llm=llm) as harness:
        accepted = await harness.channel.say("please do this regularly")
        await harness.channel.reply(accepted.message_id)
        assert "name one of the workflows of this chat: triage" in llm.requests[-1].messages[-1].content
        tool = next(one for one in llm.requests[-1].tools if one.name == "repeat_for_me")
        assert tool.parameters["properties"]["workflow"]["enum"] == ["triage"]

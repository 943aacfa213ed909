"""The heartbeat through a whole gateway: time and changes in, the model's prompts and the chat's lines."""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path

import pytest

from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import ModelUnavailable
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.channel import MemoryChannel
from tests.support.harness import open_gateway
from tests.support.heartbeat_child import settle
from tests.support.heartbeats import (
    BEAT,
    BERLIN,
    DAY,
    HOUR,
    MINUTE,
    NOON,
    OWN,
    ZONE,
    asked,
    blocked,
    command,
    document,
    done,
    more,
    news,
    own_file,
    pass_time,
    until,
)

pytestmark = pytest.mark.usefixtures("days_pass_quickly")


async def test_heartbeats_are_off_unless_the_operator_turns_them_on(tmp_path: Path) -> None:
    document(tmp_path, "- `*/5 * * * *` -- say hello\n- [ ] tidy up\n")
    clock, channel, llm = ManualClock(NOON), MemoryChannel(), ScriptedLlm([])
    async with open_gateway(tmp_path, ZONE, llm=llm, channel=channel, clock=clock):
        await clock.advance(HOUR)
        assert "not turned them on" in await command(channel, "/heartbeat")
    assert llm.requests == []


async def test_an_empty_day_calls_no_model(tmp_path: Path) -> None:
    own_file(tmp_path, "list.txt").write_text("milk\n")
    lines = (
        "Be brief.",
        "- [x] done already",
        "- watch file own/list.txt -- say what is new",
        "- watch memory tea",
    )
    document(tmp_path, "\n".join(lines))
    clock, channel, llm = ManualClock(NOON), MemoryChannel(), ScriptedLlm([])
    async with open_gateway(tmp_path, *OWN, llm=llm, channel=channel, clock=clock) as harness:
        await pass_time(harness, clock, DAY)
        assert await harness.store.open_threads() == ()
        assert "nothing has happened" in await command(channel, "/heartbeat")
    assert llm.requests == []


async def test_a_line_with_a_time_wakes_the_model_with_what_it_needs_to_know(tmp_path: Path) -> None:
    skills = tmp_path / "workspace" / "skills" / "gardening"
    skills.mkdir(parents=True)
    (skills / "SKILL.md").write_text("---\nname: gardening\ndescription: grows plants\n---\nDig.\n")
    document(tmp_path, "Be brief.\n\n## Garden\n- `0 13 * * *` -- say what day it is\n")
    clock, channel = ManualClock(NOON), MemoryChannel()
    llm = ScriptedLlm([done("It is Wednesday.")])
    agent = ('agents.scout.description="looks things up"', "agents.scout.model=scripted:echo")
    async with open_gateway(tmp_path, *OWN, *agent, llm=llm, channel=channel, clock=clock) as harness:
        await pass_time(harness, clock, HOUR - MINUTE)
        assert llm.requests == []
        await pass_time(harness, clock, MINUTE)
        await until(harness, lambda: bool(news(channel)))
        assert news(channel) == ["It is Wednesday."]
    words = asked(llm)
    for part in (
        "say what day it is",
        "Be brief.",
        "Wednesday, 2027-03-24 13:00",
        "Europe/Berlin",
        "- Garden",
    ):
        assert part in words
    assert "- gardening: grows plants" in words
    assert "- scout: looks things up" in words
    assert "cycle 1 of at most 10" in words


async def test_open_tasks_are_looked_at_each_interval_until_they_are_done(tmp_path: Path) -> None:
    document(tmp_path, "- [ ] water the plants\n")
    clock, channel = ManualClock(NOON), MemoryChannel()
    llm = ScriptedLlm([blocked("no water"), done("Watered."), done("Repotted.")])
    every = "heartbeat.every_minutes=10"
    async with open_gateway(tmp_path, *OWN, every, llm=llm, channel=channel, clock=clock) as harness:
        await pass_time(harness, clock, 9 * MINUTE)
        assert llm.requests == []
        await pass_time(harness, clock, MINUTE)
        await settle(harness)
        assert "- water the plants" in asked(llm)
        # From the end of the one before on.
        await pass_time(harness, clock, 9 * MINUTE)
        assert len(llm.requests) == 1
        await pass_time(harness, clock, MINUTE)
        await settle(harness)
        assert len(llm.requests) == 2
        await pass_time(harness, clock, 5 * HOUR)
        assert len(llm.requests) == 2
        document(tmp_path, "- [ ] repot the plants\n")
        await pass_time(harness, clock, HOUR)
        assert news(channel)[-1:] == ["Repotted."]
    assert len(llm.requests) == 3


async def test_each_cycle_is_a_fresh_run_that_knows_the_report_of_the_last(tmp_path: Path) -> None:
    document(tmp_path, "- `0 13 * * *` -- count\n")
    clock, channel = ManualClock(NOON), MemoryChannel()
    llm = ScriptedLlm([more("counted to one" + "!" * 600), done("Counted.")])
    async with open_gateway(tmp_path, *OWN, llm=llm, channel=channel, clock=clock) as harness:
        await pass_time(harness, clock, HOUR + MINUTE)
        assert news(channel) == ["Counted."]
    first, second = (request.messages for request in llm.requests)
    assert [one.role for one in second] == [one.role for one in first] == ["system", "user"]
    assert "cycle 2 of at most 10" in second[-1].content
    assert "# The last report\ncounted to one!" in second[-1].content
    assert second[-1].content.count("!") <= 500
    assert "I work on it." not in second[-1].content


async def test_ten_cycles_end_a_heartbeat(tmp_path: Path) -> None:
    document(tmp_path, "- `0 13 * * *` -- count\n")
    clock, channel = ManualClock(NOON), MemoryChannel()
    llm = ScriptedLlm([more(f"step {number}") for number in range(1, 20)])
    async with open_gateway(tmp_path, *OWN, llm=llm, channel=channel, clock=clock) as harness:
        await pass_time(harness, clock, HOUR + MINUTE)
        await settle(harness)
        assert "not finished, 10 cycles" in await command(channel, "/heartbeat")
    assert len(llm.requests) == 10


async def test_what_blocked_a_heartbeat_is_in_the_next_ones_prompt_and_said_once(tmp_path: Path) -> None:
    document(tmp_path, "- `*/10 * * * *` -- buy milk\n")
    clock, channel = ManualClock(NOON), MemoryChannel()
    llm = ScriptedLlm([blocked("the shop is shut"), blocked("the shop is shut"), done("NOTHING")])
    async with open_gateway(tmp_path, *OWN, llm=llm, channel=channel, clock=clock) as harness:
        for count in (1, 2, 3):
            await pass_time(harness, clock, 10 * MINUTE)
            await settle(harness)
            assert len(llm.requests) == count
        assert len(news(channel)) == 1
    assert "the shop is shut" in news(channel)[0]
    assert "What blocked" not in asked(llm, 0)
    assert "What blocked the cycle or the heartbeat before: the shop is shut: say yes" in asked(llm, 1)


async def test_a_heartbeat_with_nothing_to_say_says_nothing(tmp_path: Path) -> None:
    document(tmp_path, "- `0 13 * * *` -- look around\n")
    clock, channel = ManualClock(NOON), MemoryChannel()
    llm = ScriptedLlm([done("NOTHING.")])
    async with open_gateway(tmp_path, *OWN, llm=llm, channel=channel, clock=clock) as harness:
        await pass_time(harness, clock, HOUR + MINUTE)
        await settle(harness)
        assert len(llm.requests) == 1
        assert channel.sent == []
        assert channel.events == []


async def test_after_three_failures_there_is_exactly_one_notice(tmp_path: Path) -> None:
    document(tmp_path, "- `*/10 * * * *` -- look around\n")
    clock, channel = ManualClock(NOON), MemoryChannel()
    broken = ScriptedAnswer(error=ModelUnavailable("The model is down."))
    llm = ScriptedLlm([*[broken] * 5, done("Well again."), *[broken] * 3])
    settings = (*OWN, "llm.retries=0")
    async with open_gateway(tmp_path, *settings, llm=llm, channel=channel, clock=clock) as harness:
        seen = []
        for _ in range(9):
            await pass_time(harness, clock, 10 * MINUTE)
            await settle(harness)
            seen.append(len(news(channel)))
    assert seen == [0, 0, 1, 1, 1, 2, 2, 2, 3]
    first, well, again = news(channel)
    assert "The last 3 heartbeats failed" in first
    assert "The model is down" in first
    assert well == "Well again."
    assert "The last 3 heartbeats failed" in again


async def test_outside_the_active_hours_and_in_quiet_hours_nothing_runs(tmp_path: Path) -> None:
    document(tmp_path, "- `0 * * * *` -- say the hour\n")
    clock, channel = ManualClock(NOON), MemoryChannel()
    llm = ScriptedLlm([done(f"{number}") for number in range(30)])
    hours = ('heartbeat.active_hours="11:00-14:30"', 'bot.quiet_hours="20:00-13:30"')
    async with open_gateway(tmp_path, *OWN, *hours, llm=llm, channel=channel, clock=clock) as harness:
        times: list[str] = []
        for _ in range(52):
            await pass_time(harness, clock, 30 * MINUTE)
            if len(llm.requests) > len(times):
                times.append(f"{datetime.fromtimestamp(clock.now(), BERLIN):%H:%M}")
    # What fell into the hours in which nothing runs is done once, late.
    assert times == ["13:30", "14:00", "13:30", "14:00"]


async def test_a_second_heartbeat_waits_for_the_first(tmp_path: Path) -> None:
    document(tmp_path, "- `*/10 * * * *` -- look around\n")
    clock, channel, gate = ManualClock(NOON), MemoryChannel(), asyncio.Event()
    llm = ScriptedLlm([ScriptedAnswer(chunks=("Late.",), gate=gate), done("Second.")])
    patient = "llm.timeout_s=3600"
    async with open_gateway(tmp_path, *OWN, patient, llm=llm, channel=channel, clock=clock) as harness:
        await settle(harness)
        await clock.advance(10 * MINUTE + 1)
        await until(harness, lambda: len(llm.requests) == 1)
        await clock.advance(10 * MINUTE)
        await until(harness, lambda: harness.gateway.heartbeats_rest)
        assert len(llm.requests) == 1
        assert len(await harness.store.open_entries(BEAT)) == 1
        assert "a heartbeat was at work, so the next one waits" in await command(channel, "/heartbeat")
        gate.set()
        await settle(harness)
        # The time that came meanwhile was not forgotten.
        await pass_time(harness, clock, 2 * MINUTE)
        assert [one for one in news(channel) if "." in one][-1] == "Second."
    assert len(llm.requests) == 2


async def test_a_heartbeat_that_a_restart_cut_off_is_run_again_and_no_other_beside_it(tmp_path: Path) -> None:
    document(tmp_path, "- `0 13 * * *` -- look around\n")
    clock, channel = ManualClock(NOON), MemoryChannel()
    llm = ScriptedLlm([ScriptedAnswer(chunks=("Never.",), gate=asyncio.Event())])
    async with open_gateway(tmp_path, *OWN, llm=llm, channel=channel, clock=clock, drain_s=0.0) as harness:
        await settle(harness)
        await clock.advance(HOUR + MINUTE)
        await until(harness, lambda: len(llm.requests) == 1)
    channel, llm = MemoryChannel(), ScriptedLlm([done("Again.")])
    async with open_gateway(tmp_path, *OWN, llm=llm, channel=channel, clock=clock) as harness:
        await pass_time(harness, clock, 10 * MINUTE)
        assert news(channel) == ["Again."]
    assert len(llm.requests) == 1

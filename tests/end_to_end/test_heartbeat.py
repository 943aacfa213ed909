"""The heartbeat through a whole gateway: time and changes in, the model's prompts and the chat's lines."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from gateway.interactions.approvals import ALLOW
from gateway.storage.jobs import NewJob
from gateway.storage.ports import Store
from pipeline.domain.chat import ToolCall
from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import ConfigurationError, ModelUnavailable
from pipeline.domain.events import ApprovalRequired
from pipeline.domain.ids import ThreadKey, identity_key
from pipeline.domain.messages import ApprovalReply, Author, button_handle
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from pipeline.tools.confine import person_folder
from tests.support.channel import MemoryChannel
from tests.support.harness import THREAD, GatewayHarness, open_gateway
from tests.support.heartbeat_child import settle

BERLIN = ZoneInfo("Europe/Berlin")
NOON = datetime(2027, 3, 24, 12, 0, tzinfo=BERLIN).timestamp()
"""A Wednesday."""
ZONE = 'bot.time_zone="Europe/Berlin"'
OWN = ("heartbeat.enabled=true", "heartbeat.channel=console", "heartbeat.chat=c1", ZONE)
BEAT = f"{THREAD}:~heartbeat"
OWNER = identity_key("console", "local", "owner")
HOUR = 3_600.0
MINUTE = 60.0
DAY = 86_400.0


def done(words: str) -> ScriptedAnswer:
    return ScriptedAnswer.of(f"{words} <AGENT_DONE><KEY_RESULT>done</KEY_RESULT></AGENT_DONE>")


def more(report: str) -> ScriptedAnswer:
    tag = f"<AGENT_CONTINUE><STATUS_REPORT>{report}</STATUS_REPORT></AGENT_CONTINUE>"
    return ScriptedAnswer.of(f"I work on it. {tag}")


def blocked(why: str) -> ScriptedAnswer:
    reason = f"<BLOCKER_REASON>{why}</BLOCKER_REASON>"
    need = "<UNBLOCK_REQUIREMENTS>say yes</UNBLOCK_REQUIREMENTS>"
    return ScriptedAnswer.of(f"I need you. <AGENT_BLOCKED>{reason}{need}</AGENT_BLOCKED>")


def document(folder: Path, text: str) -> None:
    (folder / "workspace").mkdir(parents=True, exist_ok=True)
    (folder / "workspace" / "HEARTBEAT.md").write_text(text, encoding="utf-8")


def own_file(folder: Path, name: str) -> Path:
    files = person_folder(folder / "workspace", OWNER) / "files"
    files.mkdir(parents=True, exist_ok=True)
    return files / name


def news(channel: MemoryChannel) -> list[str]:
    return [reply.text for reply in channel.sent if reply.role == "notice"]


def asked(llm: ScriptedLlm, number: int = -1) -> str:
    """The words with which the model was woken."""
    return next(one.content for one in reversed(llm.requests[number].messages) if one.role == "user")


async def pass_time(harness: GatewayHarness, clock: ManualClock, seconds: float) -> None:
    """Let time pass, in steps of up to five minutes after which all that has begun ends."""
    await settle(harness)
    until = clock.now() + seconds
    while (left := until - clock.now()) > 0:
        await clock.advance(min(5 * MINUTE, left))
        await settle(harness)


async def until(harness: GatewayHarness, is_so: Callable[[], bool]) -> None:
    """Return when it is so. Every look waits for the store's thread."""
    while not is_so():
        await harness.store.open_threads()


async def command(channel: MemoryChannel, words: str) -> str:
    before = len(channel.sent)
    await channel.say(words, native_id=f"{before}:{words}")
    await channel.until(lambda: len(channel.sent) > before)
    return channel.sent[-1].text


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
        await pass_time(harness, clock, 2 * MINUTE)
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
        assert "running, 10 cycles" in await command(channel, "/heartbeat")
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
        assert "heartbeat_already_running" in await command(channel, "/heartbeat")
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


async def add_damaged(store: Store) -> None:
    job = NewJob(kind="watch", key="bad", thread=THREAD, owner=OWNER, due=2e11, body={"condition": {}})
    await store.jobs.add(job)


async def allow(harness: GatewayHarness) -> None:
    (question,) = await harness.store.pending_interactions(THREAD, now=0.0)
    press = ApprovalReply(
        message_id="m_press",
        native_id="press",
        thread=ThreadKey.decode(THREAD),
        author=Author(id="owner"),
        received_at=NOON,
        interaction_id=button_handle(question.id),
        choice="",
        option=question.options.index(ALLOW),
    )
    await harness.channel.bring(press)

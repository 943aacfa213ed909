"""The group `schedule`: what is asked for is kept for its owner, at its time, within bounds."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from gateway.scheduling.reminders import REMINDER, ReminderScheduler
from gateway.storage.memory import MemoryStore
from pipeline.domain.clock import ManualClock
from pipeline.domain.messages import Author, InboundMessage, ReminderDue, SessionCommand
from pipeline.runtime.null_services import NullWorkspace
from pipeline.runtime.ports import WorkspaceTexts
from pipeline.runtime.scope import TurnScope
from pipeline.tools.arguments import check_arguments
from pipeline.tools.repeated import MAX_TEXT_CHARS
from pipeline.tools.schedule import MAX_MINUTES, MAX_REMINDERS, ScheduleGroup
from pipeline.tools.tool import Refused, Tool, ToolFailed
from pipeline.tools.zones import TimeZones
from tests.support.contexts import scope
from tests.support.jobs import RunnerHarness

NOON = datetime.fromisoformat("2030-05-31T12:00:00+00:00").timestamp()
BEN = Author(id="ben", name="Ben")


async def _anybody(_due: ReminderDue | InboundMessage | SessionCommand) -> bool:
    return True


class KeptZones(NullWorkspace):
    """Keeps the zones that people name, in memory."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}

    def texts(self, turn: TurnScope) -> WorkspaceTexts:
        return WorkspaceTexts(time_zone=self.names.get(turn.owner, ""))

    async def keep_time_zone(self, turn: TurnScope, name: str) -> None:
        self.names[turn.owner] = name


class ScheduleHarness:
    """The group on a real ReminderScheduler, called as the gate would."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.clock = ManualClock(NOON)
        self.book = KeptZones()
        harness = ReminderScheduler(
            jobs=RunnerHarness(self.store, self.clock).runner,
            store=self.store,
            clock=self.clock,
            wake=lambda _thread: None,
            still_allowed=_anybody,
        )
        self.group = ScheduleGroup(harness, self.clock, TimeZones(self.book, self.clock))

    async def tool(self, name: str) -> Tool:
        return next(tool for tool in await self.group.tools(scope()) if tool.name == name)

    async def call(self, name: str, turn: TurnScope | None = None, **arguments: Any) -> str:
        tool = await self.tool(name)
        check_arguments(tool.definition.parameters, arguments)
        return (await tool.run(arguments, turn or scope())).text

    async def due(self) -> list[float]:
        return [one.due for one in await self.store.jobs.listed(limit=1_000)]


@pytest.fixture
async def harness() -> ScheduleHarness:
    harness = ScheduleHarness()
    await harness.store.open()
    return harness


async def test_a_reminder_in_minutes_is_kept_listed_and_cancelled(harness: ScheduleHarness) -> None:
    said = await harness.call("remind_me", text=" call\nmum ", in_minutes=90)
    (kept,) = await harness.store.jobs.of(REMINDER, "console:local:user:ada")
    listed = await harness.call("list_reminders")

    assert said == f"Reminder {kept.key} is set for Friday 2030-05-31 13:30 (UTC): call mum"
    assert (
        listed
        == f"It is Friday 2030-05-31 12:00 (UTC).\n- {kept.key}, Friday 2030-05-31 13:30 (UTC): call mum"
    )
    assert "cancelled" in await harness.call("cancel_reminder", id=kept.key)
    assert (await harness.call("list_reminders")).endswith("There are no reminders.")


@pytest.mark.parametrize(
    ("at", "minutes"),
    [
        ("2030-05-31T12:01:00Z", 1),
        ("2030-05-31T14:30:00+02:00", 30),
        ("2030-05-31T07:00:00-05:30", 30),
        ("2030-06-01 00:00+11:45", 15),
        ("20300531T130000+0000", 60),
    ],
)
async def test_a_time_with_an_offset_is_that_moment(harness: ScheduleHarness, at: str, minutes: int) -> None:
    await harness.call("remind_me", text="tea", at=at)

    assert await harness.due() == [NOON + minutes * 60]


async def test_a_reminder_is_shown_in_the_zone_it_was_asked_for_in(harness: ScheduleHarness) -> None:
    said = await harness.call("remind_me", text="tea", at="2030-06-01T00:30:00+05:30")

    assert "Saturday 2030-06-01 00:30 (UTC+05:30)" in said
    assert "2030-06-01 00:30 (UTC+05:30): tea" in await harness.call("list_reminders")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "say when"),
        ({"in_minutes": 5, "at": "2030-05-31T13:00:00Z"}, "give one of when, in_minutes and at"),
        ({"in_minutes": 0}, "that time is over: it is 2030-05-31T12:00:00+00:00 now"),
        ({"in_minutes": -5}, "that time is over"),
        ({"in_minutes": float("nan")}, "a number of minutes"),
        ({"in_minutes": float("inf")}, "a number of minutes"),
        ({"in_minutes": MAX_MINUTES + 1}, "at most a year"),
        ({"at": "2030-05-31T13:00:00"}, "needs its offset from UTC"),
        ({"at": "2030-06-01"}, "needs its offset from UTC"),
        ({"at": "tomorrow"}, "at must be a date and time such as 2030-05-31T12:00:00"),
        ({"at": ""}, "at must be a date"),
        ({"at": "2030-05-31T12:00:00Z"}, "that time is over"),
        ({"at": "2030-05-31T13:00:00+02:00"}, "that time is over"),
        ({"at": "0001-01-01T00:00:00+14:00"}, ""),
        ({"at": "9999-12-31T23:59:59Z"}, "at most a year"),
        ({"in_minutes": "5"}, ""),
    ],
)
async def test_a_time_that_cannot_be_is_refused_in_words(
    harness: ScheduleHarness, arguments: dict[str, Any], words: str
) -> None:
    with pytest.raises(ToolFailed) as failed:
        await harness.call("remind_me", text="x", **arguments)

    assert words in str(failed.value)
    assert await harness.due() == []


async def test_a_year_ahead_is_the_most(harness: ScheduleHarness) -> None:
    await harness.call("remind_me", text="x", in_minutes=MAX_MINUTES)

    assert await harness.due() == [NOON + MAX_MINUTES * 60]


@pytest.mark.parametrize("text", ["", "  \n ", "\x00\x1b", "x" * (MAX_TEXT_CHARS + 1)])
async def test_a_reminder_has_words_and_not_too_many(harness: ScheduleHarness, text: str) -> None:
    with pytest.raises(ToolFailed):
        await harness.call("remind_me", text=text, in_minutes=1)


async def test_fifty_reminders_are_enough_for_one_person_and_no_one_elses_are_touched(
    harness: ScheduleHarness,
) -> None:
    for number in range(MAX_REMINDERS):
        await harness.call("remind_me", text=f"n{number}", in_minutes=number + 1)

    with pytest.raises(ToolFailed, match="50 reminders already"):
        await harness.call("remind_me", text="one more", in_minutes=1)
    await harness.call("remind_me", scope(author=BEN), text="mine", in_minutes=1)
    assert len(await harness.due()) == MAX_REMINDERS + 1


async def test_no_one_sees_or_cancels_another_persons_reminders(harness: ScheduleHarness) -> None:
    await harness.call("remind_me", text="secret", in_minutes=5)
    (kept,) = await harness.store.jobs.of(REMINDER, "console:local:user:ada")

    assert "secret" not in await harness.call("list_reminders", scope(author=BEN))
    assert "secret" not in await harness.call("list_reminders", scope(private=False))
    with pytest.raises(ToolFailed, match="no such reminder"):
        await harness.call("cancel_reminder", scope(author=BEN), id=kept.key)
    assert len(await harness.due()) == 1


async def test_nothing_is_kept_of_a_conversation_off_the_record(harness: ScheduleHarness) -> None:
    with pytest.raises(Refused, match="off the record"):
        await harness.call("remind_me", scope(mode="otr"), text="x", in_minutes=5)

    assert await harness.due() == []


async def test_only_listing_reads_and_what_changes_is_the_owners_own(harness: ScheduleHarness) -> None:
    tools = {tool.name: (tool.reads_only, tool.own_only) for tool in await harness.group.tools(scope())}

    assert tools == {
        "remind_me": (False, True),
        "repeat_for_me": (False, False),
        "list_reminders": (True, False),
        "cancel_reminder": (False, True),
        "set_time_zone": (False, True),
    }


async def test_the_users_own_words_are_read_in_their_own_time_zone(harness: ScheduleHarness) -> None:
    said = await harness.call("set_time_zone", zone="berlin")
    assert said == "Your time zone is Europe/Berlin from now on: it is 14:00 there."
    said = await harness.call("remind_me", text="call mum", when="tomorrow at 8 am")
    assert "Saturday 2030-06-01 08:00 (UTC+02:00): call mum" in said
    assert await harness.due() == [datetime.fromisoformat("2030-06-01T08:00:00+02:00").timestamp()]
    others = scope(author=BEN)
    assert "2030-06-01 08:00 (UTC)" in await harness.call("remind_me", others, text="tea", when="morgen um 8")


async def test_a_repetition_is_refused_in_words_and_nothing_is_kept(harness: ScheduleHarness) -> None:
    with pytest.raises(ToolFailed, match="is for once, and “every day at 9” repeats"):
        await harness.call("remind_me", text="pills", when="every day at 9")
    assert await harness.due() == []


async def test_a_zone_that_there_is_not_changes_nothing_and_off_the_record_none_is_kept(
    harness: ScheduleHarness,
) -> None:
    with pytest.raises(ToolFailed, match="there is no time zone Mars"):
        await harness.call("set_time_zone", zone="Mars")
    with pytest.raises(Refused, match="off the record"):
        await harness.call("set_time_zone", scope(mode="otr"), zone="Europe/Berlin")
    assert harness.book.names == {}


async def test_a_reminder_is_cancelled_by_words_of_it_where_they_name_one(harness: ScheduleHarness) -> None:
    for text in ("pay the rent", "pay the gas", "call mum"):
        await harness.call("remind_me", text=text, in_minutes=5)
    with pytest.raises(ToolFailed, match="2 reminders have “pay”"):
        await harness.call("cancel_reminder", id="pay")
    assert "cancelled" in await harness.call("cancel_reminder", id="Mum")
    with pytest.raises(ToolFailed, match="no such reminder"):
        await harness.call("cancel_reminder", id="mum")

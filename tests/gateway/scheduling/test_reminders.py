"""Reminders that are due: enqueued once, whatever happens between, and no chat in another's way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.access.policy import AccessRule
from gateway.scheduling.reminders import LATE_S, REMINDER, ReminderScheduler
from gateway.storage.jobs import Job, NewJob
from gateway.storage.memory import MemoryStore
from gateway.storage.ports import InboxEntry, Store
from gateway.storage.sqlite import SqliteStore
from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import StorageError
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Author, InboundMessage, ReminderDue, SessionCommand
from pipeline.runtime.ports import ReminderNote
from tests.support.contexts import THREAD, scope
from tests.support.harness import open_gateway
from tests.support.jobs import RunnerHarness, next_reminder
from tests.support.posting_channel import MemoryPosts

HERE = THREAD.encode()


async def anybody(_due: ReminderDue | InboundMessage | SessionCommand) -> bool:
    return True


class Forgetful(MemoryStore):
    """Fails where requested: the process could have died there."""

    def __init__(self) -> None:
        super().__init__()
        self.accepting = 0
        """So many failures to come."""
        self.kept = self.jobs
        self.ending = 0
        self.jobs: Any = _Book(self)

    async def accept(self, *given: Any, **named: Any) -> Any:
        if self.accepting:
            self.accepting -= 1
            raise StorageError("disk full")
        return await super().accept(*given, **named)


class _Book:
    def __init__(self, store: Forgetful) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store.kept, name)

    async def done(self, job: Job) -> bool:
        if self._store.ending:
            self._store.ending -= 1
            raise StorageError("disk full")
        done: bool = await self._store.kept.done(job)
        return done


class Room:
    """A ReminderScheduler and its store."""

    def __init__(self, store: Store | None = None, clock: ManualClock | None = None) -> None:
        self.store = store or MemoryStore()
        self.clock = clock or ManualClock()
        self.woken: list[str] = []
        self.jobs = RunnerHarness(self.store, self.clock)
        self.scheduler = ReminderScheduler(
            jobs=self.jobs.runner,
            store=self.store,
            clock=self.clock,
            wake=self.woken.append,
            still_allowed=anybody,
        )

    async def remind(self, text: str, in_s: float, *, key: str = "", **of: Any) -> None:
        note = ReminderNote(id=key or f"rem_{text}", due=self.clock.now() + in_s, text=text)
        assert await self.scheduler.add(note, scope(**of), limit=50)

    async def said(self, thread: str = HERE) -> list[str]:
        return [due_of(entry).text for entry in await self.store.open_entries(thread)]


def due_of(entry: InboxEntry) -> ReminderDue:
    assert isinstance(entry.item, ReminderDue)
    return entry.item


@asynccontextmanager
async def at_work(room: Room) -> AsyncIterator[Room]:
    await room.store.open()
    await room.jobs.runner.recover()
    room.jobs.tasks.spawn(room.jobs.runner.run(), name="jobs")
    await room.clock.advance(0)
    try:
        yield room
    finally:
        await room.jobs.tasks.close()


async def test_a_reminder_is_enqueued_when_its_time_has_come_and_not_before() -> None:
    async with at_work(Room()) as room:
        await room.remind("tea", 600)
        await room.clock.advance(599)
        assert await room.said() == []

        await room.clock.advance(1)

        (entry,) = await room.store.open_entries(HERE)
        due = due_of(entry)
        assert (due.text, due.author, due.private) == ("tea", Author(id="ada", name="Ada"), True)
        assert room.woken == [HERE]
        assert await next_reminder(room.store) is None


async def test_a_sooner_one_that_is_added_later_is_not_slept_through() -> None:
    async with at_work(Room()) as room:
        await room.remind("late", 3_000)
        await room.clock.advance(100)
        await room.remind("soon", 10)
        await room.clock.advance(10)

        assert await room.said() == ["soon"]
        await room.clock.advance(2_890)
        assert await room.said() == ["soon", "late"]


async def test_a_cancelled_reminder_is_not_said() -> None:
    async with at_work(Room()) as room:
        await room.remind("tea", 10)
        assert await room.scheduler.remove("rem_tea", scope())
        await room.clock.advance(100)

        assert await room.said() == []


async def test_many_that_are_due_together_are_said_in_their_order() -> None:
    async with at_work(Room()) as room:
        for number in range(120):
            await room.remind(f"{number:03}", 1 + number / 1000, author=Author(id=f"u{number}"))
        await room.clock.advance(5)

        assert await room.said() == [f"{number:03}" for number in range(120)]


async def test_a_clock_that_is_set_forward_is_noticed_within_a_minute() -> None:
    async with at_work(Room()) as room:
        await room.remind("tea", 3_600)
        room.clock.step_wall(3_600)
        await room.clock.advance(60)

        assert await room.said() == ["tea"]


@pytest.mark.parametrize("failing", ["accepting", "ending"])
async def test_a_store_that_fails_between_the_steps_makes_no_reminder_come_twice_or_never(
    failing: str,
) -> None:
    store = Forgetful()
    async with at_work(Room(store)) as room:
        setattr(store, failing, 3)
        await room.remind("tea", 10)
        await room.clock.advance(10)
        assert await next_reminder(store) is not None
        await room.clock.advance(60)

        assert await room.said() == ["tea"]
        assert await next_reminder(store) is None


async def test_a_process_that_dies_between_inbox_and_book_says_it_once() -> None:
    store = Forgetful()
    async with at_work(Room(store)) as room:
        store.ending = 1_000
        await room.remind("tea", 10)
        await room.clock.advance(10)
        assert await room.said() == ["tea"]
    store.ending = 0

    async with at_work(Room(store, room.clock)) as again:
        assert await again.said() == ["tea"]
        assert await next_reminder(store) is None


async def test_what_came_due_while_no_one_was_there_is_said_at_the_start_with_its_time() -> None:
    store, clock = MemoryStore(), ManualClock(1_900_000_000.0)
    async with at_work(Room(store, clock)) as room:
        await room.remind("tea", 60)
    await clock.advance(60 + LATE_S + 1)

    async with at_work(Room(store, clock)) as room:
        assert await room.said() == ["tea (it was due on Sunday 2030-03-17 17:47 (UTC))"]


async def test_a_short_id_that_comes_again_is_another_reminder() -> None:
    async with at_work(Room()) as room:
        for text in ("first", "second"):
            await room.remind(text, 10, key="rem_same")
            await room.clock.advance(10)

        assert await room.said() == ["first", "second"]


async def test_a_row_that_cannot_be_read_does_not_block_the_others() -> None:
    async with at_work(Room()) as room:
        due = room.clock.now() + 5
        for number, row in enumerate([("no thread", {"author": "x", "private": True}), (HERE, {})]):
            bad = NewJob(kind=REMINDER, key=f"bad{number}", thread=row[0], owner="x", due=due, body=row[1])
            await room.store.jobs.add(bad)
        await room.remind("good", 6)
        await room.clock.advance(10)

        assert await room.said() == ["good"]
        assert await next_reminder(room.store) is None


async def test_a_due_reminder_is_posted_and_one_for_a_channel_that_is_gone_keeps_no_one_waiting(
    tmp_path: Path,
) -> None:
    posts, clock = MemoryPosts(), ManualClock()
    store = SqliteStore(tmp_path / "parlour.sqlite3", synchronous="NORMAL")
    room = Room(store, clock)
    await store.open()
    await room.remind("sold", 5, thread=ThreadKey(channel="telegram", account="sold", chat="7"))
    await room.remind("feed the cat", 6, thread=posts.thread())
    await room.remind("meet", 7, thread=posts.thread("room"), private=False)
    await clock.advance(10)
    await hand_over(room)
    await store.close()

    async with open_gateway(tmp_path, posts=posts, clock=clock):
        await posts.until(lambda: bool(posts.texts() and posts.texts("room")))

    assert posts.texts() == ["Reminder: feed the cat"]
    assert posts.texts("room") == ["Reminder: meet"]
    assert {message.reply_handle for message in posts.messages} == {""}


async def test_anyone_who_was_shut_out_since_is_not_reminded(tmp_path: Path) -> None:
    posts, clock = MemoryPosts(), ManualClock()
    store = SqliteStore(tmp_path / "parlour.sqlite3", synchronous="NORMAL")
    room = Room(store, clock)
    await store.open()
    for number, (user, place, private) in enumerate(
        [("eve", "c1", True), ("eve", "room", False), ("bob", "c2", True), ("ann", "c3", True)]
    ):
        author = Author(id=user)
        await room.remind(user, 5 + number, author=author, thread=posts.thread(place), private=private)
    await store.close()
    await clock.advance(20)
    rule = AccessRule.of(mode="pairing", allow=["dm:ann", "dm:eve", "room:room"], deny=["eve"])

    async with open_gateway(tmp_path, posts=posts, clock=clock, rule=rule) as harness:
        await posts.until(lambda: bool(posts.texts("c3")))
        assert await next_reminder(harness.store) is None
        assert await harness.store.pairings.requests(now=clock.now()) == ()

    assert [message.text for message in posts.messages] == ["Reminder: ann"]


async def hand_over(room: Room) -> None:
    """Run the scheduler until it has no reminders left."""
    room.jobs.tasks.spawn(room.jobs.runner.run(), name="jobs")
    async with asyncio.timeout(60):
        while await next_reminder(room.store) is not None:
            await room.clock.advance(0)
    await room.jobs.tasks.close()

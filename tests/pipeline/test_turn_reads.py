"""Covers: pipeline/turn_reads.py."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from pipeline.domain.clock import ManualClock
from pipeline.domain.conversation import Conversation, Summary
from pipeline.domain.errors import StorageError
from pipeline.domain.messages import Author, InboundMessage
from pipeline.domain.rooms import RoomLine, RoomTalk
from pipeline.runtime.null_services import NullRooms, NullWorkspace
from pipeline.runtime.ports import Rooms, TurnSession
from pipeline.runtime.scope import TurnScope
from pipeline.turn_reads import ReadFailed, TurnReads, has_used_history
from tests.support.contexts import THREAD, scope, talk


class Journal:
    """Counts the reads; the first ones raise `failures`, and each waits for `open`."""

    def __init__(self, said: Conversation, *failures: Exception) -> None:
        self.said = said
        self.failures = list(failures)
        self.reads = 0
        self.open = asyncio.Event()
        self.open.set()

    async def conversation(self) -> Conversation:
        self.reads += 1
        await self.open.wait()
        if self.failures:
            raise self.failures.pop(0)
        return self.said

    async def record_summary(self, _summary: Summary) -> bool:
        return False


class OneLine(NullRooms):
    """A room where somebody else has written a line."""

    async def talk(self, _message: object, _said: Conversation) -> RoomTalk:
        return RoomTalk(lines=(RoomLine(text="buy", name="Eve"),))


def _reads(
    journal: Journal,
    *,
    private: bool = True,
    of: TurnScope | None = None,
    clock: ManualClock | None = None,
    rooms: Rooms | None = None,
) -> TurnReads:
    message = InboundMessage(
        message_id="m",
        native_id="n",
        thread=THREAD,
        author=Author(id="ada"),
        received_at=0.0,
        text="hi",
        private=private,
    )
    return TurnReads(
        session=cast("TurnSession", journal),
        rooms=rooms or NullRooms(),
        workspace=NullWorkspace(),
        message=message,
        scope=of or scope(private=private),
        clock=clock or ManualClock(),
    )


async def test_two_branches_that_need_the_history_at_once_cause_one_read() -> None:
    journal = Journal(talk("hello", "hi"))
    journal.open.clear()
    reads = _reads(journal)
    async with asyncio.TaskGroup() as group:
        both = [group.create_task(reads.conversation()) for _ in range(2)]
        await asyncio.sleep(0)
        journal.open.set()
    assert [task.result() for task in both] == [journal.said] * 2
    assert journal.reads == 1


async def test_a_branch_that_is_cancelled_while_it_reads_leaves_the_read_to_the_other() -> None:
    journal = Journal(talk("hello", "hi"))
    journal.open.clear()
    reads = _reads(journal)
    async with asyncio.TaskGroup() as group:
        first, second = (group.create_task(reads.conversation()) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        journal.open.set()
    assert first.cancelled()
    assert second.result() == journal.said
    assert journal.reads == 2


async def test_a_store_that_fails_is_read_again_and_after_three_tries_the_node_fails_in_words() -> None:
    clock = ManualClock()
    journal = Journal(talk("hello", "hi"), *[StorageError("busy")] * 5)
    reads = _reads(journal, clock=clock)

    async def pass_time() -> None:
        for _ in range(4):
            await clock.advance(1.0)

    with pytest.raises(ReadFailed, match="could not read what we said before") as failed:
        await asyncio.gather(reads.conversation(), pass_time())
    assert (failed.value.reason, failed.value.permanent) == ("history_unreadable", True)
    assert journal.reads == 3
    said, _ = await asyncio.gather(reads.conversation(), pass_time())
    assert said == journal.said, "a later use tries again"


async def test_a_history_that_cannot_be_understood_fails_at_once() -> None:
    journal = Journal(Conversation(), ValueError("a record is not what it should be"))
    with pytest.raises(ReadFailed):
        await _reads(journal).conversation()
    assert journal.reads == 1


async def test_a_room_is_read_once_and_what_others_wrote_there_is_noted_then() -> None:
    journal, of = Journal(Conversation()), scope(private=False)
    reads = _reads(journal, private=False, of=of, rooms=OneLine())
    assert not of.foreign
    assert await reads.room() is await reads.room()
    assert of.foreign.sources == ("what others wrote in the room",)
    assert await _reads(journal, rooms=OneLine()).room() == RoomTalk(), "a private chat is no room"


async def test_a_summary_replaces_the_beginning_for_the_turn_even_if_it_came_too_late_to_be_kept() -> None:
    reads = _reads(Journal(talk("a", "b", "c", "d")))
    assert len((await reads.conversation()).turns) == 2
    assert not await reads.summarise(Summary(text="They talked.", upto=1))
    left = await reads.conversation()
    assert left.summary == Summary(text="They talked.", upto=1)
    assert [turn.id for turn in left.turns] == [2]


async def test_hosts_that_were_named_before_count_once_the_history_is_read() -> None:
    reads = _reads(Journal(talk("see https://example.org/x", "yes")))
    assert reads.named_hosts("and https://example.com") == {"example.com"}
    await reads.conversation()
    assert reads.named_hosts("and https://example.com") == {"example.com", "example.org"}


@pytest.mark.parametrize(
    ("state", "used"),
    [
        ({}, False),
        ({"intake": {"refused": ""}, "message": "hi", "answers": {"ask": {"choice": "yes"}}}, False),
        ({"intake": {"turns_kept": 0}}, True),
        ({"agent": {"answer": "hi"}}, True),
        ({"tasks": {}}, True),
        ({"history": {"text": "x", "upto": 1}}, True),
    ],
)
def test_a_run_that_has_used_the_history_is_known_by_its_state(state: dict[str, object], used: bool) -> None:
    assert has_used_history(state) is used

"""A running gateway looks for people who are removed beside it, and closes their pages.

Covers: gateway/people/page_people.py.
"""

from __future__ import annotations

import asyncio
from typing import Literal

import pytest

from gateway.people.page_people import LOOK_S, PageAccounts, invite_person, remove_person
from gateway.runtime.crash_labels import CrashLabels
from gateway.storage.memory import MemoryStore
from gateway.storage.memory.jobs import MemoryJobs
from gateway.storage.memory.page_people import MemoryPagePeople
from gateway.storage.page_chats import PageChatBook
from gateway.storage.page_people import Device, PagePerson
from gateway.storage.saved_workflows import SavedWorkflowBook
from pipeline.domain.clock import ManualClock
from pipeline.domain.frozen import dataclass

Read = Literal["", "people", "devices"]


class _RemovedMeanwhile(MemoryPagePeople):
    """A book from which everyone is removed right after the read that `after` names."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(lambda: None, lambda _threads: None, MemoryJobs(lambda: None))
        self._clock = clock
        self.after: Read = ""

    async def people(self) -> tuple[PagePerson, ...]:
        found = await super().people()
        await self._remove_all("people")
        return found

    async def devices(self, person_id: str | None = None) -> tuple[Device, ...]:
        found = await super().devices(person_id)
        await self._remove_all("devices")
        return found

    async def _remove_all(self, read: Read) -> None:
        if self.after != read:
            return
        self.after = ""
        for one in await super().people():
            await remove_person(self, one.id, threads=one.id, now=self._clock.now())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Books:
    people: MemoryPagePeople
    chats: PageChatBook
    workflows: SavedWorkflowBook


async def _voice_mode(_person: str) -> str:
    return ""


@pytest.mark.parametrize("read", ["people", "devices"])
async def test_the_last_person_s_page_is_closed_when_they_are_removed_during_a_look(read: Read) -> None:
    clock = ManualClock()
    book = _RemovedMeanwhile(clock)
    page = MemoryStore().page
    books = _Books(people=book, chats=page.chats, workflows=page.workflows)
    accounts = PageAccounts(books, clock, CrashLabels(), _voice_mode)
    invited = await invite_person(book, "Ann", now=clock.now(), valid_s=60)
    visitor = await accounts.redeem(invited.code, "token", "Firefox")
    assert visitor is not None
    shown = {visitor.device}
    stopped: list[str] = []

    async def stop(people: frozenset[str]) -> None:
        stopped.extend(people)

    book.after = read
    async with asyncio.TaskGroup() as group:
        looks = accounts.watch(devices=lambda: frozenset(shown), sign_out=shown.difference_update, stop=stop)
        watching = group.create_task(looks)
        for _ in range(3):
            await clock.advance(LOOK_S)
        watching.cancel()
    assert shown == set()
    assert stopped == [visitor.person]

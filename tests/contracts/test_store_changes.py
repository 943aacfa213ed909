"""What another process may have changed, on each store that several can share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from gateway.storage.changes import COPIED
from gateway.storage.erasure import FULL_ERASURE
from gateway.storage.heartbeats import HEARTBEAT_SETTINGS, WATCH
from gateway.storage.identities import Identity, JoinRequest, LinkCode, TryLimits
from gateway.storage.jobs import NewJob
from gateway.storage.page_people import Invitation, PagePerson
from tests.contracts.shared_store import WholeStore
from tests.contracts.store_values import NOW, OTHER, THREAD, entry, lease_on, turn

pytestmark = pytest.mark.parametrize("store_kind", ["memory", "postgres"], indirect=True)

ANN = Identity(channel="telegram", account="main", user="1")
BEN = Identity(channel="slack", account="main", user="2")
LIMITS = TryLimits(window_s=60.0, identity=5, everybody=9)


async def changed(store: WholeStore, change: Callable[[], Awaitable[Any]]) -> set[str]:
    """The books that have another revision afterwards."""
    before = await store.changes.revisions()
    await change()
    after = await store.changes.revisions()
    assert before.keys() == after.keys() == set(COPIED)
    return {book for book, number in after.items() if number != before[book]}


async def joined(store: WholeStore) -> None:
    await store.identities.issue(
        LinkCode(identity=ANN, thread="t", code_hash="h", issued_at=NOW, expires_at=NOW + 60), limit=9
    )
    request = JoinRequest(
        identity=BEN,
        thread="t2",
        message_id="m",
        code_hash="h",
        new_person="person:1",
        most=9,
        at=NOW,
        day="2026-01-01",
    )
    assert (await store.identities.join(request, LIMITS)).status == "joined"


async def test_each_change_of_a_book_gives_it_another_revision(store: WholeStore) -> None:
    assert "identities" in await changed(store, lambda: joined(store))
    left = store.identities.leave
    assert "identities" in await changed(store, lambda: left(BEN, message_id="m2", day="2026-01-01"))
    person = PagePerson(id="u_1", name="Ann", invited_at=NOW)
    invitation = Invitation(person="u_1", code_hash="c", made_at=NOW, expires_at=NOW + 60)
    assert "people" in await changed(store, lambda: store.page.people.add(person, invitation))
    erasure = NewJob(kind="person_erasure", key="u_1", due=NOW)
    removed = store.page.people.remove
    assert "people" in await changed(store, lambda: removed("u_1", threads="web:site:u_1", job=erasure))
    assert "chats" in await changed(store, lambda: store.page.chats.rename(THREAD, "A name"))


async def test_what_is_watched_and_its_settings_are_a_book_too(store: WholeStore) -> None:
    jobs = store.jobs
    watch = NewJob(kind=WATCH, key="w1", due=9e9, owner="a", body={"seen": 1})
    settings = NewJob(kind=HEARTBEAT_SETTINGS, key="a", due=9e9, owner="a", body={"off": True})
    assert "watches" in await changed(store, lambda: jobs.add(watch))
    assert "watches" in await changed(store, lambda: jobs.add(settings))
    off = jobs.change
    assert "watches" in await changed(store, lambda: off(HEARTBEAT_SETTINGS, "a", "a", due=9e9, body={}))
    assert "watches" in await changed(store, lambda: jobs.remove(WATCH, "a", "w1"))


async def test_an_erasure_changes_its_book_when_it_begins_and_when_it_is_done(store: WholeStore) -> None:
    jobs = store.jobs
    assert "erasures" in await changed(store, lambda: jobs.add(NewJob(kind=FULL_ERASURE, key="a", due=1.0)))
    job = await jobs.claim(FULL_ERASURE, now=2.0, until=9.0)
    assert job is not None
    assert "erasures" in await changed(store, lambda: jobs.done(job))


async def test_without_a_change_a_revision_stays(store: WholeStore) -> None:
    await joined(store)

    async def nothing() -> None:
        await store.identities.linked()

    assert await changed(store, nothing) == set()


async def test_the_stopped_entries_are_those_cancelled_and_not_finished(
    store: WholeStore,
) -> None:
    first = (await store.accept(entry("1"))).seq
    second = (await store.accept(entry("2"))).seq
    other = (await store.accept(entry("3", thread=OTHER))).seq
    every = dict.fromkeys((first, second, other, 99), NOW)
    assert await store.changes.stopped(every) == frozenset()
    await store.cancel_open(THREAD)
    assert await store.changes.stopped(every) == {first, second}
    assert await store.changes.stopped({second: NOW, other: NOW}) == {second}
    assert await store.changes.stopped({}) == frozenset()
    await store.commit_turn(await lease_on(store), turn(first))
    assert await store.changes.stopped(every) == {second}


async def test_a_turn_over_which_somebody_speaks_is_to_be_stopped(store: WholeStore) -> None:
    running = (await store.accept(entry("1"))).seq
    other = (await store.accept(entry("2", thread=OTHER))).seq
    every = {running: NOW, other: NOW}
    spoken = replace(entry("3"), kind="barge_in", body={"author": {"id": "owner"}}, received_at=NOW + 2)
    said = (await store.accept(spoken)).seq
    assert await store.changes.stopped(every) == {running}
    # A turn that began after that, and one that is younger than that in the thread.
    assert await store.changes.stopped({running: NOW + 3}) == frozenset()
    later = (await store.accept(entry("4"))).seq
    assert await store.changes.stopped({later: NOW}) == frozenset()
    await store.commit_turn(await lease_on(store), turn(said))
    assert await store.changes.stopped(every) == frozenset()

"""Which worker a wake is sent to: the one that has the thread, else one with room that a hash chooses."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import pytest

from gateway.cluster.remote import RemoteBus
from gateway.cluster.wakes import MOST_ASKED, SentTo
from gateway.cluster.workers import ANNOUNCE_S, GONE_S, KnownWorkers
from gateway.runtime.tasks import Supervisor
from pipeline.domain.clock import ManualClock
from tests.contracts.bus_cases import Reader, live_turn, started
from tests.support.memory_transport import MemoryHub

_STEP_S = 0.25
THREADS = tuple(f"telegram:main:{number}" for number in range(300))


@dataclass
class Taker:
    """A worker with so much room, and what it was asked to look at."""

    room: int = 1_000
    taken: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    looked: list[str] = field(default_factory=list)
    lingering: list[str] = field(default_factory=list)
    """Threads that it has, and that have no work."""

    def take(self, thread: str) -> bool:
        (self.taken if self.room else self.refused).append(thread)
        return self.room > 0

    def look(self, thread: str) -> None:
        self.looked.append(thread)

    def hand_over(self, thread: str, after: Callable[[], None]) -> bool:
        if thread not in self.lingering:
            return False
        self.lingering.remove(thread)
        after()
        return True


class Cluster:
    """Buses that are connected, one without a worker and some with one."""

    def __init__(self) -> None:
        self.clock, self.hub, self.tasks = ManualClock(), MemoryHub(), Supervisor()
        self.counts: Counter[SentTo] = Counter()
        self.sender = RemoteBus((self.hub,), self.clock, self.tasks.spawn, count_wake=self._count)
        self.buses = [self.sender]
        self.takers: list[Taker] = []

    async def add(self, room: int = 1_000) -> Taker:
        """Another worker, which has announced itself."""
        bus, taker = RemoteBus((self.hub,), self.clock, self.tasks.spawn), Taker(room)
        bus.take_wakes(taker)
        self.buses.append(bus)
        self.takers.append(taker)
        await bus.open()
        await self.settle()
        return taker

    async def add_older(self) -> tuple[RemoteBus, list[str]]:
        """A process of an older release, which does not announce itself, and the threads that it is woken
        for."""
        older, woken = RemoteBus((self.hub,), self.clock, self.tasks.spawn), list[str]()
        older.on_wake(woken.append)
        self.buses.append(older)
        await older.open()
        return older, woken

    async def settle(self, seconds: float = ANNOUNCE_S) -> None:
        """Let time pass until what was sent has arrived, also what is passed on."""
        # In steps in which a probe of the servers comes back.
        for _ in range(round(seconds / _STEP_S)):
            await self.clock.advance(_STEP_S)
            await self.sender.round_trip()
        for _ in range(MOST_ASKED):
            for bus in self.buses:
                await bus.settled()
            for bus in self.buses:
                await bus.round_trip()

    def _count(self, to: SentTo) -> None:
        self.counts[to] += 1


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with AsyncExitStack() as stack:
        made = Cluster()
        stack.push_async_callback(made.tasks.close)
        await made.sender.open()
        await made.sender.round_trip()
        yield made
        for bus in made.buses:
            await bus.close()


async def test_each_thread_wakes_one_worker_and_all_get_some(cluster: Cluster) -> None:
    for _ in range(4):
        await cluster.add()
    for thread in THREADS:
        cluster.sender.wake(thread)
    await cluster.settle()
    taken = [thread for one in cluster.takers for thread in one.taken]
    assert sorted(taken) == sorted(THREADS)
    assert min(len(one.taken) for one in cluster.takers) > len(THREADS) / 10
    assert cluster.counts == {"chosen": len(THREADS)}
    assert cluster.sender.workers == 4


async def test_a_worker_more_moves_only_the_threads_that_it_gets(cluster: Cluster) -> None:
    first, second = await cluster.add(), await cluster.add()
    before = await _taken(cluster)
    third = await cluster.add()
    after = await _taken(cluster)
    moved = {thread for thread in THREADS if before[thread] is not after[thread]}
    assert moved == {thread for thread in THREADS if after[thread] is third}
    assert {id(one) for one in before.values()} == {id(first), id(second)}


async def _taken(cluster: Cluster) -> dict[str, Taker]:
    for one in cluster.takers:
        one.taken.clear()
    for thread in THREADS:
        cluster.sender.wake(thread)
    await cluster.settle()
    return {thread: one for one in cluster.takers for thread in one.taken}


async def test_the_worker_that_ran_the_last_turn_is_woken_again(cluster: Cluster) -> None:
    for _ in range(3):
        await cluster.add()
    turn = live_turn("m1")
    # The edge shows the account, and so sees who runs its turns.
    cluster.sender.on_events(turn.thread.account_key, Reader())
    await cluster.settle()
    for bus, taker in zip(cluster.buses[1:], cluster.takers, strict=True):
        stream = bus.events(turn)
        await stream.send_event(started("m1"))
        await cluster.settle()
        cluster.sender.wake(turn.thread.encode())
        await cluster.settle()
        assert taker.taken == [turn.thread.encode()]
    assert cluster.counts == {"owner": 3}


async def test_a_worker_without_room_is_not_chosen_and_one_that_got_full_passes_it_on(
    cluster: Cluster,
) -> None:
    full, free = await cluster.add(room=0), await cluster.add()
    for thread in THREADS[:50]:
        cluster.sender.wake(thread)
    await cluster.settle()
    assert (len(full.refused), len(free.taken)) == (0, 50)
    # It fills up after it has said that there is room.
    full.room = 1_000
    await cluster.settle()
    full.room = 0
    for thread in THREADS[50:100]:
        cluster.sender.wake(thread)
    await cluster.settle(0.0)
    assert full.refused
    await cluster.settle()
    assert len(free.taken) == 100


async def test_a_full_worker_leaves_an_idle_thread_to_one_with_fewer_turns_that_wait(
    cluster: Cluster,
) -> None:
    busy, less = await cluster.add(room=-5), await cluster.add(room=-3)
    turn = live_turn("m1")
    thread = turn.thread.encode()
    cluster.sender.on_events(turn.thread.account_key, Reader())
    await cluster.buses[1].events(turn).send_event(started("m1"))
    await cluster.settle()
    busy.lingering.append(thread)
    cluster.sender.wake(thread)
    await cluster.settle(0.0)
    assert (busy.taken, less.taken, busy.lingering) == ([], [thread], [])
    # A thread that has work is not left, and neither is one of a worker that has less to do.
    cluster.sender.wake(thread)
    busy.room = -2
    busy.lingering.append(thread)
    await cluster.settle()
    cluster.sender.wake(thread)
    await cluster.settle(0.0)
    assert busy.lingering == [thread]
    assert busy.taken == [thread, thread]


async def test_no_more_is_sent_than_there_was_room_for(cluster: Cluster) -> None:
    await cluster.add(room=3)
    await cluster.add(room=2)
    for thread in THREADS[:10]:
        cluster.sender.wake(thread)
    await cluster.settle(0.0)
    assert sorted(len(one.taken) for one in cluster.takers) == [2, 3]
    assert cluster.sender.room == 0
    assert cluster.counts == {"chosen": 5, "none": 5}


async def test_where_no_worker_announces_itself_all_are_woken(cluster: Cluster) -> None:
    _, woken = await cluster.add_older()
    await cluster.settle()
    assert cluster.sender.room is None
    cluster.sender.wake(THREADS[0])
    await cluster.settle()
    assert woken == [THREADS[0]]
    assert cluster.counts == {"all": 1}


async def test_the_thread_of_a_worker_of_an_older_release_wakes_all(cluster: Cluster) -> None:
    older, woken = await cluster.add_older()
    await cluster.add()
    turn = live_turn("m1")
    cluster.sender.on_events(turn.thread.account_key, Reader())
    await cluster.settle()
    await older.events(turn).send_event(started("m1"))
    await cluster.settle()
    cluster.sender.wake(turn.thread.encode())
    await cluster.settle()
    assert woken == [turn.thread.encode()]


async def test_what_a_worker_that_died_was_sent_is_sent_to_all(cluster: Cluster) -> None:
    dying, left = await cluster.add(), await cluster.add()
    woken: list[str] = []
    cluster.buses[2].on_wake(woken.append)
    await cluster.buses.pop(1).close()
    for thread in THREADS[:40]:
        cluster.sender.wake(thread)
    await cluster.settle(0.0)
    assert not dying.taken
    assert left.taken
    while cluster.sender.workers > 1:
        await cluster.settle(0.25)
    await cluster.settle(0.0)
    assert sorted(woken + left.taken) == sorted(THREADS[:40])
    assert cluster.sender.workers == 1


async def test_a_process_that_does_everything_takes_what_it_has_room_for(cluster: Cluster) -> None:
    other = await cluster.add()
    own = Taker(room=1)
    end = cluster.sender.take_wakes(own)
    cluster.sender.wake(THREADS[0])
    own.room = 0
    cluster.sender.wake(THREADS[1])
    await cluster.settle()
    assert (own.taken, own.refused, other.taken) == ([THREADS[0]], [THREADS[1]], [THREADS[1]])
    assert (cluster.sender.workers, cluster.sender.room) == (2, 1_000)
    end()
    assert cluster.sender.workers == 1


async def test_who_has_a_thread_is_found_by_all(cluster: Cluster) -> None:
    for _ in range(3):
        await cluster.add()
    cluster.buses[1].wake_holder(THREADS[0])
    await cluster.settle()
    assert [one.looked for one in cluster.takers] == [[], [THREADS[0]], [THREADS[0]]]


async def test_what_was_sent_long_before_a_worker_died_is_not_sent_again() -> None:
    clock = ManualClock()
    known = KnownWorkers(clock.monotonic)
    known.heard("a", 5)
    known.sent("old", "a")
    await clock.advance(10)
    known.heard("a", 5)
    known.sent("new", "a")
    await clock.advance(GONE_S + 1)
    assert known.forget_silent() == ("new",)
    assert known.forget_silent() == ()

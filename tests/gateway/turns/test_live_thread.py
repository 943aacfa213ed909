"""A runner waits for work as long as it lingers, whatever timer an earlier wait has left."""

from __future__ import annotations

import asyncio

from gateway.storage.lease import NO_LEASE
from gateway.turns.live_thread import IdleAttempt, LiveThread
from gateway.turns.sessions import SessionState

_SHORT_S = 0.02


def _thread() -> LiveThread:
    return LiveThread(work=asyncio.Event())


def _nothing() -> None:
    """Do nothing once the thread is free."""


async def _passed(seconds: float) -> None:
    """Return after so long, as a turn would."""
    over = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, over.set)
    await over.wait()


async def test_the_wait_ends_when_there_is_work() -> None:
    live = _thread()
    asyncio.get_running_loop().call_soon(live.work.set)
    await live.linger(60)
    assert not live.lingered
    live.end()


async def test_a_wait_without_work_says_so() -> None:
    live = _thread()
    await live.linger(_SHORT_S)
    assert live.lingered
    assert live.work.is_set()


async def test_the_timer_of_an_earlier_wait_does_not_shorten_a_later_one() -> None:
    live, loop = _thread(), asyncio.get_running_loop()
    live.work.set()
    await live.linger(_SHORT_S)
    assert live.work.is_set()
    live.work.clear()
    await _passed(_SHORT_S / 2)
    began = loop.time()
    await live.linger(_SHORT_S)
    assert live.lingered
    assert loop.time() - began > 0.9 * _SHORT_S


async def test_a_timer_that_goes_off_during_a_turn_ends_nothing() -> None:
    live = _thread()
    live.work.set()
    await live.linger(_SHORT_S)
    live.work.clear()
    await _passed(2 * _SHORT_S)
    assert (live.lingered, live.work.is_set()) == (False, False)
    await live.linger(_SHORT_S)
    assert live.lingered


async def test_the_end_reports_idle_work_as_not_done() -> None:
    live, completed = _thread(), asyncio.get_running_loop().create_future()

    async def nothing(_lease: object, _session: object) -> None:
        """Do nothing."""

    live.idle.append(IdleAttempt(nothing, completed))
    live.end()
    assert await completed is False
    assert not live.idle


async def test_an_idle_thread_is_handed_over_once_it_is_free() -> None:
    live, handed = _thread(), list[str]()
    assert not live.hand_over(lambda: handed.append("too early"))
    asyncio.get_running_loop().call_soon(lambda: live.hand_over(lambda: handed.append("free")))
    await live.linger(60)
    assert (live.lingered, handed) == (True, [])
    live.end()
    assert handed == ["free"]


async def test_work_that_comes_in_between_keeps_the_thread() -> None:
    live, handed = _thread(), list[str]()
    asyncio.get_running_loop().call_soon(lambda: live.hand_over(lambda: handed.append("free")))
    await live.linger(60)
    # The worker saw the work, and waits again after it.
    live.work.clear()
    asyncio.get_running_loop().call_soon(live.work.set)
    await live.linger(60)
    live.end()
    assert handed == []


async def test_a_thread_off_the_record_is_not_handed_over() -> None:
    live = _thread()
    session = SessionState("s", stored=True, mode="otr")
    await live.do_idle_work(NO_LEASE, session)
    taken: list[bool] = []
    asyncio.get_running_loop().call_soon(lambda: taken.append(live.hand_over(_nothing)))
    await live.linger(_SHORT_S)
    assert taken == [False]
    await live.do_idle_work(NO_LEASE, SessionState("s", stored=True))
    live.work.clear()
    asyncio.get_running_loop().call_soon(lambda: taken.append(live.hand_over(_nothing)))
    await live.linger(60)
    assert taken == [False, True]
    live.end()

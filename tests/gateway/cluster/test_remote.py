"""The bus between processes when its server ends, hangs, returns or is replaced by a spare.

What every bus does is in tests/contracts/test_bus.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.cluster.postgres_transport import PostgresTransport
from gateway.cluster.redis_transport import RedisTransport
from gateway.cluster.remote import RemoteBus
from gateway.cluster.signals import Withdrawn
from gateway.runtime.tasks import Supervisor
from pipeline.domain.clock import SystemClock
from tests.contracts.bus_cases import MAIN, Reader, complete, live_turn, started
from tests.support.noted_transport import NotedTransport
from tests.support.valkey import Valkey

_THREAD = "telegram:main:1"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Valkey]:
    async with Valkey(tmp_path, password="never shown") as running:
        yield running


async def test_a_server_that_ends_is_reported_and_what_waits_arrives_when_it_returns(server: Valkey) -> None:
    noted = NotedTransport(RedisTransport(server.url))
    publisher = RemoteBus((noted,), SystemClock(), Supervisor().spawn)
    subscriber = RemoteBus((RedisTransport(server.url),), SystemClock(), Supervisor().spawn)
    woken = asyncio.Queue[str]()
    controls: list[object] = []
    subscriber.on_wake(woken.put_nowait)
    subscriber.on_control("own_1", controls.append)
    for bus in (publisher, subscriber):
        await bus.open()
        await bus.round_trip()
    assert (publisher.trouble, subscriber.trouble) == ("", "")

    await server.kill()
    await noted.again()
    assert publisher.trouble.startswith("redis cannot be reached")
    assert "never" not in publisher.trouble
    for _ in range(20):
        publisher.wake(_THREAD)
    await server.start()
    # Who subscribes may be the later one to come back, and then misses a signal: the store has everything.
    await subscriber.round_trip()
    publisher.wake("telegram:main:2")
    publisher.control("own_1", Withdrawn(thread=_THREAD, seq=5))
    await publisher.round_trip()
    await subscriber.round_trip()
    while await woken.get() != "telegram:main:2":
        pass
    assert controls == [Withdrawn(thread=_THREAD, seq=5)]
    assert (publisher.trouble, subscriber.trouble) == ("", "")
    for bus in (publisher, subscriber):
        await bus.close()


async def test_a_server_that_hangs_is_reported_and_used_again_when_it_answers(server: Valkey) -> None:
    noted = NotedTransport(RedisTransport(server.url))
    bus = RemoteBus((noted,), SystemClock(), Supervisor().spawn)
    await bus.open()
    await bus.round_trip()
    server.freeze()
    await noted.again()
    assert bus.trouble == "redis does not answer"
    server.thaw()
    await bus.round_trip()
    assert bus.trouble == ""
    await bus.close()


async def test_a_spare_server_carries_everything_while_the_first_one_is_away(
    server: Valkey, postgres_server_url: str
) -> None:
    firsts = NotedTransport(RedisTransport(server.url)), NotedTransport(RedisTransport(server.url))
    spare = PostgresTransport(postgres_server_url)
    publisher, subscriber = (RemoteBus((first, spare), SystemClock(), Supervisor().spawn) for first in firsts)
    reader = Reader()
    subscriber.on_events(MAIN, reader)
    for bus in (publisher, subscriber):
        await bus.open()
        while bus.trouble:
            await bus.round_trip()
    stream = publisher.events(live_turn())
    await stream.send_event(started())
    await publisher.settled()
    await subscriber.round_trip()
    await server.kill()
    for first in firsts:
        await first.again()
    assert publisher.trouble.startswith("redis cannot be reached")
    await stream.send_event(complete())
    await publisher.settled()
    await subscriber.round_trip()
    await subscriber.settled()
    assert reader.types("m1") == ["turn_started", "response_complete"]
    for bus in (publisher, subscriber):
        await bus.close()


async def test_a_server_that_is_not_there_delays_no_start_and_no_end() -> None:
    bus = RemoteBus((RedisTransport("redis://:secret@127.0.0.1:1/0"),), SystemClock(), Supervisor().spawn)
    await bus.open()
    woken: list[str] = []
    bus.on_wake(woken.append)
    bus.wake(_THREAD)
    assert woken == [_THREAD], "a subscriber of this process needs no server"
    assert bus.trouble.startswith("redis ")
    assert "secret" not in bus.trouble
    await bus.close()
    await bus.close()

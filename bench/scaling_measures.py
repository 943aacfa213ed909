"""`python -m bench.scaling_measures`: what several processes cost a server, beyond the other benches.

One signal by the number of its receivers, over both servers of a bus; the choice of a worker for a thread;
and with a million threads in Postgres: a report that a process is alive, a look for work, and a lease that
another process has. The figures go by hand into simulate_costs.toml. Takes some minutes.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import asyncpg
from redis.asyncio import Redis

from bench.processor_time import of_server
from bench.report import ROOT
from gateway.cluster.workers import KnownWorkers
from gateway.storage.owners import UNTIL_GONE, Owner
from gateway.storage.postgres import PostgresStore
from pipeline.domain.clock import SystemClock
from tests.support.postgres_server import MortalServer, mortal_server
from tests.support.valkey import Valkey

RECEIVERS = (1, 10, 40)
WORKERS = (10, 70)
SENT = 2_000
THREADS = 1_000_000
OWNERS = 100
OPEN = (0, 1_000, 4_000)
"""Entries that are unfinished because a live process works on them."""
TOPIC = "wake"
_ALIVE_S = 3_600.0
_FILL = """
    INSERT INTO parlour.threads (key, fence, owner, expires_at)
    SELECT 'dm:telegram:main:' || n, 1, 'own-' || n % $1, $2 FROM generate_series(1, $3) AS n"""
_OPEN = """
    INSERT INTO parlour.inbox (dedupe_key, thread, message_id, kind, body, received_at)
    SELECT 'key-' || id, id, 'm', 'message', '{}', 0 FROM parlour.threads
    WHERE id % ($1::bigint / $2::bigint) = 0 LIMIT $2"""

Line = dict[str, Any]
Work = Callable[[int], Awaitable[object]]


async def lines() -> AsyncIterator[Line]:
    """Every figure, one after the other."""
    for number in WORKERS:
        yield _choice(number)
    with mortal_server(on_disk=ROOT / "build") as server:
        for number in RECEIVERS:
            for others in (0, number):
                yield await _postgres_signal(server, number, others)
        async for line in _owners(server):
            yield line
    with TemporaryDirectory() as folder:
        async with Valkey(Path(folder)) as valkey:
            for number in RECEIVERS:
                yield await _redis_signal(valkey, number)


def _choice(workers: int) -> Line:
    """One of `workers` is chosen for each thread."""
    known = KnownWorkers(SystemClock().monotonic)
    for number in range(workers):
        known.heard(f"bus_{number:026d}", SENT)
    begun, own = time.perf_counter(), time.process_time()
    for place in range(SENT):
        thread = f"dm:telegram:main:{place}"
        known.sent(thread, known.choose(thread))
    return {
        "what": f"choice of a worker, of {workers}",
        "server_us": 0.0,
        "own_us": round((time.process_time() - own) / SENT * 1e6, 1),
        "ms": round((time.perf_counter() - begun) / SENT * 1e3, 3),
    }


async def _postgres_signal(server: MortalServer, number: int, others: int) -> Line:
    """`others` listen to another topic on the same database, as all but one process do for most topics."""
    arrived = _Count(number * SENT)
    connections = [await asyncpg.connect(server.url) for _ in range(number + others)]
    sender = await asyncpg.connect(server.url)
    for place, connection in enumerate(connections):
        topic = TOPIC if place < number else f"topic_{place}"
        await connection.add_listener(topic, lambda *_: arrived.add())

    async def send(place: int) -> None:
        await sender.execute("SELECT pg_notify($1, $2)", TOPIC, _text(place))

    line = await _measure(
        f"signal over postgres, {number} receivers, {others} others", server.pid, send, arrived
    )
    for connection in (*connections, sender):
        await connection.close()
    return line


async def _redis_signal(valkey: Valkey, number: int) -> Line:
    arrived = _Count(number * SENT)
    client = Redis.from_url(valkey.url, decode_responses=True, socket_timeout=None)
    subscriptions = [client.pubsub() for _ in range(number)]
    for one in subscriptions:
        await one.subscribe(TOPIC)

    async def read(subscription: Any) -> None:
        async for message in subscription.listen():
            if message["type"] == "message":
                arrived.add()

    async def send(place: int) -> None:
        await client.publish(TOPIC, _text(place))

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(read(one)) for one in subscriptions]
        line = await _measure(f"signal over redis, {number} receivers", valkey.pid, send, arrived)
        for task in tasks:
            task.cancel()
    await client.aclose()
    return line


async def _owners(server: MortalServer) -> AsyncIterator[Line]:
    store = PostgresStore(server.url)
    await store.open()
    direct = await asyncpg.connect(server.url)
    await direct.execute(_FILL, OWNERS, UNTIL_GONE, THREADS)
    for number in range(OWNERS):
        await store.owners.beat(_owner(number), ttl_s=_ALIVE_S, now=0)

    async def beat(place: int) -> None:
        await store.owners.beat(_owner(place % OWNERS), ttl_s=_ALIVE_S, now=0)

    async def refused(place: int) -> None:
        thread = f"dm:telegram:main:{place * 400 + 1}"
        assert await store.acquire_lease(thread, "own-none", ttl_s=UNTIL_GONE, now=0) is None

    async def look(_place: int) -> None:
        assert await store.owners.claim("own-none", limit=8, now=0) == ()

    yield await _measure("report of a process", server.pid, beat)
    yield await _measure("lease that another process has", server.pid, refused)
    for number in OPEN:
        await direct.execute("DELETE FROM parlour.inbox")
        if number:
            await direct.execute(_OPEN, THREADS, number)
        await direct.execute("ANALYZE parlour.inbox, parlour.threads, parlour.owners")
        yield await _measure(f"look for work, {number} entries open", server.pid, look, times=200)
    await direct.close()
    await store.close()


def _owner(number: int) -> Owner:
    return Owner(id=f"own-{number}", name=f"work-{number}", role="work", version="1")


def _text(place: int) -> str:
    return f"{place} dm:telegram:main:1000000000000000"


class _Count:
    """Counts arrivals; `done` is set at the last one."""

    def __init__(self, expected: int) -> None:
        self._left = expected
        self.done = asyncio.Event()

    def add(self) -> None:
        self._left -= 1
        if not self._left:
            self.done.set()


async def _measure(
    what: str, pid: int, work: Work, arrived: _Count | None = None, *, times: int = SENT
) -> Line:
    """Microseconds of processor time of one call: the server's, and this process's with all receivers."""
    begun, server, own = time.perf_counter(), of_server(pid), time.process_time()
    for place in range(times):
        await work(place)
    if arrived is not None:
        await arrived.done.wait()
    return {
        "what": what,
        "server_us": round((of_server(pid) - server) / times * 1e6, 1),
        "own_us": round((time.process_time() - own) / times * 1e6, 1),
        "ms": round((time.perf_counter() - begun) / times * 1e3, 3),
    }


async def main() -> None:
    """Print each figure as a line of JSON."""
    async for line in lines():
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    asyncio.run(main())

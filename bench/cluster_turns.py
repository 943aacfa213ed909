"""The SQLite and the Postgres side of the cluster bench: accepts of the stores alone, in this process, and
whole turns of two gateways with the scripted model, each in a separate process. The sides take turns.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import asyncpg

from bench.processor_time import of_process, of_server
from bench.report import median
from gateway.storage.ports import NewEntry, Store
from gateway.storage.postgres import PostgresStore
from gateway.storage.sqlite import SqliteStore
from pipeline.domain.clock import SystemClock
from tests.support.gateway_process import AS_SHIPPED, SCRIPTED, GatewayProcess
from tests.support.postgres_server import MortalServer
from tests.support.web_client import WebChat

THREADS = 64
ROUNDS = 9
_ACCEPTS = {1: 300, THREADS: 50}
"""Accepts of each caller in a round, by the number of callers."""
_TURNS = {1: 60, THREADS: 12}
_ACCEPTS_DATABASE = "accepts"
_CLOCK = SystemClock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What one side has done in one round."""

    done: int
    seconds: float
    gateway_s: float
    """Processor time of the process with the store."""
    server_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """All rounds of one side."""

    rounds: Sequence[Round]

    @property
    def per_s(self) -> float:
        """The median of the rounds."""
        return median([one.done / one.seconds for one in self.rounds])

    @property
    def gateway_us(self) -> float:
        """Processor time of the gateway for one of them, of all rounds together."""
        return sum(one.gateway_s for one in self.rounds) / self._done * 1e6

    @property
    def server_us(self) -> float:
        """Processor time of the database server for one of them."""
        return sum(one.server_s for one in self.rounds) / self._done * 1e6

    @property
    def _done(self) -> int:
        return sum(one.done for one in self.rounds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Both sides, measured in turns."""

    sqlite: Side
    postgres: Side

    @property
    def ratio(self) -> float:
        """Time with Postgres for one with SQLite: the median of the rounds, whose halves are neighbours."""
        return median(
            [
                (slow.seconds / slow.done) / (quick.seconds / quick.done)
                for slow, quick in zip(self.postgres.rounds, self.sqlite.rounds, strict=True)
            ]
        )


async def measure_accepts(folder: Path, server: MortalServer, rounds: int) -> Mapping[int, Pair]:
    """Accepts of the stores alone, by the number of callers."""
    url = server.url.replace("/postgres?", f"/{_ACCEPTS_DATABASE}?")
    connection = await asyncpg.connect(server.url)
    await connection.execute(f"CREATE DATABASE {_ACCEPTS_DATABASE}")
    await connection.close()
    stores: tuple[Store, Store] = (SqliteStore(folder / "accepts.sqlite3"), PostgresStore(url))
    numbers = count()

    def half(store: Store, callers: int) -> Callable[[], Awaitable[int]]:
        return lambda: _accept(store, callers, next(numbers))

    try:
        for store in stores:
            await store.open()
        return {
            callers: await _in_turns(
                half(stores[0], callers),
                half(stores[1], callers),
                time.process_time,
                time.process_time,
                server,
                rounds,
            )
            for callers in _ACCEPTS
        }
    finally:
        for store in stores:
            await store.close()


async def measure_turns(folder: Path, server: MortalServer, rounds: int) -> Mapping[int, Pair]:
    """Turns from the message to its terminal event, by the number of threads that talk at once."""
    address = folder / "database-url"
    address.write_text(server.url, encoding="utf-8")
    address.chmod(0o600)
    on_postgres = ('storage.kind="postgres"', f'storage.url="file:{address}"')
    async with AsyncExitStack() as running:
        gateways = [
            await running.enter_async_context(
                GatewayProcess(folder / name, overrides=(*SCRIPTED, *AS_SHIPPED, *more), executed=True)
            )
            for name, more in (("sqlite", ()), ("postgres", on_postgres))
        ]
        crowds = []
        for gateway in gateways:
            await gateway.start()
            crowd = [await running.enter_async_context(WebChat()) for _ in range(THREADS)]
            for chat in crowd:
                await chat.connect(gateway.url, gateway.token)
            crowds.append(crowd)
        numbers = count()

        def half(side: int, threads: int) -> Callable[[], Awaitable[int]]:
            return lambda: _talk(crowds[side][:threads], _TURNS[threads], numbers)

        def clock(side: int) -> Callable[[], float]:
            return lambda: of_process(gateways[side].pid)

        found = {
            threads: await _in_turns(half(0, threads), half(1, threads), clock(0), clock(1), server, rounds)
            for threads in _TURNS
        }
        for gateway in gateways:
            await gateway.stop()
    return found


async def _in_turns(
    sqlite: Callable[[], Awaitable[int]],
    postgres: Callable[[], Awaitable[int]],
    sqlite_cpu: Callable[[], float],
    postgres_cpu: Callable[[], float],
    server: MortalServer,
    rounds: int,
) -> Pair:
    """The rounds of both, after one that warms both up. Each side is the first one in every other round."""
    ours: list[Round] = []
    theirs: list[Round] = []
    for number in range(rounds + 1):
        if number % 2:
            theirs.append(await _round(postgres, postgres_cpu, server))
            ours.append(await _round(sqlite, sqlite_cpu, None))
        else:
            ours.append(await _round(sqlite, sqlite_cpu, None))
            theirs.append(await _round(postgres, postgres_cpu, server))
    return Pair(sqlite=Side(rounds=ours[1:]), postgres=Side(rounds=theirs[1:]))


async def _round(
    work: Callable[[], Awaitable[int]], cpu: Callable[[], float], server: MortalServer | None
) -> Round:
    server_before = of_server(server.pid) if server else 0.0
    cpu_before, began = cpu(), _CLOCK.monotonic()
    done = await work()
    seconds, cpu_s = _CLOCK.monotonic() - began, cpu() - cpu_before
    server_s = of_server(server.pid) - server_before if server else 0.0
    return Round(done=done, seconds=seconds, gateway_s=cpu_s, server_s=server_s)


async def _accept(store: Store, callers: int, round_: int) -> int:
    async def call(name: int) -> None:
        for number in range(_ACCEPTS[callers]):
            await store.accept(_entry(f"{callers}-{round_}-{name}-{number}", f"web:local:c{name}"))

    async with asyncio.TaskGroup() as group:
        for name in range(callers):
            group.create_task(call(name))
    return callers * _ACCEPTS[callers]


def _entry(key: str, thread: str) -> NewEntry:
    return NewEntry(
        dedupe_key=key,
        thread=thread,
        message_id=f"m_{key}",
        kind="message",
        body={"text": "Hello there, what is the weather like today in Vienna?"},
        received_at=1_700_000_000.0,
    )


async def _talk(chats: Sequence[WebChat], each: int, numbers: count[int]) -> int:
    async def talk(chat: WebChat) -> None:
        for _ in range(each):
            client_id = f"c{next(numbers)}"
            await chat.send_text(client_id, "hi")
            await chat.terminal(await chat.accepted(client_id))

    async with asyncio.TaskGroup() as group:
        for chat in chats:
            group.create_task(talk(chat))
    return len(chats) * each

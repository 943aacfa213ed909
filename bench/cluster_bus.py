"""The buses of the cluster bench: wakes and tokens from this process to a reader, over a real server between
two processes, or by a call within this one.
"""

from __future__ import annotations

import asyncio
import sys
import time
from asyncio.subprocess import PIPE, Process, create_subprocess_exec
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from bench.cluster_reader import ACCOUNT, WINDOW, Reader, remote_bus
from bench.processor_time import of_server
from bench.report import ROOT, median, percentile
from gateway.cluster.bus import Bus, EventStream
from gateway.cluster.in_process import InProcessBus
from gateway.cluster.signals import LiveTurn
from pipeline.domain.clock import SystemClock
from pipeline.domain.events import LlmToken, ResponseComplete
from pipeline.domain.ids import ThreadKey

WAKES = 1_000
TURNS = 32
PER_TURN_S = 25
"""Tokens a second of each turn at the pace of a model."""
PACED_S = 5.0
AT_ONCE = 20_000
_MOST_AWAITED = 3 * WINDOW
"""Tokens under way at most: below the 256 from which a bus leaves some out."""
_CLOCK = SystemClock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """Tokens of answers that one bus has carried."""

    sent: int
    shown: int
    seconds: float
    gateways_s: float
    """Processor time of the sending and the showing process."""
    server_s: float

    @property
    def gateways_us(self) -> float:
        """Microseconds for a token that was shown."""
        return self.gateways_s / self.shown * 1e6

    @property
    def server_us(self) -> float:
        """Microseconds of the server for a token that was shown."""
        return self.server_s / self.shown * 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class BusFigures:
    """One bus. Times in seconds from the publishing call to the call of the handler."""

    wake_p50: float
    wake_p99: float
    busy_p50: float
    """While tokens are carried at the pace of a model."""
    busy_p99: float
    paced: Tokens
    at_once: Tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A report of the reader."""

    word: str
    tokens: int
    cpu_s: float
    at: float


class _Within:
    """Both ends in this process: a report is there when the publishing call returns."""

    def __init__(self) -> None:
        self.bus: Bus = InProcessBus()
        self._reader = Reader(self._note)
        self._lines: asyncio.Queue[_Line] = asyncio.Queue()
        self.bus.on_wake(self._reader.wake)
        self.bus.on_events(ACCOUNT, self._reader)

    def _note(self, word: str, tokens: int, _cpu_s: float, at: float) -> None:
        # The processor time of this process is measured by the sender.
        self._lines.put_nowait(_Line(word=word, tokens=tokens, cpu_s=0.0, at=at))

    async def next(self) -> _Line:
        return await self._lines.get()


class _Between:
    """The reader in another process."""

    def __init__(self, bus: Bus, process: Process) -> None:
        self.bus = bus
        self._process = process

    async def next(self) -> _Line:
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            raise RuntimeError("the reader has ended")
        word, tokens, cpu_s, at = line.decode().split()
        return _Line(word=word, tokens=int(tokens), cpu_s=float(cpu_s), at=float(at))


_Ends = _Within | _Between


async def measure_within() -> BusFigures:
    """The bus of one process."""
    return await _measure(_Within(), lambda: 0.0)


async def measure_between(kind: str, url: str, server_pid: int) -> BusFigures:
    """The bus over `redis` or `postgres`."""
    async with _between(kind, url) as ends:
        return await _measure(ends, lambda: of_server(server_pid))


@asynccontextmanager
async def _between(kind: str, url: str) -> AsyncIterator[_Between]:
    process = await create_subprocess_exec(
        *(sys.executable, "-m", "bench.cluster_reader", kind, url), stdin=PIPE, stdout=PIPE, cwd=ROOT
    )
    bus = remote_bus(kind, url)
    try:
        assert process.stdout is not None
        if (await process.stdout.readline()).strip() != b"ready":
            raise RuntimeError("the reader did not start")
        await bus.open()
        await bus.round_trip()
        yield _Between(bus, process)
    finally:
        await bus.close()
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()


async def _measure(ends: _Ends, server_s: Callable[[], float]) -> BusFigures:
    await _wakes(ends, WAKES // 10)
    quiet = await _wakes(ends, WAKES)
    at_once = await _tokens(ends, server_s, _send_at_once)
    paced = await _tokens(ends, server_s, _send_at_pace)
    busy = await _wakes_beside_tokens(ends)
    return BusFigures(
        wake_p50=median(quiet),
        wake_p99=percentile(quiet, 0.99),
        busy_p50=median(busy),
        busy_p99=percentile(busy, 0.99),
        paced=paced,
        at_once=at_once,
    )


async def _wakes(ends: _Ends, count: int) -> list[float]:
    """Each wake is published when the last one has arrived."""
    return [await _wake(ends) for _ in range(count)]


async def _wake(ends: _Ends) -> float:
    began = _CLOCK.monotonic()
    ends.bus.wake("telegram:main:1")
    return (await _next(ends, "wake")).at - began


async def _wakes_beside_tokens(ends: _Ends) -> list[float]:
    """Wakes, 50 a second, while tokens are sent at the pace of a model."""
    found: list[float] = []
    async with asyncio.TaskGroup() as group:
        sending = group.create_task(_send_at_pace(ends, _streams(ends)))
        while not sending.done():
            found.append(await _wake(ends))
            await _CLOCK.sleep(0.02)
    return found


_Send = Callable[[_Ends, list[EventStream]], Awaitable[int]]


async def _tokens(ends: _Ends, server_s: Callable[[], float], send: _Send) -> Tokens:
    """From the first token to the end of the last turn."""
    streams = _streams(ends)
    await _end(streams[0])
    before = await _next(ends, "end")
    server, cpu, began = server_s(), time.process_time(), _CLOCK.monotonic()
    sent = await send(ends, streams)
    await _end(streams[0])
    after = await _next(ends, "end")
    gateways_s = time.process_time() - cpu + after.cpu_s - before.cpu_s
    return Tokens(
        sent=sent,
        shown=after.tokens - before.tokens,
        seconds=after.at - began,
        gateways_s=gateways_s,
        server_s=server_s() - server,
    )


async def _send_at_pace(_ends: _Ends, streams: list[EventStream]) -> int:
    """As many turns do whose models write at the same time: no two tokens at one moment."""
    count = round(TURNS * PER_TURN_S * PACED_S)
    began = _CLOCK.monotonic()
    for number in range(count):
        await _CLOCK.sleep(began + number / (TURNS * PER_TURN_S) - _CLOCK.monotonic())
        await streams[number % TURNS].send_event(_token(number // TURNS))
    return count


async def _send_at_once(ends: _Ends, streams: list[EventStream]) -> int:
    """As fast as they are shown."""
    shown = 0
    for number in range(AT_ONCE):
        while number - shown >= _MOST_AWAITED:
            await _next(ends, "window")
            shown += WINDOW
        await streams[number % TURNS].send_event(_token(number // TURNS))
    return AT_ONCE


async def _next(ends: _Ends, word: str) -> _Line:
    while (line := await ends.next()).word != word:
        pass
    return line


def _streams(ends: _Ends) -> list[EventStream]:
    # A later turn of a thread has a higher fence.
    return [ends.bus.events(_turn(number, round(_CLOCK.monotonic() * 1e6))) for number in range(TURNS)]


def _turn(number: int, fence: int) -> LiveTurn:
    channel, account = ACCOUNT
    thread = ThreadKey(channel=channel, account=account, chat=str(number))
    return LiveTurn(thread=thread, message_id=f"m_{number}", fence=fence)


def _token(offset: int) -> LlmToken:
    return LlmToken(session_id="ses_1", message_id="m_1", text="word ", offset=5 * offset)


async def _end(stream: EventStream) -> None:
    await stream.send_event(ResponseComplete(session_id="ses_1", message_id="m_1", content="word"))

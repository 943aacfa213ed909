"""The gateway's cost of a turn: a scripted model answers at once, so only our work is measured.

With another commit to compare with, both gateways run side by side and take turns.
"""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE, create_subprocess_exec
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from bench.checkout import checked_out
from bench.processor_time import of_process
from bench.report import ROOT, Report, median, percentile, scratch_folder
from bench.written import Written, measure_written
from gateway.config import environment
from pipeline.domain.clock import SystemClock
from tests.support.gateway_process import AS_SHIPPED, SCRIPTED, GatewayProcess, free_port
from tests.support.web_client import WebChat

_ROUNDS = 8
_CROWD_ROUNDS = 5
_TURNS_A_ROUND = 100
_CHATS = 32
_CROWD_S = 4.0
_HISTORIES = (10, 100, 1000)
_TEXT = "hi"
_CLOCK = SystemClock()


@dataclass(slots=True)
class _Timed:
    """What one chat, or the floor, was measured at."""

    ms: list[float] = field(default_factory=list)
    cpu_s: float = 0.0

    @property
    def cpu_ms(self) -> float:
        """Milliseconds of the server's processor time for each."""
        return self.cpu_s / len(self.ms) * 1e3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Floor:
    socket: aiohttp.ClientWebSocketResponse
    pid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Crowd:
    turns: int
    seconds: float
    cpu_s: float

    @property
    def cpu_ms(self) -> float:
        """Milliseconds of the gateway's processor time for one turn."""
        return self.cpu_s / self.turns * 1e3

    @property
    def rate(self) -> float:
        """Turns a second of wall time."""
        return self.turns / self.seconds


async def run(against: str | None = None) -> Report:
    """Measure latency beside the floor, throughput with many chats, and what is written. `against` names a
    commit whose gateway is measured in turns with this one. Raises BenchUnavailable for an unknown commit."""
    with scratch_folder() as folder, ExitStack() as stack:
        other = stack.enter_context(checked_out(against, folder / "checkout")) if against else None
        async with AsyncExitStack() as running, _floor(folder / "floor.sqlite3") as floor:
            ours = GatewayProcess(folder / "gateway", overrides=(*SCRIPTED, *AS_SHIPPED), executed=True)
            gateways = [await running.enter_async_context(ours)]
            if other is not None:
                theirs = GatewayProcess(folder / "other", executed=True, sources=other)
                gateways.append(await running.enter_async_context(theirs))
            for gateway in gateways:
                await gateway.start()
            alone = await _alone(gateways[0], floor)
            written = [await measure_written(gateway, _HISTORIES) for gateway in gateways]
            crowds = await _crowds(gateways)
            for gateway in gateways:
                await gateway.stop()
        frames = await _frames()
    return _report(alone, crowds, written, frames=frames, against=against)


async def _crowds(gateways: Sequence[GatewayProcess]) -> list[_Crowd]:
    """Many chats at each gateway, which take turns: the sum of its rounds, after one to warm up."""
    rounds = [[await _crowd(gateway) for gateway in gateways] for _ in range(_CROWD_ROUNDS + 1)][1:]
    return [
        _Crowd(
            turns=sum(one.turns for one in own),
            seconds=sum(one.seconds for one in own),
            cpu_s=sum(one.cpu_s for one in own),
        )
        for own in zip(*rounds, strict=True)
    ]


async def _frames() -> int:
    """The calls of product functions in a turn of the page."""
    process = await create_subprocess_exec(sys.executable, "-m", "tools.trace_turn", stdout=PIPE, cwd=ROOT)
    out, _ = await process.communicate()
    traces = json.loads(out.decode().splitlines()[-1])["trace"]
    return int(traces["page_turn"]["frames"])


async def _alone(gateway: GatewayProcess, floor: _Floor) -> tuple[_Timed, _Timed]:
    """One chat: milliseconds from the message to its terminal event, and of the floor's echo, in alternation.

    Both are wall time. Where other processes want the processors too, both wait for them, the floor
    relatively longer, and the ratio falls. The processor times beside it depend less on that.
    """
    turns, echoes = _Timed(), _Timed()
    for round_ in range(_ROUNDS + 1):
        before = of_process(floor.pid)
        echoed = [await _echo(floor.socket) for _ in range(_TURNS_A_ROUND)]
        echo_cpu = of_process(floor.pid) - before
        async with WebChat() as chat:
            await chat.connect(gateway.url, gateway.token)
            before = of_process(gateway.pid)
            answered = [await _turn(chat, f"t{number}") for number in range(_TURNS_A_ROUND)]
            turn_cpu = of_process(gateway.pid) - before
        if round_:  # the first round warms both up
            echoes.ms += echoed
            echoes.cpu_s += echo_cpu
            turns.ms += answered
            turns.cpu_s += turn_cpu
    return turns, echoes


async def _turn(chat: WebChat, client_id: str) -> float:
    began = _CLOCK.monotonic()
    await chat.send_text(client_id, _TEXT)
    await chat.wait_for(lambda frame: frame["type"] == "event" and _is_end(frame["event"]["type"]))
    return (_CLOCK.monotonic() - began) * 1e3


def _is_end(event_type: str) -> bool:
    return event_type in ("response_complete", "error")


async def _echo(floor: aiohttp.ClientWebSocketResponse) -> float:
    began = _CLOCK.monotonic()
    await floor.send_json({"type": "message", "client_id": "c", "text": _TEXT})
    await floor.receive_json()
    return (_CLOCK.monotonic() - began) * 1e3


async def _crowd(gateway: GatewayProcess) -> _Crowd:
    """Many chats, each sending its next message when the last one is answered."""
    until = _CLOCK.monotonic() + _CROWD_S

    async def talk() -> int:
        count = 0
        async with WebChat() as chat:
            await chat.connect(gateway.url, gateway.token)
            while _CLOCK.monotonic() < until:
                await _turn(chat, f"c{count}")
                count += 1
        return count

    cpu_before, began = of_process(gateway.pid), _CLOCK.monotonic()
    async with asyncio.TaskGroup() as group:
        talkers = [group.create_task(talk()) for _ in range(_CHATS)]
    return _Crowd(
        turns=sum(talker.result() for talker in talkers),
        seconds=_CLOCK.monotonic() - began,
        cpu_s=of_process(gateway.pid) - cpu_before,
    )


@asynccontextmanager
async def _floor(path: Path) -> AsyncIterator[_Floor]:
    """The floor's process, and a socket to it."""
    port = free_port()
    process = await create_subprocess_exec(
        *(sys.executable, "-m", "bench.floor", str(path), str(port)),
        stdout=PIPE,
        cwd=ROOT,
        env=dict(environment()),
    )
    try:
        assert process.stdout is not None
        await process.stdout.readline()
        async with aiohttp.ClientSession() as session:
            socket = await _connect(session, f"http://127.0.0.1:{port}/ws")
            yield _Floor(socket=socket, pid=process.pid)
    finally:
        process.kill()
        await process.wait()


async def _connect(session: aiohttp.ClientSession, url: str) -> aiohttp.ClientWebSocketResponse:
    async with asyncio.timeout(10):
        while True:
            try:
                return await session.ws_connect(url)
            except aiohttp.ClientConnectionError:
                await _CLOCK.sleep(0.01)


def _report(
    alone: tuple[_Timed, _Timed],
    crowds: Sequence[_Crowd],
    written: Sequence[Sequence[Written]],
    *,
    frames: int,
    against: str | None,
) -> Report:
    turns, floors = alone
    p50, p99 = median(turns.ms), percentile(turns.ms, 0.99)
    floor_p50 = median(floors.ms)
    cpu_times = turns.cpu_ms / floors.cpu_ms
    crowd, own = crowds[0], written[0]
    rows = _rows_of_turns(turns, floors, crowd)
    rows += [
        ("commits of a turn", f"{own[0].commits:.0f}"),
        ("calls of our functions in a turn", f"{frames}"),
    ]
    rows += [
        (f"rows added by a turn, after {found.history} messages", f"{found.rows:.0f} bytes") for found in own
    ]
    rows += [
        (f"write-ahead log of a turn, after {found.history} messages", f"{found.wal:.0f} bytes")
        for found in own
    ]
    figures: dict[str, float] = {
        "p50_ms": round(p50, 3),
        "p99_ms": round(p99, 3),
        "cpu_ms_per_turn": round(crowd.cpu_ms, 3),
        "turns_per_s": round(1e3 / crowd.cpu_ms, 1),
        "turns_per_s_wall": round(crowd.rate, 1),
        "commits_per_turn": own[0].commits,
        "frames_per_turn": frames,
        "floor_p50_ms": round(floor_p50, 3),
        "floor_ratio": round(p50 / floor_p50, 2),
        "floor_cpu_ms": round(floors.cpu_ms, 3),
        "floor_cpu_ratio": round(cpu_times, 2),
        **{f"bytes_{found.history}": round(found.rows) for found in own},
        **{f"wal_bytes_{found.history}": round(found.wal) for found in own},
    }
    if against is not None:
        theirs, commits = crowds[1], written[1][0].commits
        ratio = crowd.cpu_ms / theirs.cpu_ms
        rows += _rows_against(against, theirs, commits, ratio)
        figures |= {
            "against_cpu_ms_per_turn": round(theirs.cpu_ms, 3),
            "against_turns_per_s_wall": round(theirs.rate, 1),
            "against_commits_per_turn": commits,
            "cpu_ratio": round(ratio, 3),
        }
    return Report(
        bench="turn",
        title="turn: the gateway's own share of a text turn, scripted model, SQLite with synchronous = FULL",
        head=("", "figure"),
        rows=rows,
        notes=(
            f"{len(turns.ms)} turns, {len(floors.ms)} echoes in alternation, {_TURNS_A_ROUND} turns a chat",
            f"{_CHATS} chats: {_CROWD_ROUNDS} rounds of {_CROWD_S:g} s",
            "rows: the values in the rows of inbox, log and outbox that the turn added (bytes_N)",
            "write-ahead log: the 1 KiB pages that SQLite wrote for them, some several times (wal_bytes_N)",
        ),
        figures=figures,
    )


def _rows_of_turns(turns: _Timed, floors: _Timed, crowd: _Crowd) -> list[tuple[str, str]]:
    p50, floor_p50 = median(turns.ms), median(floors.ms)
    return [
        ("one chat: message to terminal event, p50", f"{p50:.2f} ms"),
        ("one chat: message to terminal event, p99", f"{percentile(turns.ms, 0.99):.2f} ms"),
        ("floor: WebSocket echo + one commit, p50", f"{floor_p50:.2f} ms"),
        ("floor: WebSocket echo + one commit, p99", f"{percentile(floors.ms, 0.99):.2f} ms"),
        ("ratio of the medians", f"{p50 / floor_p50:.1f}"),
        ("one chat: processor time of a turn", f"{turns.cpu_ms:.2f} ms"),
        ("floor: processor time of an echo", f"{floors.cpu_ms:.2f} ms"),
        ("ratio of these processor times", f"{turns.cpu_ms / floors.cpu_ms:.1f}"),
        (f"{_CHATS} chats: processor time of a turn", f"{crowd.cpu_ms:.2f} ms"),
        (f"{_CHATS} chats: turns for each processor second", f"{1e3 / crowd.cpu_ms:.0f}"),
        (f"{_CHATS} chats: turns a second, client on the same machine", f"{crowd.rate:.0f}"),
    ]


def _rows_against(commit: str, crowd: _Crowd, commits: float, ratio: float) -> list[tuple[str, str]]:
    return [
        (f"{commit}: processor time of a turn", f"{crowd.cpu_ms:.2f} ms"),
        (f"{commit}: turns a second", f"{crowd.rate:.0f}"),
        (f"{commit}: commits of a turn", f"{commits:.0f}"),
        ("ratio of the processor times", f"{ratio:.2f}"),
    ]

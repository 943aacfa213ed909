"""A cluster of real processes: one worker beside two, what an edge spends on each relayed token, and the
memory of each role. The model is scripted and thinks for a second, so that processors do not decide."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from bench.processor_time import of_process
from pipeline.domain.clock import SystemClock
from tests.support.cluster import Cluster, cluster
from tests.support.gateway_process import SCRIPTED, slow_echo
from tests.support.web_client import WebChat

_CHATS = 16
_RUNNING = 4
"""Turns that a worker runs at once: fewer than there are chats, also with two workers."""
_ROUNDS = 16
"""So many that the last turns, which leave slots free, count little: a turn takes a second."""
_WORD_S = 0.25
_WORDS = 2
"""With the two that the scripted model adds, an answer takes a second."""
_TOKENS = 400
_CLOCK = SystemClock()
_NAMES = count(1)
"""Numbers of messages: a name is used once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessFigures:
    """What was measured."""

    one_worker_s: float
    """Seconds for all turns."""
    two_workers_s: float
    edge_token_us: float
    """Processor time of the edge for each token that a worker sends and a page shows, in microseconds."""
    edge_mb: float
    work_mb: float
    """Resident memory of each role."""

    @property
    def workers_ratio(self) -> float:
        """How many times as fast two workers are."""
        return self.one_worker_s / self.two_workers_s


async def measure_processes(folder: Path, on_disk: Path) -> ProcessFigures:
    """Everything, with the servers and processes of one cluster. Raises NoServer."""
    settings = (*slow_echo(_WORD_S), f"turn.max_running={_RUNNING}")
    async with cluster(folder / "cluster", settings=settings, on_disk=on_disk) as made:
        edge = made.add("edge", "edge", executed=True)
        first = made.add("first", "work", executed=True)
        second = made.add("second", "work", executed=True)
        await edge.start()
        await first.start()
        await _turns(made, rounds=1)
        one = await _turns(made)
        await second.start()
        await _turns(made, rounds=1)
        two = await _turns(made)
        edge_mb, work_mb = _resident_mb(edge.pid), _resident_mb(first.pid)
    settings = (*SCRIPTED, f"turn.max_running={_RUNNING}")
    async with cluster(folder / "tokens", settings=settings, on_disk=on_disk) as made:
        for name in ("edge", "work"):
            await made.add(name, name, executed=True).start()
        token = await _token_us(made)
    return ProcessFigures(
        one_worker_s=one, two_workers_s=two, edge_token_us=token, edge_mb=edge_mb, work_mb=work_mb
    )


async def _turns(made: Cluster, rounds: int = _ROUNDS) -> float:
    """Seconds in which every chat has its answers, one after the other."""
    edge = made.gateways["edge"]

    async def talk(chat: WebChat) -> None:
        for _ in range(rounds):
            name = f"bench-{next(_NAMES)}"
            await chat.send_text(name, "word " * _WORDS)
            await chat.terminal(await chat.accepted(name))

    chats = [WebChat() for _ in range(_CHATS)]
    try:
        for chat in chats:
            await chat.__aenter__()
            await chat.connect(edge.url, edge.token)
        began = _CLOCK.monotonic()
        async with asyncio.TaskGroup() as group:
            for chat in chats:
                group.create_task(talk(chat))
        return _CLOCK.monotonic() - began
    finally:
        for chat in chats:
            await chat.__aexit__(None, None, None)


async def _token_us(made: Cluster) -> float:
    """The edge's processor time of answers of many tokens, less that of answers of few, for each token."""
    edge = made.gateways["edge"]

    async def spent(words: int) -> float:
        before = of_process(edge.pid)
        async with WebChat() as chat:
            await chat.connect(edge.url, edge.token)
            for name in (f"bench-{next(_NAMES)}" for _ in range(5)):
                await chat.send_text(name, "w " * words)
                await chat.terminal(await chat.accepted(name))
        return of_process(edge.pid) - before

    await spent(_TOKENS)
    few = await spent(1)
    many = await spent(_TOKENS)
    return max(0.0, many - few) / (5 * _TOKENS) * 1e6


def _resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1_000

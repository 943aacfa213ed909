"""A gateway with many paused workflows, started again: its memory, its start, and an answer after it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from bench import workflow_work
from bench.report import median
from pipeline.domain.clock import SystemClock
from tests.support.gateway_process import SCRIPTED, GatewayProcess
from tests.support.web_client import WebChat

PAUSED = 1_000
_ANSWERS = 20
_STARTS = 3
_CLOCK = SystemClock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused:
    """What many paused runs cost a gateway."""

    with_runs_mb: float
    without_mb: float
    start_ms: float
    start_without_ms: float
    resume_ms: float


async def measure_paused(folder: Path, count: int = PAUSED) -> Paused:
    """Begin `count` runs that wait for a person, each in a conversation, and start the gateway again."""
    overrides = (*SCRIPTED, "limits.messages_per_minute=0", f'agent.graph="{workflow_work.TRIAGE}"')
    async with GatewayProcess(folder / "gateway", overrides=overrides, executed=True) as gateway:
        without_ms, without_mb = await _starts(gateway)
        questions = [await _ask(gateway) for _ in range(count)]
        await gateway.stop()
        with_ms, with_mb = await _starts(gateway)
        times = [await _answer(gateway, *one) for one in questions[:: max(1, count // _ANSWERS)]]
        await gateway.stop()
    return Paused(
        with_runs_mb=with_mb,
        without_mb=without_mb,
        start_ms=with_ms,
        start_without_ms=without_ms,
        resume_ms=median(times),
    )


async def _starts(gateway: GatewayProcess) -> tuple[float, float]:
    """Start it several times: the median of the milliseconds, and its megabytes after the last start."""
    times = []
    for number in range(_STARTS):
        if number:
            await gateway.stop()
        began = _CLOCK.monotonic()
        await gateway.start()
        times.append((_CLOCK.monotonic() - began) * 1e3)
    return median(times), _resident_mb(gateway.pid)


async def _ask(gateway: GatewayProcess) -> tuple[str, str]:
    """One run up to its question: the conversation and the question."""
    async with WebChat() as chat:
        await chat.connect(gateway.url, gateway.token)
        await chat.send_text("c1", workflow_work.MESSAGE)
        await chat.accepted("c1")
        await chat.wait_for(lambda _frame: bool(chat.seen.questions))
        assert chat.chat is not None
        return chat.chat, chat.seen.questions[0]


async def _answer(gateway: GatewayProcess, chat_id: str, question: str) -> float:
    """Milliseconds from an answer to the end of its run."""
    async with WebChat(chat=chat_id) as chat:
        await chat.connect(gateway.url, gateway.token)
        known = len(chat.seen.terminals)
        began = _CLOCK.monotonic()
        await chat.send_approval("c2", question, "approve")
        await chat.wait_for(lambda _frame: len(chat.seen.terminals) > known)
        return (_CLOCK.monotonic() - began) * 1e3


def _resident_mb(pid: int) -> float:
    """Memory of a process in RAM, in megabytes of a million bytes. Linux."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

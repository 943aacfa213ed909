"""From an empty process table to the first answer, with the embedded models loading in the background."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bench.report import ROOT, Report, median, percentile, scratch_folder
from pipeline.domain.clock import SystemClock
from tests.support.gateway_process import GatewayProcess, free_port
from tests.support.web_client import WebChat

_RUNS = 5
_PING_EVERY_S = 0.01
_LOADING_S = 3.0  # the speech model is ready well within this
_CLOCK = SystemClock()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Start:
    ready_s: float
    accepted_s: float
    first_answer_s: float
    pings_ms: tuple[float, ...]
    late_ms: tuple[float, ...]
    """How late the bench itself woke up between the pings: what the machine alone does."""


async def run() -> Report:
    """Start a fresh gateway five times. Raises what a gateway without models answers with."""
    with scratch_folder() as folder:
        starts = [await _one_start(folder / f"run-{number}") for number in range(_RUNS)]
    pings = [ping for start in starts for ping in start.pings_ms]
    late = [one for start in starts for one in start.late_ms]
    columns = {
        "process start to ready": [start.ready_s for start in starts],
        "process start to first message accepted": [start.accepted_s for start in starts],
        "process start to first answer of the model": [start.first_answer_s for start in starts],
    }
    rows = [
        (name, f"{median(values) * 1e3:.0f} ms", f"{max(values) * 1e3:.0f} ms")
        for name, values in columns.items()
    ]
    rows.append(("ping to pong while the models load: p50", f"{median(pings):.1f} ms", ""))
    rows.append(
        (
            "ping to pong while the models load: p99, max",
            f"{percentile(pings, 0.99):.1f} ms",
            f"{max(pings):.1f} ms",
        )
    )
    rows.append(
        (
            "this process's own timer delay at the same time: p99, max",
            f"{percentile(late, 0.99):.1f} ms",
            f"{max(late):.1f} ms",
        )
    )
    return Report(
        bench="startup",
        title=f"startup: the embedded model and Whisper, {_RUNS} fresh starts",
        head=("", "median", "max"),
        rows=rows,
        notes=(
            "ready: /readyz answers 200 and the line that says so is printed",
            f"{len(pings)} pings over the socket, {_PING_EVERY_S * 1e3:.0f} ms apart, until the answer came",
            "a ping waits for the gateway's loop, and also for a processor that the models keep busy",
        ),
        figures={
            "ready_s": round(median(columns["process start to ready"]), 3),
            "ready_max_s": round(max(start.ready_s for start in starts), 3),
            "accepted_s": round(median([start.accepted_s for start in starts]), 3),
            "loop_lag_p99_ms": round(percentile(pings, 0.99), 2),
            "loop_lag_max_ms": round(max(pings), 2),
            "own_lag_p99_ms": round(percentile(late, 0.99), 2),
            "own_lag_max_ms": round(max(late), 2),
            "first_answer_s": round(median([start.first_answer_s for start in starts]), 3),
        },
    )


async def _one_start(folder: Path) -> _Start:
    overrides = (f"models.dir={ROOT / 'models'}", "llm.local.model=0.5b")
    async with (
        GatewayProcess(folder, overrides=overrides, port=free_port(), executed=True) as gateway,
        WebChat() as chat,
    ):
        began = _CLOCK.monotonic()
        await gateway.spawn()
        await gateway.wait_ready()
        while "is ready." not in gateway.log():
            await _CLOCK.sleep(0.001)
        ready_s = _CLOCK.monotonic() - began
        await chat.connect(gateway.url, gateway.token)
        await chat.send_text("first", "Say hello in five words.")
        message_id = await chat.accepted("first")
        accepted_s = _CLOCK.monotonic() - began
        first_answer_s = 0.0
        pings: list[float] = []
        late: list[float] = []
        while not first_answer_s or _CLOCK.monotonic() - began < _LOADING_S:
            sent = _CLOCK.monotonic()
            await chat.ping()
            pings.append((_CLOCK.monotonic() - sent) * 1e3)
            if not first_answer_s and chat.seen.terminals:
                first_answer_s = _CLOCK.monotonic() - began
            paused = _CLOCK.monotonic()
            await _CLOCK.sleep(_PING_EVERY_S)
            late.append((_CLOCK.monotonic() - paused - _PING_EVERY_S) * 1e3)
        end = await chat.terminal(message_id)
        if end.type != "response_complete":
            raise RuntimeError(f"the model did not answer: {end.text}\n{gateway.log()}")
        await gateway.stop()
    return _Start(
        ready_s=ready_s,
        accepted_s=accepted_s,
        first_answer_s=first_answer_s,
        pings_ms=tuple(pings),
        late_ms=tuple(late),
    )

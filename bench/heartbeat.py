"""The heartbeat's scheduler alone: the tick of a second with 10,000 watches, and a day without an event."""

from __future__ import annotations

import time
from pathlib import Path

from bench.report import Report, median, percentile, scratch_folder
from gateway.app.bootstrap import Extras, build
from gateway.config import Secrets, load
from pipeline.domain.clock import ManualClock
from pipeline.llm.scripted import ScriptedLlm
from pipeline.watches.due_heap import DueHeap

_WATCHES = 10_000
_EVERY_S = 1_800.0
_TICKS = 3_600
_DAY_S = 86_400.0
_STEP_S = 300.0
_LINES = 100
"""Watched files of the day without an event."""


async def run() -> Report:
    """Every figure is processor time of the process."""
    quiet, ticks = _idle(), _busy()
    with scratch_folder() as folder:
        day_s, calls, checks = await _day(folder)
    rows = [
        ("a tick when nothing is due", f"{median(quiet):.2f} µs", f"{percentile(quiet, 0.99):.2f} µs"),
        (
            f"a tick with {_WATCHES:,} watches, {_WATCHES / _EVERY_S:.1f} of them due",
            f"{median(ticks):.1f} µs",
            f"{percentile(ticks, 0.99):.1f} µs",
        ),
        (f"a day with {_LINES} watched files that do not change", f"{day_s:.1f} s", ""),
        ("checks in that day", f"{checks:,}", ""),
        ("calls of the model in that day", f"{calls}", ""),
    ]
    return Report(
        bench="heartbeat",
        title="The heartbeat's scheduler, in processor time",
        head=("", "median", "99th percentile"),
        rows=rows,
        figures={
            "idle_tick_us": median(quiet),
            "tick_us": median(ticks),
            "tick_p99_us": percentile(ticks, 0.99),
            "day_s": day_s,
            "day_checks": checks,
            "day_model_calls": calls,
        },
    )


def _heap() -> DueHeap:
    heap = DueHeap()
    for number in range(_WATCHES):
        heap.put(f"watch_{number}", number * _EVERY_S / _WATCHES)
    return heap


def _idle() -> list[float]:
    heap, times = _heap(), []
    for _ in range(_TICKS):
        began = time.process_time_ns()
        heap.take_due(-1.0)
        heap.next_due()
        times.append((time.process_time_ns() - began) / 1_000)
    return times


def _busy() -> list[float]:
    """Each second what is due is taken, and gets its next time."""
    heap, times = _heap(), []
    for second in range(_TICKS):
        began = time.process_time_ns()
        for key in heap.take_due(float(second)):
            heap.put(key, second + _EVERY_S)
        heap.next_due()
        times.append((time.process_time_ns() - began) / 1_000)
    return times


async def _day(folder: Path) -> tuple[float, int, int]:
    """Processor seconds, calls of the model and checks of a whole gateway in a day without an event."""
    files = folder / "workspace" / "files"
    files.mkdir(parents=True)
    for number in range(_LINES):
        (files / f"{number}.txt").write_text("the same\n")
    line = "- watch file shared/{number}.txt every 30 minutes -- say what is new\n"
    lines = "".join(line.format(number=number) for number in range(_LINES))
    (folder / "workspace" / "HEARTBEAT.md").write_text(lines)
    settings = load(
        None,
        {},
        [
            "channels.web.enabled=false",
            f'data.dir="{folder}"',
            "heartbeat.enabled=true",
            "heartbeat.channel=console",
            "heartbeat.chat=c1",
        ],
    )
    clock, llm = ManualClock(), ScriptedLlm([])
    gateway = build(settings, Secrets(()), Extras(clock=clock, llm=llm, http=False))
    await gateway.start()
    try:
        began = time.process_time()
        until = clock.now() + _DAY_S
        while clock.now() < until:
            await clock.advance(_STEP_S)
            while not gateway.heartbeats_rest:
                await clock.advance(0)
        spent = time.process_time() - began
    finally:
        await gateway.stop(0.0)
    return spent, len(llm.requests), round(_LINES * _DAY_S / _EVERY_S)

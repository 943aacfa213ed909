"""One side of the graph bench as a process: it reads cases from stdin, one line of JSON each.

Both sides run this loop, each in a separate interpreter, so that neither's threads, objects or imports change
the other's figures. The standard library only: the peer's process has none of our packages.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from bench.graph_work import Case, check_state

Turn = Callable[[], Awaitable[Mapping[str, Any]]]
"""Runs a graph once and gives its final state. Called once."""


class Hold:
    """Where the nodes of the `held` graph wait, so that many runs are under way at once."""

    def __init__(self) -> None:
        self._missing = 0
        self._all_here = asyncio.Event()
        self._release = asyncio.Event()

    def expect(self, count: int) -> None:
        """Say how many will come."""
        self._missing = count

    async def wait(self) -> None:
        """In the node: arrive, and stay until `release`."""
        self._missing -= 1
        if self._missing == 0:
            self._all_here.set()
        await self._release.wait()

    async def all_here(self) -> None:
        """Return when as many as expected wait."""
        await self._all_here.wait()

    def release(self) -> None:
        """Release all waiting nodes."""
        self._release.set()


class Side(Protocol):
    """An engine under measurement."""

    def about(self) -> dict[str, Any]:
        """Versions and settings, for the report."""
        ...

    async def prepare(self, case: Case, count: int) -> Sequence[Turn]:
        """`count` threads with the case's history, ready for one turn each. Not measured."""
        ...

    def database(self) -> Path | None:
        """The database file of the prepared turns, if they have one."""
        ...

    async def close(self) -> None:
        """Release what `prepare` opened."""
        ...


async def serve(side: Side, hold: Hold) -> None:
    """Answer requests until stdin ends."""
    worker = _Worker(side, hold)
    while line := await asyncio.to_thread(sys.stdin.readline):
        request = json.loads(line)
        reply = await worker.answer(request.pop("do"), request)
        print(json.dumps(reply), flush=True)
    await side.close()


class _Worker:
    def __init__(self, side: Side, hold: Hold) -> None:
        self._side = side
        self._hold = hold
        self._case = Case(graph="turn")
        self._turns: Sequence[Turn] = ()

    async def answer(self, what: str, request: dict[str, Any]) -> dict[str, Any]:
        """The reply to one request."""
        match what:
            case "about":
                return self._side.about()
            case "prepare":
                self._case = Case(**request["case"])
                self._turns = await self._side.prepare(self._case, request["count"])
                database = self._side.database()
                return {"database": str(database) if database else None}
            case "run":
                return await self._run()
            case "hold":
                return await self._hold_all(Case(**request["case"]), request["count"])
            case _:
                raise ValueError(f"a worker cannot {what}")

    async def _run(self) -> dict[str, Any]:
        """Run the prepared turns; processor time of the whole process, all of its threads."""
        gc.collect()
        began = time.process_time()
        states = await run_all(self._turns, self._case.at_once)
        took = time.process_time() - began
        for number, state in enumerate(states):
            check_state(self._case, number, state)
        count, self._turns = len(self._turns), ()
        return {"cpu_us": took / count * 1e6}

    async def _hold_all(self, case: Case, count: int) -> dict[str, Any]:
        """Memory with `count` threads in the middle of a turn, and once all turns are over."""
        gc.collect()
        empty = resident_mb()
        turns = await self._side.prepare(case, count)
        self._hold.expect(count)

        async def keep(turn: Turn) -> Mapping[str, Any]:
            return await turn()

        async with asyncio.TaskGroup() as group:
            runs = [group.create_task(keep(turn)) for turn in turns]
            await self._hold.all_here()
            gc.collect()
            held = resident_mb()
            self._hold.release()
        for number, run in enumerate(runs):
            check_state(case, number, run.result())
        return {"empty_mb": empty, "held_mb": held}


async def run_all(turns: Sequence[Turn], at_once: int) -> list[Mapping[str, Any]]:
    """The final states of all turns, with so many in progress at any time."""
    if at_once == 1:
        return [await turn() for turn in turns]
    states: dict[int, Mapping[str, Any]] = {}
    left = iter(enumerate(turns))

    async def take_turns() -> None:
        for number, turn in left:
            states[number] = await turn()

    async with asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(take_turns())
    return [states[number] for number in range(len(turns))]


def resident_mb() -> float:
    """Memory of this process in RAM, in megabytes of a million bytes. Linux."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

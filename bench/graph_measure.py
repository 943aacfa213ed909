"""The graph bench from outside: both sides as child processes, asked in alternation."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from asyncio.subprocess import PIPE, Process, create_subprocess_exec
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.graph_work import Case
from bench.report import ROOT, median
from gateway.config import environment
from gateway.storage.sqlite.wal import WalMeter

_REPLY_S = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """The same work on both sides."""

    label: str
    ours: Case
    peer: Case
    ours_count: int
    """Turns a round: as many as it takes to be well above the clock's resolution."""
    peer_count: int
    steps: int = 1
    """Times are divided by this: a loop's by its steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Medians over the rounds; `ratio` is that of each round's ratio, the peer's time divided by ours."""

    label: str
    ours_us: float
    peer_us: float
    ratio: float
    lowest: float
    highest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Bytes that one turn leaves in the database: values in the rows, and pages in the write-ahead log."""

    rows: float
    wal: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Megabytes of a process before its threads came, and with all of them in the middle of a turn."""

    empty_mb: float
    held_mb: float


class Worker:
    """A side's process. Raises RuntimeError with its last output when it dies."""

    def __init__(self, process: Process, errors: Path) -> None:
        self._process = process
        self._errors = errors

    async def about(self) -> dict[str, Any]:
        """The side's versions and settings."""
        return await self._ask("about")

    async def measure(self, case: Case, count: int) -> float:
        """Microseconds of processor time for one turn of `case`."""
        await self._ask("prepare", case=case.plain(), count=count)
        reply = await self._ask("run")
        return float(reply["cpu_us"])

    async def written(self, case: Case, turns: int) -> Written:
        """What one turn writes: medians of `turns`, one at a time, as SQLite may restart its log."""
        rows: list[float] = []
        logged: list[float] = []
        for _ in range(turns):
            prepared = await self._ask("prepare", case=case.plain(), count=1)
            path = Path(prepared["database"])
            before, meter = stored_bytes(path), WalMeter(path)
            meter.start()
            await self._ask("run")
            rows.append(stored_bytes(path) - before)
            logged.append(meter.total())
        return Written(rows=median(rows), wal=median(logged))

    async def hold(self, case: Case, threads: int) -> Held:
        """Memory with so many threads in the middle of a turn."""
        reply = await self._ask("hold", case=case.plain(), count=threads)
        return Held(empty_mb=reply["empty_mb"], held_mb=reply["held_mb"])

    async def _ask(self, what: str, **details: object) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": what, **details}).encode() + b"\n")
        async with asyncio.timeout(_REPLY_S):
            line = await self._process.stdout.readline()
        if not line:
            raise RuntimeError(
                f"a worker of the graph bench died:\n{self._errors.read_text('utf-8')[-2000:]}"
            )
        reply: dict[str, Any] = json.loads(line)
        return reply


@asynccontextmanager
async def worker(python: Path, module: str, folder: Path) -> AsyncIterator[Worker]:
    """A fresh process of one side, with a separate folder for its files."""
    errors = _errors_file(folder)
    with errors.open("wb") as stderr:
        process = await create_subprocess_exec(
            *(str(python), "-m", module, str(folder)),
            stdin=PIPE,
            stdout=PIPE,
            stderr=stderr,
            cwd=ROOT,
            env=dict(environment()),
        )
    try:
        yield Worker(process, errors)
        assert process.stdin is not None
        process.stdin.close()
        async with asyncio.timeout(_REPLY_S):
            await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _errors_file(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder / "stderr"


async def compare(ours: Worker, peer: Worker, pairing: Pairing, rounds: int) -> Measured:
    """Both sides in alternation, `rounds` times after a first round that warms them up."""
    times: list[tuple[float, float]] = []
    for _ in range(rounds + 1):
        here = await ours.measure(pairing.ours, pairing.ours_count)
        there = await peer.measure(pairing.peer, pairing.peer_count)
        times.append((here / pairing.steps, there / pairing.steps))
    return summary(pairing.label, times[1:])


def summary(label: str, times: list[tuple[float, float]]) -> Measured:
    """The medians of pairs of times (ours, the peer's), one pair a round."""
    ratios = [there / here for here, there in times]
    return Measured(
        label=label,
        ours_us=median([here for here, _ in times]),
        peer_us=median([there for _, there in times]),
        ratio=median(ratios),
        lowest=min(ratios),
        highest=max(ratios),
    )


def stored_bytes(database: Path) -> int:
    """The values in all rows of all tables: text and blobs by their bytes, a number as 8."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as db:
        # An index of full-text search cannot be read as rows; its own tables are among the others.
        tables = [
            name
            for (name,) in db.execute(
                "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
            )
        ]
        return sum(_table_bytes(db, table) for table in tables)


def _table_bytes(db: sqlite3.Connection, table: str) -> int:
    columns = [row[1] for row in db.execute(f'PRAGMA table_info("{table}")')]
    sizes = " + ".join(
        f"""CASE typeof("{name}") WHEN 'null' THEN 0 WHEN 'integer' THEN 8 WHEN 'real' THEN 8
            ELSE length(CAST("{name}" AS BLOB)) END"""
        for name in columns
    )
    return int(db.execute(f'SELECT coalesce(sum({sizes}), 0) FROM "{table}"').fetchone()[0])

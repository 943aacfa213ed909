"""kill -9 amid graph runs, fifty times: what was acknowledged is there, and nothing of it is done again."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gateway.config import environment
from gateway.storage.json_bodies import decode_body
from gateway.turns.run_codec import from_rows
from pipeline.domain.clock import SystemClock
from pipeline.graph.execution.executor import Executor
from pipeline.graph.run.replay import replay
from tests.gateway.storage.values import look
from tests.support.graph_child import STORE
from tests.support.killed_graph import Workplace, killed_graph, whole_lines
from tests.support.store_file import integrity

pytestmark = [pytest.mark.crash, pytest.mark.timeout(400)]

KILLS = 50
_SEED = 3
_LONGEST_LIFE_S = 0.08
"""Of a run that continues, from the moment when it does."""
_LONGEST_START_S = 0.03
_EARLY_SHARE = 0.2
"""So many of the kills may come while the store is being opened."""
_WORKING_SHARE = 0.7
"""So many of the others come when a node is done, however slow the machine is."""
_POLL_S = 0.001
_START_LIMIT_S = 30.0
_ROOT = Path(__file__).parents[2]
_CLOCK = SystemClock()
_DEAD = -signal.SIGKILL

Visit = tuple[str, str, int]
"""(frame, node, visit)."""


@dataclass(slots=True)
class OnRecord:
    """What the store says about one run: judged from its rows alone, without the engine."""

    steps: Counter[tuple[str, str]] = field(default_factory=Counter)
    effects: set[Visit] = field(default_factory=set)
    named: set[tuple[str, str]] = field(default_factory=lambda: {("-", "loop")})
    """Nodes that a record names as next, and no record says to be over."""
    ended: bool = False

    def read(self, record: dict[str, Any]) -> None:
        """Take in the next record."""
        frame, node = record.get("frame", "-"), record.get("node", "")
        match record["do"]:
            case "step":
                self.steps[frame, node] += 1
                self.named.discard((frame, node))
                targets = record.get("to", ())
                for target in targets:
                    self.named.add(self._place(frame, target, alone=len(targets) == 1))
            case "enter":
                self.named.add((f"{frame}/{node}".removeprefix("-"), "s1"))
            case "effect" if record["state"] == "done":
                self.effects.add((frame, node, self.steps[frame, node] + 1))
            case "end":
                self.ended = True

    def knows(self, visit: Visit) -> bool:
        """Whether the step of this visit is on record."""
        frame, node, number = visit
        return self.steps[frame, node] >= number

    @staticmethod
    def _place(frame: str, target: str, *, alone: bool) -> tuple[str, str]:
        if target == "meet":
            return "-", target
        return (frame, target) if alone else (f"/{target}", target)


def _rows(folder: Path, run_id: str) -> list[str]:
    path = folder / STORE
    if not path.exists():
        return []
    rows = look(path, f"SELECT body FROM log WHERE message_id = '{run_id}' ORDER BY id")
    return [body for (body,) in rows]


def _records(rows: Sequence[str]) -> list[dict[str, Any]]:
    records = [record for row in rows for record in from_rows(decode_body(row))]
    assert None not in records
    return [dict(record) for record in records if record is not None]


def _visits(path: Path, run_id: str, skip: int) -> list[Visit]:
    found = (line.split(" ") for line in whole_lines(path)[skip:])
    return [(frame, node, int(visit)) for run, frame, node, visit in found if run == run_id]


def _length(path: Path) -> int:
    return len(whole_lines(path))


@dataclass(slots=True)
class Judge:
    """Compares, after each life, what happened with what was on record before it."""

    folder: Path
    resumed_in: Counter[str] = field(default_factory=Counter)

    def before(self, run_id: str) -> tuple[OnRecord, int, int]:
        known = OnRecord()
        for record in _records(_rows(self.folder, run_id)):
            known.read(record)
        return known, _length(self.folder / "nodes"), _length(self.folder / "effects")

    def after(self, run_id: str, known: OnRecord, nodes: int, effects: int) -> None:
        executed = _visits(self.folder / "nodes", run_id, nodes)
        assert [visit for visit in executed if known.knows(visit)] == [], "a finished node ran again"
        assert [visit[:2] for visit in executed[:1] if visit[:2] not in known.named] == [], "a wrong node ran"
        paid = _visits(self.folder / "effects", run_id, effects)
        assert [visit for visit in paid if visit in known.effects] == [], "a finished effect was done again"
        if known.steps and executed:
            self.resumed_in[executed[0][1]] += 1
        self.acknowledged()

    def acknowledged(self) -> int:
        lines = whole_lines(self.folder / "acknowledged")
        stored = dict(look(self.folder / STORE, "SELECT id, body FROM log")) if lines else {}
        for line in lines:
            row_id, _, body = line.partition(" ")
            assert stored.get(int(row_id)) == body, "an acknowledged record is lost"
        return len(lines)


class Lives:
    """The program that forks processes to be killed."""

    def __init__(self, process: Process, folder: Path) -> None:
        self._process = process
        self._begun = folder / "begun"
        self._nodes = folder / "nodes"

    async def live(self, run_id: str, chance: random.Random | None) -> int:
        """One life of a run, cut off at a moment of chance; its exit code."""
        begun, nodes = _length(self._begun), _length(self._nodes)
        pid = await self._ask(f"start {run_id}")
        if chance is not None:
            if chance.random() < _EARLY_SHARE:
                await _CLOCK.sleep(chance.uniform(0, _LONGEST_START_S))
            else:
                working = chance.random() < _WORKING_SHARE
                async with asyncio.timeout(_START_LIMIT_S):
                    while _length(self._begun) == begun:
                        await _CLOCK.sleep(_POLL_S)
                    # A run of which all was done but its end does nothing more.
                    while working and _length(self._nodes) == nodes and not _is_over(pid):
                        await _CLOCK.sleep(_POLL_S)
                await _CLOCK.sleep(chance.uniform(0, _LONGEST_LIFE_S))
            # Not reaped before it is asked for, so the pid is its own even if it has ended.
            os.kill(pid, signal.SIGKILL)
        return await self._ask("reap")

    async def _ask(self, line: str) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{line}\n".encode())
        return int(await self._process.stdout.readline())


def _is_over(pid: int) -> bool:
    """Whether the process has ended; it is a zombie until it is asked for."""
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"


@asynccontextmanager
async def _lives(folder: Path) -> AsyncIterator[Lives]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.support.graph_child", str(folder)),
        stdin=PIPE,
        stdout=PIPE,
        cwd=_ROOT,
        env=dict(environment()),
    )
    try:
        yield Lives(process, folder)
        assert process.stdin is not None
        process.stdin.close()
        assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_fifty_kills_lose_no_record_and_repeat_no_finished_work(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    chance = random.Random(_SEED)
    judge = Judge(tmp_path)
    kills, runs, lives = 0, 0, 0
    states: list[dict[str, Any]] = []
    async with _lives(tmp_path) as program:
        while kills < KILLS:
            runs += 1
            run_id = f"run_{runs}"
            ended = False
            while not ended:
                known, nodes, effects = judge.before(run_id)
                code = await program.live(run_id, chance if kills < KILLS else None)
                assert code in (0, _DEAD)
                kills += code == _DEAD
                lives += 1
                judge.after(run_id, known, nodes, effects)
                ended = judge.before(run_id)[0].ended
            states.append(_final_state(tmp_path, run_id))
    expected = await _uninterrupted(tmp_path)
    assert states == [expected] * runs
    assert integrity(tmp_path / STORE) == "ok"
    figures = {
        "kills": kills,
        "runs": runs,
        "lives": lives,
        "acknowledged": judge.acknowledged(),
        "resumed_in": dict(judge.resumed_in),
    }
    record_property("graph kill run", json.dumps(figures))
    assert sum(judge.resumed_in.values()) >= KILLS / 2, "the kills missed the runs: this proves nothing"
    assert len(judge.resumed_in) >= 4


def _final_state(folder: Path, run_id: str) -> dict[str, Any]:
    replayed = replay(killed_graph(), _records(_rows(folder, run_id)), {})
    assert replayed.void == 0
    return dict(replayed.run.root.values)


async def _uninterrupted(folder: Path) -> dict[str, Any]:
    (folder / "calm").mkdir()
    outcome = await Executor(killed_graph(), clock=_CLOCK).run({}, Workplace(folder / "calm", _CLOCK))
    assert outcome.status == "completed"
    return dict(outcome.state)

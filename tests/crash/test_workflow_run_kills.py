"""kill -9 amid twenty runs of a workflow with branches, approvals and effects: no acknowledged answer is
lost, no effect comes twice, and every run ends as its log says. `make soak` kills thirty times.

Covers: gateway/turns/run_command.py, gateway/turns/journal.py, pipeline/workflows/compiling.py.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.config import environment
from gateway.storage.sqlite import SqliteStore
from gateway.turns.run_codec import runs_of
from pipeline.domain.clock import SystemClock
from pipeline.graph.run.records import RawRecord
from pipeline.workflows.reading import read_workflow
from pipeline.workflows.run_record import run_record
from tests.support.killed_graph import whole_lines
from tests.support.store_file import integrity
from tests.support.workflow_lives import BRANCHES, LEDGER, RUNS, SOURCE, result, thread_of

pytestmark = [pytest.mark.crash, pytest.mark.soak, pytest.mark.timeout(900)]

KILLS, SOAK_KILLS = 4, 30
_SEED = 7
_LINES = 240
"""What the ledger has after all runs, at least."""
_LATER_S = 0.02
"""Maximum random delay of a kill, so that it does not always follow a line directly."""
_POLL_S = 0.002
_ROOT = Path(__file__).parents[2]
_CLOCK = SystemClock()
_DEAD = -signal.SIGKILL


class _Lives:
    """The program that forks gateways to be killed."""

    def __init__(self, process: Process, folder: Path) -> None:
        self._process = process
        self._ledger = folder / LEDGER

    async def live(self, after: int | None, chance: random.Random) -> int:
        """One life, killed when the ledger has `after` more lines; its exit code."""
        begun = len(whole_lines(self._ledger))
        pid = await self._ask("start")
        if after is not None:
            while len(whole_lines(self._ledger)) < begun + after and not _is_over(pid):
                await _CLOCK.sleep(_POLL_S)
            await _CLOCK.sleep(chance.uniform(0, _LATER_S))
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


async def test_kills_amid_twenty_runs_lose_no_answer_and_repeat_no_effect(
    tmp_path: Path, record_property: Callable[[str, object], None], *, soak: bool
) -> None:
    chance, kills = random.Random(_SEED), SOAK_KILLS if soak else KILLS
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.support.workflow_lives", str(tmp_path)),
        stdin=PIPE,
        stdout=PIPE,
        cwd=_ROOT,
        env=dict(environment()),
    )
    program, codes = _Lives(process, tmp_path), []
    try:
        # Half of the lines: more are written between the look at the ledger and the kill.
        for after in (*(chance.randint(1, _LINES // (2 * kills)) for _ in range(kills)), None):
            code = await program.live(after, chance)
            codes.append(code)
        assert process.stdin is not None
        process.stdin.close()
        assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert codes == [*[_DEAD] * kills, 0], "a run of the program ended before it was killed"
    figures = await _judge(tmp_path)
    record_property("workflow kill run", json.dumps({"kills": kills, **figures}))
    assert integrity(tmp_path / "parlour.sqlite3") == "ok"


async def _judge(folder: Path) -> dict[str, int]:
    lines = [line.split(" ") for line in whole_lines(folder / LEDGER)]
    acknowledged = {(int(one[1]), one[2]) for one in lines if one[0] == "answered"}
    paid = Counter((one[1], one[2]) for one in lines if one[0] == "paid")
    assert [which for which, count in paid.items() if count > 1] == [], "an effect came twice"
    workflow, store = read_workflow(SOURCE), SqliteStore(folder / "parlour.sqlite3")
    await store.open()
    try:
        for number in range(RUNS):
            rows = await store.read_log(thread_of(number).encode())
            ((_, records),) = runs_of(rows).items()
            _judge_run(number, records, {gate for run, gate in acknowledged if run == number})
            record = run_record(workflow, records)
            assert record.status == "completed"
            received = Counter(entry.node for entry in record.logs if entry.type == "input_received")
            assert received == {f"ok_{one}": 1 for one in BRANCHES}
            said = [str(row.body["text"]) for row in rows if row.kind == "assistant"]
            assert set(said[-1].split("\n\n")) == result(number)
            assert not [row for row in rows if row.kind == "error"]
    finally:
        await store.close()
    return {"acknowledged answers": len(acknowledged), "effects": len(paid)}


def _judge_run(number: int, records: list[RawRecord], acknowledged: set[str]) -> None:
    """Every acknowledged answer is on record, each question was answered once, and no node's step is
    recorded twice."""
    known = [one for one in records if one is not None]
    answered = [one["gate"]["id"] for one in known if one["do"] == "answer"]
    assert acknowledged <= set(answered), f"an acknowledged answer of run {number} is lost"
    assert len(answered) == len(set(answered)) == len(BRANCHES)
    steps = Counter((one.get("frame", ""), one["node"]) for one in known if one["do"] == "step")
    outer = {step: count for step, count in steps.items() if step[1].startswith(("draft", "ok", "pay"))}
    assert [step for step, count in outer.items() if count > 1] == []

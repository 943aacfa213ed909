"""kill -9 amid twenty runs of a workflow with branches, approvals and effects: no acknowledged answer is
lost, no effect comes twice, and every run ends as its log says. `make soak` kills thirty times.

Covers: gateway/turns/run_command.py, gateway/turns/journal.py, pipeline/workflows/compiling.py.
"""

from __future__ import annotations

import json
import random
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.storage.sqlite import SqliteStore
from gateway.turns.run_codec import runs_of
from pipeline.domain.clock import SystemClock
from pipeline.graph.run.records import RawRecord
from pipeline.workflows.reading import read_workflow
from pipeline.workflows.run_record import run_record
from tests.support.forked_children import child
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
_CLOCK = SystemClock()
_DEAD = -signal.SIGKILL


async def _live(folder: Path, after: int | None, chance: random.Random) -> int:
    """One life, killed when the ledger has `after` more lines; its exit code."""
    ledger = folder / LEDGER
    begun = len(whole_lines(ledger))
    async with child("tests.support.workflow_lives", str(folder), log=folder / "log") as process:
        if after is not None:
            while len(whole_lines(ledger)) < begun + after and process.returncode is None:
                await _CLOCK.sleep(_POLL_S)
            await _CLOCK.sleep(chance.uniform(0, _LATER_S))
            process.kill()
        return await process.wait()


async def test_kills_amid_twenty_runs_lose_no_answer_and_repeat_no_effect(
    tmp_path: Path, record_property: Callable[[str, object], None], *, soak: bool
) -> None:
    chance, kills = random.Random(_SEED), SOAK_KILLS if soak else KILLS
    # Half of the lines: more are written between the look at the ledger and the kill.
    lives = (*(chance.randint(1, _LINES // (2 * kills)) for _ in range(kills)), None)
    codes = [await _live(tmp_path, after, chance) for after in lives]
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

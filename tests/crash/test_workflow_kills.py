"""A process that is killed in the middle of a workflow: an approval waits over the restart.

Covers: pipeline/workflows/compiling.py, pipeline/workflows/agent_step.py, pipeline/workflows/steps.py.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from gateway.turns.run_codec import runs_of
from pipeline.workflows.reading import read_workflow
from pipeline.workflows.run_record import run_record
from tests.support.forked_children import run_child
from tests.support.gate_graph import answer_to
from tests.support.harness import THREAD, open_gateway
from tests.support.workflow_child import DRAFT, TRIAGE, triage_model

pytestmark = pytest.mark.crash

_CRASHED = 137
_ROOT = Path(__file__).parents[2]
_SOURCE = (_ROOT / "examples/workflows/triage.workflow.json").read_text("utf-8")


async def _die(folder: Path, crash_at: str) -> None:
    code = await run_child("tests.support.workflow_child", str(folder), crash_at, log=folder / "child.log")
    assert code in (_CRASHED, -signal.SIGKILL)


async def test_an_approval_waits_over_a_kill_and_its_answer_continues_the_run(tmp_path: Path) -> None:
    await _die(tmp_path, "inbox-commit-before:2")
    llm = triage_model()
    async with open_gateway(tmp_path, TRIAGE, llm=llm) as harness:
        (question,) = await harness.store.pending_interactions(THREAD, now=0.0)
        assert question.options == ("approve", "reject")
        await harness.channel.bring(answer_to(question.id, "approve"))
        assert (await harness.channel.reply("m_answer")).text == DRAFT
        ((_, records),) = runs_of(await harness.records()).items()
    record = run_record(read_workflow(_SOURCE), records)
    assert (record.status, record.state["draft"]) == ("completed", DRAFT)
    assert [entry.type for entry in record.logs].count("input_received") == 1
    # The agents before it did not run again.
    assert llm.requests == []


@pytest.mark.parametrize("crash_at", ["turn-commit-before:1", "turn-commit-before:2", "inbox-commit-after:2"])
async def test_a_kill_anywhere_asks_once_and_answers_once(tmp_path: Path, crash_at: str) -> None:
    await _die(tmp_path, crash_at)
    async with open_gateway(tmp_path, TRIAGE, llm=triage_model("refund", DRAFT)) as harness:
        if crash_at == "turn-commit-before:1":
            await harness.channel.until(lambda: harness.channel.sent)
            (question,) = await harness.store.pending_interactions(THREAD, now=0.0)
            await harness.channel.bring(answer_to(question.id, "approve"))
        assert (await harness.channel.reply("m_answer")).text == DRAFT
        ((_, records),) = runs_of(await harness.records()).items()
        assert len(await harness.records("assistant")) == 2
    log = [(entry.node, entry.type) for entry in run_record(read_workflow(_SOURCE), records).logs]
    assert [log.count(one) for one in (("review", "wait_input"), ("review", "input_received"))] == [1, 1]

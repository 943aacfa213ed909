"""What a run of a workflow does, each through a whole gateway: message in, answer and record out.

Covers: pipeline/workflows/compiling.py, pipeline/workflows/steps.py, pipeline/workflows/run_record.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gateway.turns.run_codec import runs_of
from pipeline.domain.errors import ModelUnavailable
from pipeline.domain.events import ErrorEvent, PipelineEvent
from pipeline.domain.frozen import dataclass
from pipeline.workflows.reading import read_workflow
from pipeline.workflows.run_record import WorkflowRun, run_record
from tests.pipeline.workflows.documents import Echo, agent, approval, choice, document, start, way
from tests.support.gate_graph import answer_to
from tests.support.harness import THREAD, open_gateway


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A run and what its person saw."""

    reply: str
    ended: PipelineEvent
    record: WorkflowRun
    model: Echo

    @property
    def log(self) -> list[tuple[str, str]]:
        return [(entry.node, entry.type) for entry in self.record.logs]


async def _run(
    folder: Path, source: dict[str, Any], text: str, *answers: str, model: Echo | None = None
) -> Ran:
    """Send `text`, and give the `answers`, each to the oldest open question."""
    path, model = folder / "own.json", model or Echo({})
    path.write_text(json.dumps(source), "utf-8")
    async with open_gateway(folder, f'agent.graph="{path}"', model=model) as harness:
        message_id = (await harness.channel.say(text)).message_id
        ended = await harness.channel.terminal(message_id)
        for number, answer in enumerate(answers):
            await harness.channel.reply(message_id)
            question, *_ = await harness.store.pending_interactions(THREAD, now=0.0)
            await harness.channel.bring(answer_to(question.id, answer, name=str(number)))
            message_id = f"m_{number}"
            ended = await harness.channel.terminal(message_id)
        reply = (await harness.channel.reply(message_id)).text
        ((_, records),) = runs_of(await harness.records()).items()
    record = run_record(read_workflow(source), records)
    return Ran(reply=reply, ended=ended, record=record, model=model)


async def test_the_previous_output_is_literal_whatever_signs_it_has(tmp_path: Path) -> None:
    source = document(
        start(), agent("a", userPrompt="<{{PREVIOUS_OUTPUT}}> {{PREVIOUS_OUTPUT}}"), routes=[way("start > a")]
    )
    ran = await _run(tmp_path, source, r"$& $1 \1 {{MESSAGE}}")
    assert ran.model.asked == [r"<$& $1 \1 {{MESSAGE}}> $& $1 \1 {{MESSAGE}}"]


async def test_where_no_condition_matches_and_nothing_is_connected_the_run_completes(tmp_path: Path) -> None:
    source = document(
        start(),
        choice("if", ("equal", ""), ("equal", " YES ")),
        agent("a"),
        routes=[way("start > if"), way("if > a", "condition-1")],
    )
    ran = await _run(tmp_path, source, "no")
    assert (ran.record.status, ran.model.asked) == ("completed", [])
    assert ran.reply == "The workflow flow has ended."
    assert (await _run(_sub(tmp_path), source, "yes\n")).model.asked == ["yes"]


async def test_a_diamond_runs_its_last_node_once_for_each_branch(tmp_path: Path) -> None:
    routes = [way("start > a"), way("start > b"), way("a > end"), way("b > end")]
    nodes = (start(), agent("a", userPrompt="a"), agent("b", userPrompt="b"), agent("end"))
    ran = await _run(tmp_path, document(*nodes, routes=routes), "go")
    assert sorted(ran.model.asked) == ["a", "a", "b", "b"]
    assert sorted(ran.reply.split("\n\n")) == ["a", "b"]


async def test_a_branch_beside_an_approval_is_never_lost(tmp_path: Path) -> None:
    nodes = (
        start(),
        approval("ok"),
        agent("side", userPrompt="side"),
        agent("next", userPrompt="next"),
        agent("after", userPrompt="after"),
    )
    routes = [way("start > ok"), way("start > side"), way("side > next"), way("ok > after", "approve")]
    ran = await _run(tmp_path, document(*nodes, routes=routes), "go", "approve")
    # What follows the branch was deferred, and comes behind the chosen one.
    assert ran.model.asked == ["side", "after", "next"]
    assert ran.record.status == "completed"


async def test_a_rejection_without_a_connection_completes_the_run(tmp_path: Path) -> None:
    source = document(
        start(), approval("ok"), agent("a"), routes=[way("start > ok"), way("ok > a", "approve")]
    )
    ran = await _run(tmp_path, source, "go", "reject")
    assert (ran.record.status, ran.model.asked) == ("completed", [])
    assert ran.record.state["ok_approval"] == {"decision": "reject", "note": ""}
    assert ("ok", "input_received") in ran.log


async def test_a_circle_without_an_end_fails_after_its_most_steps(tmp_path: Path) -> None:
    source = document(
        start(),
        choice("if"),
        choice("or"),
        routes=[way("start > if"), way("if > or", "false"), way("or > if", "false")],
    )
    ran = await _run(tmp_path, source, "go")
    assert isinstance(ran.ended, ErrorEvent)
    assert ran.ended.code == "max_steps"
    assert ran.record.status == "failed"
    assert ("system", "error") in ran.log


async def test_an_error_of_the_model_fails_the_run_and_is_logged_at_its_node(tmp_path: Path) -> None:
    model = Echo({"bad": ModelUnavailable("The model is not there.")})
    nodes = (start(), agent("a", userPrompt="bad"), agent("b", userPrompt="good"))
    ran = await _run(
        tmp_path, document(*nodes, routes=[way("start > a"), way("start > b")]), "go", model=model
    )
    assert isinstance(ran.ended, ErrorEvent)
    assert (ran.record.status, ran.record.state["b"]) == ("failed", "good")
    assert ("a", "llm_error") in ran.log


def _sub(folder: Path) -> Path:
    found = folder / "second"
    found.mkdir()
    return found

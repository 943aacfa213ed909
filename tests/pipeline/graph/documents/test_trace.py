"""What a run did is read from its records alone."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.graph.definition.decisions import Continue, Next, NodeDecision, NodeResult, Pause, State
from pipeline.graph.definition.elements import END, EdgeSpec, FanOut, OnFailure, OnSuccess, When
from pipeline.graph.definition.retry import RetryPolicy
from pipeline.graph.definition.spec import GraphSpec, NodeSpec
from pipeline.graph.documents.trace import Trace, trace
from pipeline.graph.execution.executor import Executor
from pipeline.graph.run.outcome import Answer, RunOutcome
from pipeline.graph.run.records import RunUnreadable
from tests.support.graph_log import MemoryRunLog


def _says(*decisions: NodeDecision, fails: int = 0) -> Any:
    calls: list[NodeDecision] = []
    failures = [fails]

    async def node(_state: State, _context: None) -> NodeResult:
        if failures[0]:
            failures[0] -= 1
            raise ValueError("no luck")
        calls.append(Next())
        at = min(len(calls), len(decisions)) - 1
        return NodeResult(decision=decisions[at] if decisions else Next())

    return node


async def _traced(graph: GraphSpec[None], log: MemoryRunLog | None = None) -> tuple[Trace, RunOutcome]:
    log = log or MemoryRunLog()
    outcome = await Executor(graph).run({}, None, log=log)
    return trace(log.records), outcome


async def test_the_path_and_the_ending_are_those_of_the_outcome() -> None:
    graph = GraphSpec[None](
        name="g",
        entry="a",
        nodes={"a": _says(Continue(), Next()), "b": _says()},
        edges=(EdgeSpec(source="a", target="b"),),
    )
    traced, outcome = await _traced(graph)
    assert traced.path == (*outcome.path, END)
    assert traced.status == "completed"
    assert traced.head["run"] == outcome.run_id
    assert [(step.node, step.decision, step.to) for step in traced.steps] == [
        ("a", "continue", ("a",)),
        ("a", "next", ("b",)),
        ("b", "next", ()),
    ]


async def test_branches_subgraphs_retries_failures_and_skips_are_reported() -> None:
    inner = GraphSpec[None](name="inner", entry="x", nodes={"x": _says()}, edges=())
    once = RetryPolicy(max_attempts=2, delay_s=0)
    graph = GraphSpec[None](
        name="g",
        entry="a",
        nodes={
            "a": _says(),
            "shaky": NodeSpec(run=_says(fails=1), retry=once),
            "sub": NodeSpec(subgraph=inner),
            "broken": NodeSpec(run=_says(fails=999), retry=once),
            "join": NodeSpec(run=_says(), max_visits=1),
            "rescue": _says(),
        },
        edges=(
            EdgeSpec(source="a", target="shaky", when=OnSuccess()),
            EdgeSpec(source="a", target="sub", when=OnSuccess()),
            EdgeSpec(source="shaky", target="join"),
            EdgeSpec(source="sub", target="join"),
            EdgeSpec(source="join", target="broken"),
            EdgeSpec(source="broken", target="rescue", when=OnFailure()),
            EdgeSpec(source="rescue", target="join", when=When(lambda _state: True)),
        ),
        fan_out=FanOut(on_failure="wait_all"),
    )
    log = MemoryRunLog()
    traced, outcome = await _traced(graph, log)
    steps = {step.node: step for step in traced.steps}
    assert (steps["shaky"].attempts, steps["shaky"].branch) == (2, "shaky")
    assert (steps["sub.x"].branch, steps["sub"].branch) == ("sub", "sub")
    assert steps["broken"].error == "node_error: no luck"
    assert traced.failed == ("broken",)
    assert any(step.skipped for step in traced.steps)
    assert traced.path[: len(outcome.path)] == outcome.path
    assert traced.status == "failed: max_steps"


async def test_an_open_gate_is_reported_until_it_is_answered() -> None:
    graph = GraphSpec[None](
        name="g",
        entry="ask",
        nodes={"ask": _says(Pause(options=("yes",))), "after": _says()},
        edges=(EdgeSpec(source="ask", target="after"),),
    )
    log = MemoryRunLog()
    traced, outcome = await _traced(graph, log)
    assert (traced.status, traced.open_gates) == ("paused", ("ask",))
    answer = Answer(gate=outcome.gates[0].id, choice="yes")
    await Executor(graph).resume(log.records, None, answers=(answer,), log=log)
    traced = trace(log.records)
    assert (traced.status, traced.open_gates) == ("completed", ())
    assert traced.path == ("ask", "after", END)


async def test_records_that_cannot_be_read_are_counted_and_passed_over() -> None:
    graph = GraphSpec[None](
        name="g",
        entry="a",
        nodes={"a": _says(), "b": _says(), "c": _says()},
        edges=(EdgeSpec(source="a", target="b"), EdgeSpec(source="b", target="c")),
    )
    log = MemoryRunLog()
    await _traced(graph, log)
    traced = trace(log.damaged(1, "{").records)
    assert traced.unreadable == 1
    assert [step.node for step in traced.steps] == ["a", "c"]


def test_nothing_can_be_reported_without_a_head() -> None:
    with pytest.raises(RunUnreadable):
        trace([{"do": "step", "node": "a"}])

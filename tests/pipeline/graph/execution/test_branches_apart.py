"""Branches that never join, that fail at the end, and that continue in turn behind an open gate.

Covers: pipeline/graph/run/transitions.py, pipeline/graph/execution/held_back.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from pipeline.domain.errors import GraphError
from pipeline.graph.definition.decisions import NodeResult, Pause, State
from pipeline.graph.definition.elements import FanOut, Limits
from pipeline.graph.definition.spec import END, EdgeSpec, GraphSpec, NodeSpec, OnSuccess, RetryPolicy
from pipeline.graph.documents.mermaid import mermaid
from pipeline.graph.execution.executor import Executor
from pipeline.graph.run.outcome import Answer, RunOutcome
from tests.support.graph_log import MemoryRunLog

APART = FanOut(on_failure="fail_at_end", join="none", after_gates="in_turn", branch_timeout_s=None)
ONCE = RetryPolicy(max_attempts=1)


def _node(name: str) -> NodeSpec[None]:
    async def run(_state: State, _context: None) -> NodeResult:
        if name.startswith("bad"):
            raise ValueError(name)
        decision = Pause(options=("go",)) if name.startswith("gate") else None
        return NodeResult(update={name: True}) if decision is None else NodeResult(decision=decision)

    return NodeSpec(run=run, retry=ONCE, goes_to=())


def _graph(routes: str, **given: Any) -> GraphSpec[None]:
    """A graph from routes such as `s>a s>b a>d`; it begins at the first."""
    pairs = [way.split(">") for way in routes.split()]
    names = dict.fromkeys(name for pair in pairs for name in pair if name != END)
    edges = tuple(EdgeSpec(source=source, target=target, when=OnSuccess()) for source, target in pairs)
    parts: dict[str, Any] = {"name": "apart", "fan_out": APART, **given}
    return GraphSpec(entry=pairs[0][0], nodes={name: _node(name) for name in names}, edges=edges, **parts)


async def _run(graph: GraphSpec[None], answers: Sequence[str] = (), first_snapshot: int = 64) -> RunOutcome:
    """Run, and answer the oldest open gate of each of these names in order, each in another process."""
    log = MemoryRunLog()
    outcome = await Executor(graph, first_snapshot=first_snapshot).run({}, None, log=log)
    for name in answers:
        gate = next(gate for gate in outcome.gates if gate.node == name)
        executor = Executor(graph, first_snapshot=first_snapshot)
        outcome = await executor.resume(
            log.records, None, log=log, answers=(Answer(gate=gate.id, choice="go"),)
        )
    return outcome


async def test_branches_run_a_shared_node_each_for_itself_and_lead_back_where_they_parted() -> None:
    outcome = await _run(_graph("s>a s>b a>d b>d"))
    assert (outcome.status, outcome.path.count("d")) == ("completed", 2)
    with pytest.raises(GraphError, match="meet at d"):
        _graph("s>a s>b a>d b>d d>e s>e", fan_out=FanOut())
    circle = await _run(_graph("s>a s>b b>s", limits=Limits(max_steps=30)))
    assert (circle.status, circle.stop_reason) == ("failed", "max_steps")


async def test_one_that_fails_lets_the_others_end_and_keeps_what_all_wrote() -> None:
    outcome = await _run(_graph("s>a s>b a>bad b>c c>d"))
    assert (outcome.status, outcome.stop_reason) == ("failed", "error")
    assert outcome.error is not None
    assert outcome.error.node == "bad"
    assert outcome.state.items() >= dict.fromkeys("abcd", True).items()


async def test_all_that_fail_give_the_first_failure() -> None:
    outcome = await _run(_graph("s>bad1 s>bad2"))
    assert outcome.error is not None
    assert outcome.error.node == "bad1"
    assert {failure.node for failure in outcome.failures} == {"bad1", "bad2"}


@pytest.mark.parametrize("first_snapshot", [1, 64])
async def test_what_a_gate_holds_back_continues_in_turn_also_from_a_snapshot(first_snapshot: int) -> None:
    graph = _graph("s>gate s>a s>b gate>c c>c2 a>a2 a2>a3 b>b2 b2>b3")
    outcome = await _run(graph, ("gate",), first_snapshot)
    assert outcome.status == "completed"
    assert outcome.path[-6:] == ("c", "c2", "a2", "a3", "b2", "b3")


async def test_together_is_the_rule_without_the_policy() -> None:
    graph = _graph(
        "s>gate s>a s>b gate>c c>c2 a>a2 a2>a3 b>b2 b2>b3", fan_out=replace(APART, after_gates="together")
    )
    outcome = await _run(graph, ("gate",))
    assert outcome.path[-6:] != ("c", "c2", "a2", "a3", "b2", "b3")


async def test_another_gate_on_the_way_keeps_the_rest_waiting() -> None:
    graph = _graph("s>gate1 s>a gate1>gate2 a>a2 gate2>c")
    outcome = await _run(graph, ("gate1",))
    assert [gate.node for gate in outcome.gates] == ["gate2"]
    assert "a2" not in outcome.path
    assert (await _run(graph, ("gate1", "gate2"))).path[-2:] == ("c", "a2")


async def test_a_node_with_steps_inside_ends_before_the_run_halts() -> None:
    inner = _graph("x>y y>z", name="inner", fan_out=FanOut())
    graph = _graph("s>gate s>a a>b gate>c")
    graph = replace(graph, nodes={**graph.nodes, "a": NodeSpec(subgraph=inner, writes=("z",))})
    outcome = await _run(graph)
    assert {"a.z", "a"} <= set(outcome.path)
    assert "b" not in outcome.path


async def test_steps_inside_do_not_count_where_the_limit_says_so() -> None:
    inner = _graph("x>y y>z", name="inner", fan_out=FanOut())
    graph = _graph("s>a a>b", limits=Limits(max_steps=3, outer_only=True))
    graph = replace(graph, nodes={**graph.nodes, "a": NodeSpec(subgraph=inner, writes=("z",))})
    assert (await _run(graph)).status == "completed"
    counted = replace(graph, limits=Limits(max_steps=3))
    assert (await _run(counted)).stop_reason == "max_steps"


def test_the_policies_are_a_part_of_the_signature_only_where_they_are_used() -> None:
    plain = _graph("s>a", fan_out=FanOut())
    assert plain.signature == _graph("s>a", fan_out=FanOut(join="nearest", after_gates="together")).signature
    others = {
        _graph("s>a", fan_out=policy).signature for policy in (APART, replace(APART, after_gates="together"))
    }
    assert len({plain.signature, *others}) == 3


def test_a_picture_of_branches_without_a_join_names_none() -> None:
    assert "joins" not in mermaid(_graph("s>a s>b a>d b>d"))


async def test_a_gate_carries_who_may_answer_and_whether_with_a_note_over_a_resume() -> None:
    async def ask(_state: State, _context: None) -> NodeResult:
        return NodeResult(decision=Pause(options=("go",), allowed=("ann",), notes=True))

    graph = GraphSpec(name="asks", entry="ask", nodes={"ask": NodeSpec(run=ask, goes_to=())}, edges=())
    log = MemoryRunLog()
    await Executor(graph).run({}, None, log=log)
    (gate,) = Executor(graph).interrupted(log.records).gates
    assert (gate.allowed, gate.notes) == (("ann",), True)

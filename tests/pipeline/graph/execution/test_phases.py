"""The hook between phases: when it is called, its arguments, what becomes of its update."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import pytest

from pipeline.graph.definition.decisions import Continue, End, NodeResult, State
from pipeline.graph.definition.ports import PhaseTransition
from pipeline.graph.definition.spec import NodeSpec, append
from pipeline.graph.execution.executor import Executor
from pipeline.graph.run.outcome import Answer
from tests.pipeline.graph.runs import after, built, ran, sees, writes
from tests.support.graph_log import MemoryRunLog


class Notes:
    """A phase hook that records its calls."""

    def __init__(self, **update: Any) -> None:
        self.reported: list[PhaseTransition] = []
        self.states: list[dict[str, Any]] = []
        self.contexts: list[Any] = []
        self._update = update

    def __call__(self, transition: PhaseTransition, state: State, context: Any) -> Mapping[str, Any]:
        self.reported.append(transition)
        self.states.append(dict(state))
        self.contexts.append(context)
        return self._update


@pytest.mark.parametrize("mode", ["continuous", "isolated"])
async def test_it_is_informed_of_each_move_and_of_the_mode(mode: Literal["continuous", "isolated"]) -> None:
    hook = Notes()
    graph = built("a>b", "b>c", nodes={"a": writes(x=1), "b": writes(y=2)}, conversation=mode)
    await ran(graph, {"w": 0}, phase=hook, context="someone")
    assert [
        (reported.mode, reported.source, reported.targets, reported.completed) for reported in hook.reported
    ] == [
        (mode, "a", ("b",), ("a",)),
        (mode, "b", ("c",), ("a", "b")),
    ]
    assert [dict(reported.outputs) for reported in hook.reported] == [{"x": 1}, {"y": 2}]
    assert hook.states[0] == {"w": 0, "x": 1}
    assert hook.contexts == ["someone", "someone"]


async def test_it_gets_nothing_at_the_end_and_when_a_node_runs_again() -> None:
    async def twice(state: State, _context: Any) -> NodeResult:
        return NodeResult(update={"x": True}, decision=End() if "x" in state else Continue())

    hook = Notes()
    await ran(built("a>", nodes={"a": twice}), phase=hook)
    assert hook.reported == []


async def test_a_fan_out_is_one_transition_and_its_update_is_in_every_branch() -> None:
    hook, seen = Notes(phase=["marker"]), list[dict[str, Any]]()
    graph = built(
        "a>b",
        "a>c",
        nodes={"b": sees(seen), "c": sees(seen)},
        channels={"phase": append},
        terminals=("b", "c"),
    )
    await ran(graph, phase=hook)
    assert [reported.targets for reported in hook.reported] == [("b", "c")]
    assert seen == [{"phase": ("marker",)}, {"phase": ("marker",)}]


async def test_its_update_goes_through_the_channels_and_to_the_next_node() -> None:
    seen: list[dict[str, Any]] = []
    graph = built("a>b", nodes={"a": writes(log=["a"]), "b": sees(seen)}, channels={"log": append})
    await ran(graph, phase=Notes(log=["marker"]))
    assert seen == [{"log": ("a", "marker")}]


def _breaks(_transition: PhaseTransition, _state: State, _context: Any) -> Mapping[str, Any]:
    raise KeyError("no prompt")


@pytest.mark.parametrize("hook", [_breaks, Notes(x=object())])
async def test_a_hook_that_fails_is_the_failure_of_the_node_before(hook: Any) -> None:
    outcome = (await ran(built(after("a>b"), nodes={"a": writes(x=1)}), phase=hook)).outcome
    assert (outcome.status, outcome.path, outcome.state) == ("failed", ("a",), {})
    assert outcome.error is not None
    assert outcome.error.node == "a"


async def test_an_update_that_no_channel_takes_is_the_failure_of_the_node_before() -> None:
    graph = built(after("a>b"), nodes={"a": writes(log=["a"])}, channels={"log": append})
    outcome = (await ran(graph, phase=Notes(log="no list"))).outcome
    assert (outcome.status, outcome.path, outcome.state) == ("failed", ("a",), {})


async def test_it_may_not_write_what_the_engine_writes() -> None:
    outcome = (await ran(built(after("a>b")), phase=Notes(answers={"a": {"choice": "yes"}}))).outcome
    assert (outcome.status, outcome.path) == ("failed", ("a",))


async def test_its_update_is_on_record_and_not_asked_for_again() -> None:
    hook, log, seen = Notes(marker="first"), MemoryRunLog(), list[dict[str, Any]]()
    graph = built("a>b", "b>c", nodes={"a": writes(x=1), "c": sees(seen)})
    await Executor(graph, phase=hook).run({}, None, log=log)
    first = log.records[0]
    assert first is not None
    assert first["phase"] == {"marker": "first"}
    later = Notes(later="second")
    outcome = await Executor(graph, phase=later).resume(log.cut(1).records, None)
    assert outcome.state == {"x": 1, "marker": "first", "later": "second"}
    assert [reported.source for reported in later.reported] == ["b"]
    assert seen[-1] == {"x": 1, "marker": "first", "later": "second"}


async def test_behind_a_gate_it_is_informed_when_the_answer_has_come() -> None:
    hook, log = Notes(marker="there"), MemoryRunLog()
    graph = built("a>b", nodes={"a": writes(x=1)}, pause_nodes=("a",))
    paused = await Executor(graph, phase=hook).run({}, None, log=log)
    assert hook.reported == []
    answer = Answer(gate=paused.gates[0].id, choice="yes", by="ann")
    outcome = await Executor(graph, phase=hook).resume(log.records, None, answers=[answer], log=log)
    assert [(reported.source, reported.targets) for reported in hook.reported] == [("a", ("b",))]
    assert dict(hook.reported[0].outputs) == {"choice": "yes", "note": "", "by": "ann"}
    assert outcome.state["marker"] == "there"
    again = await Executor(graph, phase=Notes()).resume(log.cut(4).records, None)
    assert again.state["marker"] == "there"


async def test_inside_a_subgraph_it_is_informed_of_the_inner_graphs_mode() -> None:
    hook = Notes()
    inner = built("a>q", conversation="isolated")
    graph = built("a>z", nodes={"a": NodeSpec(subgraph=inner)})
    await ran(graph, phase=hook)
    assert [(reported.source, reported.targets, reported.mode) for reported in hook.reported] == [
        ("a.a", ("q",), "isolated"),
        ("a", ("z",), "continuous"),
    ]

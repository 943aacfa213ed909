"""The ordinary step gives what the general way gives: the same run, records, and events."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.domain.clock import ManualClock
from pipeline.graph.definition.decisions import (
    Continue,
    End,
    Goto,
    Next,
    NodeDecision,
    NodeResult,
    Pause,
    State,
)
from pipeline.graph.definition.elements import (
    END,
    EdgeSpec,
    FanOut,
    Limits,
    OnFailure,
    OnSuccess,
    Route,
    When,
)
from pipeline.graph.definition.ports import PhaseTransition
from pipeline.graph.definition.retry import RetryPolicy
from pipeline.graph.definition.spec import GraphSpec, NodeSpec, append, merge
from pipeline.graph.execution.executor import Executor
from pipeline.graph.execution.step import current_step
from pipeline.graph.run.events import GraphEvent, RunCompleted
from pipeline.graph.run.outcome import RunOutcome
from tests.support.graph_log import MemoryRunLog

_ONCE = RetryPolicy(max_attempts=2, delay_s=0)


def _acting(deeds: Sequence[str]) -> Any:
    """A node that does the next deed on each attempt, and ends when there is none left."""
    left = list(deeds)

    async def node(state: State, _context: None) -> NodeResult:
        deed = left.pop(0) if left else "end"
        if deed == "raise":
            raise ValueError("no luck")
        if deed == "effect":
            await current_step().effect("note", _nothing)
        if deed == "keep":
            current_step().keep({"draft": 1})
        if deed in _ANSWERS:
            answer: NodeResult = _ANSWERS[deed]
            return answer
        return NodeResult(update={"n": state.get("n", 0) + 1, "seen": [deed]})

    return node


async def _nothing() -> None:
    pass


def _says(decision: NodeDecision) -> NodeResult:
    return NodeResult(update={"said": 1}, decision=decision)


_ANSWERS: Mapping[str, Any] = {
    "end": _says(End()),
    "blocked": _says(End("blocked")),
    "pause": _says(Pause(options=("yes",))),
    "goto": _says(Goto("b")),
    "nowhere": _says(Goto("ghost")),
    "again": _says(Continue()),
    "reports": NodeResult(error="not today"),
    "reports for good": NodeResult(error="never", permanent=True),
    "bad channel": NodeResult(update={"seen": "not a list"}),
    "bad value": NodeResult(update={"x": object()}),
    "reserved": NodeResult(update={"failure": 1}),
    "no result": None,
    "lost": NodeResult(update={"lost": True}),
}
_DEEDS = st.sampled_from(["next", "next", "next", "raise", "effect", "keep", *_ANSWERS])


def _route(state: State) -> str:
    if state.get("lost"):
        return "elsewhere"
    return END if state.get("n", 0) > 6 else "a"


def _graph(first: Sequence[str], second: Sequence[str]) -> GraphSpec[None]:
    return GraphSpec(
        name="g",
        entry="a",
        nodes={
            "a": NodeSpec(run=_acting(first), retry=_ONCE),
            "b": NodeSpec(run=_acting(second), retry=_ONCE),
        },
        edges=(
            EdgeSpec(source="a", target="b"),
            EdgeSpec(source="b", when=Route(choose=_route, targets=("a", END))),
        ),
        channels={"seen": append, "m": merge},
        limits=Limits(max_steps=12),
    )


def _declared(first: Sequence[str], second: Sequence[str]) -> GraphSpec[None]:
    """As `_graph`, with declarations that the end of a step does not depend on."""
    keys = ("n", "seen")
    return GraphSpec(
        name="d",
        entry="a",
        nodes={
            "a": NodeSpec(run=_acting(first), retry=_ONCE, reads=keys, writes=keys, timeout_s=5),
            "b": NodeSpec(run=_acting(second), writes=(*keys, "said", "lost"), event_loop=True, max_visits=3),
        },
        edges=(
            EdgeSpec(source="a", target="b", when=OnSuccess()),
            EdgeSpec(source="a", target="b", when=OnFailure(), mapping={"why": "n"}),
            EdgeSpec(source="b", when=Route(choose=_route, targets=("a", END))),
        ),
        channels={"seen": append},
        limits=Limits(max_steps=12),
    )


def _parallel(first: Sequence[str], second: Sequence[str]) -> GraphSpec[None]:
    """Two branches, one of them through a subgraph, to a join."""
    inner = GraphSpec[None](
        name="inner",
        entry="x",
        nodes={"x": NodeSpec(run=_acting(second), retry=_ONCE), "y": _acting(["next"])},
        edges=(EdgeSpec(source="x", target="y"),),
        channels={"seen": append},
    )
    return GraphSpec(
        name="p",
        entry="a",
        nodes={
            "a": _acting(["next"]),
            "b": NodeSpec(run=_acting(first), retry=_ONCE),
            "b2": _acting(["next"]),
            "c": NodeSpec(subgraph=inner),
            "join": _acting(["next"]),
        },
        edges=(
            EdgeSpec(source="a", target="b"),
            EdgeSpec(source="a", target="c"),
            EdgeSpec(source="b", target="b2"),
            EdgeSpec(source="b2", target="join"),
            EdgeSpec(source="c", target="join"),
        ),
        channels={"seen": append},
        fan_out=FanOut(on_failure="continue_others"),
        limits=Limits(max_steps=20),
    )


async def _ran(
    graph: GraphSpec[None], *, ordinary: bool, logged: bool
) -> tuple[RunOutcome, list[GraphEvent], list[str]]:
    events: list[GraphEvent] = []
    log = MemoryRunLog()

    async def listen(event: GraphEvent) -> None:
        events.append(event)

    # A hook, even one that says nothing, makes every step take the general way; one for a key that is not
    # in the state does not.
    hook, key = (_never, "phase") if ordinary else (_silent, "")
    executor = Executor(graph, clock=ManualClock(), phase=hook, phase_key=key, chance=lambda: 0.0)
    outcome = await executor.run({}, None, run_id="run_1", listener=listen, log=log if logged else None)
    return outcome, events, log.texts


def _silent(_transition: PhaseTransition, _state: State, _context: None) -> Mapping[str, Any]:
    return {}


def _never(_transition: PhaseTransition, _state: State, _context: None) -> Mapping[str, Any]:
    raise AssertionError("the state has no such key")


def _shown(events: Sequence[GraphEvent]) -> list[str]:
    return [repr(event) for event in events if not isinstance(event, RunCompleted)]


@pytest.mark.parametrize("build", [_graph, _declared, _parallel])
@given(first=st.lists(_DEEDS, max_size=8), second=st.lists(_DEEDS, max_size=8), logged=st.booleans())
async def test_both_paths_give_the_same_run(
    build: Callable[[Sequence[str], Sequence[str]], GraphSpec[None]],
    first: list[str],
    second: list[str],
    logged: bool,
) -> None:
    fast, fast_events, fast_records = await _ran(build(first, second), ordinary=True, logged=logged)
    slow, slow_events, slow_records = await _ran(build(first, second), ordinary=False, logged=logged)
    assert fast == slow
    assert _shown(fast_events) == _shown(slow_events)
    assert fast_records == slow_records


@pytest.mark.parametrize("logged", [False, True])
async def test_a_long_ordinary_run_is_the_same_on_both_paths(logged: bool) -> None:
    deeds = ["next"] * 9
    fast, fast_events, fast_records = await _ran(_graph(deeds, deeds), ordinary=True, logged=logged)
    slow, slow_events, slow_records = await _ran(_graph(deeds, deeds), ordinary=False, logged=logged)
    assert fast.path == ("a", "b") * 4
    assert fast == slow
    assert (_shown(fast_events), fast_records) == (_shown(slow_events), slow_records)


async def test_a_node_is_ordinary_unless_the_end_of_its_step_depends_on_a_declaration() -> None:
    async def node(_state: State, _context: None) -> NodeResult:
        return NodeResult(decision=Next())

    graph = GraphSpec[None](
        name="g",
        entry="a",
        nodes={
            "a": node,
            "b": NodeSpec(run=node, writes=()),
            "c": NodeSpec(run=node, timeout_s=1),
            "d": NodeSpec(run=node, max_visits=3, reads=("x",)),
            "success": node,
            "e": node,
            "nullable": NodeSpec(run=node, writes=("x",), nullable=("x",)),
            "pause": node,
            "split": node,
            "mapped": node,
            "last": node,
        },
        edges=(
            EdgeSpec(source="a", target="b"),
            EdgeSpec(source="b", target="c"),
            EdgeSpec(source="c", target="d"),
            EdgeSpec(source="d", target="success"),
            EdgeSpec(source="success", target="e", when=OnSuccess()),
            EdgeSpec(source="success", target="last", when=OnFailure()),
            EdgeSpec(source="e", target="nullable", when=When("x > 1")),
            EdgeSpec(source="e", target="pause"),
            EdgeSpec(source="nullable", target="pause"),
            EdgeSpec(source="pause", target="split"),
            EdgeSpec(source="split", target="mapped"),
            EdgeSpec(source="split", target="last"),
            EdgeSpec(source="mapped", target="last", mapping={"y": "x"}),
        ),
        terminals=("last",),
        pause_nodes=("pause",),
    )
    assert [name for name, plan in graph.plans.items() if plan.ordinary] == ["a", "b", "c", "d", "success"]

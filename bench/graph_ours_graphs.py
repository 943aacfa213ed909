"""The graphs of the graph bench, built with Parlour's engine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from bench import graph_work as work
from bench.graph_worker import Hold
from pipeline.graph.definition.decisions import Goto, NodeResult, State
from pipeline.graph.definition.retry import RetryPolicy
from pipeline.graph.definition.spec import (
    END,
    EdgeSpec,
    GraphSpec,
    OnSuccess,
    Route,
    append,
    merge,
)
from pipeline.graph.definition.structure import GraphStructure, NodeSpec

_RETRY = RetryPolicy(max_attempts=2)

BenchNode = Callable[[State, None], Awaitable[NodeResult]]


def graph_for(name: work.Graph, hold: Hold) -> GraphSpec[None]:
    """The named graph; in the one called `held` the second node waits at `hold`."""
    match name:
        case "loop":
            return _loop()
        case "fanout":
            return _fan_out()
        case "safety8":
            return _safety()
        case "held":
            return _turn(hold)
        case "turn":
            return _turn(None)
        case _:
            raise ValueError(f"{name} is not a graph of this side")


def _node(run: Callable[[State], Mapping[str, Any]]) -> BenchNode:
    async def node(state: State, _context: None) -> NodeResult:
        return NodeResult(update=run(state))

    return node


def _turn(hold: Hold | None) -> GraphSpec[None]:
    async def held(state: State, _context: None) -> NodeResult:
        assert hold is not None
        await hold.wait()
        return NodeResult(update=work.answer(state))

    return GraphSpec(
        name="turn",
        entry="ask",
        nodes={"ask": _node(work.ask), "answer": held if hold else _node(work.answer)},
        edges=(EdgeSpec(source="ask", target="answer"), EdgeSpec(source="answer", target=END)),
        channels={"history": append},
    )


def _loop() -> GraphSpec[None]:
    again = Route(lambda state: END if work.enough(state) else "count", ("count", END))
    return GraphSpec(
        name="loop",
        entry="count",
        nodes={"count": _node(work.count)},
        edges=(EdgeSpec(source="count", when=again),),
    )


def _fan_out() -> GraphSpec[None]:
    def branch(number: int) -> BenchNode:
        return _node(lambda _state: work.branch(number))

    names = {f"branch{number}": branch(number) for number in range(work.BRANCHES)}
    return GraphSpec(
        name="fanout",
        entry="spread",
        nodes={"spread": _node(work.spread), **names, "join": _node(work.join)},
        edges=(
            *(EdgeSpec(source="spread", target=name, when=OnSuccess()) for name in names),
            *(EdgeSpec(source=name, target="join") for name in names),
            EdgeSpec(source="join", target=END),
        ),
        channels={"out": append},
    )


def _safety() -> GraphSpec[None]:
    """The safety-first graph: eight nodes; `therapeutic` is a subgraph of seven."""

    async def crisis_gate(state: State, _context: None) -> NodeResult:
        update, target = work.crisis_gate(state)
        return NodeResult(update=update, decision=Goto(target))

    def io(run: Callable[[State], Mapping[str, Any]]) -> NodeSpec[None]:
        return NodeSpec(run=_node(run), retry=_RETRY)

    extractors = {
        f"extract_{kind}": io(partial(work.extract, kind)) for kind in ("facts", "procedural_rules")
    }
    return GraphSpec(
        name="safety",
        entry="crisis_gate",
        nodes={
            "crisis_gate": NodeSpec(
                run=crisis_gate, retry=_RETRY, goes_to=("crisis_response", "load_memory")
            ),
            "crisis_response": io(work.crisis_response),
            "crisis_log": io(work.crisis_log),
            "load_memory": io(work.load_memory),
            "therapeutic": NodeSpec(
                subgraph=_therapeutic(), reads=("text", "memory"), writes=("mode", "response")
            ),
            "finalize_turn": _node(work.finalize_turn),
            **extractors,
        },
        edges=(
            EdgeSpec(source="crisis_response", target="crisis_log", when=OnSuccess()),
            EdgeSpec(source="crisis_log", target="finalize_turn", when=OnSuccess()),
            EdgeSpec(source="load_memory", target="therapeutic", when=OnSuccess()),
            EdgeSpec(source="therapeutic", target="finalize_turn", when=OnSuccess()),
            *(EdgeSpec(source="finalize_turn", target=name, when=OnSuccess()) for name in extractors),
            *(EdgeSpec(source=name, target=END, when=OnSuccess()) for name in extractors),
        ),
        channels={"history": append, "transcript": append, "diagnostics": merge},
    )


def _therapeutic() -> GraphStructure[None]:
    return GraphStructure(
        name="therapeutic",
        entry="dispatcher",
        nodes={
            "dispatcher": _node(work.dispatcher),
            **{mode: _node(partial(work.respond, mode)) for mode in work.MODES},
        },
        edges=(
            EdgeSpec(source="dispatcher", when=Route(work.chosen_mode, work.MODES)),
            *(EdgeSpec(source=mode, target=END, when=OnSuccess()) for mode in work.MODES),
        ),
    )

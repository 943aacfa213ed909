"""A signature changes with what a recorded run depends on, and with nothing else."""

from __future__ import annotations

import string
from dataclasses import replace
from typing import Any

from pipeline.graph.definition.decisions import NodeResult, State
from pipeline.graph.definition.elements import (
    END,
    Always,
    Condition,
    EdgeSpec,
    FanOut,
    Goal,
    Limits,
    LlmDecide,
    OnSuccess,
    Route,
    When,
)
from pipeline.graph.definition.reducers import append, merge
from pipeline.graph.definition.retry import RetryPolicy
from pipeline.graph.definition.signature import graph_signature
from pipeline.graph.definition.spec import GraphSpec
from pipeline.graph.definition.structure import GraphStructure, NodeSpec
from tests.support.tables import each

Graph = GraphStructure[None, State]


async def _node(_state: State, _context: None) -> NodeResult:
    return NodeResult()


async def _other_node(_state: State, _context: None) -> NodeResult:
    return NodeResult()


def _to_b(_state: State) -> str:
    return "b"


def _to_end(_state: State) -> str:
    return END


class _Chooser:
    def __call__(self, _state: State) -> str:
        return "b"


_INNER = GraphStructure[None](name="inner", entry="x", nodes={"x": _node}, edges=())
_A = NodeSpec[None](run=_node, reads=("q", "r"), writes=("k", "l"), nullable=("k",))
_GRAPH = GraphStructure[None](
    name="g",
    entry="a",
    nodes={"a": _A, "b": _node, "c": NodeSpec[None](subgraph=_INNER)},
    edges=(
        EdgeSpec(source="a", target="b", when=When("k > 1")),
        EdgeSpec(source="a", target="c"),
        EdgeSpec(source="b", when=Route(choose=_to_b, targets=("b", END))),
        EdgeSpec(source="c", target="b", when=LlmDecide("it is long"), fallback=True),
    ),
    entry_points={"again": "b"},
    channels={"k": append},
)


def _changed(**fields: Any) -> Graph:
    return replace(_GRAPH, **fields)


def _with_a(**fields: Any) -> Graph:
    return _changed(nodes={**_GRAPH.nodes, "a": replace(_A, **fields)})


def _with_inner(**fields: Any) -> Graph:
    return _changed(nodes={**_GRAPH.nodes, "c": NodeSpec[None](subgraph=replace(_INNER, **fields))})


def _with_edge(position: int, **fields: Any) -> Graph:
    edges = list(_GRAPH.edges)
    edges[position] = replace(edges[position], **fields)
    return _changed(edges=tuple(edges))


def _with_condition(position: int, condition: Condition) -> Graph:
    return _with_edge(position, when=condition)


def test_a_signature_is_twelve_hex_digits_and_a_graph_knows_its_own() -> None:
    graph = GraphSpec[None](name="g", entry="a", nodes={"a": _node}, edges=())
    assert len(graph.signature) == 12
    assert set(graph.signature) <= set(string.hexdigits.lower())
    assert graph.signature == graph_signature(graph)


def test_the_same_graph_has_the_same_signature_in_every_process() -> None:
    graph = GraphStructure[None](name="g", entry="a", nodes={"a": _node}, edges=())
    assert graph_signature(graph) == "8bb35861c22a"


_DIFFERENT = {
    "name": _changed(name="h"),
    "version": _changed(version="2"),
    "entry": _changed(entry="b"),
    "an entry point's name": _changed(entry_points={"other": "b"}),
    "an entry point's node": _changed(entry_points={"again": "c"}),
    "a further node": _changed(nodes={**_GRAPH.nodes, "d": _node}),
    "terminals": _changed(terminals=("b",)),
    "pause nodes": _changed(pause_nodes=("b",)),
    "a channel's key": _changed(channels={"l": append}),
    "a channel's kind": _changed(channels={"k": merge}),
    "failure policy": _changed(fan_out=FanOut(on_failure="wait_all")),
    "conflict policy": _changed(fan_out=FanOut(on_conflict="error")),
    "reads": _with_a(reads=("q",)),
    "reads of anything": _with_a(reads=None),
    "writes": _with_a(writes=("k",)),
    "nullable": _with_a(nullable=()),
    "goes_to": _with_a(goes_to=("b",)),
    "goes_to nothing": _with_a(goes_to=()),
    "reviser": _with_a(reviser="b"),
    "event loop": _with_a(event_loop=True),
    "max visits": _with_a(max_visits=3),
    "a node's own fan-out policy": _with_a(fan_out=FanOut()),
    "a node's conflict policy": _with_a(fan_out=FanOut(on_conflict="first_wins")),
    "the subgraph": _changed(
        nodes={**_GRAPH.nodes, "c": NodeSpec[None](subgraph=replace(_INNER, version="2"))}
    ),
    "no subgraph": _changed(nodes={**_GRAPH.nodes, "c": _node}),
    "edge order": _changed(edges=(_GRAPH.edges[1], _GRAPH.edges[0], *_GRAPH.edges[2:])),
    "an edge less": _changed(edges=_GRAPH.edges[1:]),
    "an edge's target": _with_edge(1, target="b"),
    "an edge's source": _with_edge(1, source="c"),
    "an edge's kind": _with_condition(1, OnSuccess()),
    "an edge's expression": _with_condition(0, When("k > 2")),
    "an edge's function": _with_condition(0, When(lambda _: True)),
    "an edge's mapping": _with_edge(1, mapping={"q": "k"}),
    "an edge's fallback": _with_edge(3, fallback=False),
    "a route's function": _with_condition(2, Route(choose=_to_end, targets=("b", END))),
    "a route's callable object": _with_condition(2, Route(choose=_Chooser(), targets=("b", END))),
    "a route's targets": _with_condition(2, Route(choose=_to_b, targets=("b",))),
}

_SAME = {
    "node order": _changed(nodes=dict(reversed(list(_GRAPH.nodes.items())))),
    "order of declared keys": _with_a(reads=("r", "q"), writes=("l", "k")),
    "a plain function or its NodeSpec": _changed(nodes={**_GRAPH.nodes, "b": NodeSpec[None](run=_node)}),
    "the node's function": _changed(nodes={**_GRAPH.nodes, "b": _other_node}),
    "node timeout": _with_a(timeout_s=3.0),
    "node retries": _with_a(retry=RetryPolicy(max_attempts=9)),
    "node description": _with_a(description="does it"),
    "limits": _changed(limits=Limits(max_steps=9, max_consecutive=3, max_seconds=1.0)),
    "goal": _changed(goal=Goal(description="be kind")),
    "branch timeout": _changed(fan_out=FanOut(branch_timeout_s=1.0)),
    "what the decider receives": _with_condition(3, LlmDecide("it is very long")),
    "conversation mode": _changed(conversation="isolated"),
    "the subgraph's goal": _with_inner(goal=Goal(description="be brief")),
}


@each("change", _DIFFERENT)
def test_it_changes_with(change: str) -> None:
    assert graph_signature(_DIFFERENT[change]) != graph_signature(_GRAPH)


def test_each_change_gives_another_one() -> None:
    assert len({graph_signature(graph) for graph in _DIFFERENT.values()}) == len(_DIFFERENT)


@each("change", _SAME)
def test_it_does_not_change_with(change: str) -> None:
    assert _SAME[change] != _GRAPH or change == "node order"
    assert graph_signature(_SAME[change]) == graph_signature(_GRAPH)


def test_an_unconditional_edge_is_not_mistaken_for_another_kind_without_words() -> None:
    kinds: list[Condition] = [Always(), OnSuccess(), LlmDecide("x")]
    assert len({graph_signature(_with_condition(1, kind)) for kind in kinds}) == 3

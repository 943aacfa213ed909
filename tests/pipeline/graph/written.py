"""Short functions that write graphs of nodes that do nothing, for tests of how graphs are checked."""

from __future__ import annotations

from typing import Any

from pipeline.graph.definition.decisions import NodeResult, State
from pipeline.graph.definition.elements import END, Always, Condition, EdgeSpec, Route
from pipeline.graph.definition.structure import GraphStructure, NodeSpec
from pipeline.graph.definition.validation import graph_problems

Graph = GraphStructure[None, State]


async def idle(_state: State, _context: None) -> NodeResult:
    return NodeResult()


def spec_of(**fields: Any) -> NodeSpec[None, State]:
    return NodeSpec(run=idle, **fields)


def edge_of(arrow: str, when: Condition | None = None, **fields: Any) -> EdgeSpec:
    """`a>b` is the edge from a to b; `b>` ends the run."""
    source, target = arrow.split(">")
    return EdgeSpec(source=source, target=target or END, when=when or Always(), **fields)


def graph_of(*edges: EdgeSpec | str, others: str = "", **fields: Any) -> Graph:
    """A graph of the edges' nodes and `others`, entered at a; `specs` says more about some of its nodes."""
    built = tuple(edge_of(edge) if isinstance(edge, str) else edge for edge in edges)
    names = dict.fromkeys(
        ["a", *(name for edge in built for name in (edge.source, *edge.targets())), *others]
    )
    nodes = {name: idle for name in names if name not in (END, "")} | fields.pop("specs", {})
    return GraphStructure(**{"name": "g", "entry": "a", "nodes": nodes, "edges": built} | fields)


def only_problem(graph: Graph) -> str:
    """The graph's one problem; fails when it has none or several."""
    problems = graph_problems(graph)
    assert len(problems) == 1, problems
    return problems[0]


def route_of(*targets: str, target: str = "") -> EdgeSpec:
    return EdgeSpec(source="a", target=target, when=Route(lambda _: END, targets))

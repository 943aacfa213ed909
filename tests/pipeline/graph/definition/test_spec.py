"""Graphs are checked when they are built: all mistakes at once, each naming its element.

Covers: pipeline/graph/definition/elements.py.
"""

from __future__ import annotations

import pytest

from pipeline.domain.errors import GraphError
from pipeline.graph.definition.decisions import NodeResult, State
from pipeline.graph.definition.spec import END, EdgeSpec, GraphSpec, Route
from pipeline.graph.definition.structure import GraphStructure


async def _node(_state: State, _context: None) -> NodeResult:
    return NodeResult()


def test_every_mistake_is_named_in_one_error() -> None:
    with pytest.raises(GraphError) as caught:
        GraphSpec[None](
            name="broken",
            entry="nowhere",
            nodes={"a": _node, END: _node},
            edges=(
                EdgeSpec(source="a", target="ghost"),
                EdgeSpec(source="a", target=END),
                EdgeSpec(source="phantom", target="a"),
            ),
        )
    words = str(caught.value)
    for part in (
        "graph broken",
        "node end: the name is reserved",
        "entry nowhere",
        "edge a -> ghost",
        "edge from phantom",
    ):
        assert part in words


def test_a_node_that_no_edge_reaches_is_an_error() -> None:
    with pytest.raises(GraphError, match="node b: cannot be reached"):
        GraphSpec[None](name="g", entry="a", nodes={"a": _node, "b": _node}, edges=())


def test_a_route_tolerates_no_other_edge_beside_it() -> None:
    with pytest.raises(GraphError, match="node a: a route must be its only edge"):
        GraphSpec[None](
            name="g",
            entry="a",
            nodes={"a": _node},
            edges=(
                EdgeSpec(source="a", when=Route(choose=lambda _: END, targets=(END,))),
                EdgeSpec(source="a", target=END),
            ),
        )


def test_several_unconditional_edges_fan_out() -> None:
    graph = GraphSpec[None](
        name="g",
        entry="a",
        nodes={"a": _node, "b": _node, "c": _node},
        edges=(EdgeSpec(source="a", target="b"), EdgeSpec(source="a", target="c")),
    )
    assert graph.joins.of(graph.successors["a"]) == END


def test_a_graph_knows_the_join_of_a_fan_out() -> None:
    graph = GraphSpec[None](
        name="g",
        entry="a",
        nodes=dict.fromkeys("abcj", _node),
        edges=tuple(EdgeSpec(source=source, target=target) for source, target in ("ab", "ac", "bj", "cj")),
    )
    assert graph.joins.of(("b", "c")) == "j"


def test_a_wrong_graph_may_be_written_down_unchecked() -> None:
    graph = GraphStructure[None](name="g", entry="nowhere", nodes={}, edges=())
    with pytest.raises(GraphError, match="graph g: entry nowhere: no such node"):
        GraphSpec[None](name=graph.name, entry=graph.entry, nodes=graph.nodes, edges=graph.edges)

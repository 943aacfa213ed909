"""Graphs are checked when they are built: all mistakes at once, each naming its element."""

from __future__ import annotations

import pytest

from pipeline.domain.errors import GraphError
from pipeline.graph.decisions import NodeResult, State
from pipeline.graph.spec import END, EdgeSpec, GraphSpec, Route


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
        "node a: more than one unconditional edge",
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

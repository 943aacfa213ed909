"""Which node comes next: the decision first, then the edges."""

from __future__ import annotations

from pipeline.domain.errors import GraphError
from pipeline.graph.decisions import ContextT, Continue, End, Goto, Next, NodeDecision, State
from pipeline.graph.spec import END, Always, GraphSpec, Route, When


def following(graph: GraphSpec[ContextT], node: str, decision: NodeDecision, state: State) -> str:
    """The next node's id, or END. Raises GraphError when a jump or a route names no node."""
    match decision:
        case End():
            return END
        case Continue():
            return node
        case Goto(node=target):
            if target not in graph.nodes:
                raise GraphError(f"graph {graph.name}: node {node} jumps to {target}, which does not exist")
            return target
        case Next():
            return _along_edges(graph, node, state)


def _along_edges(graph: GraphSpec[ContextT], node: str, state: State) -> str:
    fallback = END
    for edge in graph.edges_from(node):
        match edge.when:
            case Route(choose=choose, targets=targets):
                target = choose(state)
                if target not in targets:
                    raise GraphError(
                        f"graph {graph.name}: the route after {node} chose {target}, not one of its targets"
                    )
                return target
            case When(holds=holds):
                if holds(state):
                    return edge.target
            case Always():
                fallback = edge.target
    return fallback

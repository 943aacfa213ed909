"""What a graph is made of, checked when it is built: every mistake at once, each naming its element."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic

from pipeline.domain.errors import GraphError
from pipeline.graph.decisions import ContextT, Node, State

END = "end"
"""The name that edges and routes use for the end of a run; no node may have it."""


@dataclass(frozen=True, slots=True)
class Always:
    """The edge is taken when no conditional edge before it matched."""


@dataclass(frozen=True, slots=True)
class When:
    """The edge is taken when `holds` is true of the state; the first match in declaration order wins."""

    holds: Callable[[State], bool]


@dataclass(frozen=True, slots=True)
class Route:
    """One function names the target among `targets` (node ids or END). It is its node's only edge."""

    choose: Callable[[State], str]
    targets: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeSpec:
    """A way out of `source`. `target` is a node id or END, and empty for a `Route`."""

    source: str
    target: str = ""
    when: Always | When | Route = field(default_factory=Always)

    def targets(self) -> tuple[str, ...]:
        """Every place this edge can lead to."""
        return self.when.targets if isinstance(self.when, Route) else (self.target,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds on one run. The counts include the run that reaches them."""

    max_steps: int = 200
    """Node executions in one run (cross-seed rule: a total cap beside the consecutive one)."""
    max_consecutive: int = 40
    """Executions of the same node in a row (seed 0: MAX_CONSECUTIVE_LOOP)."""


# No slots: on Python 3.11 a frozen generic with slots cannot be built as `GraphSpec[Context](…)`.
@dataclass(frozen=True, kw_only=True)
class GraphSpec(Generic[ContextT]):
    """A graph that can run. Building one raises GraphError with all its mistakes."""

    name: str
    entry: str
    nodes: Mapping[str, Node[ContextT]]
    edges: tuple[EdgeSpec, ...]
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        problems = _problems(self)
        if problems:
            raise GraphError(f"graph {self.name}: " + "; ".join(problems))

    def edges_from(self, node: str) -> tuple[EdgeSpec, ...]:
        """The edges out of `node`, in declaration order."""
        return tuple(edge for edge in self.edges if edge.source == node)


def _problems(graph: GraphSpec[ContextT]) -> list[str]:
    problems = [f"node {END}: the name is reserved"] if END in graph.nodes else []
    if graph.entry not in graph.nodes:
        problems.append(f"entry {graph.entry}: no such node")
    for edge in graph.edges:
        problems += _edge_problems(graph, edge)
    for node in graph.nodes:
        problems += _exit_problems(node, graph.edges_from(node))
    if not problems:
        reachable = _reachable(graph)
        problems += [f"node {node}: cannot be reached" for node in graph.nodes if node not in reachable]
    return problems


def _edge_problems(graph: GraphSpec[ContextT], edge: EdgeSpec) -> list[str]:
    problems = [] if edge.source in graph.nodes else [f"edge from {edge.source}: no such node"]
    problems += [
        f"edge {edge.source} -> {target}: no such node"
        for target in edge.targets()
        if target != END and target not in graph.nodes
    ]
    return problems


def _exit_problems(node: str, outgoing: tuple[EdgeSpec, ...]) -> list[str]:
    problems = []
    if len(outgoing) > 1 and any(isinstance(edge.when, Route) for edge in outgoing):
        problems.append(f"node {node}: a route must be its only edge")
    if sum(isinstance(edge.when, Always) for edge in outgoing) > 1:
        problems.append(f"node {node}: more than one unconditional edge")
    return problems


def _reachable(graph: GraphSpec[ContextT]) -> set[str]:
    """Nodes on some path from the entry. `Goto` targets need an edge to count: a jump is not a path."""
    seen: set[str] = set()
    waiting = [graph.entry]
    while waiting:
        node = waiting.pop()
        if node in seen or node == END:
            continue
        seen.add(node)
        for edge in graph.edges_from(node):
            waiting.extend(edge.targets())
    return seen

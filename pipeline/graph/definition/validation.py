"""Validate a whole graph: report every mistake at once, each with its element and the remedy.

Mistakes are also duplicates, conditions that do not parse, terminals with edges, and jumps to unknown nodes.
It checks declarations only, never what a node does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from inspect import iscoroutinefunction
from itertools import chain
from typing import Any, Final, get_args

from pipeline.graph.definition.elements import (
    END,
    AfterGates,
    Condition,
    ConflictPolicy,
    ConversationMode,
    EdgeSpec,
    FailurePolicy,
    FanOut,
    JoinPolicy,
    LlmDecide,
    Route,
    When,
)
from pipeline.graph.definition.expressions import expression_problem
from pipeline.graph.definition.merging import RESERVED
from pipeline.graph.definition.reachability import fan_out_problem, flow_problems
from pipeline.graph.definition.structure import GraphStructure, NodeSpec

__all__ = ["fan_out_problem", "graph_problems"]

_FORBIDDEN: Final = frozenset("/.#:")
"""Characters that separate the parts of frame ids and labels; not allowed in a node id."""


def graph_problems(graph: GraphStructure[Any, Any]) -> list[str]:
    """One line for each mistake, in no particular order; empty when the graph can run."""
    return list(_graph(graph, ()))


def _graph(graph: GraphStructure[Any, Any], outer: tuple[int, ...]) -> Iterator[str]:
    within = (*outer, id(graph))
    return chain(
        _entry_problems(graph),
        chain.from_iterable(_node(graph, node, spec, within) for node, spec in graph.specs.items()),
        _edges(graph),
        chain.from_iterable(_edges_together(node, edges) for node, edges in graph.outgoing.items()),
        _special_nodes(graph),
        _state_keys("channel", graph.channels),
        _kept(graph),
        _policies(graph),
        flow_problems(graph),
    )


def _entry_problems(graph: GraphStructure[Any, Any]) -> Iterator[str]:
    if graph.entry not in graph.nodes:
        yield f"entry {graph.entry}: no such node; name one of the graph's nodes"
    for name, node in graph.entry_points.items():
        if node not in graph.nodes:
            yield f"entry point {name} -> {node}: no such node; name one of the graph's nodes"


def _special_nodes(graph: GraphStructure[Any, Any]) -> Iterator[str]:
    for label, nodes in (("terminal", graph.terminals), ("pause node", graph.pause_nodes)):
        yield from _twice(label, nodes)
        for node in nodes:
            if node not in graph.nodes:
                yield f"{label} {node}: no such node; name one of the graph's nodes"
    for node in dict.fromkeys(graph.terminals):
        if graph.edges_from(node):
            yield f"terminal {node}: it ends the run, so its edges are never taken; remove them"
        if node in graph.pause_nodes:
            yield f"terminal {node}: it is a pause node too, but nothing comes after it; choose one"


def _node(
    graph: GraphStructure[Any, Any], node: str, spec: NodeSpec[Any, Any], within: tuple[int, ...]
) -> Iterator[str]:
    label = f"node {node}"
    if node == END:
        yield f"{label}: the name is reserved for the end of a run; rename the node"
    if not node or any(letter in _FORBIDDEN or letter.isspace() for letter in node):
        yield f'node "{node}": an id is not empty and has no "/", ".", "#", ":" or space; rename the node'
    if (spec.run is None) == (spec.subgraph is None):
        yield f"{label}: give exactly one of run and subgraph"
    yield from _declared_keys(label, spec)
    yield from _bounds(label, spec)
    yield from _jumps(graph, node, spec)
    if spec.fan_out is not None:
        yield from _fan_out(label, spec.fan_out)
    if spec.subgraph is not None:
        if spec.event_loop:
            yield f"{label}: a subgraph is never retried as a whole; remove event_loop"
        yield from _subgraph(label, spec.subgraph, within)


def _declared_keys(label: str, spec: NodeSpec[Any, Any]) -> Iterator[str]:
    yield from _twice(f"{label}: read", spec.reads or ())
    yield from _twice(f"{label}: write", spec.writes or ())
    yield from _twice(f"{label}: nullable", spec.nullable)
    yield from _state_keys(f"{label}: write", spec.writes or ())
    for key in spec.nullable:
        if key not in (spec.writes or ()):
            yield f"{label}: nullable {key} is not in writes; add it there"


def _bounds(label: str, spec: NodeSpec[Any, Any]) -> Iterator[str]:
    retry = spec.retry
    # Each states what must hold, so that a NaN is refused too.
    rules = (
        (spec.timeout_s is None or spec.timeout_s > 0, "timeout_s must be above 0, or None for no deadline"),
        (spec.max_visits >= 0, "max_visits must be 0 (no limit) or more"),
        (retry.max_attempts >= 1, "retry.max_attempts must be 1 or more, as it counts the first attempt"),
        (retry.delay_s >= 0, "retry.delay_s must be 0 or more"),
        (retry.max_delay_s >= 0, "retry.max_delay_s must be 0 or more"),
        (retry.factor >= 1, "retry.factor must be 1 or more"),
        (0 <= retry.jitter <= 1, "retry.jitter must be from 0 to 1"),
    )
    yield from (f"{label}: {words}" for holds, words in rules if not holds)


def _jumps(graph: GraphStructure[Any, Any], node: str, spec: NodeSpec[Any, Any]) -> Iterator[str]:
    yield from _twice(f"node {node}: goes_to", spec.goes_to or ())
    for target in spec.goes_to or ():
        if target != END and target not in graph.nodes:
            yield f"node {node}: goes_to {target}: no such node; name one of the graph's nodes or END"
    if spec.reviser == node:
        yield f"node {node}: it cannot be its own reviser; name another node, or return Continue"
    elif spec.reviser is not None and spec.reviser not in graph.nodes:
        yield f"node {node}: reviser {spec.reviser}: no such node; name one of the graph's nodes"


def _subgraph(label: str, graph: GraphStructure[Any, Any], within: tuple[int, ...]) -> Iterator[str]:
    if id(graph) in within:
        yield f"{label}, subgraph {graph.name}: a graph cannot contain itself; jump back with an edge instead"
        return
    for problem in _graph(graph, within):
        yield f"{label}, subgraph {graph.name}: {problem}"


def _edges(graph: GraphStructure[Any, Any]) -> Iterator[str]:
    for source in dict.fromkeys(edge.source for edge in graph.edges):
        if source == END:
            yield f"edge from {END}: nothing comes after the end of a run; remove the edge"
        elif source not in graph.nodes:
            yield f"edge from {source}: no such node; name one of the graph's nodes"
    for edge in graph.edges:
        if isinstance(edge.when, Route):
            yield from _route(edge, edge.when)
        elif not edge.target:
            yield f"edge from {edge.source}: no target; name a node or END"
        for target in edge.targets():
            if target and target != END and target not in graph.nodes:
                yield f"edge {edge.source} -> {target}: no such node; name one of the graph's nodes or END"
        yield from _condition(edge)
        yield from _state_keys(f"edge {edge.source} -> {edge.target}: mapping", edge.mapping)


def _route(edge: EdgeSpec, route: Route) -> Iterator[str]:
    if edge.target:
        yield f"edge {edge.source} -> {edge.target}: a route names its targets itself; leave target out"
    if not route.targets:
        yield f"edge from {edge.source}: a route needs at least one target"
    if "" in route.targets:
        yield f"edge from {edge.source}: a route's target is empty; name a node or END"
    yield from _twice(f"edge from {edge.source}: route target", route.targets)


def _condition(edge: EdgeSpec) -> Iterator[str]:
    label = f"edge {edge.source} -> {edge.target}"
    match edge.when:
        case When(holds=asked) | Route(choose=asked) if iscoroutinefunction(asked):
            yield f"{label}: an async function would count as true before it answers; use a plain one"
        case When(holds=str() as text) if not text.strip():
            yield f"{label}: the expression is empty; write a condition, or use Always"
        case When(holds=str() as text):
            problem = expression_problem(text)
            if problem:
                yield f"{label}: {problem}"
        case LlmDecide(description=description) if not description.strip():
            yield f"{label}: the description is empty; tell the decider when to take this edge"
    if edge.fallback and not isinstance(edge.when, LlmDecide):
        yield f"{label}: fallback is for LlmDecide edges only; remove it"


def _edges_together(node: str, edges: tuple[EdgeSpec, ...]) -> Iterator[str]:
    """Mistakes in the combination of the edges out of one node."""
    if len(edges) > 1 and any(isinstance(edge.when, Route) for edge in edges):
        yield f"node {node}: a route must be its only edge; let the function choose among all targets"
    asked = [edge for edge in edges if isinstance(edge.when, LlmDecide)]
    fallbacks = sum(edge.fallback for edge in asked)
    if asked and fallbacks != 1:
        yield f"node {node}: exactly one of its LlmDecide edges must have fallback=True, not {fallbacks}"
    conditions: dict[str, list[Condition]] = {}
    for edge in edges:
        same_target = conditions.setdefault(edge.target, [])
        # Compared, not hashed: a route read from JSON may hold a list.
        if same_target.count(edge.when) == 1:
            yield f"edge {node} -> {', '.join(edge.targets())}: declared more than once; remove the others"
        same_target.append(edge.when)


def _policies(graph: GraphStructure[Any, Any]) -> Iterator[str]:
    limits = graph.limits
    for name in ("max_steps", "max_consecutive"):
        if not getattr(limits, name) >= 1:
            yield f"limits: {name} must be 1 or more"
    if not limits.decide_seconds > 0:
        yield "limits: decide_seconds must be above 0"
    if limits.max_seconds is not None and not limits.max_seconds > 0:
        yield "limits: max_seconds must be above 0, or None for no deadline"
    if graph.conversation not in get_args(ConversationMode):
        yield f"conversation: {_choices(graph.conversation, get_args(ConversationMode))}"
    yield from _fan_out("graph", graph.fan_out)


def _fan_out(label: str, policy: FanOut) -> Iterator[str]:
    if policy.on_failure not in get_args(FailurePolicy):
        yield f"{label}: fan_out.on_failure: {_choices(policy.on_failure, get_args(FailurePolicy))}"
    if policy.on_conflict not in get_args(ConflictPolicy):
        yield f"{label}: fan_out.on_conflict: {_choices(policy.on_conflict, get_args(ConflictPolicy))}"
    if policy.join not in get_args(JoinPolicy):
        yield f"{label}: fan_out.join: {_choices(policy.join, get_args(JoinPolicy))}"
    if policy.after_gates not in get_args(AfterGates):
        yield f"{label}: fan_out.after_gates: {_choices(policy.after_gates, get_args(AfterGates))}"
    if policy.branch_timeout_s is not None and not policy.branch_timeout_s > 0:
        yield f"{label}: fan_out.branch_timeout_s must be above 0, or None for no deadline"


def _choices(given: str, known: tuple[str, ...]) -> str:
    return f"{given} is unknown; use {', '.join(known[:-1])} or {known[-1]}"


def _state_keys(label: str, keys: Iterable[str]) -> Iterator[str]:
    for key in keys:
        if key in RESERVED:
            yield f"{label} {key}: the engine owns this key of the state; use another"


def _kept(graph: GraphStructure[Any, Any]) -> Iterator[str]:
    yield from _state_keys("keep", graph.keep)
    for key, kept in graph.keep.items():
        for name in kept.was:
            if name in graph.keep:
                yield f"keep {key}: its earlier name {name} is a kept key too; remove one of them"


def _twice(label: str, names: Iterable[str]) -> Iterator[str]:
    for name, count in Counter(names).items():
        if count > 1:
            yield f"{label} {name}: declared more than once; remove the others"

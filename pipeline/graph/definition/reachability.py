"""Check the paths of a graph: unreachable nodes, no end, fan-outs that do not join well.

It reads only the declared targets (`GraphStructure.successors`); `validation` checks single declarations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from pipeline.graph.definition.elements import (
    END,
    Always,
    EdgeSpec,
    LlmDecide,
    OnFailure,
    OnSuccess,
    Route,
    When,
)
from pipeline.graph.definition.structure import GraphStructure


def flow_problems(graph: GraphStructure[Any, Any]) -> Iterator[str]:
    """One line for each mistake. Ignores unknown nodes, which `validation` reports."""
    return chain(_unreachable(graph), _endless(graph), _fan_outs(graph))


def fan_out_problem(graph: GraphStructure[Any, Any], source: str, targets: tuple[str, ...]) -> str:
    """Why the branches beginning at `targets` cannot run in parallel after `source`; "" when they can.

    For edges the validation calls it; for a route, the executor does once the targets are chosen.
    """
    wanted = tuple(dict.fromkeys(targets))
    if len(wanted) < 2 or (graph.specs[source].fan_out or graph.fan_out).join == "none":
        return ""
    join = graph.joins.of(wanted)
    where, remedy = f"the join {join}", "go back only behind the join"
    if join == END:
        where = "the end"
        remedy = "let the branches join first, and give the way behind the join an edge to END"
    owners: dict[str, str] = {}
    for target in wanted:
        branch = graph.joins.branch(target, join)
        if source in branch:
            return f"fan-out at {source}: branch {target} leads back to {source} before {where}; {remedy}"
        if overlap := branch & owners.keys():
            meeting = next(node for node in graph.nodes if node in overlap)
            return (
                f"fan-out at {source}: branches {owners[meeting]} and {target} meet at {meeting} before "
                f"{where}; give each its own nodes up to the join, or let every way of both lead to {meeting}"
            )
        owners.update(dict.fromkeys(branch, target))
    return ""


def _unreachable(graph: GraphStructure[Any, Any]) -> Iterator[str]:
    if graph.entry not in graph.nodes:
        return
    reached = _reachable(graph, (graph.entry, *graph.entry_points.values()))
    for node in graph.nodes:
        if node not in reached:
            yield f"node {node}: cannot be reached; lead an edge, goes_to or entry point to it, or remove it"


def _endless(graph: GraphStructure[Any, Any]) -> Iterator[str]:
    """With terminals, a path must lead to one; without, to END or to a node where no edge may fire."""
    entries = [(f"entry {graph.entry}", graph.entry)]
    entries += [(f"entry point {name} -> {node}", node) for name, node in graph.entry_points.items()]
    for label, entry in entries:
        if entry not in graph.nodes:
            continue
        reached = _reachable(graph, (entry,))
        if graph.terminals:
            if reached.isdisjoint(graph.terminals):
                yield f"{label}: no way leads to a terminal; add an edge to one"
        elif END not in reached and not any(_may_stop(graph.edges_from(node)) for node in reached):
            yield f"{label}: no way leads to an end; add an edge to END or declare a terminal"


def _may_stop(edges: tuple[EdgeSpec, ...]) -> bool:
    """Whether a node can succeed or fail without taking any of its edges."""
    kinds = {type(edge.when) for edge in edges}
    if kinds & {Always, Route}:
        return False
    return OnFailure not in kinds or not kinds & {OnSuccess, LlmDecide}


def _reachable(graph: GraphStructure[Any, Any], starts: Iterable[str]) -> set[str]:
    seen: set[str] = set()
    waiting = list(starts)
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting.extend(graph.successors.get(node, ()))
    return seen


def _fan_outs(graph: GraphStructure[Any, Any]) -> Iterator[str]:
    for node in graph.nodes:
        found: dict[str, None] = {}
        for targets in _together(graph.edges_from(node)):
            if all(target in graph.nodes or target == END for target in targets):
                problem = fan_out_problem(graph, node, targets)
                found.update(dict.fromkeys([problem] if problem else _double_writes(graph, node, targets)))
        yield from found


def _together(edges: tuple[EdgeSpec, ...]) -> Iterator[tuple[str, ...]]:
    """The sets of targets that a run may take together after one node, by outcome of the node."""
    always = _targets(edges, Always)
    success = _targets(edges, OnSuccess)
    decided = _targets(edges, LlmDecide)
    sets = [always, _targets(edges, OnFailure)]
    sets += [(target, *success) for target in (*_targets(edges, When), *decided)]
    if not decided:
        sets.append(success)
    for targets in sets:
        distinct = tuple(dict.fromkeys(targets))
        if len(distinct) > 1:
            yield distinct


def _targets(edges: tuple[EdgeSpec, ...], kind: type) -> tuple[str, ...]:
    return tuple(edge.target for edge in edges if isinstance(edge.when, kind))


def _double_writes(graph: GraphStructure[Any, Any], source: str, targets: tuple[str, ...]) -> Iterator[str]:
    policy = graph.specs[source].fan_out or graph.fan_out
    if policy.on_conflict != "error":
        return
    join = graph.join_of(source, targets)
    writers: dict[str, str] = {}
    for target in targets:
        nodes = sorted(graph.joins.branch(target, join))
        keys = {key for node in nodes for key in graph.specs[node].writes or ()}
        for key in sorted(keys - graph.channels.keys()):
            if key in writers:
                yield (
                    f"fan-out at {source}: branches {writers[key]} and {target} both write {key}; "
                    "give the key a channel, or choose last_wins or first_wins for on_conflict"
                )
            writers.setdefault(key, target)

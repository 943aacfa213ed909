"""Choose the edges that a run takes after a node.

After success: the first conditional edge that holds, else the answer to one `LlmDecide` question; with it
every `OnSuccess` edge; if none of these was taken, every `Always` edge. After failure: every `OnFailure`
edge, else every `Always` edge. A `Route` is a node's only edge. (docs/adr/0018 says why.)
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Any

from pipeline.domain.clock import Clock
from pipeline.domain.errors import GraphError
from pipeline.domain.frozen import dataclass
from pipeline.graph.definition.decisions import State
from pipeline.graph.definition.elements import (
    EdgeSpec,
    Goal,
    LlmDecide,
    Route,
    When,
)
from pipeline.graph.definition.exits import Exits
from pipeline.graph.definition.ports import Candidate, Decider, RouteQuestion
from pipeline.graph.execution.control import asked_to_stop


@dataclass(slots=True)
class Routes:
    """The next nodes of a run, and the problems found while choosing them."""

    targets: tuple[str, ...] = ()
    inputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    problems: list[tuple[str, str]] = field(default_factory=list)
    """Conditions that could not be evaluated: (target, problem)."""
    reasoning: str = ""
    undecided: bool = False
    """The decider has to be asked: `decided_routes` does."""


def routes_after_failure(exits: Exits, state: State) -> Routes:
    """The routes after a failure; no targets when there is none."""
    return _taken(list(exits.on_failure or exits.always), {}, state, Routes())


def routes_after_success(exits: Exits, node: str, output: State, state: State) -> Routes:
    """The routes after success, or `undecided`. Raises GraphError for an undeclared target of a route."""
    if exits.plain is not None:
        return Routes(targets=exits.plain)
    if exits.route is not None:
        return Routes(targets=routed(exits.route, node, state))
    routes = Routes()
    taken: list[EdgeSpec] = []
    for edge in exits.conditional:
        if _holds(edge, output, state, routes):
            taken.append(edge)
            break
    if not taken and exits.decided:
        routes.undecided = True
        return routes
    taken += exits.on_success
    return _taken(taken or list(exits.always), output, state, routes)


async def decided_routes(
    routes: Routes, exits: Exits, node: str, output: State, state: State, goal: Goal | None, call: DeciderCall
) -> Routes:
    """Complete undecided routes with one question to the decider."""
    routes.undecided = False
    chosen = await _decided(exits.decided, node, output, goal, call, routes)
    return _taken([chosen, *exits.on_success], output, state, routes)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeciderCall:
    """What a question to the decider needs: the decider, its context, a deadline in `seconds`."""

    decider: Decider | None
    context: Any
    """The context of the run's nodes."""
    clock: Clock
    seconds: float


def routed(route: Route, node: str, state: State) -> tuple[str, ...]:
    """The targets that a route chooses. Raises GraphError for an undeclared target, and for none."""
    # Read-only: what a route wrote would be in the state but in no record.
    chosen = route.choose(MappingProxyType(state))
    targets = (chosen,) if isinstance(chosen, str) else tuple(dict.fromkeys(chosen))
    for target in targets:
        if target not in route.targets:
            raise GraphError(f"the route after {node} chose {target}, not one of its targets")
    if not targets:
        raise GraphError(f"the route after {node} chose nothing")
    return targets


def _holds(edge: EdgeSpec, output: State, state: State, routes: Routes) -> bool:
    condition = edge.when
    assert isinstance(condition, When)  # noqa: S101 - sorted by kind; for the type checker
    if condition.expression is not None:
        held, problem = condition.expression.evaluate(output, state)
    else:
        held, problem = _called(condition, state)
    if problem:
        routes.problems.append((edge.target, problem))
    return held


def _called(condition: When, state: State) -> tuple[bool, str]:
    if isinstance(condition.holds, str):
        return False, "the expression does not parse"
    try:
        return bool(condition.holds(MappingProxyType(state))), ""
    except Exception as error:  # noqa: BLE001 - a condition is user code; an edge that fails is not taken
        return False, f"{type(error).__name__}: {error}"


async def _decided(
    edges: tuple[EdgeSpec, ...],
    node: str,
    output: State,
    goal: Goal | None,
    call: DeciderCall,
    routes: Routes,
) -> EdgeSpec:
    fallback = next(edge for edge in edges if edge.fallback)
    if call.decider is None:
        routes.problems.append((fallback.target, "there is no decider"))
        return fallback
    candidates = tuple(
        Candidate(target=edge.target, description=edge.when.description)
        for edge in edges
        if isinstance(edge.when, LlmDecide)
    )
    question = RouteQuestion(goal=goal, node=node, output=MappingProxyType(output), candidates=candidates)
    try:
        async with call.clock.timeout(call.seconds):
            choice = await call.decider.decide(question, call.context)
            target = choice.target.strip()
    except (Exception, asyncio.CancelledError) as error:
        if isinstance(error, asyncio.CancelledError) and asked_to_stop():
            raise
        routes.problems.append((fallback.target, f"the decider failed: {type(error).__name__}: {error}"))
        return fallback
    chosen = next((edge for edge in edges if edge.target == target), None)
    if chosen is None:
        routes.problems.append((fallback.target, "the decider named none of the candidates"))
        return fallback
    routes.reasoning = choice.reasoning
    return chosen


def _taken(edges: list[EdgeSpec], output: State, state: State, routes: Routes) -> Routes:
    routes.targets = tuple(dict.fromkeys(edge.target for edge in edges))
    for edge in edges:
        if edge.mapping:
            routes.inputs.setdefault(edge.target, {}).update(_mapped(edge.mapping, output, state))
    return routes


def _mapped(mapping: Mapping[str, str], output: State, state: State) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for target_key, source_key in mapping.items():
        if source_key in output:
            found[target_key] = output[source_key]
        elif source_key in state:
            found[target_key] = state[source_key]
    return found

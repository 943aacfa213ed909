"""Nodes whose behaviour is a pure function of what they see, and turns that make their order one too.

Two runs of such nodes agree wherever they are in the same state, so a resumed run can be compared with
an uninterrupted one. Nothing here knows how graphs are drawn.
"""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from pipeline.graph.definition.decisions import (
    Continue,
    End,
    Goto,
    Next,
    NodeDecision,
    NodeResult,
    Pause,
    Revise,
    State,
)
from pipeline.graph.definition.frozen_json import thaw
from pipeline.graph.definition.ports import Choice, RouteQuestion
from pipeline.graph.definition.reducers import append, custom, first, last, merge
from pipeline.graph.execution.step import current_step
from pipeline.graph.run.events import GraphEvent, RunCompleted

CHANNELS: Final = {
    "log": append,
    "seen": merge,
    "oldest": first,
    "newest": last,
    "sum": custom("sum", lambda value, update: value + update),
}


class Broken(Exception):
    """What a node raises that is to fail."""

    def __init__(self, words: str, *, permanent: bool) -> None:
        super().__init__(words)
        self.permanent = permanent


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePlan:
    """What one node does; `name` is its id within its graph."""

    name: str
    writes: tuple[str, ...] = ("own",)
    """Of: own, shared, and the names of CHANNELS."""
    forgets: bool = False
    """Its own key is written at odd visits only."""
    fails_at: int = 0
    """The visit that fails; 0 is none."""
    failing: int = 1
    """So many attempts of that visit fail."""
    permanent: bool = False
    decision: str = "next"
    """next, continue, end, pause, revise, or `goto NODE`."""
    until: int = 1
    """The last visit at which `decision` is made; an `end` is made by chance of the view."""
    effect: bool = False


class World:
    """What a graph's nodes reach outside, for one life of the process: turns, effects, and a diary."""

    def __init__(self, trip: int = 0, action: Callable[[], object] | None = None) -> None:
        self.turns = Turns()
        self.passed = 0
        """Places passed at which an interruption may come."""
        self._trip = trip
        self._action = action
        self.executed: list[tuple[str, int]] = []
        """(label, visit) of each visit begun."""
        self.effects: list[tuple[str, int]] = []
        """(label, visit) of each effect done."""
        self.completions: list[RunCompleted] = []

    async def hear(self, event: GraphEvent) -> None:
        """The listener."""
        if isinstance(event, RunCompleted):
            self.completions.append(event)
        else:
            await self.pass_by()

    async def pass_by(self) -> None:
        """A place at which an interruption may come: `action` is called at the one with the number `trip`."""
        self.passed += 1
        if self._action is not None and self.passed == self._trip:
            self._action()
        await asyncio.sleep(0)


class Turns:
    """Gives one node at a time its turn, when nothing else moves: of all that wait, the first in `order`,
    or by name.

    Which one that is depends only on the state of the run, and so does the order in which branches finish.
    """

    def __init__(self, order: Sequence[str] = ()) -> None:
        self._places = {name: place for place, name in enumerate(order)}
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self._taken = False
        self._ticking = False

    @asynccontextmanager
    async def turn(self, name: str) -> AsyncIterator[None]:
        """The body runs while no one else has the turn."""
        loop = asyncio.get_running_loop()
        self._waiting[name] = loop.create_future()
        if not self._ticking:
            self._ticking = True
            loop.call_soon(self._tick)
        try:
            await self._waiting[name]
        except asyncio.CancelledError:
            future = self._waiting.pop(name, None)
            if future is None:
                self._taken = False
            raise
        try:
            yield
        finally:
            self._taken = False

    def _tick(self) -> None:
        loop: Any = asyncio.get_running_loop()
        # asyncio has no public name for what is ready.
        is_quiet = not self._taken and not loop._ready
        if is_quiet and self._waiting:
            name = min(self._waiting, key=lambda waiting: (self._places.get(waiting, 0), waiting))
            future = self._waiting.pop(name)
            if not future.cancelled():
                self._taken = True
                future.set_result(None)
        self._ticking = bool(self._waiting) or self._taken
        if self._ticking:
            loop.call_soon(self._tick)


@dataclass(frozen=True, slots=True)
class PlannedNode:
    """A node that does what its plan says."""

    plan: NodePlan

    async def __call__(self, state: State, world: World) -> NodeResult:
        plan, step = self.plan, current_step()
        await world.pass_by()
        async with world.turns.turn(step.node):
            world.executed.append((step.node, step.execution))
            view = digest({"view": dict(state), "node": step.node, "visit": step.execution})
            if plan.effect:
                await step.effect("call", _effect(world, step.node, step.execution, view), repeatable=True)
            if plan.fails_at == step.execution and step.attempt <= plan.failing:
                raise Broken(f"{step.node} was configured to fail", permanent=plan.permanent)
            return NodeResult(
                update=_update(plan, step.execution, view), decision=_decision(plan, step.execution, view)
            )


@dataclass(slots=True)
class ScriptedDecider:
    """Chooses by what it is asked; fails or names no one now and then."""

    asked: int = field(default=0)

    async def decide(self, question: RouteQuestion, _context: Any) -> Choice:
        self.asked += 1
        number = digest({"node": question.node, "output": dict(question.output)})
        if number % 5 == 0:
            raise Broken("the decider was configured to fail", permanent=False)
        if number % 5 == 1:
            return Choice(target="no one")
        return Choice(target=question.candidates[number % len(question.candidates)].target)


def digest(value: Mapping[str, Any]) -> int:
    """A number below 1000 that depends on `value`, but not on the order within its lists."""
    return zlib.crc32(json.dumps(_sorted(thaw(value)), sort_keys=True).encode()) % 1000


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(item) for key, item in value.items()}
    if isinstance(value, list):
        return sorted((_sorted(item) for item in value), key=repr)
    return value


def _effect(world: World, label: str, visit: int, view: int) -> Any:
    async def call() -> int:
        await world.pass_by()
        world.effects.append((label, visit))
        return view

    return call


def _update(plan: NodePlan, visit: int, view: int) -> dict[str, Any]:
    values: dict[str, Any] = {
        "shared": view,
        "log": [f"{plan.name}{visit}:{view}"],
        "seen": {plan.name: view},
        "oldest": view,
        "newest": view,
        "sum": 1,
    }
    update = {key: values[key] for key in plan.writes if key != "own"}
    if "own" in plan.writes and not (plan.forgets and visit % 2 == 0):
        update[f"own_{plan.name}"] = view
        update[f"visits_{plan.name}"] = visit
    return update


def _decision(plan: NodePlan, visit: int, view: int) -> NodeDecision:
    kind, _, target = plan.decision.partition(" ")
    if kind == "end":
        return End() if view % 3 == 0 else Next()
    if visit > plan.until:
        return Next()
    decisions: dict[str, NodeDecision] = {
        "next": Next(),
        "continue": Continue(),
        "pause": Pause(prompt=f"{plan.name}?", options=("yes", "no")),
        "revise": Revise(),
        "goto": Goto(target),
    }
    return decisions[kind]

"""Whole runs in one line: nodes, a graph of them, and what was heard on the way to the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pipeline.domain.clock import ManualClock
from pipeline.graph.definition.decisions import Next, Node, NodeDecision, NodeResult, State
from pipeline.graph.definition.spec import EdgeSpec, GraphSpec, OnSuccess
from pipeline.graph.execution.executor import Executor
from pipeline.graph.run.events import (
    BranchesJoined,
    EdgeConditionError,
    EdgeTraversed,
    GraphEvent,
    NodeEntered,
    NodeLeft,
    NodeRetried,
    RunCompleted,
)
from pipeline.graph.run.outcome import RunOutcome
from tests.pipeline.graph.written import edge_of, graph_of

Plain = Node[Any, State]
NEXT = Next()


def writes(decision: NodeDecision = NEXT, **update: Any) -> Plain:
    """A node that writes always the same."""

    async def node(_state: State, _context: Any) -> NodeResult:
        return NodeResult(update=update, decision=decision)

    return node


def counts(key: str, decision: NodeDecision = NEXT) -> Plain:
    """A node that adds one to `key`."""

    async def node(state: State, _context: Any) -> NodeResult:
        update = {key: state.get(key, 0) + 1}
        return NodeResult(update=update, decision=decision)

    return node


def fails(words: str = "it broke", *, times: int = 1_000, permanent: bool = False, **update: Any) -> Plain:
    """A node that reports a failure so many times, and succeeds with `update` afterwards."""
    left = [times]

    async def node(_state: State, _context: Any) -> NodeResult:
        left[0] -= 1
        return NodeResult(update=update) if left[0] < 0 else NodeResult(error=words, permanent=permanent)

    return node


def raises(make: Callable[[], Exception]) -> Plain:
    async def node(_state: State, _context: Any) -> NodeResult:
        raise make()

    return node


def sees(found: list[dict[str, Any]], **update: Any) -> Plain:
    """A node that notes what it sees."""

    async def node(state: State, _context: Any) -> NodeResult:
        found.append(dict(state))
        return NodeResult(update=update)

    return node


@dataclass(slots=True)
class Held:
    """A node that waits until it is released, and knows what happened to it."""

    update: dict[str, Any] = field(default_factory=dict)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    release: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: bool = False

    async def __call__(self, _state: State, _context: Any) -> NodeResult:
        self.begun.set()
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return NodeResult(update=self.update)


class Stubborn:
    """A node that catches its cancellation, and answers or raises as if nothing had been."""

    def __init__(self, error: Exception | None = None) -> None:
        self.begun = asyncio.Event()
        self.times = 0
        self._error = error

    async def __call__(self, _state: State, _context: Any) -> NodeResult:
        self.begun.set()
        self.times += 1
        try:
            if self.times == 1:
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            if self._error is not None:
                raise self._error from None
        return NodeResult(update={"swallowed": True})


def after(arrow: str, **fields: Any) -> EdgeSpec:
    """The edge that is taken after success only, so that it rescues no failure."""
    return edge_of(arrow, OnSuccess(), **fields)


def built(*edges: EdgeSpec | str, **fields: Any) -> GraphSpec[Any]:
    """As `graph_of`, checked; `nodes` gives some of them something to do."""
    graph = graph_of(*edges, specs=fields.pop("nodes", {}), **fields)
    return GraphSpec(**{name: getattr(graph, name) for name in graph.__dataclass_fields__})


@dataclass(slots=True)
class Heard:
    """A listener that writes everything down."""

    events: list[GraphEvent] = field(default_factory=list)

    async def __call__(self, event: GraphEvent) -> None:
        self.events.append(event)

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def started(self) -> list[str]:
        return [event.node for event in self.of(NodeEntered)]

    @property
    def completed(self) -> list[NodeLeft]:
        return self.of(NodeLeft)

    @property
    def traversed(self) -> list[tuple[str, str]]:
        return [(event.source, event.target) for event in self.of(EdgeTraversed)]

    @property
    def problems(self) -> list[EdgeConditionError]:
        return self.of(EdgeConditionError)

    @property
    def retried(self) -> list[NodeRetried]:
        return self.of(NodeRetried)

    @property
    def joined(self) -> list[BranchesJoined]:
        return self.of(BranchesJoined)

    @property
    def outcomes(self) -> list[RunOutcome]:
        return [event.outcome for event in self.of(RunCompleted)]


@dataclass(slots=True)
class Ran:
    """A run that is over."""

    outcome: RunOutcome
    heard: Heard


async def ran(graph: GraphSpec[Any], state: dict[str, Any] | None = None, **fields: Any) -> Ran:
    """Run a graph to its end; a wait between attempts is over at once."""
    heard, clock = Heard(), ManualClock()
    given = {name: fields.pop(name) for name in ("decider", "phase", "details") if name in fields}
    executor: Executor[Any, State] = Executor(graph, clock=clock, chance=lambda: 0.0, **given)
    context = fields.pop("context", None)
    async with asyncio.TaskGroup() as group:
        run = group.create_task(executor.run(state or {}, context, listener=heard, **fields))
        while not run.done():
            await clock.advance(1.0)
    return Ran(run.result(), heard)

"""Small nodes and short functions that run them, for tests of the executor."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from pipeline.domain.clock import ManualClock
from pipeline.graph.definition.decisions import Next, Node, NodeDecision, NodeResult, State
from pipeline.graph.definition.spec import EdgeSpec, GraphSpec, NodeSpec
from pipeline.graph.run.events import GraphEvent, RunCompleted
from pipeline.graph.run.outcome import RunOutcome
from tests.pipeline.graph.written import edge_of

Some = TypeVar("Some")


class Events:
    """A listener that keeps what it hears."""

    def __init__(self) -> None:
        self.heard: list[GraphEvent] = []

    async def __call__(self, event: GraphEvent) -> None:
        self.heard.append(event)

    def of(self, kind: type[Some]) -> list[Some]:
        return [event for event in self.heard if isinstance(event, kind)]

    def only_outcome(self) -> RunOutcome:
        """The outcome of the one completion, which is the last event."""
        completed = self.of(RunCompleted)
        assert len(completed) == 1
        assert self.heard[-1] is completed[0]
        return completed[0].outcome


class Flaky:
    """A node that fails its first calls, and notes when it is called and what it sees."""

    def __init__(
        self, failures: int, error: Exception | None = None, *, clock: ManualClock | None = None
    ) -> None:
        self.calls = 0
        self.times: list[float] = []
        self.seen: list[State] = []
        self._failures = failures
        self._error = error or ValueError("boom")
        self._clock = clock

    async def __call__(self, state: State, _context: None) -> NodeResult:
        self.calls += 1
        self.seen.append(dict(state))
        if self._clock is not None:
            self.times.append(self._clock.monotonic())
        if self.calls <= self._failures:
            raise self._error
        return NodeResult(update={"flaky": self.calls})


class Blocking:
    """A node that says that it has begun and waits until it is let go."""

    def __init__(self, **update: Any) -> None:
        self.begun = asyncio.Event()
        self.go = asyncio.Event()
        self.calls = 0
        self._update = update

    async def __call__(self, _state: State, _context: None) -> NodeResult:
        self.calls += 1
        self.begun.set()
        await self.go.wait()
        return NodeResult(update=self._update)


class Writing:
    """A node that writes always the same, and notes what it sees."""

    def __init__(self, decision: NodeDecision | None = None, **update: Any) -> None:
        self.seen: list[State] = []
        self._result = NodeResult(update=update, decision=decision or Next())

    @property
    def calls(self) -> int:
        return len(self.seen)

    async def __call__(self, state: State, _context: None) -> NodeResult:
        self.seen.append(dict(state))
        return self._result


def graph(
    nodes: Mapping[str, Node[None] | NodeSpec[None]], *edges: str | EdgeSpec, **fields: Any
) -> GraphSpec[None, State]:
    """A graph that begins at the first of `nodes`; `a>b` is an edge, `b>` one to the end."""
    written = tuple(edge_of(edge) if isinstance(edge, str) else edge for edge in edges)
    first = next(iter(nodes))
    return GraphSpec[None, State](**{"name": "g", "entry": first, "nodes": nodes, "edges": written} | fields)


async def in_time(clock: ManualClock, seconds: float, running: Coroutine[Any, Any, Some]) -> Some:
    """The result of `running`, while the clock goes forward by `seconds`."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(running)
        await clock.advance(seconds)
    return task.result()

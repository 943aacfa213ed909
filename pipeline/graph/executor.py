"""The loop: run a node, merge its update, record the step, find the next node, until the end.

It imposes no deadline and swallows no cancellation: whoever starts a run owns both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Protocol

from pipeline.domain.errors import GraphError
from pipeline.graph.decisions import ContextT, NodeDecision, State
from pipeline.graph.edges import following
from pipeline.graph.spec import END, GraphSpec

StopReason = Literal["completed", "max_loops", "max_steps", "error", "aborted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """How a run ended, and with what state."""

    stop_reason: StopReason
    state: State
    path: tuple[str, ...] = field(default=())
    """The nodes executed, in order."""


class RunObserver(Protocol):
    """Hears of every step. An exception raised here fails the run."""

    async def node_started(self, node: str) -> None: ...

    async def node_completed(
        self, node: str, decision: NodeDecision, update: Mapping[str, Any], next_node: str | None
    ) -> None:
        """`next_node` is None when the run ends here."""
        ...

    async def run_completed(self, outcome: RunOutcome) -> None:
        """Called exactly once per run, also after an error or a cancellation."""
        ...


class Executor(Generic[ContextT]):
    """Runs one graph. Keeps nothing between runs, so one executor serves many threads at once."""

    def __init__(self, graph: GraphSpec[ContextT]) -> None:
        self._graph = graph

    async def run(
        self, state: State, context: ContextT, observer: RunObserver, *, start: str | None = None
    ) -> RunOutcome:
        """Walk the graph from `start` (default: its entry) until it ends.

        Raises what a node raises, and GraphError for a broken jump or route.
        """
        walk = _Walk(state=dict(state))
        reason: StopReason = "error"
        try:
            reason = await self._walk(walk, context, observer, start or self._graph.entry)
        except BaseException as error:
            if not isinstance(error, Exception):
                reason = "aborted"
            raise
        finally:
            outcome = RunOutcome(stop_reason=reason, state=walk.state, path=tuple(walk.path))
            await observer.run_completed(outcome)
        return outcome

    async def _walk(self, walk: _Walk, context: ContextT, observer: RunObserver, node: str) -> StopReason:
        limits = self._graph.limits
        consecutive = 0
        while True:
            run = self._graph.nodes.get(node)
            if run is None:
                raise GraphError(f"graph {self._graph.name}: there is no node {node}")
            walk.path.append(node)
            await observer.node_started(node)
            result = await run(walk.state, context)
            walk.state = {**walk.state, **result.update}
            next_node = following(self._graph, node, result.decision, walk.state)
            await observer.node_completed(
                node, result.decision, result.update, None if next_node == END else next_node
            )
            if next_node == END:
                return "completed"
            consecutive = consecutive + 1 if next_node == node else 0
            if consecutive >= limits.max_consecutive:
                return "max_loops"
            if len(walk.path) >= limits.max_steps:
                return "max_steps"
            node = next_node


@dataclass(slots=True)
class _Walk:
    """The moving parts of one run, kept outside the loop so that an error still reports them."""

    state: State
    path: list[str] = field(default_factory=list)

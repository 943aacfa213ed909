"""What a run tells whoever listens, while it goes on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from pipeline.graph.run.outcome import Failure, Gate, RunOutcome

# Named tuples: a step sends several, and they cost a third of a frozen dataclass.


CheckpointKind = Literal[
    "node_start",
    "node_complete",
    "retry",
    "effect",
    "pause",
    "answer",
    "cancel",
    "snapshot",
    "resume",
    "end",
]


class NodeStarted(NamedTuple):
    """A node begins its visit (not each attempt)."""

    node: str


class NodeCompleted(NamedTuple):
    """A visit is over and its update is in the state."""

    node: str
    decision: str
    update: Mapping[str, Any]
    seconds: float
    failure: Failure | None = None
    """Set when the visit failed for good."""
    skipped: bool = False


class NodeRetried(NamedTuple):
    """An attempt failed and another will follow after `delay_s`."""

    node: str
    attempt: int
    delay_s: float
    failure: Failure


class EdgeTraversed(NamedTuple):
    """The run moves on; `target` may be END. Several in a row at a fan-out."""

    source: str
    target: str
    reason: str = ""
    """The decider's reasoning, for logs only; empty otherwise."""


class EdgeConditionError(NamedTuple):
    """A condition could not be evaluated and counted as false."""

    source: str
    target: str
    problem: str


class BranchesJoined(NamedTuple):
    """A fan-out is over; `finished` names the branches in the order that settled conflicts."""

    source: str
    join: str
    finished: tuple[str, ...]
    failed: tuple[str, ...]


class GateOpened(NamedTuple):
    """A node waits for a person."""

    gate: Gate


class Checkpointed(NamedTuple):
    """A record was handed to the log."""

    kind: CheckpointKind
    node: str


class RunCompleted(NamedTuple):
    """The last event of every `run` and `resume` call: one, also after an error or a cancellation."""

    outcome: RunOutcome


GraphEvent: TypeAlias = (
    NodeStarted
    | NodeCompleted
    | NodeRetried
    | EdgeTraversed
    | EdgeConditionError
    | BranchesJoined
    | GateOpened
    | Checkpointed
    | RunCompleted
)

Listener = Callable[[GraphEvent], Awaitable[None]]
"""Hears of everything, in order. An exception raised here fails the run."""

"""The events that a running graph sends to its listener."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from pipeline.graph.run.outcome import Gate, RunFailure, RunOutcome

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


class NodeEntered(NamedTuple):
    """A node begins (once per execution, not per attempt)."""

    node: str


class NodeLeft(NamedTuple):
    """A node has ended and its update is in the state."""

    node: str
    decision: str
    update: Mapping[str, Any]
    seconds: float
    failure: RunFailure | None = None
    """Set when the node failed for good."""
    skipped: bool = False


class NodeRetried(NamedTuple):
    """An attempt failed and another will follow after `delay_s`."""

    node: str
    attempt: int
    delay_s: float
    failure: RunFailure


class EdgeTraversed(NamedTuple):
    """The run takes an edge; `target` may be END. A fan-out sends several in a row."""

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
    """A fan-out has ended; `finished` names the branches in the order used to resolve conflicts."""

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
    NodeEntered
    | NodeLeft
    | NodeRetried
    | EdgeTraversed
    | EdgeConditionError
    | BranchesJoined
    | GateOpened
    | Checkpointed
    | RunCompleted
)

Listener = Callable[[GraphEvent], Awaitable[None]]
"""Receives every event, in order. An exception raised here fails the run."""

"""How a run ended: status, reason, quality, and what happened to each node on the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal

from pipeline.domain.errors import GraphError
from pipeline.graph.definition.decisions import State

RunStatus = Literal["completed", "paused", "failed", "cancelled"]
StopReason = Literal[
    "completed",
    "waiting_for_user",
    "blocked",
    "pause_requested",
    "max_loops",
    "max_steps",
    "timeout",
    "no_terminal",
    "aborted",
    "error",
]
GATE_EXPIRED: Final = "gate_expired"
"""The code of a node's failure because nobody answered its gate in time."""
Quality = Literal["clean", "degraded", "failed"]
"""clean: no failure and no retry. degraded: the run came through in spite of some. failed: it did not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a node, a branch or a run failed."""

    node: str
    """The node's label, with the path of its subgraph: `therapy.dispatcher`."""
    code: str
    """`error.code` of the project's errors, else `node_error`; the engine's own: `timeout`, `missing_output`,
    `undeclared_write`, `bad_update`, `memory_conflict`, `gate_expired`, `graph` …"""
    message: str
    attempts: int = 1
    permanent: bool = False
    exception: BaseException | None = field(default=None, compare=False, repr=False)
    """What was raised, in the process where it was; not on record."""

    def plain(self) -> dict[str, Any]:
        """For records and for the nodes behind an `OnFailure` edge."""
        plain = {"node": self.node, "code": self.code, "message": self.message, "attempts": self.attempts}
        return {**plain, "permanent": True} if self.permanent else plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A question to a person that a paused run waits for."""

    id: str
    """Unique for ever: the run, the frame, the node and its visit."""
    node: str
    prompt: str = ""
    options: tuple[str, ...] = ()
    expires_at: float | None = None
    """Unix seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A person's answer to a gate."""

    gate: str
    choice: str
    note: str = ""
    by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDiagnostics:
    """One node over the whole run, resumed parts included."""

    visits: int = 0
    attempts: int = 0
    seconds: float = 0.0
    """Total time in the node, waits between attempts left out."""
    decision: str = ""
    """The newest one."""
    edge_errors: tuple[str, ...] = ()
    """Conditions behind this node that could not be evaluated, and counted as false."""
    missing_inputs: tuple[str, ...] = ()
    """Declared reads that were not in the state at the newest visit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """An effect of a node visit that is not over (see `Step.effect`)."""

    key: str
    done: bool
    """False where it began and its end is not on record."""
    result: Any = None
    """Plain data; None unless it is done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """The end of one `run` or `resume` call. Counts cover the whole run since its start."""

    run_id: str
    status: RunStatus
    stop_reason: StopReason
    quality: Quality
    state: State
    path: tuple[str, ...] = ()
    """Labels of the nodes executed, in the order in which they finished."""
    error: Failure | None = None
    gates: tuple[Gate, ...] = ()
    """Open gates of a paused run, oldest first."""
    retries: int = 0
    """Attempts beyond the first, over all nodes."""
    failures: tuple[Failure, ...] = ()
    """Nodes that failed for good, rescued ones included."""
    nodes: Mapping[str, NodeDiagnostics] = field(default_factory=lambda: MappingProxyType({}))
    effects: tuple[Effect, ...] = ()
    """Those of the visits that were cut off, in the order in which they began."""

    def raise_for_failure(self) -> None:
        """Raise what made the run fail: the node's own exception, else GraphError. Nothing otherwise."""
        if self.status != "failed":
            return
        if self.error is None:
            raise GraphError(f"the run failed: {self.stop_reason}")
        if self.error.exception is not None:
            raise self.error.exception
        raise GraphError(self.error.message)

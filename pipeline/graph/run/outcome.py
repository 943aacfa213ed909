"""How a run ended: status, reason, quality, and what happened to each node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Any, Final, Literal

from pipeline.domain.errors import GraphError
from pipeline.domain.frozen import dataclass
from pipeline.graph.definition.decisions import Asks, State

RunStatus = Literal["completed", "paused", "failed", "cancelled"]
StopReason = Literal[
    "completed",
    "waiting_for_user",
    "blocked",
    "pause_requested",
    "left",
    "max_loops",
    "max_steps",
    "timeout",
    "no_terminal",
    "aborted",
    "error",
]
GATE_EXPIRED: Final = "gate_expired"
"""The code of a node's failure because its gate was not answered in time."""
Quality = Literal["clean", "degraded", "failed"]
"""clean: no failure and no retry. degraded: the run succeeded in spite of some. failed: it did not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFailure:
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
    """The exception, in the process that raised it; not recorded."""

    def plain(self) -> dict[str, Any]:
        """The failure as plain data, for records and for the nodes after an `OnFailure` edge."""
        plain = {"node": self.node, "code": self.code, "message": self.message, "attempts": self.attempts}
        return {**plain, "permanent": True} if self.permanent else plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A question to a person that a paused run waits for."""

    id: str
    """Never used again: the run, the frame, the node and the number of its execution."""
    node: str
    prompt: str = ""
    options: tuple[str, ...] = ()
    expires_at: float | None = None
    """Unix seconds."""
    allowed: tuple[str, ...] = ()
    """The users who may answer, as the host names them; empty for the author of the run's message."""
    notes: bool = False
    """The answer may have a note in the person's own words."""
    asks: Asks = "choice"
    resumes: bool = False
    """The run continues when it expires, and its node does not fail."""
    worded: tuple[str, ...] = ()
    """The options that count only with a note."""


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

    executions: int = 0
    attempts: int = 0
    seconds: float = 0.0
    """Total time in the node, without the waits between attempts."""
    decision: str = ""
    """The newest one."""
    edge_errors: tuple[str, ...] = ()
    """Conditions after this node that could not be evaluated, and counted as false."""
    missing_inputs: tuple[str, ...] = ()
    """Declared reads that were not in the state at the newest execution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """An effect of an unfinished node execution (see `Step.effect`)."""

    key: str
    done: bool
    """False when it began and no end is recorded."""
    result: Any = None
    """Plain data; None unless `done`."""


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
    error: RunFailure | None = None
    gates: tuple[Gate, ...] = ()
    """Open gates of a paused run, oldest first."""
    retries: int = 0
    """Attempts beyond the first, over all nodes."""
    failures: tuple[RunFailure, ...] = ()
    """Nodes that failed for good, including those with a route after failure."""
    nodes: Mapping[str, NodeDiagnostics] = field(default_factory=lambda: MappingProxyType({}))
    effects: tuple[Effect, ...] = ()
    """Effects of the node executions that were cut off, in the order in which they began."""

    def raise_for_failure(self) -> None:
        """Raise the cause of a failed run: the node's exception, else GraphError."""
        if self.status != "failed":
            return
        if self.error is None:
            raise GraphError(f"the run failed: {self.stop_reason}")
        if self.error.exception is not None:
            raise self.error.exception
        raise GraphError(self.error.message)

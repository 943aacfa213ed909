"""What stays the same during one `run` or `resume` call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pipeline.domain.clock import Clock
from pipeline.domain.frozen import dataclass
from pipeline.graph.definition.elements import Limits
from pipeline.graph.definition.ports import Decider, PhaseHook
from pipeline.graph.execution.control import RunAborted, RunControl
from pipeline.graph.run.outcome import StopReason
from pipeline.graph.run.recorder import RunRecorder
from pipeline.graph.run.state import Run


class RunStopped(Exception):
    """A limit of the run was reached; `reason` is its stop reason."""

    def __init__(self, reason: StopReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(slots=True, kw_only=True)
class RunEnvironment:
    """One call's parts."""

    run: Run
    context: Any
    """What the nodes get in addition to the state."""
    limits: Limits
    clock: Clock
    decider: Decider | None
    chance: Callable[[], float]
    """A number in [0, 1) for the jitter of waits."""
    phase: PhaseHook[Any] | None
    phase_key: str
    """The hook is called only while the state has this key; empty for always."""
    recorder: RunRecorder
    control: RunControl
    deadline_at: float | None = None
    """The run's deadline, by the clock's `monotonic`."""
    later: frozenset[str] = frozenset()
    """Nodes that this call leaves to a later one."""

    def raise_if_cut_off(self) -> None:
        """Raise RunAborted or RunStopped if the run was aborted or its deadline has passed.

        A node may have swallowed the cancellation; nothing may run after it.
        """
        if self.control.abort_requested:
            raise RunAborted("the run was aborted")
        if self.deadline_at is not None and self.clock.monotonic() >= self.deadline_at:
            raise RunStopped("timeout", f"the run took longer than {self.limits.max_seconds:g} seconds")

"""What stays the same during one `run` or `resume` call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pipeline.domain.clock import Clock
from pipeline.graph.control import RunControl
from pipeline.graph.edges import Asking
from pipeline.graph.elements import Limits
from pipeline.graph.ports import PhaseHook
from pipeline.graph.recorder import RunRecorder
from pipeline.graph.run_state import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """One call's parts."""

    run: Run
    context: Any
    """What the nodes are given besides the state."""
    limits: Limits
    clock: Clock
    asking: Asking
    chance: Callable[[], float]
    """A number in [0, 1) for the jitter of waits."""
    phase: PhaseHook[Any] | None
    recorder: RunRecorder
    control: RunControl

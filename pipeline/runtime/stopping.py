"""Stop a turn on request, distinguished from a shutdown, or halt it between two nodes.

Both arrive as a cancellation of the turn's task. A stop that the user asked for becomes
`TurnFailed("stopped")`, which ends the turn with a visible line; a shutdown stays a cancellation and
leaves the turn to be resumed. A halt comes before a shutdown: the node in progress finishes, its step is
recorded, and the turn is left to be resumed after it.
"""

from __future__ import annotations

from pipeline.domain.errors import TurnFailed
from pipeline.graph.execution.control import Interruption, RunControl


class TurnHalted(Exception):
    """The turn's run halted on request between two nodes; the turn is not over."""


class StopSignal(Interruption):
    """Stops one turn. `request` may be called before, during or after the guarded part."""

    def __init__(self) -> None:
        super().__init__(lambda: TurnFailed("stopped", "Stopped.", recoverable=True))
        self.control = RunControl()
        """The control of the turn's run."""

    def halt(self) -> None:
        """Halt the turn's run before its next node. A turn off the record ignores it: its steps are not
        recorded, so its resumption would repeat them."""
        self.control.request_pause()

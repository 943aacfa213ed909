"""Stop a turn on request, distinguished from a shutdown.

Both arrive as a cancellation of the turn's task. A stop that the user asked for becomes
`TurnFailed("stopped")`, which ends the turn with a visible line; a shutdown stays a cancellation and
leaves the turn to be resumed.
"""

from __future__ import annotations

from pipeline.domain.errors import TurnFailed
from pipeline.graph.execution.control import Interruption


class StopSignal(Interruption):
    """Stops one turn. `request` may be called before, during or after the guarded part."""

    def __init__(self) -> None:
        super().__init__(lambda: TurnFailed("stopped", "Stopped.", recoverable=True))

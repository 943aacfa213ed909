"""What continues after the answer to a gate, where a graph says that this happens in turn.

The order is in the run (`Run.deferred`), so that a resumed run keeps it. Not here: what a gate is.
"""

from __future__ import annotations

from pipeline.graph.execution.environment import RunEnvironment
from pipeline.graph.run.frames import Frame


class HeldBack:
    """The frames of one call that an open gate has held back."""

    def __init__(self, env: RunEnvironment) -> None:
        self._run = env.run
        self._control = env.control
        self._turn: str | None = None
        """The frame whose turn it is."""

    def halts(self, frame: Frame) -> bool:
        """Whether an open gate halts a frame: where frames continue in turn, a node in progress ends first,
        with everything inside it."""
        return not (frame.prefix and self._run.in_turn)

    def waits(self, frame: Frame) -> bool:
        """Whether others continue before a frame."""
        return frame.id != self._turn and frame.id in self._run.deferred

    def has_more(self) -> bool:
        """Whether the run has more to do, now that its frames have halted or come to rest."""
        run = self._run
        if run.root.at_rest or self._control.pause_requested:
            return False
        following = None if run.halting else run.next_in_turn()
        if following is None:
            # Without an open gate, the one that halted the frames is no longer open.
            return not run.open_gates()
        self._turn = following
        return True

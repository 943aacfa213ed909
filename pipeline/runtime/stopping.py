"""Stopping a turn on request, told apart from a shutdown.

Both arrive as a cancellation of the turn's task. A stop that the user asked for becomes
`TurnFailed("stopped")`, which ends the turn with a visible line; a shutdown stays a cancellation and
leaves the turn to be resumed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from pipeline.domain.errors import TurnFailed


class StopSignal:
    """One turn's stop button. `request` may come before, during or after the guarded part."""

    def __init__(self) -> None:
        self._requested = False
        self._task: asyncio.Task[object] | None = None

    @property
    def requested(self) -> bool:
        """Whether somebody asked for this turn to stop."""
        return self._requested

    def request(self) -> None:
        """Stop the guarded part now, or as soon as it begins."""
        if self._requested:
            return
        self._requested = True
        if self._task is not None:
            self._task.cancel()

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Run a part that `request` interrupts with TurnFailed."""
        if self._requested:
            raise _stopped()
        task = asyncio.current_task()
        others = task.cancelling() if task is not None else 0
        self._task = task
        try:
            yield
        except BaseException:
            # Also when something inside turned the cancellation into an error of its own.
            if self._take_back(others):
                raise _stopped() from None
            raise
        else:
            self._take_back(others)
        finally:
            self._task = None

    def _take_back(self, others: int) -> bool:
        """Undo our cancellation of the task. False when there was none, or when a shutdown came too."""
        task, self._task = self._task, None
        return self._requested and task is not None and task.uncancel() <= others


def _stopped() -> TurnFailed:
    return TurnFailed("stopped", "Stopped.", recoverable=True)

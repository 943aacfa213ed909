"""The tasks of the branches of one fan-out, and the first error among them."""

from __future__ import annotations

import asyncio


class Siblings:
    """The branches of one fan-out in progress.

    An error in one is kept from the TaskGroup: on Python 3.11 a group that sees an error leaves its
    parent's task marked as being cancelled, which the run's deadline and an abort would take for another
    cancellation; and an outside cancellation at the same time would be lost.
    """

    def __init__(self) -> None:
        self.tasks: list[asyncio.Task[None]] = []
        self.problem: Exception | None = None

    def cancel(self) -> None:
        """Cancel the others, once."""
        while self.tasks:
            task = self.tasks.pop()
            if task is not asyncio.current_task():
                task.cancel()

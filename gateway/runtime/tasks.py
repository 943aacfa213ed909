"""Run background tasks: every task is named and owned, and its failure is logged.

Not a queue: a task is started once and runs until it returns, fails or the owner closes.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

_log = logging.getLogger(__name__)

ResultT = TypeVar("ResultT")


class Supervisor:
    """Owns tasks. A task that fails is logged by name; the others continue."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closed = False

    def spawn(self, work: Coroutine[Any, Any, ResultT], *, name: str) -> asyncio.Task[ResultT]:
        """Run `work` in the background. After `close` nothing starts: the work is dropped and an already
        cancelled task is returned."""
        # A new context: a chat queue or a runner outlives the turn that started it, and must not log under
        # that turn's ids.
        task = asyncio.create_task(  # noqa: TID251 - the one owner of background tasks
            work, name=name, context=contextvars.Context()
        )
        if self._closed:
            task.cancel()
        self._tasks.add(task)
        task.add_done_callback(self._on_task_done)
        return task

    async def wait_idle(self) -> None:
        """Wait until every task has ended by itself."""
        while self._tasks:
            await asyncio.wait(tuple(self._tasks))

    async def close(self) -> None:
        """Cancel all tasks and wait until they have ended."""
        self._closed = True
        while self._tasks:
            tasks = tuple(self._tasks)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    def __len__(self) -> int:
        return len(self._tasks)

    def _on_task_done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            _log.error("background task failed", exc_info=error, extra={"task": task.get_name()})

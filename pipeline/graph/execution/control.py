"""Control a run from outside: pause it at the next node boundary, or abort it at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager

from pipeline.domain.errors import GraphError


def asked_to_stop() -> bool:
    """Whether a cancellation of the current task was requested. If not, a CancelledError comes from
    something else that was cancelled while the task waited for it."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


class Interruption(AbstractContextManager[None]):
    """Interrupts a guarded part of a task. `request` may be called before, during or after that part.

    It cancels the task, and the guarded part raises the error from `make_error` instead, which
    distinguishes it from any other cancellation of the task; those pass through.
    """

    def __init__(self, make_error: Callable[[], Exception]) -> None:
        self._make_error = make_error
        self._requested = False
        self._cancelled = False
        self._others = 0
        """Cancellations of the task that were requested before the guarded part."""
        self._task: asyncio.Task[object] | None = None

    @property
    def requested(self) -> bool:
        """Whether `request` was called."""
        return self._requested

    def request(self) -> None:
        """Interrupt the guarded part now, or when it begins."""
        if self._requested:
            return
        self._requested = True
        if self._task is not None and self._task is asyncio.current_task():
            # A task that cancels itself is cut off at its next await, which may come after the guarded part.
            asyncio.get_running_loop().call_soon(self._cancel)
        else:
            self._cancel()

    def guard(self) -> AbstractContextManager[None]:
        """Run a part that `request` interrupts with the error."""
        return self

    def __enter__(self) -> None:
        if self._requested:
            raise self._make_error()
        self._task = asyncio.current_task()
        self._others = self._task.cancelling() if self._task is not None else 0

    def __exit__(self, kind: type[BaseException] | None, _error: object, _traceback: object) -> None:
        task, self._task = self._task, None
        ours = self._cancelled and task is not None and task.uncancel() <= self._others
        # Also when code inside turned the cancellation into another error.
        if ours and kind is not None:
            raise self._make_error() from None

    def _cancel(self) -> None:
        if self._task is not None:
            self._cancelled = self._task.cancel()


class RunAborted(GraphError):
    """The run was aborted through its control."""

    code = "aborted"


class RunControl:
    """The handle of one `run` or `resume` call."""

    def __init__(self) -> None:
        self._abort = Interruption(lambda: RunAborted("the run was aborted"))
        self.pause_requested = False
        """Whether the run is to halt at its next node boundary."""
        self.abort_requested = False
        """Whether the run is to end at once."""

    def request_pause(self) -> None:
        """Finish the nodes in progress, then halt; `resume` continues with the next ones."""
        self.pause_requested = True

    def abort(self) -> None:
        """Cut off the nodes in progress, store what they kept, and end as `cancelled`; resumable."""
        self.abort_requested = True
        self._abort.request()

    def guard(self) -> AbstractContextManager[None]:
        """Run a part that `abort` interrupts with RunAborted."""
        return self._abort

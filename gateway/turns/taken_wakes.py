"""Take the wakes that are addressed to this process alone: run the thread, have its owner look, or refuse."""

from __future__ import annotations

from collections.abc import Callable

from gateway.turns.live_thread import LiveThread
from gateway.turns.worker import Worker


class TakenWakes:
    """A worker to which wakes are addressed, see `WakeTaker`. `wake_holder` wakes the process that has a
    thread."""

    def __init__(self, worker: Worker, wake_holder: Callable[[str], None]) -> None:
        self._worker = worker
        self._wake_holder = wake_holder
        worker.on_refused = self._refused

    @property
    def room(self) -> int:
        """See `WakeTaker`."""
        return self._worker.room or -self._worker.waiting

    def take(self, thread: str) -> bool:
        """See `WakeTaker`."""
        worker = self._worker
        if thread in worker.threads or worker.may_try(thread):
            worker.wake(thread)
            worker.threads[thread].chosen = True
        elif worker.room:
            self._wake_holder(thread)
        else:
            return False
        return True

    def hand_over(self, thread: str, after: Callable[[], None]) -> bool:
        """See `WakeTaker`."""
        live = self._worker.threads.get(thread)
        return live is not None and live.hand_over(after)

    def look(self, thread: str) -> None:
        """See `WakeTaker`."""
        if thread in self._worker.threads:
            self._worker.wake(thread)

    def _refused(self, thread: str, live: LiveThread) -> None:
        if live.chosen:
            self._wake_holder(thread)

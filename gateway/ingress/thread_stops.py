"""Stop everything in a thread, as its person is removed or erased, or its conversation deleted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from gateway.cluster.signals import Control, StopBefore
from gateway.ingress.stops import WaitingTurns
from gateway.storage.ports import Store

_LAST: Final = 2**62
"""Above every number of an entry: what comes later is stopped too."""


class ThreadStops:
    """Cancels the unfinished entries of threads, and stops the turns that run. `control` sends a signal to
    the process that runs a thread's turns."""

    def __init__(self, store: Store, waiting: WaitingTurns, control: Callable[[Control], None]) -> None:
        self._store = store
        self._waiting = waiting
        self._control = control

    async def stop(self, thread: str) -> None:
        """Stop the thread for good. Raises StorageError."""
        await self._store.cancel_open(thread)
        self._control(StopBefore(thread=thread, seq=_LAST, cancelled=0))
        await self._waiting.withdraw(thread)

    async def stop_present(self, thread: str) -> None:
        """Stop what runs and waits in the thread now; what comes later is answered. Raises StorageError."""
        entries = await self._store.open_entries(thread)
        if entries:
            await self._store.cancel_open(thread)
            self._control(StopBefore(thread=thread, seq=entries[-1].seq + 1, cancelled=0))
            await self._waiting.withdraw(thread)

    async def stop_where(self, wanted: Callable[[str], bool], *, read: Callable[[], Awaitable[None]]) -> None:
        """Stop every thread with unfinished entries that is `wanted`, by its key. `read` is called before,
        but after the threads were found, to read what decides: who has an unfinished entry is in it, if they
        may have. Raises StorageError."""
        threads = await self._store.open_threads()
        await read()
        for thread in threads:
            if wanted(thread):
                await self.stop(thread)

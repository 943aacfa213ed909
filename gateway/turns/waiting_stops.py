"""Carry out a /stop that waits in the inbox: the process that accepted it died before it could."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Protocol

from gateway.storage.ports import Store
from gateway.storage.running_heartbeats import cancel_heartbeats
from gateway.turns.runner import TurnRunner
from gateway.turns.stop_words import stops_all


class _Withdraw(Protocol):
    """As `Worker.withdraw`."""

    def __call__(self, thread: str, seq: int, *, silent: bool = True) -> None: ...


class WaitingStops:
    """Ends what accepted stops are to end, in the store and among the running turns. `take_back` takes back
    the questions of a thread's stopped turns, except those of the given messages."""

    def __init__(
        self,
        store: Store,
        turns: TurnRunner,
        withdraw: _Withdraw,
        take_back: Callable[[str, Collection[str]], Awaitable[None]],
    ) -> None:
        self._store = store
        self._turns = turns
        self._withdraw = withdraw
        self._take_back = take_back

    async def carry_out(self, thread: str) -> int:
        """End what the newest stop among the thread's entries is to end; how many entries are unfinished."""
        entries = await self._store.open_entries(thread)
        stops = [entry.seq for entry in entries if stops_all(entry)]
        if stops:
            await self._store.cancel_open(thread, up_to_seq=max(stops) - 1)
            heartbeats = await cancel_heartbeats(self._store, thread, max(stops))
            for one in heartbeats:
                self._withdraw(one.thread, one.seq, silent=False)
            self._turns.note_stop(max(stops), sum(e.seq < max(stops) for e in entries), len(heartbeats))
            later = [entry.message_id for entry in entries if entry.seq > max(stops)]
            await self._take_back(thread, later)
        return len(entries)

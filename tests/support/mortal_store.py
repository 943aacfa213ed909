"""A store that dies with its process, for kills in the test's own process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from gateway.storage.memory import MemoryStore
from gateway.storage.ports import Accepted, BurstBook, Committed, Lease, NewEntry, TurnCommit
from pipeline.domain.errors import StorageError


class MortalStore(MemoryStore):
    """A store of a process that dies at its n-th write, before or after it: nothing is written afterwards.

    The writes that count are those that take in a message, add it to a turn, and end a turn.
    """

    def __init__(self, before: Callable[[], bool] = lambda: False) -> None:
        """`before` says whether the next death comes before its write."""
        super().__init__()
        self._before = before
        self.left = -1
        """Writes until the death; negative for none."""
        self.died = False
        self.bursts: BurstBook = _MortalBursts(self, self.bursts)  # type: ignore[assignment]  # it wraps the own one

    async def around(self, write: Callable[[], Any]) -> Any:
        """Make a write, with the death before or after it."""
        await asyncio.sleep(0)
        due = self.left == 0
        self.left -= 1
        if due and self._before():
            await self.die()
        result = await write()
        if due:
            await self.die()
        await asyncio.sleep(0)
        if self.died:
            raise StorageError("the process is dead")
        return result

    async def die(self) -> None:
        """End every access of the process."""
        self.died = True
        await self.close()

    def revive(self) -> None:
        """Let the next process open it."""
        self.died, self.left = False, -1

    async def accept(self, entry: NewEntry, *, limit: int | None = None, begin: bool = False) -> Accepted:
        accept = super().accept
        accepted: Accepted = await self.around(lambda: accept(entry, limit=limit, begin=begin))
        return accepted

    async def commit_turn(self, lease: Lease, commit: TurnCommit) -> Committed:
        commit_turn = super().commit_turn
        committed: Committed = await self.around(lambda: commit_turn(lease, commit))
        return committed


class _MortalBursts:
    def __init__(self, store: MortalStore, bursts: BurstBook) -> None:
        self._store = store
        self._bursts = bursts

    async def join(self, lease: Lease, turn: int, seqs: Sequence[int], *, steered: bool = False) -> None:
        await self._store.around(lambda: self._bursts.join(lease, turn, seqs, steered=steered))

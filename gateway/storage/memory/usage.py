"""Token use and cost, in a dictionary."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from gateway.storage.identities import BOTH_PREFIX
from gateway.storage.usage import Spent


class MemoryUsage:
    """A part of `MemoryStore`. `require_open` raises StorageError if the store is closed."""

    def __init__(self, require_open: Callable[[], None]) -> None:
        self._require_open = require_open
        self._sums: dict[tuple[str, str], Spent] = {}

    async def add(self, day: str, scopes: Sequence[str], spent: Spent) -> Mapping[str, Spent]:
        self._require_open()
        for scope in scopes:
            known = self._sums.get((day, scope), Spent())
            self._sums[day, scope] = Spent(tokens=known.tokens + spent.tokens, cost=known.cost + spent.cost)
        return {scope: self._sums[day, scope] for scope in scopes}

    async def of(self, day: str, scopes: Sequence[str]) -> Mapping[str, Spent]:
        self._require_open()
        return {scope: self._sums.get((day, scope), Spent()) for scope in scopes}

    async def since(self, day: str, scope: str) -> Spent:
        self._require_open()
        found = [spent for (at, of), spent in sorted(self._sums.items()) if at >= day and of == scope]
        return Spent(tokens=sum(one.tokens for one in found), cost=sum(one.cost for one in found))

    def days_of(self, scopes: Sequence[str]) -> list[str]:
        """The days with a sum of one of the scopes."""
        return sorted({day for day, scope in self._sums if scope in scopes})

    async def forget_before(self, day: str) -> int:
        self._require_open()
        old = [key for key in self._sums if key[0] < day]
        for key in old:
            del self._sums[key]
        return len(old)

    def drop_of(self, scopes: Collection[str]) -> None:
        """Delete the sums of these scopes, and what they have in common with others."""
        self._sums = {
            key: one
            for key, one in self._sums.items()
            if key[1] not in scopes and not set(key[1].removeprefix(BOTH_PREFIX).split("|")) & set(scopes)
        }

    def put(self, day: str, scope: str, spent: Spent) -> None:
        """Set the day's sum of a scope."""
        self._sums[day, scope] = spent

"""Port for token use and cost, by day and scope. A part of `Store`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from pipeline.domain.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """An amount of use."""

    tokens: int = 0
    cost: float = 0.0
    """US dollars."""


class UsageBook(Protocol):
    """Sums by day and scope. A scope is any text: all users, a person, a chat."""

    async def add(self, day: str, scopes: Sequence[str], spent: Spent) -> Mapping[str, Spent]:
        """Add to the day's sums of every scope, in one step; the sums afterwards, which count what other
        processes have added. `day` is YYYY-MM-DD."""
        ...

    async def of(self, day: str, scopes: Sequence[str]) -> Mapping[str, Spent]:
        """The day's sums, for every given scope."""
        ...

    async def since(self, day: str, scope: str) -> Spent:
        """The sum over `day` and all later days, for one scope."""
        ...

    async def forget_before(self, day: str) -> int:
        """Delete the sums of days before `day`; how many rows."""
        ...

"""Port for counts of process deaths during work on an entry. A part of `Store`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from pipeline.domain.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Deaths:
    """How often the process died while it worked on an unfinished entry."""

    total: int = 0
    alone: int = 0
    """How many of these while it worked on no other entry."""


class DeathBook(Protocol):
    """Process deaths, by the entries that were being worked on."""

    async def note(self) -> Mapping[int, Deaths]:
        """Durably count the death of the previous process for each unfinished entry with an attempt that was
        neither finished nor discounted. Call it while no entry is being worked on; a repeated call counts
        nothing.

        Returns the deaths of unfinished entries, by seq; entries without any are left out.
        """
        ...


class SharedDeathBook(DeathBook, Protocol):
    """Process deaths on a store that several processes share. They are counted in the transaction in which a
    living process takes the first thread of one that is gone, for all threads of that one: `alone` counts a
    process that worked on one entry only. A process that stood still for longer than its time to live counts
    as one that died."""

    async def of(self, seqs: Collection[int]) -> Mapping[int, Deaths]:
        """The deaths of these entries, without those that have none. Raises StorageError."""
        ...

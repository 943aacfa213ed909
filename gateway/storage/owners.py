"""Port for the processes that share a store: which are alive, and the threads of those that are gone.

An owner is one process. It reports at intervals that it is alive, and its leases hold until it stops
reporting, so that no lease is renewed by itself (`UNTIL_GONE`). A store with a clock, such as Postgres,
ignores `now`: the clocks of machines differ.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, Protocol, runtime_checkable

from gateway.storage.changes import ChangeBook
from gateway.storage.crash_counts import SharedDeathBook
from gateway.storage.formats import FormatBook, Formats
from gateway.storage.jobs import SharedJobBook
from gateway.storage.lease import Lease
from pipeline.domain.frozen import dataclass

UNTIL_GONE: Final = 1e18
"""The time to live of a lease that holds as long as its owner is alive, in seconds."""
KEPT_S: Final = 86_400.0
"""Seconds for which an owner that is gone is still listed for the operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """One process, as it describes itself."""

    id: str
    name: str
    role: str
    version: str
    """The version of the program."""
    accounts: tuple[str, ...] = ()
    """The accounts that it sends from, each as `channel:account`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedOwner:
    """An owner, and what the store knows of it."""

    owner: Owner
    left_s: float
    """Seconds until it counts as gone; negative if it is."""
    threads: int
    """The threads, accounts and tokens that it has leases of."""
    formats: Formats = Formats()
    """The data formats that its program can use."""


class OwnerBook(Protocol):
    """The owners of one store. All methods raise StorageError."""

    async def beat(self, owner: Owner, *, ttl_s: float, now: float) -> bool:
        """Report that `owner` is alive for `ttl_s` seconds from now. False if its earlier report had expired,
        so that others may have taken its threads. Raises StorageError too where a newer process has meanwhile
        taken away what this program uses."""
        ...

    async def retire(self, owner_id: str) -> None:
        """Report that the owner is gone: all its leases are free at once."""
        ...

    async def still(self, owner_id: str, keys: Collection[str]) -> frozenset[str]:
        """Those of the leases with these keys that the owner has."""
        ...

    async def claim(self, owner_id: str, *, limit: int, now: float) -> tuple[Lease, ...]:
        """Take threads with unfinished entries that no live owner has, longest waiting first, each with a new
        fence. Two processes never get the same."""
        ...

    async def unowned(self, *, now: float) -> int:
        """How many threads have unfinished entries and no live owner."""
        ...

    async def listed(self, *, now: float) -> tuple[ListedOwner, ...]:
        """Every owner that reported within the last day, by name."""
        ...


@runtime_checkable
class SharedStore(Protocol):
    """A store that several processes can use at once."""

    @property
    def owners(self) -> OwnerBook:
        """Its processes."""
        ...

    @property
    def deaths(self) -> SharedDeathBook:
        """The deaths of its processes."""
        ...

    @property
    def jobs(self) -> SharedJobBook:
        """Its jobs."""
        ...

    @property
    def changes(self) -> ChangeBook:
        """What another process may have changed."""
        ...

    @property
    def formats(self) -> FormatBook:
        """Its data format, and those of its processes."""
        ...

"""Data formats of a store that processes of two releases use at once. A format is the number of schema steps.

A step either adds what programs of the release before can ignore, or takes away what they use. One that
takes away waits until no process of an older format is alive.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pipeline.domain.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Formats:
    """The data formats that one program can read and write."""

    oldest: int = 1
    newest: int = 1
    """That of the program itself. It is brought up to this one where no older process is in the way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFormat:
    """How far a store is."""

    version: int = 1
    """Its data format."""
    oldest: int = 1
    """The oldest format whose programs can use it."""
    newest: int = 1
    """The format of this program."""
    held_by: tuple[str, ...] = ()
    """The living processes that the next step waits for, each with name, version and format."""

    @property
    def waiting(self) -> int:
        """How many steps of this program are not applied."""
        return max(0, self.newest - self.version)

    @property
    def is_usable(self) -> bool:
        """Whether this program understands the store."""
        return self.oldest <= self.newest


class FormatBook(Protocol):
    """The data format of a store that several processes can use. All methods raise StorageError."""

    async def current(self) -> StoreFormat:
        """How far the store is, without the processes that are waited for."""
        ...

    async def upgrade(self) -> StoreFormat:
        """Apply the steps of this program that wait for no older process, and say what it waits for."""
        ...


def too_old(place: str, found: StoreFormat) -> str:
    """Why this program cannot use the store."""
    return (
        f"{place} has data format {found.version}, which programs from format {found.oldest} on can use, and "
        f"this program has {found.newest}: it was brought there by a newer release. Install that release "
        "again, or restore the backup made before the upgrade"
    )


def held_back(place: str, found: StoreFormat) -> str:
    """Why a program that needs a later step cannot start yet."""
    return (
        f"{place} stays at data format {found.version}, as its next step takes away what processes of an "
        f"older release use, and these are alive: {listed(found.held_by)}. Stop them, then start this one "
        "again"
    )


def listed(names: Sequence[str]) -> str:
    """The names, as many as a line can hold."""
    most = 8
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more

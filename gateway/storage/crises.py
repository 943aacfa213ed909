"""Port for the records of crisis responses, and their daily counts. A part of `Store`. No record holds
words of a person."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final, Protocol

from pipeline.domain.frozen import dataclass

KEEP_DAYS: Final = 90
"""Days that a record is kept, unless the operator has extended it; daily counts are kept for good."""
_DAY_S: Final = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class CrisisRecord:
    """One crisis response."""

    id: str
    """A keyed hash of the id of the turn's message: the same after a restart."""
    session: str
    """A keyed hash of the session's id."""
    user: str | None
    """The author's `identity_key`; None off the record."""
    at: float
    level: int
    override: str
    path: str
    """What decided: override, deterministic, llm_fallback or failed."""
    reason: str
    """Codes of patterns."""
    completed: bool
    """Whether the response was made as it should be; False where the fixed words took its place."""
    llm_failed: bool
    kept_until: float | None = None
    """Set if the operator keeps the record longer."""
    kept_because: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CrisisDay:
    """The counts of one UTC day, level and path."""

    day: str
    """As 2026-11-27."""
    level: int
    path: str
    events: int
    """Responses; 0 for levels below 2, of which the failures of the classifier are counted alone."""
    llm_failures: int
    completed: int


class CrisisBook(Protocol):
    """The records. `TurnCommit.crisis` adds them, with the turn. Every method raises StorageError when the
    store fails."""

    async def listed(self, *, limit: int) -> tuple[CrisisRecord, ...]:
        """The newest records, newest first."""
        ...

    async def days(self) -> tuple[CrisisDay, ...]:
        """The daily counts, by day, level and path."""
        ...

    async def count_failure(self, *, at: float, level: int) -> None:
        """Count, for the day of the Unix time `at`, a call of the classifier that brought no verdict on a
        message that the rules judge `level`."""
        ...

    async def keep(self, record_id: str, *, until: float, because: str) -> bool:
        """Keep a record until a Unix time; whether there is such a record."""
        ...

    async def forget(self, user: str) -> None:
        """Take the person with that key out of the records, which stay."""
        ...

    async def prune(self, *, now: float) -> int:
        """Delete the records whose time is over; how many."""
        ...


def day_of(at: float) -> str:
    """The UTC day of a Unix time."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")


def oldest_kept(now: float) -> float:
    """The Unix time before which records are over."""
    return now - KEEP_DAYS * _DAY_S

"""The lease: which process may write, and the number that proves it."""

from __future__ import annotations

from typing import Final

from pipeline.domain.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to work on a thread, or to send from an account: `thread` is the key of either. `fence` grows
    with every new owner and never repeats."""

    thread: str
    owner: str
    fence: int
    expires_at: float


NO_LEASE: Final = Lease(thread="", owner="", fence=0, expires_at=0.0)
"""No process holds it: every write under it is refused."""

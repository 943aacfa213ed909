"""What the store keeps of the times that the process died while it worked on an entry. A part of `Store`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Deaths:
    """How often the process died while an unfinished entry was at work."""

    total: int = 0
    alone: int = 0
    """Of these, when no other entry was at work."""


class DeathBook(Protocol):
    """Deaths of the process, by the entries that were at work then."""

    async def note(self) -> Mapping[int, Deaths]:
        """Count the death of the process before, durably, for each unfinished entry with an attempt that was
        neither finished nor excused. To be called when nothing is at work. Calling it again counts nothing.

        Returns what is known of unfinished entries, by seq; those that were never at work at a death are
        left out.
        """
        ...

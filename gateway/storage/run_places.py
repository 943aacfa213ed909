"""Where graph runs are stored: what the readers of every store's log return."""

from __future__ import annotations

from pipeline.domain.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlace:
    """Where a graph run is stored."""

    run_id: str
    thread: str
    message_id: str
    at: float
    """Unix seconds of its first record."""

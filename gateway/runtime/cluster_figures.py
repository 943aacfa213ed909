"""What is counted of the processes that share a store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from pipeline.domain.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFigures:
    """The processes as one of them knows them."""

    owners: Mapping[str, int] = field(default_factory=dict)
    """How many are alive, by role."""
    versions: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """How many are alive, by version and data format."""
    format: int | None = None
    """The data format of the store; None while that is not known."""
    format_waiting: int | None = None
    """How many steps of this process's program it waits for; None as above."""
    room: int | None = None
    """How many more turns all workers could run; None while no worker is known."""
    unowned: int | None = None
    """Threads with work and no living process; None while that is not known."""
    beat_age_s: float | None = None
    """Seconds since this process last reported that it is alive; None before its first report."""

"""The settings of a gateway that runs as several processes: [cluster]."""

from __future__ import annotations

from typing import Literal

from gateway.config.section import Section, setting

Role = Literal["alone", "all", "edge", "work"]


class ClusterSettings(Section):
    """[cluster]: this process among others on the same database."""

    role: Role = setting(
        "alone",
        "What this process does: alone everything, with the database to itself. Several processes on one "
        "database: edge holds the accounts and receives, sends and shows; work runs the turns; all is both. "
        "They need Postgres as the store and a bus.",
    )
    name: str | None = setting(
        None,
        "A name of this process for the operator, shown by parlour doctor. When absent: the machine's name "
        "and the process's number.",
        example="worker-1",
        min_length=1,
        max_length=200,
    )
    beat_s: float = setting(
        1.0, "Seconds between two reports to the database that this process is alive.", ge=0.1, le=60
    )
    ttl_s: float = setting(
        3.0,
        "Seconds without a report after which other processes take over what this one was doing.",
        ge=0.3,
        le=600,
    )

    @property
    def shared(self) -> bool:
        """Whether other processes may run on the same database."""
        return self.role != "alone"

    @property
    def is_edge(self) -> bool:
        """Whether this process holds accounts: it receives, sends and shows."""
        return self.role != "work"

    @property
    def is_worker(self) -> bool:
        """Whether this process runs turns."""
        return self.role != "edge"

"""The measured costs of the simulation, from simulate_costs.toml, and the cluster that is simulated.

All times are in seconds. Not here: how they are measured (the cluster bench, `scaling_measures`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from gateway.cluster.workers import ANNOUNCE_S
from gateway.config.cluster import ClusterSettings
from gateway.turns.elsewhere import LOOK_S, LOOKS_A_SECOND

FILE = Path(__file__).with_name("simulate_costs.toml")
_UNITS = {"µs": 1e-6, "ms": 1e-3, "s": 1.0}

Bus = Literal["redis", "postgres"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """One measured cost."""

    seconds: float
    what: str
    source: str


@dataclass(frozen=True, slots=True)
class Costs:
    """Every cost by its name."""

    by_name: Mapping[str, Cost]

    def __getitem__(self, name: str) -> float:
        """Seconds."""
        return self.by_name[name].seconds

    def varied(self, name: str, factor: float) -> Costs:
        """The same with one cost multiplied."""
        one = self.by_name[name]
        return Costs({**self.by_name, name: replace(one, seconds=one.seconds * factor)})


def read_costs(path: Path = FILE) -> Costs:
    """The costs in a file. Raises ValueError for a cost without a source, or in an unknown unit."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))["costs"]
    found: dict[str, Cost] = {}
    for name, entry in table.items():
        if entry["unit"] not in _UNITS:
            raise ValueError(f"{path.name}: {name} has the unit {entry['unit']}; write µs, ms or s")
        if not entry["source"]:
            raise ValueError(f"{path.name}: {name} has no source; write where it was measured")
        seconds = entry["value"] * _UNITS[entry["unit"]]
        found[name] = Cost(seconds=seconds, what=entry["what"], source=entry["source"])
    return Costs(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A cluster and what people do with it."""

    processes: int = 100
    edges: int = 30
    threads: int = 1_000_000
    bus: Bus = "redis"
    messages_a_day: float = 20.0
    """For each thread."""
    peak: float = 3.0
    """The busiest hour beside the mean."""
    tokens: int = 150
    """Of one answer; all are carried to the edge."""
    model_s: float = 6.0
    """From the question to the end of the answer."""
    slots: int = 64
    """`turn.max_running` of a worker with a model at an endpoint."""
    database_cores: int = 16
    beat_s: float = ClusterSettings().beat_s
    ttl_s: float = ClusterSettings().ttl_s
    look_s: float = LOOK_S
    looks_a_second: float = LOOKS_A_SECOND
    """Of all workers together at most."""
    announce_s: float = ANNOUNCE_S
    """Between two announcements of a worker, which each process gets."""
    probe_s: float = 0.4
    """Between two texts that a process sends itself over each server of the bus."""
    wakes_to_all: bool = False
    """Whether each worker gets each wake and tries to take the thread; else only one does."""
    astray: float = 0.02
    """The share of wakes sent to one that reach a worker which is full or does not have the thread: an
    assumption."""
    platform_per_s: float = 30.0
    """Messages a second that Telegram takes from one account."""
    costs: Costs = field(default_factory=read_costs)

    @property
    def workers(self) -> int:
        """The processes that run turns."""
        return self.processes - self.edges

    @property
    def needed(self) -> float:
        """Turns a second on average."""
        return self.threads * self.messages_a_day / 86_400

    @property
    def needed_at_peak(self) -> float:
        """Turns a second in the busiest hour."""
        return self.needed * self.peak

    @property
    def probes_cost(self) -> float:
        """Seconds a second that Postgres needs for the probes of all processes. It is the spare of Redis, and
        each NOTIFY reaches the server's process of every one that listens."""
        return self.processes / self.probe_s * self.processes * self.costs["signal_postgres_server"]

    @property
    def woken(self) -> float:
        """Workers that a wake reaches, on average."""
        return self.workers if self.wakes_to_all else 1 + self.astray

    @property
    def looks(self) -> float:
        """Looks of all workers in a second."""
        return min(self.workers / self.look_s, self.looks_a_second)

    @property
    def announcements(self) -> float:
        """Those of all workers in a second."""
        return 0.0 if self.wakes_to_all else self.workers / self.announce_s

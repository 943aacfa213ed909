"""Which part of a large cluster is full at which load, from the costs alone: no queues, no chance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from bench.simulate_costs import Plan

DATABASE, BUS, EDGES, WORKERS, SLOTS = (
    "Postgres",
    "server of the bus",
    "edges",
    "workers",
    "turns at once",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one part has and what a turn takes of it, in seconds a second."""

    name: str
    unit: str
    has: float
    always: float = 0.0
    """Taken also without a message."""
    each_turn: float

    @property
    def most(self) -> float:
        """Turns a second at which it is full."""
        return max(0.0, (self.has - self.always) / self.each_turn)

    def used(self, turns_per_s: float) -> float:
        """The share that is taken at this load; more than 1 means that the load is too much."""
        return (self.always + self.each_turn * turns_per_s) / self.has


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """What a cost changes when it is half of what was measured, and twice as much."""

    name: str
    halved: tuple[str, float]
    """The part that is full first, and the turns a second then."""
    doubled: tuple[str, float]


def parts(plan: Plan) -> tuple[Part, ...]:
    """Every part of the cluster."""
    return _database(plan), _bus(plan), _edges(plan), _workers(plan), _slots(plan)


def first_full(plan: Plan) -> Part:
    """The part that is full at the lowest load."""
    return min(parts(plan), key=lambda part: part.most)


def best_edges(plan: Plan, choices: Sequence[int] | None = None) -> Plan:
    """The same number of processes with as many edges as let the most turns through."""
    numbers = choices or range(1, plan.processes)
    return max((replace(plan, edges=number) for number in numbers), key=lambda one: first_full(one).most)


def sensitivities(plan: Plan) -> tuple[Sensitivity, ...]:
    """For each cost and setting: what is full first, and when, with half of it and with twice as much."""
    costs = (
        _sensitivity(name, lambda factor, name=name: replace(plan, costs=plan.costs.varied(name, factor)))  # type: ignore[misc]  # a default
        for name in plan.costs.by_name
    )
    settings: tuple[tuple[str, Callable[[float], Plan]], ...] = (
        ("tokens of an answer", lambda factor: replace(plan, tokens=round(plan.tokens * factor))),
        ("seconds of an answer", lambda factor: replace(plan, model_s=plan.model_s * factor)),
        ("turns at once of a worker", lambda factor: replace(plan, slots=round(plan.slots * factor))),
        (
            "cores of Postgres",
            lambda factor: replace(plan, database_cores=round(plan.database_cores * factor)),
        ),
        (
            "looks a second of all workers",
            lambda factor: replace(plan, looks_a_second=plan.looks_a_second * factor),
        ),
        ("wakes that go astray", lambda factor: replace(plan, astray=plan.astray * factor)),
    )
    return (*costs, *(_sensitivity(name, varied) for name, varied in settings))


def _sensitivity(name: str, varied: Callable[[float], Plan]) -> Sensitivity:
    halved, doubled = (first_full(varied(factor)) for factor in (0.5, 2.0))
    return Sensitivity(name=name, halved=(halved.name, halved.most), doubled=(doubled.name, doubled.most))


def series(plan: Plan, processes: Sequence[int], edges: Callable[[int], int]) -> dict[str, list[float]]:
    """For the picture: the most turns a second of each part, by the number of processes."""
    found: dict[str, list[float]] = {}
    for number in processes:
        for part in parts(replace(plan, processes=number, edges=edges(number))):
            found.setdefault(part.name, []).append(part.most)
    return found


def _database(plan: Plan) -> Part:
    costs = plan.costs
    looks = plan.looks
    # Each look reads what is open, which is what the turns that run have.
    each_turn = costs["turn_database"] + looks * costs["look_open"] * plan.model_s
    each_turn += (plan.woken - 1) * costs["refused_database"]
    if plan.bus == "postgres":
        # A NOTIFY reaches the server's process of every one that listens, to whatever topic.
        each_turn += (plan.tokens + 2) * plan.processes * costs["signal_postgres_server"]
        each_turn += plan.tokens * costs["token_postgres_server"]
    always = plan.processes / plan.beat_s * costs["beat_database"] + looks * costs["look_database"]
    always += plan.probes_cost
    if plan.bus == "postgres":
        always += plan.announcements * plan.processes * costs["signal_postgres_server"]
    return Part(name=DATABASE, unit="cores", has=plan.database_cores, always=always, each_turn=each_turn)


def _bus(plan: Plan) -> Part:
    costs = plan.costs
    each_turn = plan.tokens * costs["token_redis_server"] + (plan.woken + 1) * costs["signal_redis_server"]
    # Over Postgres this is a part of the database's load.
    has = 1.0 if plan.bus == "redis" else float("inf")
    always = plan.announcements * plan.processes * costs["signal_redis_server"]
    return Part(name=BUS, unit="core", has=has, always=always, each_turn=each_turn)


def _edges(plan: Plan) -> Part:
    costs = plan.costs
    each_turn = costs["accept_edge"] + costs["platform_edge"] + plan.tokens * costs[f"token_{plan.bus}_edge"]
    if plan.wakes_to_all:
        # Edges listen to wakes too, and leave them to the workers.
        each_turn += plan.edges * costs[f"signal_{plan.bus}_receiver"]
    else:
        each_turn += plan.workers * costs["choice_edge"]
    always = plan.edges * plan.announcements * costs[f"signal_{plan.bus}_receiver"]
    return Part(name=EDGES, unit="cores", has=plan.edges, always=always, each_turn=each_turn)


def _workers(plan: Plan) -> Part:
    costs = plan.costs
    heard = costs[f"signal_{plan.bus}_receiver"]
    each_turn = costs["turn_worker"] + plan.woken * heard + (plan.woken - 1) * costs["refused_worker"]
    always = plan.workers * plan.announcements * heard
    return Part(name=WORKERS, unit="cores", has=plan.workers, always=always, each_turn=each_turn)


def _slots(plan: Plan) -> Part:
    return Part(name=SLOTS, unit="turns", has=plan.workers * plan.slots, each_turn=plan.model_s)

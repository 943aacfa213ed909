"""100 processes and a million threads on paper: which part is full first, when, and how sure that is.

The costs are measured (simulate_costs.toml), the rest is arithmetic (`simulate_load`) and a run of events
with a seed (`simulate_events`). docs/scaling.md says what follows from it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bench.report import ROOT, Report, table
from bench.simulate_costs import Plan
from bench.simulate_events import Outcome, simulate
from bench.simulate_load import Part, best_edges, first_full, parts, sensitivities, series
from bench.simulate_plot import plot

PLOT = ROOT / "docs" / "images" / "scaling.svg"
PROCESSES = (3, 5, 10, 20, 50, 100, 200, 500)
LOADS = (0.5, 0.8, 0.95, 1.1)
"""Shares of the load at which the first part is full."""
SECONDS = 20.0
CONNECTIONS = 3
"""Of one process to Postgres: it writes, reads, and listens, also where Redis carries its signals."""
_DEFAULT_CONNECTIONS = 97
"""What a new Postgres server gives to users: `max_connections` of 100, less three for its administrator."""


async def run(
    *, picture: Path | None = None, seed: int = 1, plan: Plan | None = None, seconds: float = SECONDS
) -> Report:
    """Arithmetic for several plans, events for one; writes `picture`."""
    plan = plan or Plan()
    full = first_full(plan)
    runs = [simulate(plan, turns_per_s=full.most * share, seconds=seconds, seed=seed) for share in LOADS]
    if picture is not None:
        _draw(plan, picture)
    plans = _plans(plan)
    return Report(
        bench="scaling",
        title=f"scaling: {plan.processes} processes and {plan.threads:,} threads, from measured costs",
        head=("part", "has", "at the mean", "at the peak", "full at"),
        rows=[_part_row(part, plan) for part in parts(plan)],
        more=(
            *("", "which part is full first", ""),
            *table(("plan", "edges", "full first", "turns a second"), [_plan_row(*one) for one in plans]),
            *("", f"events, {seconds:g} simulated seconds each, one worker killed; seed: {seed}", ""),
            *table(_RUN_HEAD, [_run_row(share, one) for share, one in zip(LOADS, runs, strict=True)]),
            *("", "what is full first with half and with twice of each cost", ""),
            *table(("cost or setting", "half", "twice"), _sensitivity_rows(plan)),
        ),
        notes=_notes(plan),
        figures=_figures(plan, full, runs, plans),
    )


_OVER_POSTGRES = "as built, over Postgres"
_ALL_WOKEN = "the same, each wake to all workers"
_RUN_HEAD = (
    "load",
    "turns/s",
    "begun/s",
    "wait p50",
    "wait p99",
    "token p99",
    "shown p99",
    "waiting",
    "takeover p50",
)


def _plans(plan: Plan) -> list[tuple[str, Plan]]:
    often = replace(plan, looks_a_second=math.inf)
    few = max(2, plan.processes // 10)
    tenth = replace(plan, processes=few, edges=max(1, plan.edges * few // plan.processes))
    return [
        ("as built", plan),
        ("as built, the best number of edges", best_edges(plan)),
        (_OVER_POSTGRES, replace(plan, bus="postgres")),
        ("as built, twice the turns at once", replace(plan, slots=plan.slots * 2)),
        ("each worker looks twice a second", often),
        (_ALL_WOKEN, replace(often, wakes_to_all=True)),
        ("as built, a tenth of the processes", tenth),
        ("the same, over Postgres", replace(tenth, bus="postgres")),
    ]


def _part_row(part: Part, plan: Plan) -> tuple[str, ...]:
    has = "-" if math.isinf(part.has) else f"{part.has:g} {part.unit}"
    used = (f"{part.used(load):.0%}" for load in (plan.needed, plan.needed_at_peak))
    return part.name, has, *used, _rate(part.most)


def _plan_row(name: str, plan: Plan) -> tuple[str, ...]:
    part = first_full(plan)
    return name, f"{plan.edges}", part.name, _rate(part.most)


def _run_row(share: float, one: Outcome) -> tuple[str, ...]:
    times = (one.start_p50, one.start_p99, one.token_p99, one.shown_p99)
    taken = f"{one.takeover_p50:.1f} s" if one.taken_over else "-"
    return (
        f"{share:.0%}",
        f"{one.offered:.0f}",
        f"{one.started:.0f}",
        *(f"{time * 1e3:.0f} ms" for time in times),
        f"{one.waiting}",
        taken,
    )


def _sensitivity_rows(plan: Plan) -> list[tuple[str, ...]]:
    return [
        (
            one.name,
            f"{one.halved[0]} at {_rate(one.halved[1])}",
            f"{one.doubled[0]} at {_rate(one.doubled[1])}",
        )
        for one in sensitivities(plan)
    ]


def _notes(plan: Plan) -> Sequence[str]:
    accounts = math.ceil(plan.needed_at_peak / plan.platform_per_s)
    limit = _DEFAULT_CONNECTIONS // CONNECTIONS
    peak = f"{plan.needed:.0f} turns a second on average, {plan.needed_at_peak:.0f} in the busiest hour"
    return (
        f"{plan.messages_a_day:g} messages a day in each thread: {peak}",
        f"an answer has {plan.tokens} tokens in {plan.model_s:g} s",
        f"a worker runs {plan.slots} turns at once; Postgres has {plan.database_cores} cores",
        f"{_connections(plan)} connections; a new Postgres server takes those of {limit} processes",
        f"Telegram takes {plan.platform_per_s:g} messages a second: {accounts} accounts in the busiest hour",
    )


def _figures(
    plan: Plan, full: Part, runs: Sequence[Outcome], plans: Sequence[tuple[str, Plan]]
) -> dict[str, object]:
    by_name = {name: first_full(one) for name, one in plans}
    lowest, highest = _range(plan)
    return {
        "processes": plan.processes,
        "threads": plan.threads,
        "edges": plan.edges,
        "needed_per_s": round(plan.needed, 1),
        "needed_at_peak_per_s": round(plan.needed_at_peak, 1),
        "breaks_first": full.name,
        "breaks_at_per_s": round(full.most, 1),
        "breaks_at_per_s_varied": [round(lowest, 1), round(highest, 1)],
        "breaks_at_per_s_over_postgres": round(by_name[_OVER_POSTGRES].most, 1),
        "breaks_at_per_s_all_woken": round(by_name[_ALL_WOKEN].most, 1),
        "breaks_first_all_woken": by_name[_ALL_WOKEN].name,
        "connections": _connections(plan),
        "wait_p99_ms_at_80": round(runs[1].start_p99 * 1e3, 1),
        "wait_p99_ms_at_110": round(runs[3].start_p99 * 1e3, 1),
        "takeover_p50_s": round(runs[1].takeover_p50, 2),
    }


def _range(plan: Plan) -> tuple[float, float]:
    loads = [load for one in sensitivities(plan) for _, load in (one.halved, one.doubled)]
    return min(loads), max(loads)


def _connections(plan: Plan) -> int:
    return plan.processes * CONNECTIONS


def _draw(plan: Plan, picture: Path) -> None:
    share = plan.edges / plan.processes
    lines = series(plan, PROCESSES, lambda number: max(1, round(number * share)))
    levels = {
        f"needed on average, {plan.threads:,} threads": plan.needed,
        "needed in the busiest hour": plan.needed_at_peak,
    }
    drawn = plot(PROCESSES, lines, levels, title="What each part of a cluster lets through")
    picture.parent.mkdir(exist_ok=True)
    picture.write_text(drawn, encoding="utf-8")


def _rate(value: float) -> str:
    return "-" if math.isinf(value) else f"{value:,.0f}"

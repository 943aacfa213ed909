"""What a cluster costs and what it survives: Postgres beside SQLite, the buses between two processes, one
worker beside two, and a run of faults. The servers are real, and Postgres waits for the disk at each commit,
except in the run of faults.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Final

from bench.cluster_bus import (
    PACED_S,
    PER_TURN_S,
    TURNS,
    WAKES,
    BusFigures,
    measure_between,
    measure_within,
)
from bench.cluster_processes import ProcessFigures, measure_processes
from bench.cluster_turns import ROUNDS, THREADS, Pair, Side, measure_accepts, measure_turns
from bench.report import ROOT, BenchUnavailable, Report, scratch_folder, table
from bench.stages import say, stage
from tests.support.cluster_faults import ClusterFaultPlan, ClusterFaultRun, StuckRun, run_cluster_faults
from tests.support.platforms.discord import FakeDiscord
from tests.support.platforms.platform import FakePlatform
from tests.support.platforms.slack import FakeSlack
from tests.support.platforms.telegram import FakeTelegram
from tests.support.postgres_server import NoServer, mortal_server
from tests.support.valkey import Valkey

SHORT_KILLS: Final = 6
_STORES_S: Final = 1_800.0
_BUS_S: Final = 600.0
_PROCESSES_S: Final = 900.0
"""Limits of the parts on a busy machine, many times what they take."""
_WITHIN, _POSTGRES, _REDIS = "in process", "Postgres", "Redis"


async def run(*, kills: int, seed: int, short: bool = False) -> Report:
    """Stores first, then whole turns, buses, processes, and faults, of which `kills` are `kill -9`. `short`
    measures fewer rounds, for a look in some minutes. Raises BenchUnavailable without a Postgres server, and
    if a part takes far too long."""
    load, rounds = os.getloadavg()[0], 2 if short else ROUNDS
    plan = _plan(kills, seed)
    with scratch_folder() as folder:
        try:
            # Not in that folder, which another user, as whom root's server runs, cannot enter.
            with mortal_server(on_disk=ROOT / "build") as server:
                async with stage("accepts of the stores", limit_s=_STORES_S):
                    accepts = await measure_accepts(folder, server, rounds)
                async with stage("turns on SQLite and on Postgres", limit_s=_STORES_S):
                    turns = await measure_turns(folder, server, rounds)
                async with stage("signals over Postgres", limit_s=_BUS_S):
                    postgres = await measure_between("postgres", server.url, server.pid)
            async with stage("one worker and two", limit_s=_PROCESSES_S):
                processes = await measure_processes(folder, ROOT / "build")
            async with stage(f"faults: {_fault_words(plan)}", limit_s=_faults_s(plan)):
                faults = await run_cluster_faults(folder / "faults", plan, _platforms(), say)
        except NoServer as error:
            raise BenchUnavailable(f"the cluster bench needs a Postgres server: {error}") from None
        except StuckRun as error:
            raise BenchUnavailable(f"the run of faults did not continue: {error}") from None
        async with stage("signals over Redis", limit_s=_BUS_S):
            redis = await _redis(folder)
    async with stage("signals in one process", limit_s=_BUS_S):
        within = await measure_within()
    buses = {_WITHIN: within, _POSTGRES: postgres, _REDIS: redis}
    return _report(accepts, turns, buses, processes, faults, load)


def _faults_s(plan: ClusterFaultPlan) -> float:
    """How long a run of faults may take: a part that hangs is noticed earlier, by its own limit."""
    faults = plan.kills + plan.freezes + plan.postgres_restarts + plan.valkey_kills + plan.partitions
    return 900 + 60 * faults


def _plan(kills: int, seed: int) -> ClusterFaultPlan:
    """The other faults in proportion to the kills, and fewer messages where there are few."""
    return ClusterFaultPlan(
        messages=max(20, min(200, 4 * kills)),
        chats=6 if kills >= 50 else 3,
        kills=kills,
        freezes=kills // 2,
        postgres_restarts=max(1, kills // 40),
        valkey_kills=max(1, kills // 10),
        partitions=max(1, kills // 10),
        seed=seed,
    )


def _platforms() -> list[FakePlatform]:
    return [FakeTelegram(), FakeSlack(), FakeDiscord()]


async def _redis(folder: Path) -> BusFigures:
    async with Valkey(folder) as server:
        return await measure_between("redis", server.url, server.pid)


def _report(
    accepts: Mapping[int, Pair],
    turns: Mapping[int, Pair],
    buses: Mapping[str, BusFigures],
    processes: ProcessFigures,
    faults: ClusterFaultRun,
    load: float,
) -> Report:
    together, alone = turns[THREADS], turns[1]
    between = {_POSTGRES.lower(): buses[_POSTGRES], _REDIS.lower(): buses[_REDIS]}
    figures: dict[str, object] = {
        "turn_ratio_to_sqlite": round(together.ratio, 2),
        "turn_ratio_to_sqlite_alone": round(alone.ratio, 2),
        "accepts_per_s": round(accepts[THREADS].postgres.per_s),
        "accepts_per_s_sqlite": round(accepts[THREADS].sqlite.per_s),
        "turns_per_s": round(together.postgres.per_s, 1),
        "turns_per_s_sqlite": round(together.sqlite.per_s, 1),
        "turn_gateway_us": round(together.postgres.gateway_us),
        "turn_gateway_us_sqlite": round(together.sqlite.gateway_us),
        "turn_server_us": round(together.postgres.server_us),
        # The worse of the two, so that no figure depends on which one is used.
        "wake_p50_ms": round(max(one.wake_p50 for one in between.values()) * 1e3, 3),
        "wake_p99_ms": round(max(one.wake_p99 for one in between.values()) * 1e3, 3),
        "token_us": round(max(one.paced.gateways_us for one in between.values()), 1),
        **{f"wake_p50_ms_{name}": round(one.wake_p50 * 1e3, 3) for name, one in between.items()},
        **{f"wake_p99_ms_{name}": round(one.wake_p99 * 1e3, 3) for name, one in between.items()},
        **{f"token_us_{name}": round(one.paced.gateways_us, 1) for name, one in between.items()},
        "token_us_process": round(buses[_WITHIN].paced.gateways_us, 1),
        **{f"tokens_per_s_{name}": round(_rate(one)) for name, one in between.items()},
        **_process_figures(processes),
        **_fault_figures(faults),
        "load": round(load, 1),
    }
    return Report(
        bench="cluster",
        title="cluster: Postgres beside SQLite, both waiting for the disk, and the buses",
        head=("", "SQLite", "Postgres", "ratio"),
        rows=_store_rows("accept", accepts, "callers") + _store_rows("whole turn", turns, "threads"),
        more=(
            "",
            *table(("", *buses), _bus_rows(buses)),
            "",
            *table(("processes and faults", ""), _process_rows(processes, faults)),
        ),
        notes=(
            "accepts: the stores alone, in the bench's process",
            "whole turns: `parlour serve` with the scripted model, from a message on the page's socket",
            "  to its terminal event, with the clients on the same processors",
            "both sides in turns: medians of the rounds, and the median of their ratios",
            f"wakes: {WAKES:,}, one after the other, from the call of the publisher to that of the handler",
            f"paced: {TURNS} turns of {PER_TURN_S} tokens a second each for {PACED_S:g} s",
            "  the bench's timer is part of each column, and nearly the whole cost in one process",
            "at once: as fast as they are shown",
            f"faults: {_fault_words(faults.plan)}, in {faults.seconds:.0f} s",
            f"load of the machine at the start: {load:.1f}",
        ),
        figures=figures,
    )


def _process_figures(processes: ProcessFigures) -> dict[str, object]:
    return {
        "two_workers_ratio": round(processes.workers_ratio, 2),
        "edge_token_us": round(processes.edge_token_us, 1),
        "edge_rss_mb": round(processes.edge_mb),
        "work_rss_mb": round(processes.work_mb),
    }


def _fault_figures(faults: ClusterFaultRun) -> dict[str, object]:
    verdicts = [*faults.channels.values()]
    return {
        "kills": faults.plan.kills,
        "accepted": sum(one.accepted for one in verdicts) + faults.page.accepted,
        "lost": sum(one.lost for one in verdicts) + faults.page.lost,
        "duplicates": sum(one.duplicates for one in verdicts) + faults.page.answered_twice,
        "labelled_repeats": sum(one.labelled_repeats for one in verdicts),
        "order_errors": sum(one.order_errors for one in verdicts)
        + faults.page.order_errors
        + faults.stored.order_errors,
        "stale_writes": faults.stored.unanswered + faults.stored.unsent,
        "shrunk": faults.shrunk,
        "takeovers": len(faults.takeovers_s),
        "takeover_p50_s": round(median(faults.takeovers_s), 2) if faults.takeovers_s else None,
    }


def _process_rows(processes: ProcessFigures, faults: ClusterFaultRun) -> list[tuple[str, str]]:
    rows = _process_figures(processes) | _fault_figures(faults)
    return [(name.replace("_", " "), "none" if value is None else str(value)) for name, value in rows.items()]


def _fault_words(plan: ClusterFaultPlan) -> str:
    return (
        f"{plan.kills} kills, {plan.freezes} freezes, {plan.postgres_restarts} restarts of Postgres, "
        f"{plan.valkey_kills} kills of Valkey and {plan.partitions} partitions, seed {plan.seed}"
    )


def _store_rows(what: str, pairs: Mapping[int, Pair], who: str) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for number, pair in pairs.items():
        name = f"{what}, {'one' if number == 1 else number} {who if number > 1 else who[:-1]}"
        rows += [
            (f"{name}: a second", *_each(pair, lambda side: f"{side.per_s:.0f}"), f"{pair.ratio:.2f}"),
            (
                f"{name}: processor time of the gateway",
                *_each(pair, lambda side: f"{side.gateway_us:.0f} µs"),
                f"{pair.postgres.gateway_us / pair.sqlite.gateway_us:.2f}",
            ),
            (f"{name}: processor time of the server", "", f"{pair.postgres.server_us:.0f} µs", ""),
        ]
    return rows


def _each(pair: Pair, words: Callable[[Side], str]) -> tuple[str, str]:
    return words(pair.sqlite), words(pair.postgres)


def _bus_rows(buses: Mapping[str, BusFigures]) -> list[tuple[str, ...]]:
    kinds: dict[str, Callable[[BusFigures], str]] = {
        "wake: p50": lambda one: _ms(one.wake_p50),
        "wake: p99": lambda one: _ms(one.wake_p99),
        "wake while tokens are carried: p50": lambda one: _ms(one.busy_p50),
        "wake while tokens are carried: p99": lambda one: _ms(one.busy_p99),
        "token, paced: processor time of both gateways": lambda one: f"{one.paced.gateways_us:.0f} µs",
        "token, paced: processor time of the server": lambda one: f"{one.paced.server_us:.0f} µs",
        "tokens, paced: left out": lambda one: f"{one.paced.sent - one.paced.shown}",
        "tokens at once: a second": lambda one: f"{_rate(one):.0f}",
        "token, at once: processor time of both gateways": lambda one: f"{one.at_once.gateways_us:.0f} µs",
        "token, at once: processor time of the server": lambda one: f"{one.at_once.server_us:.0f} µs",
    }
    return [(name, *map(words, buses.values())) for name, words in kinds.items()]


def _rate(one: BusFigures) -> float:
    return one.at_once.shown / one.at_once.seconds


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3f} ms"

"""Workflows: the triage example and a line of agents beside LangGraph, and a gateway with paused runs."""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack
from pathlib import Path

from bench import graph, workflow_work
from bench.graph_measure import Measured, Pairing, compare, worker
from bench.graph_work import Case, Graph, Store
from bench.report import BenchUnavailable, Report, scratch_folder
from bench.workflow_paused import PAUSED, Paused, measure_paused


async def run(*, peer: Path = graph.PEER, rounds: int = 9) -> Report:
    """Measure everything. Raises BenchUnavailable where LangGraph is not installed."""
    _require(peer)
    with scratch_folder() as folder:
        async with AsyncExitStack() as stack:
            ours = await stack.enter_async_context(
                worker(Path(sys.executable), "bench.workflow_ours", folder / "ours")
            )
            theirs = await stack.enter_async_context(worker(peer, "bench.workflow_peer", folder / "peer"))
            found = {name: await compare(ours, theirs, pairing, rounds) for name, pairing in PAIRINGS.items()}
        paused = await measure_paused(folder / "paused")
    return _report(found, paused, rounds)


def _require(peer: Path) -> None:
    if not peer.is_file():
        raise BenchUnavailable(
            f"the workflow bench compares with LangGraph, which is not installed at {peer}: "
            "`make bench NAME=workflows` makes one (100 MB), or name its Python with --peer"
        )


def _pairing(label: str, name: Graph, peer: Graph, store: Store, *, steps: int = 1) -> Pairing:
    return Pairing(
        label=label,
        ours=Case(graph=name, store=store),
        # A run that asks needs a saver.
        peer=Case(graph=peer, store=store),
        ours_count=40,
        peer_count=10,
        steps=steps,
    )


PAIRINGS = {
    "run": _pairing("triage run, two answers, SQLite", "triage", "triage", "sqlite"),
    "run_quiet": _pairing("  without events and a log", "triage", "triage-quiet", "sqlite"),
    "run_model": _pairing("  without prebuilt agents", "triage", "triage-model", "sqlite"),
    "run_plain": _pairing("  without a chat model", "triage", "triage-plain", "sqlite"),
    "memory": _pairing("triage run in memory", "triage", "triage", "memory"),
    "step": _pairing("an agent of a line, no store", "line", "line", "none", steps=workflow_work.AGENTS),
    "step_model": _pairing(
        "  without prebuilt agents", "line", "line-model", "none", steps=workflow_work.AGENTS
    ),
    "step_plain": _pairing(
        "  without a chat model", "line", "line-plain", "none", steps=workflow_work.AGENTS
    ),
}


def _report(found: dict[str, Measured], paused: Paused, rounds: int) -> Report:
    rows = [
        (
            one.label,
            f"{one.ours_us:.0f} µs",
            f"{one.peer_us:.0f} µs",
            f"{one.ratio:.1f}",
            f"{one.lowest:.1f} to {one.highest:.1f}",
        )
        for one in found.values()
    ]
    rows += [
        (f"a gateway with {PAUSED:,} paused runs", f"{paused.with_runs_mb:.0f} MB", "", "", ""),
        ("one without", f"{paused.without_mb:.0f} MB", "", "", ""),
        ("its start", f"{paused.start_ms:.0f} ms", "", "", ""),
        ("the start without", f"{paused.start_without_ms:.0f} ms", "", "", ""),
        ("from a person's answer to the run's", f"{paused.resume_ms:.1f} ms", "", "", ""),
    ]
    return Report(
        bench="workflows",
        title="Workflows: the triage example beside LangGraph, and paused runs",
        head=("", "ours", "LangGraph", "its time over ours", "lowest and highest"),
        rows=rows,
        notes=(
            f"Runs and steps: processor time of each process, {rounds} rounds in alternation.",
            "An agent of LangGraph is its prebuilt one; below, a chat model alone, then a function.",
            "Paused runs: a gateway in a process, started again; elapsed time.",
        ),
        figures={
            "run_ratio": round(found["run"].ratio, 1),
            "run_quiet_ratio": round(found["run_quiet"].ratio, 1),
            "run_model_ratio": round(found["run_model"].ratio, 1),
            "run_plain_ratio": round(found["run_plain"].ratio, 1),
            "memory_ratio": round(found["memory"].ratio, 1),
            "run_us": round(found["run"].ours_us),
            "step_us": round(found["step"].ours_us),
            "step_ratio": round(found["step"].ratio, 1),
            "paused_1000_rss_mb": round(paused.with_runs_mb, 1),
            "paused_1000_added_mb": round(paused.with_runs_mb - paused.without_mb, 1),
            "paused_1000_start_ms": round(paused.start_ms),
            "start_ms": round(paused.start_without_ms),
            "resume_ms": round(paused.resume_ms, 1),
        },
    )

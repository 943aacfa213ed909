"""Parlour's graph engine compared with LangGraph and its SQLite saver: the same work, in alternation."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.graph_measure import Held, Measured, Pairing, Worker, Written, compare, worker
from bench.graph_plot import Bars, in_words, plot
from bench.graph_work import LOOP_STEPS, Case, Graph, Store
from bench.report import ROOT, BenchUnavailable, Report, scratch_folder

PEER = ROOT / "build" / "bench-peer" / "bin" / "python"
"""Where `make bench` puts the peer's environment."""
PLOT = ROOT / "build" / "bench-graph.svg"
_TABLE = ROOT / "build" / "bench-graph.md"

_ROUNDS = 9
_HISTORIES = (10, 100, 1000)
_THREADS = 1000
_WRITTEN_TURNS = 20
_COLD_HISTORY = 200
_AT_ONCE = 16
_STORES: Mapping[Store, str] = {
    "none": "no store",
    "memory": "memory",
    "sqlite": "SQLite",
    "sqlite-normal": "SQLite with `normal`",
}
_DICTS = "LangGraph, plain dicts"
_OURS, _PEER = "bench.graph_ours", "bench.graph_peer"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bytes:
    history: int
    ours: Written
    peer: Written
    dicts: Written
    """The peer's with plain dicts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    times: Mapping[str, Measured]
    written: Sequence[_Bytes]
    ours_held: Held
    peer_held: Held
    dicts_held: Held
    about: Mapping[str, Any]


async def run(*, peer: Path = PEER, picture: Path = PLOT, rounds: int = _ROUNDS) -> Report:
    """Measure everything and write the plot. Raises BenchUnavailable where the peer is not installed."""
    _require(peer)
    with scratch_folder() as folder:
        found = await _measure(peer, folder, rounds)
    _draw(found, picture)
    report = _report(found, picture, rounds)
    _write_table(report)
    return report


def _require(peer: Path) -> None:
    if not peer.is_file():
        raise BenchUnavailable(
            f"the graph bench compares with LangGraph, which is not installed at {peer}: "
            "`make bench NAME=graph` makes one (100 MB), or name its Python with --peer"
        )


async def _measure(peer_python: Path, folder: Path, rounds: int) -> _Found:
    async with AsyncExitStack() as stack:
        ours = await stack.enter_async_context(worker(Path(sys.executable), _OURS, folder / "ours"))
        peer = await stack.enter_async_context(worker(peer_python, _PEER, folder / "peer"))
        about = _about(await ours.about(), await peer.about())
        times = {key: await compare(ours, peer, pairing, rounds) for key, pairing in pairings().items()}
        written = [await _written(ours, peer, history) for history in (_HISTORIES[0], _HISTORIES[-1])]
    # Memory is measured in processes that have done nothing else.
    here = Path(sys.executable)
    return _Found(
        times=times,
        written=written,
        ours_held=await _hold(here, _OURS, folder / "ours-held", "held"),
        peer_held=await _hold(peer_python, _PEER, folder / "peer-held", "held"),
        dicts_held=await _hold(peer_python, _PEER, folder / "dicts-held", "held-dicts"),
        about=about,
    )


async def _hold(python: Path, module: str, folder: Path, graph: Graph) -> Held:
    async with worker(python, module, folder) as side:
        return await side.hold(Case(graph=graph, store="sqlite", history=20), _THREADS)


def _about(ours: Mapping[str, Any], peer: Mapping[str, Any]) -> Mapping[str, Any]:
    """Versions of both sides. Raises RuntimeError unless both wait for the disk at each commit."""
    if not ours["synchronous"] == peer["synchronous"] == 2:
        raise RuntimeError(
            f"SQLite's `synchronous` is {ours['synchronous']} here and {peer['synchronous']} for the peer, "
            "where both must be 2 (FULL): the figures would not compare"
        )
    return {**ours["versions"], **peer["versions"], "python": platform.python_version()}


async def _written(ours: Worker, peer: Worker, history: int) -> _Bytes:
    case = Case(graph="turn", store="sqlite", history=history)
    return _Bytes(
        history=history,
        ours=await ours.written(case, _WRITTEN_TURNS),
        peer=await peer.written(case, _WRITTEN_TURNS),
        dicts=await peer.written(replace(case, graph="turn-dicts"), _WRITTEN_TURNS),
    )


def pairings() -> dict[str, Pairing]:
    """All timed pairs, by their key in the report."""
    found = {
        f"turn_{store}_{history}": _both(
            f"two-node turn, {words}, history {history}",
            Case(graph="turn", store=store, history=history),
            ours_count=100 if history < 1000 else 50,
        )
        for store, words in _STORES.items()
        for history in _HISTORIES
    }
    found |= {
        f"{key}_dicts": replace(
            found[key],
            label=f"{found[key].label}; {_DICTS}",
            peer=replace(found[key].peer, graph="turn-dicts"),
        )
        for key in tuple(found)
        if not key.startswith("turn_sqlite-normal")
    }
    found["loop"] = _both(
        "a step of the 40-step loop, no store", Case(graph="loop"), ours_count=20, steps=LOOP_STEPS
    )
    found["fanout"] = _both("fan-out of 10 and join, no store", Case(graph="fanout"), ours_count=40)
    found["safety8"] = _both("eight-node safety-first turn, no store", Case(graph="safety8"), ours_count=40)
    found["safety8_sqlite"] = _both(
        "eight-node safety-first turn, SQLite", Case(graph="safety8", store="sqlite"), ours_count=40
    )
    for history in (100, 1000):
        found[f"busy_{history}"] = Pairing(
            label=f"two-node turn, SQLite, history {history}, {_AT_ONCE} threads at once",
            ours=(busy := Case(graph="turn", store="sqlite", history=history, at_once=_AT_ONCE)),
            peer=busy,
            ours_count=64,
            peer_count=_AT_ONCE,
        )
    warm = Case(graph="turn", store="sqlite", history=100)
    for key, store, words in (
        ("exit", "sqlite-exit", "its durability `exit`"),
        ("blocking", "sqlite-blocking", "its saver without asyncio"),
    ):
        found[key] = Pairing(
            label=f"two-node turn, SQLite, history 100; LangGraph with {words}",
            ours=warm,
            peer=Case(graph="turn", store=store, history=100),  # type: ignore[arg-type] # one of Store
            ours_count=100,
            peer_count=8,
        )
    found["cold"] = Pairing(
        label=f"two-node turn, SQLite, history {_COLD_HISTORY}; ours rebuilt from its log first",
        ours=Case(graph="turn", store="sqlite-cold", history=_COLD_HISTORY),
        peer=Case(graph="turn", store="sqlite", history=_COLD_HISTORY),
        ours_count=10,
        peer_count=8,
    )
    return found


def _both(label: str, case: Case, *, ours_count: int, steps: int = 1) -> Pairing:
    return Pairing(label=label, ours=case, peer=case, ours_count=ours_count, peer_count=8, steps=steps)


def _draw(found: _Found, picture: Path) -> None:
    title = f"One turn, run or step: Parlour beside LangGraph {found.about['langgraph']}"
    picture.parent.mkdir(parents=True, exist_ok=True)
    picture.write_text(plot(_bars(found), title=title, peer="LangGraph"), encoding="utf-8")


def _write_table(report: Report) -> None:
    """The table as Markdown, for docs/benchmarks.md."""
    lines = [report.head, ["---"] * len(report.head), *report.rows]
    text = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    _TABLE.write_text(f"{report.title}\n\n{text}\n", encoding="utf-8")


def _bars(found: _Found) -> list[Bars]:
    return [
        Bars(label=words, ours_us=one.ours_us, peer_us=one.peer_us, ratio=one.ratio)
        for key, words in {
            **{f"turn_none_{h}": f"turn, no store, history {h}" for h in _HISTORIES},
            **{f"turn_sqlite_{h}": f"turn, SQLite, history {h}" for h in _HISTORIES},
            **{f"turn_sqlite_{h}_dicts": f"turn, SQLite, {h}, plain dicts" for h in _HISTORIES},
            "busy_100": f"turn, SQLite, 100, {_AT_ONCE} threads at once",
            "loop": "a step of a loop, no store",
            "fanout": "fan-out of 10 + join, no store",
            "safety8": "safety-first turn, no store",
            "safety8_sqlite": "safety-first turn, SQLite",
        }.items()
        for one in (found.times[key],)
    ]


def _report(found: _Found, picture: Path, rounds: int) -> Report:
    rows = [
        (
            one.label,
            in_words(one.ours_us),
            in_words(one.peer_us),
            f"{one.ratio:.1f}",
            f"{one.lowest:.1f} to {one.highest:.1f}",
        )
        for one in found.times.values()
    ]
    for one in found.written:
        for peer, note in ((one.peer, ""), (one.dicts, f"; {_DICTS}")):
            words = f"history {one.history}{note}"
            rows += [
                _sizes(f"rows written by a turn, {words}", one.ours.rows, peer.rows, "bytes"),
                _sizes(f"write-ahead log of it, {words}", one.ours.wal, peer.wal, "bytes"),
            ]
    ours = found.ours_held
    for held, note in ((found.peer_held, ""), (found.dicts_held, f"; {_DICTS}")):
        rows += [
            _sizes(f"memory, {_THREADS} threads in mid-turn{note}", ours.held_mb, held.held_mb, "MB"),
            _sizes(f"baseline without the threads{note}", ours.empty_mb, held.empty_mb, "MB"),
        ]
    about = found.about
    return Report(
        bench="graph",
        title=(
            f"graph: Parlour {about['parlour']} and LangGraph {about['langgraph']} (SQLite saver "
            f"{about['langgraph-checkpoint-sqlite']}), Python {about['python']}"
        ),
        head=("", "Parlour", "LangGraph", "ratio", "rounds"),
        rows=rows,
        notes=(
            *_NOTES,
            f"medians of {rounds} rounds, both sides in alternation; the plot: {_short(picture)}",
        ),
        figures=_figures(found),
    )


_NOTES = (
    "processor time of the whole process, its database threads included; ratio: LangGraph's divided by ours",
    "the same work and texts on both sides; ours checks and freezes updates, and a listener hears all events",
    "in the safety-first turn ours hears of nodes alone, as the companion's host does",
    "SQLite on both sides: WAL, synchronous = FULL; a turn is over when all that it wrote is durable",
    "with `normal`: synchronous = NORMAL on both sides, so no commit waits for the disk",
    "LangGraph with its defaults: AsyncSqliteSaver, durability `async`; a turn's state is its MessagesState",
    "plain dicts: LangGraph without message objects, its reducer operator.add; so in the other graphs too",
    "LangGraph reads the thread from its file at every turn; ours stays in memory, its log is for rebuilding",
    f"memory: a thread has 20 messages and waits in its second node; {_THREADS} of them at once, SQLite",
)


def _sizes(label: str, ours: float, peer: float, unit: str) -> tuple[str, str, str, str, str]:
    return label, f"{ours:,.0f} {unit}", f"{peer:,.0f} {unit}", f"{peer / ours:.1f}", ""


def _short(path: Path) -> str:
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def _figures(found: _Found) -> dict[str, object]:
    ratios = {
        **{f"turn_sqlite_ratio_{history}": f"turn_sqlite_{history}" for history in _HISTORIES},
    }
    later = {"loop_ratio": "loop", "fanout_ratio": "fanout", "safety8_ratio": "safety8"}
    return {
        **{name: round(found.times[key].ratio, 1) for name, key in ratios.items()},
        **{f"bytes_{one.history}": round(one.ours.rows) for one in found.written},
        **{name: round(found.times[key].ratio, 1) for name, key in later.items()},
        f"rss_mb_{_THREADS}_threads": round(found.ours_held.held_mb, 1),
    }

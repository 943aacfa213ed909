"""`python -m bench [NAME …]`: run the named benches, or all of them."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import (
    channels,
    cluster,
    companion,
    conversation,
    crash,
    graph,
    heartbeat,
    page,
    shield,
    simulate_cluster,
    startup,
    store,
    turn,
    voice,
    workflows,
)
from bench.report import BenchUnavailable, Report


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """One entry of the list."""

    summary: str
    run: Callable[[], Coroutine[None, None, Report]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run benches one after the other; exit code 0, 1 if one cannot run here, or 2 for an unknown name."""
    options = _parser().parse_args(arguments)
    benches = _benches(options)
    if options.list:
        for name, bench in benches.items():
            print(f"{name:12} {bench.summary}")
        return 0
    unknown = [name for name in options.names if name not in benches]
    if unknown:
        known = ", ".join(benches)
        print(f"bench: there is no bench called {', '.join(unknown)}; known are: {known}", file=sys.stderr)
        return 2
    code = 0
    for number, name in enumerate(options.names or benches):
        gap = "\n" if number else ""
        try:
            print(gap + asyncio.run(benches[name].run()).text(), flush=True)
        except BenchUnavailable as reason:
            print(f"{gap}bench: {reason}", file=sys.stderr)
            code = 1
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure the gateway.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="which benches (default: all)")
    parser.add_argument("--list", action="store_true", help="name the benches and run none")
    parser.add_argument("--kills", type=int, metavar="N", help="crash, cluster: how many kills (20, 200)")
    parser.add_argument(
        "--seed", type=int, default=1, metavar="N", help="crash, channels, cluster, scaling: the seed"
    )
    parser.add_argument(
        "--short", action="store_true", help="cluster, store: few rounds and faults, for a look"
    )
    parser.add_argument("--rounds", type=int, default=9, metavar="N", help="graph: how many rounds")
    parser.add_argument("--against", metavar="COMMIT", help="turn, conversation: a commit to measure beside")
    parser.add_argument("--peer", type=Path, default=graph.PEER, metavar="PYTHON", help="graph: LangGraph's")
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="graph, voice, scaling: the picture of that one"
    )
    return parser


def _benches(options: argparse.Namespace) -> dict[str, Bench]:
    return {
        "startup": Bench(summary="from the start to the first answer, with the models", run=startup.run),
        "turn": Bench(
            summary="what the gateway adds to a turn, beside the floor", run=lambda: turn.run(options.against)
        ),
        "crash": Bench(
            summary="kill -9 under load: lost, doubled, out of order",
            run=lambda: crash.run(kills=options.kills or 20, seed=options.seed),
        ),
        "channels": Bench(
            summary="Telegram, Slack and Discord, beside bare echo bots; faults and kills",
            run=lambda: channels.run(seed=options.seed),
        ),
        "conversation": Bench(
            summary="turns with tools, long histories, and the model backends beside litellm",
            run=lambda: conversation.run(options.against),
        ),
        "page": Bench(summary="the page's first paint and its weight, in Chromium", run=page.run),
        "store": Bench(
            summary="the stores alone: SQLite and Postgres", run=lambda: store.run(short=options.short)
        ),
        "cluster": Bench(
            summary="turns on Postgres beside SQLite, signals over each bus, processes and faults",
            run=lambda: cluster.run(
                kills=options.kills or (cluster.SHORT_KILLS if options.short else 200),
                seed=options.seed,
                short=options.short,
            ),
        ),
        "scaling": Bench(
            summary="100 processes and a million threads on paper, from measured costs",
            run=lambda: simulate_cluster.run(
                picture=_picture(options, simulate_cluster.PLOT), seed=options.seed
            ),
        ),
        "heartbeat": Bench(
            summary="the scheduler's tick with 10,000 watches, and a day on which nothing happens",
            run=heartbeat.run,
        ),
        "shield": Bench(summary="judging a proposed action, and checking the audit", run=shield.run),
        "voice": Bench(
            summary="transcription, beside faster-whisper with its defaults",
            run=lambda: voice.run(picture=_picture(options, voice.PLOT)),
        ),
        "companion": Bench(
            summary="the companion's graph beside LangGraph, its gate, policy and memory",
            run=lambda: companion.run(peer=options.peer.absolute(), rounds=options.rounds),
        ),
        "workflows": Bench(
            summary="the triage workflow beside LangGraph, and 1,000 paused runs",
            run=lambda: workflows.run(peer=options.peer.absolute(), rounds=options.rounds),
        ),
        "graph": Bench(
            summary="the graph engine, beside LangGraph",
            run=lambda: graph.run(
                peer=options.peer.absolute(),
                picture=_picture(options, graph.PLOT),
                rounds=options.rounds,
            ),
        ),
    }


def _picture(options: argparse.Namespace, usual: Path) -> Path:
    plot: Path | None = options.plot
    return (plot or usual).absolute()


if __name__ == "__main__":
    sys.exit(main())

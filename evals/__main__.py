"""`python -m evals [NAME …]` with `--set`, `--model`, `--data`, `--record` and `--with-model`: run the named evals,
or all of them."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from bench.report import BenchUnavailable
from evals import (
    companion,
    crisis,
    embedded,
    examples,
    injection,
    memory,
    recall,
    sessions,
    shield,
    transcription,
)
from gateway.app.embedded_model import MODELS

EVALS: Mapping[str, Callable[[argparse.Namespace], Awaitable[str]]] = {
    "crisis": lambda options: crisis.run(options.set),
    "exercise_memory": lambda options: sessions.run_exercise_memory(keep=options.record),
    "exercises": lambda options: companion.run_exercises(keep=options.record),
    "embedded": lambda options: embedded.run(options.set, options.model),
    "examples": lambda options: examples.run(options.model),
    "extraction": lambda options: (
        memory.run_with_model(options.model, keep=options.record)
        if options.with_model
        else memory.run_extraction(keep=options.record)
    ),
    "injection": lambda options: injection.run(options.data),
    "recall": lambda options: recall.run(options.set),
    "routing": lambda options: companion.run_routing(
        keep=options.record, model=options.model if options.with_model else ""
    ),
    "shield": lambda _options: shield.run(),
    "summaries": lambda options: (
        sessions.run_summaries_with_model(options.model, keep=options.record)
        if options.with_model
        else sessions.run_summaries(keep=options.record)
    ),
    "trajectory": lambda options: sessions.run_trajectory(keep=options.record),
    "transcription": lambda _options: transcription.run(),
    "write_policy": lambda options: memory.run_write_policy(keep=options.record),
}
SETS = ("all", "tuning", "held_out")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run evals one after the other; exit code 0, 1 if one cannot run here, or 2 for an unknown name."""
    parser = argparse.ArgumentParser(prog="python -m evals", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(EVALS)}; all when absent")
    parser.add_argument(
        "--set", choices=SETS, default="all", help="which prompts of embedded, which half of crisis or recall"
    )
    parser.add_argument(
        "--model", choices=tuple(MODELS), default="0.5b", help="which embedded model (default: 0.5b)"
    )
    parser.add_argument(
        "--data", type=Path, help="for injection: the folder of published collections, judged as well"
    )
    parser.add_argument(
        "--record",
        action="store_true",
        help="keep the run of an eval of the companion or its memory for later comparisons",
    )
    parser.add_argument(
        "--with-model",
        action="store_true",
        help="for routing and extraction: ask the embedded model too, where no rule decides; for summaries: in place of answers that are written down",
    )
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in EVALS]
    if unknown:
        print(f"evals: no eval is called {unknown[0]}; known are: {', '.join(EVALS)}", file=sys.stderr)
        return 2
    for name in options.names or EVALS:
        try:
            print(asyncio.run(_run(name, options)))
        except BenchUnavailable as reason:
            print(f"evals: {name}: {reason}", file=sys.stderr)
            return 1
    return 0


async def _run(name: str, options: argparse.Namespace) -> str:
    return await EVALS[name](options)


if __name__ == "__main__":
    sys.exit(main())

"""`python -m tools.crisis [FILE]`: train the weights of the crisis gate's linear model and write them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from pipeline.safety.assessment import CLEAR, IMMINENT
from pipeline.safety.danger_model import FILE, Scores, words_of
from pipeline.safety.ladder import level_of
from tools.crisis.texts import LEVELS, Sample
from tools.crisis.training import SEEDS, cross_validated, trained


def main(arguments: Sequence[str] | None = None) -> int:
    """Train and write: a minute or two. With --check: how well texts of unknown templates are judged."""
    parser = argparse.ArgumentParser(prog="python -m tools.crisis", description=__doc__)
    parser.add_argument(
        "file", nargs="?", type=Path, default=FILE, help=f"default: {FILE.name} in the package"
    )
    parser.add_argument("--check", action="store_true", help="cross-validate in place of writing")
    options = parser.parse_args(arguments)
    if options.check:
        found = cross_validated()
        for name, judged in zip(found._fields, found, strict=True):
            sys.stdout.write(f"{name} that were left out: {len(judged)}\n")
            for limit in (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9):
                lines = [_line(judged, question, limit) for question in Scores._fields]
                sys.stdout.write(f"from {limit}: {'; '.join(lines)}\n")
            sys.stdout.write(f"by the ladder's thresholds: {_by_ladder(judged)}\n")
        return 0
    with ProcessPoolExecutor(len(SEEDS)) as pool:
        options.file.write_bytes(trained(at_once=pool.map))
    sys.stdout.write(f"{options.file} written\n")
    return 0


def _line(judged: Sequence[tuple[Sample, Scores]], question: str, limit: float) -> str:
    """The shares of the texts of each level to which the model says yes."""
    shares = [
        _share([getattr(scores, question) >= limit for one, scores in judged if one.level == level])
        for level in LEVELS
    ]
    return f"{question} " + ", ".join(
        f"{share} of {level}" for share, level in zip(shares, LEVELS, strict=True)
    )


def _by_ladder(judged: Sequence[tuple[Sample, Scores]]) -> str:
    """Of the texts of each level, the shares that are judged imminent, and clear or imminent."""
    shares = []
    for level in LEVELS:
        found = [level_of(scores, len(words_of(one.text))) for one, scores in judged if one.level == level]
        imminent, alarms = (_share([one >= least for one in found]) for least in (IMMINENT, CLEAR))
        shares.append(f"of {level} {imminent} imminent and {alarms} with the response")
    return "; ".join(shares)


def _share(flags: Sequence[bool]) -> float:
    return round(sum(flags) / max(len(flags), 1), 3)


if __name__ == "__main__":
    sys.exit(main())

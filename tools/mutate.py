"""Puts small faults into the core modules, one at a time, and counts how many their tests catch.

    make mutate ARGS="--module gateway/access/sender_rate_limit.py --per-module 30"

`tools/mutate.toml` names the modules and, for each, its tests. Measured are those tests: a fault that
they do not notice may be caught by another test, or may change nothing that matters.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tools.mutant_runs import Pool, Verdict, Workspace
from tools.mutants import Mutant, picked

ROOT = Path(__file__).parents[1]
TABLE = Path("tools") / "mutate.toml"
_UNCHANGED_LIMIT_S = 600.0
_CANNOT_BE_IMPORTED = "raise RuntimeError('the copy of this module is the one that is imported')\n"


class CannotMutate(Exception):
    """What keeps the run from its end, in words."""


@dataclass(slots=True, kw_only=True)
class Target:
    """One module, its tests, and what came of it."""

    module: str
    tests: tuple[str, ...]
    source: str
    mutants: tuple[Mutant, ...]
    limit_s: float = _UNCHANGED_LIMIT_S
    caught: int = 0
    timed_out: int = 0
    """Of those that were caught."""
    survivors: list[Mutant] = field(default_factory=list)
    seconds: float = 0.0
    """Of test runs, added up."""


def main(arguments: Sequence[str] | None = None, *, root: Path = ROOT) -> int:
    """Run it. Exit code 0, 1 if the score is below `--at-least`, or 2 if it is unknown."""
    options = _parser().parse_args(arguments)
    try:
        targets = read_targets(root, only=options.module, count=options.per_module, seed=options.seed)
        with tempfile.TemporaryDirectory() as folder, Pool(root, Path(folder), options.jobs) as pool:
            _check_unchanged(targets, pool)
            _run_mutants(targets, pool)
    except CannotMutate as reason:
        print(f"mutate: {reason}", file=sys.stderr)
        return 2
    return _report(targets, options)


def read_targets(root: Path, *, only: Sequence[str], count: int, seed: int) -> tuple[Target, ...]:
    """The table's modules, or those of them in `only`, with their picked mutants. Raises CannotMutate."""
    table = tomllib.loads((root / TABLE).read_text(encoding="utf-8"))
    unknown = [name for name in only if name not in table["modules"]]
    if unknown:
        known = ", ".join(table["modules"])
        raise CannotMutate(f"{', '.join(unknown)} is not in {TABLE}; there are: {known}")
    chosen = {name: tests for name, tests in table["modules"].items() if not only or name in only}
    paths = [(name, path) for name, tests in chosen.items() for path in (name, *tests)]
    missing = [f"{path} (module {name})" for name, path in paths if not (root / path).exists()]
    if missing:
        raise CannotMutate(f"{TABLE} names what does not exist: {', '.join(missing)}. Correct the table.")
    targets = []
    for name, tests in chosen.items():
        source = (root / name).read_text(encoding="utf-8")
        found = picked(source, count, seed, table.get("left_alone", ()))
        targets.append(Target(module=name, tests=tuple(tests), source=source, mutants=found))
    return tuple(targets)


def _check_unchanged(targets: Sequence[Target], pool: Pool) -> None:
    """The tests pass as things are, and fail where the module cannot be imported: they use the copy's.

    Sets each target's time limit. Raises CannotMutate."""

    def check(target: Target) -> Callable[[Workspace], str]:
        return lambda workspace: _unchanged_problem(target, workspace)

    problems = [problem for problem in pool.do(check(target) for target in targets) if problem]
    if problems:
        raise CannotMutate("\n".join(problems))


def _unchanged_problem(target: Target, workspace: Workspace) -> str:
    verdict, seconds = workspace.run(target.tests, _UNCHANGED_LIMIT_S)
    tests = " ".join(target.tests)
    if verdict is Verdict.NO_TESTS:
        return f"there are no tests in {tests}"
    if verdict is not Verdict.PASSED:
        return f"the tests of {target.module} do not pass as it is ({tests}):\n{workspace.reported()}"
    # A busy machine is no hang.
    target.limit_s = 15 + 5 * seconds
    verdict, _ = workspace.run_changed(target.module, _CANNOT_BE_IMPORTED, target.tests, target.limit_s)
    if verdict is not Verdict.FAILED:
        return f"the tests of {target.module} pass where it cannot be imported; they do not use it ({tests})"
    return ""


def _run_mutants(targets: Sequence[Target], pool: Pool) -> None:
    def job(target: Target, mutant: Mutant) -> Callable[[Workspace], tuple[Verdict, float]]:
        source = mutant.applied(target.source)
        return lambda workspace: workspace.run_changed(target.module, source, target.tests, target.limit_s)

    results = pool.do(job(target, mutant) for target in targets for mutant in target.mutants)
    for target in targets:
        for mutant in target.mutants:
            verdict, seconds = next(results)
            target.seconds += seconds
            if verdict is Verdict.PASSED:
                target.survivors.append(mutant)
            else:
                target.caught += 1
                target.timed_out += verdict is Verdict.TIMED_OUT
        print(
            f"mutate: {target.module}: {target.caught} of {len(target.mutants)}", file=sys.stderr, flush=True
        )


def _report(targets: Sequence[Target], options: argparse.Namespace) -> int:
    width = max(len(target.module) for target in targets)
    print(f"{'module':{width}}  mutants  caught  survived  timed out  seconds")
    for target in targets:
        counts = (
            f"{len(target.mutants):7}  {target.caught:6}  {len(target.survivors):8}  {target.timed_out:9}"
        )
        print(f"{target.module:{width}}  {counts}  {target.seconds:7.1f}")
    for target in targets:
        for mutant in target.survivors:
            print(f"{target.module}:{mutant.line}  {mutant}")
    total = sum(len(target.mutants) for target in targets)
    caught = sum(target.caught for target in targets)
    score = round(caught / total, 3) if total else 1.0
    figures = {"mutants": total, "caught": caught, "score": score, "seed": options.seed}
    print(json.dumps({"mutate": figures}))
    return 1 if score < options.at_least else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="make mutate", description="How many small faults in the core modules their tests catch."
    )
    parser.add_argument(
        "--module", action="append", default=[], metavar="PATH", help="only this one; may be repeated"
    )
    parser.add_argument(
        "--per-module", type=_count, default=12, metavar="N", help="faults in each (default: 12)"
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="which faults (default: 1)")
    parser.add_argument(
        "--jobs", type=_count, default=2, metavar="N", help="test runs at a time (default: 2)"
    )
    parser.add_argument(
        "--at-least", type=float, default=0.0, metavar="SCORE", help="exit with 1 below it (0 to 1)"
    )
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of 1 or more")
    return int(text)


if __name__ == "__main__":
    raise SystemExit(main())

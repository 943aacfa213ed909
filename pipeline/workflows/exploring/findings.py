"""What an exploration finds, and the sentences for it."""

from __future__ import annotations

from collections import Counter

from pipeline.domain.frozen import dataclass
from pipeline.workflows.exploring.meaning import Position


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterexample:
    """Something that must not happen, and the shortest way to it."""

    what: str
    """What happens, as a sentence without its end."""
    steps: tuple[str, ...]
    back_to: int | None = None
    """The step, from 0, before which a circle closes after the last one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explored:
    """What an exploration has found."""

    states: int
    depth: int
    """The most steps in a row."""
    bounded: bool
    """The bound was reached: there are states that were not looked at."""
    counterexample: Counterexample | None = None


def never_ends(path: tuple[str, ...]) -> str:
    """Conditions that lead back to themselves."""
    return f"this path never ends: {' -> '.join(path)}; nothing between these conditions changes the output"


def difference(expected: Counter[Position], found: Counter[Position]) -> str:
    """Where a run is, and should not be."""
    lost = sorted({node for node, _ in expected - found})
    more = sorted({node for node, _ in found - expected})
    if lost and lost != more:
        return f"a branch is lost: {', '.join(lost)} should be reached"
    if more and lost != more:
        return f"a step happens twice: {', '.join(more)}"
    return f"{', '.join(more)} gets another output than the one before it"

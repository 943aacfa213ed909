"""Take each step of an independent branch once, and not once for every state of the others (ADR 0114).

A branch from which no run can come to an approval shares nothing with the others: its steps commute with
theirs, change none of theirs, and are checked against the document by themselves. So where a branch is at the
same node, with the same output as far as it counts, in the same phase of the run, its outcomes are followed
from the first state in which that was seen. In any other, one outcome is taken, so that what comes later is
seen beside it too: an approval that opens, what is held back, the end. Not reduced: branches that may ask.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from pipeline.graph.run.state import Run
from pipeline.workflows.exploring.meaning import Meaning
from pipeline.workflows.exploring.reading_runs import Branch


class Reduction:
    """What has been seen of the branches of one workflow."""

    def __init__(self, meaning: Meaning) -> None:
        self._meaning = meaning
        self._seen: set[Hashable] = set()

    def new(self, run: Run, branches: tuple[Branch, ...], working: tuple[Branch, ...]) -> list[Branch]:
        """The branches at work whose outcomes have to be followed from this state."""
        phase = self._phase(run, branches)
        return [branch for branch in working if self._is_new(branch, phase)]

    def _is_new(self, branch: Branch, phase: Hashable) -> bool:
        if branch.node in self._meaning.asking:
            return True
        key = (phase, *self._place(branch))
        if key in self._seen:
            return False
        self._seen.add(key)
        return True

    def _phase(self, run: Run, branches: tuple[Branch, ...]) -> Hashable:
        """What of the others a step of a branch can meet: an open approval, which holds it back, and the
        first of those that are held back, which continues when it has ended."""
        by_frame: Mapping[str, Branch] = {branch.frame: branch for branch in branches}
        first = next((by_frame[one] for one in run.deferred if one in by_frame), None)
        return run.halting, None if first is None else self._place(first)

    def _place(self, branch: Branch) -> tuple[Hashable, ...]:
        compared = self._meaning.compared(branch.node, branch.text) if branch.node else ()
        return self._meaning.kind(branch.node), compared

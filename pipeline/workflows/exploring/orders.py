"""Which agents may answer next: all of them, or one where the order cannot change what follows (ADR 0101).

Branches share nothing but open approvals: an agent that answers while one is open is held back at its next
node, and one that answers before continues. So the order counts only until an approval opens.
"""

from __future__ import annotations

from pipeline.graph.run.state import Run
from pipeline.workflows.exploring.meaning import Meaning
from pipeline.workflows.exploring.reading_runs import Branch


def choices(
    meaning: Meaning, run: Run, branches: tuple[Branch, ...], *, every_order: bool
) -> tuple[Branch, ...]:
    """The branches whose agents may answer next; all with `every_order`."""
    working = tuple(branch for branch in branches if branch.doing == "at work")
    if every_order:
        return working
    if run.halting or not any(branch.node in meaning.asking for branch in branches):
        return working[:1]
    return _different(meaning, working)


def asked(meaning: Meaning, branches: tuple[Branch, ...]) -> tuple[Branch, ...]:
    """The branches whose approvals may be answered next."""
    return _different(meaning, tuple(branch for branch in branches if branch.doing == "asking"))


def _different(meaning: Meaning, branches: tuple[Branch, ...]) -> tuple[Branch, ...]:
    """One of those that are at nodes that are alike, with the same output, so far as it counts."""
    found = {
        (meaning.kind(branch.node), meaning.compared(branch.node, branch.text)): branch for branch in branches
    }
    return tuple(found.values())

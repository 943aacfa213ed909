"""What can still follow one position of a branch, from the document alone: whether it ends, and how.

Branches share nothing but open approvals, so a branch ends or not whatever the others do. The explorer
compares the engine with the document at each step; what a document says without end needs no engine.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pipeline.domain.frozen import dataclass
from pipeline.workflows.document import DECISIONS, WorkflowAgent
from pipeline.workflows.exploring.meaning import Circling, Meaning, Position

_NEVER: Final = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One outcome of a position, which is no failure."""

    given: str
    """What the agent answers, or the decision about an approval."""
    words: str
    """The step as a counterexample shows it."""
    following: tuple[Position, ...]
    conditions: int
    """How many conditions are passed."""


class Outcomes:
    """The outcomes of every position of one workflow."""

    def __init__(self, meaning: Meaning) -> None:
        self._meaning = meaning
        self._known: dict[Position, tuple[Outcome, ...]] = {}
        self._to_the_end: dict[Position, float] = {}
        """The fewest steps in which a position ends with all that follows it."""
        self._longest: dict[Position, float] = {}
        """The most steps; without an end on a circle, and before one."""

    def words(self, node: str, given: str) -> str:
        """An outcome as a counterexample shows it."""
        if not isinstance(self._meaning.workflow.nodes[node], WorkflowAgent):
            return f"{node}: {given}"
        return f'{node} answers "{given}"' if len(self._meaning.answers(node)) > 1 else f"{node} answers"

    def can_end(self, position: Position) -> bool:
        """Whether some outcomes lead to an end of the branch and of all that it begins."""
        self._measure(position)
        return self._to_the_end[position] < _NEVER

    def onward(self, position: Position) -> str:
        """What an agent answers on the longest path, so that a run that is too long is found; where a circle
        makes that endless, on the shortest."""
        self._measure(position)
        outcomes = self._of(position)
        lengths = {outcome.given: self._length(outcome) for outcome in outcomes}
        if _NEVER not in lengths.values():
            return max(outcomes, key=lambda outcome: lengths[outcome.given]).given
        return min(outcomes, key=self._distance).given

    def circle(self, position: Position) -> tuple[tuple[str, ...], int]:
        """The steps from a position that cannot end until a position comes again, and the number of the step
        at which the circle begins."""
        seen, steps = [position], list[str]()
        while True:
            outcome = self._of(seen[-1])[0]
            steps.append(outcome.words)
            following = next(one for one in outcome.following if not self.can_end(one))
            if following in seen:
                return tuple(steps), seen.index(following)
            seen.append(following)

    def _of(self, position: Position) -> tuple[Outcome, ...]:
        found = self._known.get(position)
        if found is None:
            found = self._known[position] = tuple(self._found(*position))
        return found

    def _found(self, node: str, text: str) -> Iterable[Outcome]:
        is_agent = isinstance(self._meaning.workflow.nodes[node], WorkflowAgent)
        for given in self._meaning.answers(node) if is_agent else DECISIONS:
            handle, output = ("", given) if is_agent else (given, text)
            try:
                following = tuple(self._meaning.after(node, handle, output).elements())
                conditions = self._meaning.conditions_after(node, handle, output)
            except Circling:
                continue  # Found where the explorer takes this step.
            words = self.words(node, given)
            yield Outcome(given=given, words=words, following=following, conditions=conditions)

    def _measure(self, position: Position) -> None:
        """Find the distances of a position, and of all that can follow it."""
        if position in self._to_the_end:
            return
        new, waiting = dict[Position, None](), [position]
        while waiting:
            one = waiting.pop()
            if one not in new and one not in self._to_the_end:
                new[one] = None
                waiting += [each for outcome in self._of(one) for each in outcome.following]
        self._to_the_end |= dict.fromkeys(new, _NEVER)
        self._longest |= dict.fromkeys(new, _NEVER)
        # What follows comes first, so that few rounds are enough.
        order, changed = tuple(reversed(new)), True
        while changed:
            changed = False
            for one in order:
                outcomes = self._of(one)
                shortest = min(map(self._distance, outcomes), default=0.0)
                # Not on a circle, and not before one: everything that follows has its length already.
                longest = max(map(self._length, outcomes), default=0.0)
                if (shortest, longest) != (self._to_the_end[one], self._longest[one]):
                    self._to_the_end[one], self._longest[one], changed = shortest, longest, True

    def _distance(self, outcome: Outcome) -> float:
        return 1 + sum(self._to_the_end[one] for one in outcome.following)

    def _length(self, outcome: Outcome) -> float:
        return 1 + outcome.conditions + sum(self._longest[one] for one in outcome.following)

"""What can still follow one position of a branch, from the document alone: whether it ends, and how.

Branches share nothing but open approvals, so a branch ends or not whatever the others do. The explorer
compares the engine with the document at each step; what a document says without end needs no engine.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pipeline.domain.frozen import dataclass
from pipeline.workflows.document import DECISIONS, Agent
from pipeline.workflows.exploring.meaning import Circling, Meaning, Position

_NEVER: Final = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One outcome of a position, which is no failure."""

    given: str
    """What the agent answers, or the decision about an approval."""
    words: str
    """The step as a counterexample shows it."""
    following: tuple[Position, ...]
    conditions: int
    """How many conditions are passed."""


class Ways:
    """The ways on from every position of one workflow."""

    def __init__(self, meaning: Meaning) -> None:
        self._meaning = meaning
        self._ways: dict[Position, tuple[Way, ...]] = {}
        self._to_the_end: dict[Position, float] = {}
        """The fewest steps in which a position ends with all that follows it."""
        self._longest: dict[Position, float] = {}
        """The most steps."""

    def words(self, node: str, given: str) -> str:
        """An outcome as a counterexample shows it."""
        if not isinstance(self._meaning.workflow.nodes[node], Agent):
            return f"{node}: {given}"
        return f'{node} answers "{given}"' if len(self._meaning.answers(node)) > 1 else f"{node} answers"

    def can_end(self, position: Position) -> bool:
        """Whether some outcomes lead to an end of the branch and of all that it begins."""
        self._measure((position,))
        return self._to_the_end[position] < _NEVER

    def onward(self, position: Position) -> str:
        """What an agent answers on the longest way, so that a run that is too long is found; where a circle
        makes that endless, on the shortest."""
        self._measure((position,))
        ways = self._of(position)
        lengths = {way.given: self._length(way) for way in ways}
        if _NEVER not in lengths.values():
            return max(ways, key=lambda way: lengths[way.given]).given
        return min(ways, key=self._distance).given

    def circle(self, position: Position) -> tuple[tuple[str, ...], int]:
        """The steps from a position that cannot end until a position comes again, and the number of the step
        at which the circle begins."""
        seen, steps = [position], list[str]()
        while True:
            way = self._of(seen[-1])[0]
            steps.append(way.words)
            following = next(one for one in way.following if not self.can_end(one))
            if following in seen:
                return tuple(steps), seen.index(following)
            seen.append(following)

    def _of(self, position: Position) -> tuple[Way, ...]:
        found = self._ways.get(position)
        if found is None:
            found = self._ways[position] = tuple(self._outcomes(*position))
        return found

    def _outcomes(self, node: str, text: str) -> Iterable[Way]:
        is_agent = isinstance(self._meaning.workflow.nodes[node], Agent)
        for given in self._meaning.answers(node) if is_agent else DECISIONS:
            handle, output = ("", given) if is_agent else (given, text)
            try:
                following = tuple(self._meaning.after(node, handle, output).elements())
                conditions = self._meaning.conditions_after(node, handle, output)
            except Circling:
                continue  # Found where the explorer takes this step.
            words = self.words(node, given)
            yield Way(given=given, words=words, following=following, conditions=conditions)

    def _measure(self, positions: Iterable[Position]) -> None:
        """Find the distances of these positions, and of all that can follow them."""
        new = [one for one in positions if one not in self._to_the_end]
        for position in new:
            self._to_the_end[position] = _NEVER
            following = {one for way in self._of(position) for one in way.following}
            new += [one for one in following if one not in self._to_the_end and one not in new]
        changed = True
        while changed:
            changed = False
            for position in new:
                shortest = min(map(self._distance, self._of(position)), default=0.0)
                if shortest < self._to_the_end[position]:
                    self._to_the_end[position], changed = shortest, True

    def _distance(self, way: Way) -> float:
        return 1 + sum(self._to_the_end[one] for one in way.following)

    def _length(self, way: Way) -> float:
        return 1 + way.conditions + sum(map(self._longest_from, way.following))

    def _longest_from(self, position: Position) -> float:
        known = self._longest.get(position)
        if known is None:
            self._longest[position] = _NEVER  # Met again on its own way, it is on a circle.
            known = max(map(self._length, self._of(position)), default=0.0)
            self._longest[position] = known
        return known

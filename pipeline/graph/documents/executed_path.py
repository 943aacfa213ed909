"""Find the arrows of a picture that a run took, from the order in which its nodes were executed.

It knows places and arrows, not mermaid. Where a path is ambiguous it assumes the simplest case: if two
arrows lead from one node to the same place, a failed node took the one for failures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import field

from pipeline.domain.frozen import dataclass
from pipeline.graph.definition.elements import END

START = ":start"
"""The place before an entry; no node can have this name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrow:
    """An arrow between places, which are labels of nodes as in `RunOutcome.path`: `therapy.dispatcher`."""

    source: str
    target: str
    words: str = ""
    dashed: bool = False
    after_failure: bool = False


@dataclass(slots=True)
class PathTracer:
    """Follows a path. `numbers` holds for each arrow when it was taken; undeclared jumps are added to
    `arrows`."""

    arrows: list[Arrow]
    failed: Collection[str] = ()
    skippable: Collection[str] = ()
    """Places with `max_visits`: the run may have skipped them."""
    numbers: dict[int, list[int]] = field(default_factory=dict)
    reached: dict[str, None] = field(default_factory=dict)
    _lines: dict[str, _Line] = field(default_factory=dict)
    _inside: set[str] = field(default_factory=set)
    _taken: int = 0

    def along(self, path: Sequence[str]) -> None:
        """Follow the path place by place. END, also of a subgraph, is a place as well."""
        for place in path:
            for at, letter in enumerate(place):
                if letter == "." and place[:at] not in self._inside:
                    self._enter(place[:at])
                    self._inside.add(place[:at])
            if place in self._inside:
                self._leave(place)
            else:
                self._enter(place)

    def _enter(self, place: str) -> None:
        self.reached[place] = None
        line = self._lines.setdefault(_prefix(place), _Line())
        for source, arrow in self._arrows_to(line, place):
            self._taken += 1
            self.numbers.setdefault(arrow, []).append(self._taken)
            if source in line.ends:
                line.ends.remove(source)
        line.ends.append(place)
        line.executions[place] += 1

    def _leave(self, place: str) -> None:
        """End a subgraph: its inner line ends, and begins again next time."""
        within = f"{place}."
        if any(self._between(source, within + END) for source in self._lines[within].ends):
            self._enter(within + END)
        self._inside = {inner for inner in self._inside if not f"{inner}.".startswith(within)}
        self._lines = {prefix: line for prefix, line in self._lines.items() if not prefix.startswith(within)}

    def _arrows_to(self, line: _Line, place: str) -> list[tuple[str, int]]:
        """The arrows by which the line reaches `place`, each with its source."""
        if not line.executions:
            found = [at for at, arrow in enumerate(self.arrows) if _starts(arrow, place)]
            return [("", found[0])] if found else []
        direct = [(source, found[0]) for source in line.ends if (found := self._between(source, place))]
        if direct:
            return direct
        for source in reversed(line.executions):
            found = self._between(source, place)
            if found and sum(len(self.numbers.get(arrow, ())) for arrow in found) < line.executions[source]:
                return [(source, found[0])]  # a further branch of a fan-out
        for source in reversed(line.ends):
            for passed in self.skippable:
                there, on = self._between(source, passed), self._between(passed, place)
                if there and on:
                    return [(source, there[0]), ("", on[0])]
        return [self._jump(place if place in line.ends else line.ends[-1], place)]

    def _between(self, source: str, target: str) -> list[int]:
        """The arrows from one place to the other, the most likely first."""
        found = [
            at for at, arrow in enumerate(self.arrows) if (arrow.source, arrow.target) == (source, target)
        ]
        return sorted(found, key=lambda at: self.arrows[at].after_failure != (source in self.failed))

    def _jump(self, source: str, target: str) -> tuple[str, int]:
        words = "again" if source == target else "jump"
        self.arrows.append(Arrow(source=source, target=target, words=words, dashed=True))
        return source, len(self.arrows) - 1


@dataclass(slots=True)
class _Line:
    """The run itself, or the inside of one subgraph."""

    ends: list[str] = field(default_factory=list)
    """Places that the run has not left yet; several during a fan-out."""
    executions: Counter[str] = field(default_factory=Counter)


def _prefix(place: str) -> str:
    return place[: place.rfind(".") + 1]


def _starts(arrow: Arrow, place: str) -> bool:
    return arrow.target == place and arrow.source.startswith(_prefix(place) + START)

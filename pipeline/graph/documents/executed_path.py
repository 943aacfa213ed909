"""Which arrows of a picture a run went along, told from the order in which its nodes were executed.

It knows places and arrows, not mermaid. What a path does not say is assumed in the simplest way: where
two arrows lead from one node to the same place, a node that failed took the one for failures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from pipeline.graph.definition.elements import END

START = ":start"
"""The place before an entry; no node can be called so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrow:
    """A way from place to place: labels of nodes as in `RunOutcome.path`, `therapy.dispatcher`."""

    source: str
    target: str
    words: str = ""
    dashed: bool = False
    after_failure: bool = False


@dataclass(slots=True)
class PathTracer:
    """Follows a path. `numbers` says for each arrow when it was taken; jumps that nothing had declared are
    added to `arrows`."""

    arrows: list[Arrow]
    failed: Collection[str] = ()
    skippable: Collection[str] = ()
    """Places with a limit of visits: the run may have passed them without executing them."""
    numbers: dict[int, list[int]] = field(default_factory=dict)
    visited: dict[str, None] = field(default_factory=dict)
    _lines: dict[str, _Line] = field(default_factory=dict)
    _inside: set[str] = field(default_factory=set)
    _taken: int = 0

    def along(self, path: Sequence[str]) -> None:
        """Go to every place of the path in turn. END, also of a subgraph, is a place as well."""
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
        self.visited[place] = None
        line = self._lines.setdefault(_prefix(place), _Line())
        for source, arrow in self._ways(line, place):
            self._taken += 1
            self.numbers.setdefault(arrow, []).append(self._taken)
            if source in line.ends:
                line.ends.remove(source)
        line.ends.append(place)
        line.visits[place] += 1

    def _leave(self, place: str) -> None:
        """A subgraph is through: its inner line has come to its end, and begins anew next time."""
        within = f"{place}."
        if any(self._between(source, within + END) for source in self._lines[within].ends):
            self._enter(within + END)
        self._inside = {inner for inner in self._inside if not f"{inner}.".startswith(within)}
        self._lines = {prefix: line for prefix, line in self._lines.items() if not prefix.startswith(within)}

    def _ways(self, line: _Line, place: str) -> list[tuple[str, int]]:
        """The arrows by which the line comes to `place`, each with its source."""
        if not line.visits:
            ways = [at for at, arrow in enumerate(self.arrows) if _starts(arrow, place)]
            return [("", ways[0])] if ways else []
        direct = [(source, ways[0]) for source in line.ends if (ways := self._between(source, place))]
        if direct:
            return direct
        for source in reversed(line.visits):
            ways = self._between(source, place)
            if ways and sum(len(self.numbers.get(way, ())) for way in ways) < line.visits[source]:
                return [(source, ways[0])]  # a further branch of a fan-out
        for source in reversed(line.ends):
            for passed in self.skippable:
                there, on = self._between(source, passed), self._between(passed, place)
                if there and on:
                    return [(source, there[0]), ("", on[0])]
        return [self._jump(place if place in line.ends else line.ends[-1], place)]

    def _between(self, source: str, target: str) -> list[int]:
        """The arrows from one place to the other, the likeliest first."""
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
    """Places from which the run has not gone on yet; several during a fan-out."""
    visits: Counter[str] = field(default_factory=Counter)


def _prefix(place: str) -> str:
    return place[: place.rfind(".") + 1]


def _starts(arrow: Arrow, place: str) -> bool:
    return arrow.target == place and arrow.source.startswith(_prefix(place) + START)

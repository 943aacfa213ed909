"""How well the candidates of a session are supported by it, and which of them become facts.

Words are compared whole: "work" is not said where somebody speaks of a network.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from pipeline.domain.frozen import dataclass
from pipeline.memory.candidates import FactCandidate, Held
from pipeline.memory.plain_text import has_phrase, meaningful, words
from pipeline.memory.sessions.ended import LEAST_OVERLAP, SessionTurn, mentions
from pipeline.memory.values import SessionArc

_ARC_SCORE: Final = 2
"""The least with which the summary of the session supports a candidate."""
_SUPPORT: Final = 2
"""Turns that support a candidate by themselves."""
_LARGE_OVERLAP: Final = 3
_DEATH: Final = "death of "
"""As the patterns name a loss."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Supported:
    """Candidates that say the same, and what speaks for them."""

    candidate: FactCandidate
    """The last of them."""
    needs_repetition: bool
    support: int
    """Turns of the person."""
    arc_score: int
    """By the session's summary: 0 to 4."""
    earlier_sessions: int
    """Earlier arcs that are about the same."""

    @property
    def is_enough(self) -> bool:
        """Whether it becomes a fact."""
        if self.support >= _SUPPORT:
            return True
        backed = self.earlier_sessions > 0 or (not self.needs_repetition and self.arc_score >= _ARC_SCORE)
        return self.support >= 1 and backed

    @property
    def reason(self) -> str:
        """Why, in codes."""
        return f"support {self.support}, arc {self.arc_score}, earlier sessions {self.earlier_sessions}"


def supported(
    held: Iterable[Held], turns: Sequence[SessionTurn], arc: SessionArc | None, earlier: Iterable[SessionArc]
) -> tuple[Supported, ...]:
    """The held facts, each statement once, in the order in which they were first said."""
    groups: dict[tuple[object, ...], list[Held]] = {}
    for one in held:
        if isinstance(one.candidate, FactCandidate):
            groups.setdefault(_statement(one.candidate), []).append(one)
    before = tuple(earlier)
    return tuple(_of_group(group, turns, arc, before) for group in groups.values())


def object_term(candidate: FactCandidate) -> str:
    """The words that name the object, without what it is to the person ("likes: tea", "death of father")."""
    return candidate.object.identifier.rpartition(": ")[2].removeprefix(_DEATH)


def topic_of(candidates: Iterable[FactCandidate]) -> frozenset[str]:
    """The meaningful words of what the candidates say."""
    said: frozenset[str] = frozenset()
    for one in candidates:
        said |= meaningful(one.evidence_quote) | meaningful(object_term(one))
    return said


def arc_score(term: str, topic: frozenset[str], summary: str) -> int:
    """How much a summary is about a topic: 2 for its term, 1 for two words in common, and 1 for three."""
    common = len(meaningful(summary) & topic)
    return 2 * has_phrase(summary, term) + (common >= LEAST_OVERLAP) + (common >= _LARGE_OVERLAP)


def _of_group(
    group: Sequence[Held], turns: Sequence[SessionTurn], arc: SessionArc | None, earlier: Sequence[SessionArc]
) -> Supported:
    candidates = [one.candidate for one in group if isinstance(one.candidate, FactCandidate)]
    last = candidates[-1]
    term, topic = object_term(last), topic_of(candidates)
    sources = {one.turn_index for one in candidates}
    about = sum(mentions(turn.text, term, topic) for turn in turns)
    return Supported(
        candidate=last,
        needs_repetition=any(one.decision == "require_repetition" for one in group),
        support=max(len(sources), about),
        arc_score=arc_score(term, topic, arc.summary) if arc is not None else 0,
        earlier_sessions=sum(arc_score(term, topic, one.summary) > 0 for one in earlier),
    )


def _statement(candidate: FactCandidate) -> tuple[object, ...]:
    return (
        candidate.category,
        words(candidate.subject.identifier),
        candidate.predicate,
        words(candidate.object.identifier),
    )

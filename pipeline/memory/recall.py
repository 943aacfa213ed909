"""Which facts fit a question: a ranking by words, with neighbouring turns as context, the same on every
store.

The score is BM25 over the facts of one owner, so other owners' facts change nothing. A fact is also raised by
facts of the same turn and of the turns beside it, because people tell one thing in several sentences. Not
here: where facts are kept (`FactIndex`), and vectors (`vectors`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from pipeline.domain.frozen import dataclass
from pipeline.memory.values import Fact, SessionArc
from pipeline.memory.words import asks_about_oneself, lexicon, terms_of, terms_of_question, words_of

TOKEN_RECALL: Final = 0.33
"""The least part of the question's words that a record has for `token_recall`."""
SAME_STATEMENT: Final = 0.85
"""The least Jaccard index of the words of two quotes of one statement."""

SHOWN: Final = 5
"""Facts that a turn is given at most."""

_MOST_CANDIDATES = 400
_MOST_RAISED = 40
_SATURATION, _LENGTH_PENALTY, _USUAL_TERMS = 0.9, 0.3, 24.0
_CONTEXT = 0.3
_STRONG = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedFact:
    """A fact as the ranking sees it."""

    number: int
    """Grows with every fact that is added."""
    terms: tuple[str, ...]
    session_id: str
    turn: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FactHit:
    """A fact that fits."""

    number: int
    score: float
    strong: bool
    """Whether much of the question is in it; otherwise a vector may know better."""


class FactIndex(Protocol):
    """The live facts of one owner, by their terms."""

    def size(self) -> int: ...

    def frequency(self, term: str) -> int:
        """How many facts have the term."""
        ...

    def having(self, term: str, limit: int) -> Sequence[int]:
        """The numbers of the facts that have the term, newest first."""
        ...

    def documents(self, numbers: Sequence[int]) -> Sequence[RankedFact]: ...

    def beside(self, found: Sequence[RankedFact]) -> Sequence[RankedFact]:
        """The facts of the same turn and of the turns beside it, of the same session, in any order; the found
        ones may be among them."""
        ...


def fact_text(fact: Fact) -> str:
    """What is compared of a fact: its quote, and whom and what it is about."""
    people = (fact.subject, fact.object)
    named = " ".join(one.identifier for one in people if one.type != "User")
    return f"{fact.evidence_quote} {named}"


def terms_of_fact(fact: Fact) -> tuple[str, ...]:
    """The terms of a fact: those of its text, and its category. A fact about a person has that mark too."""
    marks = [f"#{fact.category}"]
    if "Person" in (fact.subject.type, fact.object.type):
        marks.append("#person")
    return (*terms_of(fact_text(fact)), *marks)


def find_by_words(index: FactIndex, question: str, *, limit: int) -> tuple[FactHit, ...]:
    """The facts that fit the question, best first; equal ones in the order in which they were added."""
    weights = terms_of_question(question)
    total = index.size()
    if not weights or not total:
        return ()
    counted = [(index.frequency(term), term) for term in weights]
    rare = {
        term: weights[term] * math.log(1 + (total - count + 0.5) / (count + 0.5))
        for count, term in sorted(counted)
        if count
    }
    numbers: dict[int, None] = {}
    for term in rare:  # the rarest first
        numbers.update(dict.fromkeys(index.having(term, _MOST_CANDIDATES - len(numbers))))
        if len(numbers) >= _MOST_CANDIDATES:
            break
    return _ranked(index, rare, list(numbers), limit)


def _ranked(
    index: FactIndex, rare: Mapping[str, float], numbers: Sequence[int], limit: int
) -> tuple[FactHit, ...]:
    own = {one.number: (one, _score(rare, one.terms)) for one in index.documents(numbers)}
    best = sorted(own.values(), key=lambda pair: (-pair[1], pair[0].number))[:_MOST_RAISED]
    around = index.beside([document for document, _ in best])
    for one in around:
        if one.number not in own:
            own[one.number] = (one, _score(rare, one.terms))
    by_turn: dict[tuple[str, int], list[tuple[int, float]]] = {}
    for number, (document, score) in own.items():
        by_turn.setdefault((document.session_id, document.turn), []).append((number, score))
    most = sum(rare.values())
    hits = []
    for number, (document, score) in own.items():
        near = [
            other
            for turn in (document.turn - 1, document.turn, document.turn + 1)
            for one, other in by_turn.get((document.session_id, turn), ())
            if one != number
        ]
        raised = score + _CONTEXT * max(near, default=0.0)
        if raised > 0:
            hits.append(FactHit(number=number, score=raised, strong=score >= _STRONG * most))
    hits.sort(key=lambda hit: (-hit.score, hit.number))
    return tuple(hits[:limit])


def _score(rare: Mapping[str, float], terms: Sequence[str]) -> float:
    counts = Counter(term for term in terms if term in rare)
    length = _SATURATION * (1 - _LENGTH_PENALTY + _LENGTH_PENALTY * len(terms) / _USUAL_TERMS)
    return sum(rare[term] * count * (1 + _SATURATION) / (count + length) for term, count in counts.items())


def find_arcs(arcs: Sequence[SessionArc], question: str, *, limit: int) -> tuple[SessionArc, ...]:
    """Those of `arcs` that fit the question, best first."""
    hits = find_by_words(_ArcIndex(arcs), question, limit=limit)
    return tuple(arcs[hit.number] for hit in hits)


class _ArcIndex:
    """Arcs as a `FactIndex`, numbered by their places. No arc has neighbours."""

    def __init__(self, arcs: Sequence[SessionArc]) -> None:
        self._terms = [terms_of(arc_text(arc)) for arc in arcs]
        self._sets = [frozenset(terms) for terms in self._terms]

    def size(self) -> int:
        return len(self._terms)

    def frequency(self, term: str) -> int:
        return sum(term in terms for terms in self._sets)

    def having(self, term: str, limit: int) -> Sequence[int]:
        return [number for number, terms in enumerate(self._sets) if term in terms][:limit]

    def documents(self, numbers: Sequence[int]) -> Sequence[RankedFact]:
        return [
            RankedFact(number=one, terms=self._terms[one], session_id=str(one), turn=0) for one in numbers
        ]

    def beside(self, found: Sequence[RankedFact]) -> Sequence[RankedFact]:
        return found


def arc_text(arc: SessionArc) -> str:
    """What is compared of an arc."""
    return " ".join((arc.summary, *arc.primary_themes, *arc.open_loops, *arc.resolved_threads))


def token_recall(question: str, record: str) -> float:
    """The part of the question's words, stop words left out, that the record has; 0 without words."""
    asked = {word for word in words_of(question) if word not in lexicon().stop_words}
    return len(asked & set(words_of(record))) / len(asked) if asked else 0.0


def same_evidence(one: str, other: str) -> bool:
    """Whether two quotes say the same in about the same words."""
    words, others = set(words_of(one)), set(words_of(other))
    both = words | others
    return one == other or (bool(both) and len(words & others) / len(both) >= SAME_STATEMENT)


def joined(
    hits: Sequence[FactHit], near: Sequence[tuple[int, float]], newest: Sequence[int] = (), *, limit: int
) -> list[int]:
    """The numbers of what words found, of what vectors found, and, up to `SHOWN`, of the newest facts, best
    first. Strong hits of words come first."""
    strong = [hit.number for hit in hits if hit.strong]
    weak = [hit.number for hit in hits if not hit.strong]
    found = dict.fromkeys((*strong, *weak, *(number for number, _ in near)))
    if len(found) < SHOWN and newest:
        found = dict.fromkeys([*found, *newest][: SHOWN * 2])
        return list(found)[: min(limit, SHOWN)]
    return list(found)[:limit]


def places_for_newest(question: str, hits: Sequence[FactHit], near: Sequence[tuple[int, float]]) -> int:
    """How many of the newest facts to read for the places that are free: none unless a person asks about
    themselves, as other messages need no memory that does not fit them."""
    free = len(hits) + len(near) < SHOWN
    return SHOWN * 2 if free and asks_about_oneself(question) else 0

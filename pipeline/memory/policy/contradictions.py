"""Which live facts a new fact replaces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from pipeline.memory.recall import same_evidence
from pipeline.memory.values import Fact

_ONE_AT_A_TIME: Final = ("name: ", "home: ", "work: ")
"""Beginnings of the objects that a person has one of: a new value replaces the old one."""
_OPPOSITES: Final = {"likes: ": "dislikes: ", "dislikes: ": "likes: "}


def says_the_same(one: Fact, other: Fact) -> bool:
    """Whether two facts are the same statement on the same evidence: then the older one is only renewed."""
    return one.triple == other.triple and same_evidence(one.evidence_quote, other.evidence_quote)


def superseded(new: Sequence[Fact], live: Iterable[Fact]) -> tuple[tuple[str, str], ...]:
    """The ids of live facts that the new ones replace, each with the id of the new one: the same statement on
    other evidence, another value of what a person has one of, and the contrary. The last of `new` wins."""
    found: dict[str, str] = {}
    for old in live:
        if any(says_the_same(fact, old) for fact in new):
            continue
        for fact in new:
            if fact.id != old.id and _replaces(fact, old):
                found[old.id] = fact.id
    return tuple(found.items())


def _replaces(new: Fact, old: Fact) -> bool:
    if new.triple == old.triple:
        return True
    if (new.subject, new.object.type) != (old.subject, old.object.type):
        return False
    now, before = new.object.identifier.casefold(), old.object.identifier.casefold()
    for start in _ONE_AT_A_TIME:
        if now.startswith(start) and before.startswith(start):
            return now != before
    for start, opposite in _OPPOSITES.items():
        if now.startswith(start) and before.startswith(opposite):
            return now.removeprefix(start) == before.removeprefix(opposite)
    return False

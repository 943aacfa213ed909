"""Make rules of what a person has implied more than once in a session."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from pipeline.memory.candidates import Held, RuleCandidate
from pipeline.memory.extraction.facts import item_id
from pipeline.memory.plain_text import jaccard, meaningful
from pipeline.memory.values import Rule

_ALIKE: Final = 0.5
_LARGE_OVERLAP: Final = 3
_LEAST: Final = 2
"""Turns in which a rule is implied at least."""
_CERTAIN: Final = 3
MAX_QUOTES: Final = 3


def clusters(held: Iterable[Held]) -> tuple[tuple[RuleCandidate, ...], ...]:
    """The held rules, those together that are about the same: half of their words in common, or three."""
    found: list[list[RuleCandidate]] = []
    for one in held:
        if not isinstance(one.candidate, RuleCandidate):
            continue
        known = next((group for group in found if _alike(one.candidate, group)), None)
        if known is None:
            found.append([one.candidate])
        else:
            known.append(one.candidate)
    return tuple(tuple(group) for group in found)


def consolidated(group: Sequence[RuleCandidate], now: float) -> Rule | None:
    """The rule of a cluster; None if it was implied in one turn alone."""
    turns = len({one.turn_index for one in group})
    if turns < _LEAST:
        return None
    last = group[-1]
    quotes = tuple(dict.fromkeys(one.evidence_quote for one in reversed(group)))[:MAX_QUOTES]
    return Rule(
        id=item_id(last.session_id, last.id, "consolidated"),
        text=last.text,
        source="consolidation",
        confidence="high" if turns >= _CERTAIN else "medium",
        evidence=quotes,
        created_at=now,
    )


def _alike(one: RuleCandidate, group: Sequence[RuleCandidate]) -> bool:
    said = meaningful(one.text)
    for other in group:
        known = meaningful(other.text)
        if jaccard(said, known) >= _ALIKE or len(said & known) >= _LARGE_OVERLAP:
            return True
    return False

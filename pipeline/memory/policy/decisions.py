"""The write policy: one decision for each candidate, by its words and by what the extractor says of it.

The extractor's recommendation is kept for the record and has no influence. Every reason is a code.
"""

from __future__ import annotations

import re
from typing import Final

from pipeline.domain.frozen import dataclass
from pipeline.memory.candidates import Decision, FactCandidate, RuleCandidate
from pipeline.memory.policy.markers import Marker, has
from pipeline.memory.values import Category

_HELD_CATEGORIES: Final[frozenset[Category]] = frozenset(("loss", "trigger"))
_PLAIN_CATEGORIES: Final[frozenset[Category]] = frozenset(
    ("relationship", "preference", "coping_strategy", "goal")
)
_NEVER_FACTS: Final[tuple[Marker, ...]] = ("control", "secret", "override", "instruction", "speculative")
_NEVER_RULES: Final[tuple[Marker, ...]] = ("safety_conflict", "control", "override", "secret")
"""In the order in which they are looked for. The reason of the decision is the marker."""
_MARKUP: Final = re.compile(r"[<>{}|`\\\[\]]|://")
_UNCERTAIN: Final[tuple[Marker, ...]] = ("negative_self_belief", "emerging_pattern")


@dataclass(frozen=True, slots=True)
class Decided:
    """What becomes of a candidate, and why."""

    decision: Decision
    reason: str
    """A code, such as `transient`."""


def decide_fact(candidate: FactCandidate) -> Decided:
    """The decision on a possible fact; what is never a fact is refused first."""
    quote, judged = candidate.evidence_quote, candidate.judged
    if never := _never_a_fact(candidate):
        return Decided("drop", never)
    for marker in _UNCERTAIN:
        if has(marker, quote):
            return Decided("require_repetition", marker)
    if judged.sensitivity == "high":
        return Decided("commit_at_session_end", "sensitive")
    if candidate.category in _HELD_CATEGORIES:
        return Decided("commit_at_session_end", candidate.category)
    if passing := _passing(candidate):
        return Decided("drop", passing)
    if candidate.category in _PLAIN_CATEGORIES:
        return Decided("commit_now", candidate.category)
    if candidate.category == "context" and not is_transient(quote):
        return Decided("commit_now", "lasting_context")
    return Decided("commit_at_session_end", "transient_words")


def decide_rule(candidate: RuleCandidate) -> Decided:
    """The decision on a possible rule. It is explicit if the person's words ask for it; what the extractor
    says does not make it so."""
    said = f"{candidate.evidence_quote}\n{candidate.text}"
    if _MARKUP.search(said) is not None:
        return Decided("drop", "markup")
    for marker in _NEVER_RULES:
        if has(marker, said):
            return Decided("drop", marker)
    if candidate.judged.scope == "turn" or is_turn_scoped(candidate.evidence_quote):
        return Decided("drop", "turn_scoped")
    if has("fact_shaped", candidate.evidence_quote):
        return Decided("drop", "fact_shaped")
    if not has("request", candidate.evidence_quote):
        return Decided("commit_at_session_end", "implicit")
    return Decided("commit_now", "explicit")


def _never_a_fact(candidate: FactCandidate) -> str:
    """The marker for which a candidate is never a fact; empty if it may be one."""
    said = f"{candidate.evidence_quote}\n{candidate.subject.identifier}\n{candidate.object.identifier}"
    if _MARKUP.search(said) is not None:
        return "markup"
    if has("question", candidate.evidence_quote):
        return "question"
    return next((marker for marker in _NEVER_FACTS if has(marker, said)), "")


def _passing(candidate: FactCandidate) -> str:
    """Why a candidate is of no use after the turn; empty if it may be."""
    if candidate.judged.scope == "turn" or is_turn_scoped(candidate.evidence_quote):
        return "turn_scoped"
    if candidate.judged.durability == "transient":
        return "transient"
    return "mentioned_only" if candidate.predicate == "MENTIONED_IN" else ""


def is_turn_scoped(words: str) -> bool:
    """Whether the words concern the next answer alone: a cue for one turn, and none for longer."""
    return has("turn_scoped", words) and not has("durable_cue", words)


def is_transient(words: str) -> bool:
    """Whether the words speak of a time that passes: "this week", unless "for years"."""
    return has("transient", words) and not has("lasting", words)


def is_control_request(words: str) -> bool:
    """Whether the words ask something of the memory itself: not to keep this, or to forget all."""
    return has("control", words)

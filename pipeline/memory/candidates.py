"""What an extractor proposes to remember, before the write policy decides."""

from __future__ import annotations

from typing import Literal

from pipeline.domain.frozen import dataclass
from pipeline.memory.values import Category, Confidence, EntityRef, Predicate

Explicitness = Literal["explicit", "implied"]
Durability = Literal["transient", "possible", "stable"]
Sensitivity = Literal["low", "medium", "high"]
Scope = Literal["turn", "session", "cross_session"]
Decision = Literal["commit_now", "commit_at_session_end", "require_repetition", "drop"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What the extractor says about a candidate; only the policy decides."""

    explicitness: Explicitness = "implied"
    durability: Durability = "possible"
    sensitivity: Sensitivity = "medium"
    scope: Scope = "session"
    recommendation: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactCandidate:
    """A possible fact."""

    id: str
    category: Category
    subject: EntityRef
    predicate: Predicate
    object: EntityRef
    evidence_quote: str
    confidence: Confidence
    judged: Judged
    session_id: str
    turn_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleCandidate:
    """A possible procedural rule."""

    id: str
    text: str
    evidence_quote: str
    judged: Judged
    session_id: str
    turn_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A candidate that waits for the end of its session."""

    candidate: FactCandidate | RuleCandidate
    decision: Literal["commit_at_session_end", "require_repetition"]

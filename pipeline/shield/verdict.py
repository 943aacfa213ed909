"""A verdict: the decision on one action, which holds for a short time and for one payload."""

from __future__ import annotations

from typing import Final

from pipeline.domain.events import Decision
from pipeline.domain.frozen import dataclass

VALID_S: Final = 60.0
"""Seconds for which a verdict holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The decision on an action. ESCALATE: a person is asked."""

    decision: Decision
    reasoning: str
    """In words for people."""
    action_hash: str
    evaluated_at: float
    """By the monotonic clock."""
    tier: int = 0
    """Which tier has decided: 0 rules, 1 the scanner, 2 the evaluator, 3 a person."""
    confidence: float = 1.0
    rule: str = ""
    """The name of the policy's rule; empty without one."""
    flags: tuple[str, ...] = ()
    """What was found, by name: findings of the scanner, and flows that only an audit records."""

    asked: str = ""
    """The reasons of the question that a person has answered; empty if no person was asked."""

    def is_too_old(self, now: float) -> bool:
        """Whether the time for which it holds is over."""
        return not 0 <= now - self.evaluated_at <= VALID_S

    def problem(self, action_hash: str, now: float) -> str:
        """Why the verdict does not hold for an action with that hash; empty if it does."""
        if action_hash != self.action_hash:
            return "it was judged with other arguments"
        if self.is_too_old(now):
            return f"it was judged more than {VALID_S:g} seconds ago"
        return ""

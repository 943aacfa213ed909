"""What the crisis gate says about a message: a level, what follows from it, and codes for the reason.

A reason is a list of codes such as `en.intent`; no assessment holds words of a person.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from pipeline.domain.frozen import dataclass

NONE: Final = 0
UNCLEAR: Final = 1
"""Ambiguous words, or severe distress."""
CLEAR: Final = 2
"""A clear wish to die or to harm oneself."""
IMMINENT: Final = 3
"""A plan, a means, a time or words of farewell."""

Confidence = Literal["low", "medium", "high"]
Override = Literal["imminent_risk", "idiomatic_safe", "safety_denial", "none"]
Path = Literal["override", "deterministic", "llm_fallback", "failed"]
"""What decided: an override, the ladder of patterns, a model where the patterns found nothing clear, or
nothing, because the gate failed."""

MAX_REASON_CHARS: Final = 500
GATE_FAILED: Final = "gate_failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class CrisisAssessment:
    """The gate's judgement of one message and the person's earlier ones."""

    level: int = NONE
    confidence: Confidence = "high"
    reason: str = ""
    """Codes, separated by spaces."""
    override: Override = "none"
    path: Path = "deterministic"
    language: str = ""
    """That of the words that decided; empty if unknown."""
    llm_failed: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", min(IMMINENT, max(NONE, self.level)))
        object.__setattr__(self, "reason", self.reason[:MAX_REASON_CHARS])

    @property
    def needs_crisis_response(self) -> bool:
        """Whether the crisis response takes the place of the agent."""
        return self.level >= CLEAR

    @property
    def needs_clarification(self) -> bool:
        """Whether the agent should ask how the person is."""
        return self.level == UNCLEAR


def plain_assessment(assessment: CrisisAssessment) -> dict[str, Any]:
    """The assessment as plain data."""
    return {
        "level": assessment.level,
        "confidence": assessment.confidence,
        "reason": assessment.reason,
        "override": assessment.override,
        "path": assessment.path,
        "language": assessment.language,
        "llm_failed": assessment.llm_failed,
        "needs_crisis_response": assessment.needs_crisis_response,
        "needs_clarification": assessment.needs_clarification,
    }


def read_assessment(plain: Mapping[str, Any]) -> CrisisAssessment:
    """The assessment that `plain_assessment` wrote."""
    return CrisisAssessment(
        level=plain["level"],
        confidence=plain["confidence"],
        reason=plain["reason"],
        override=plain["override"],
        path=plain["path"],
        language=plain.get("language", ""),
        llm_failed=plain.get("llm_failed", False),
    )

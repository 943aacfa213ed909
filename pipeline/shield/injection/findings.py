"""What tier 1 reads and reports: parts of an action or of a result, findings, and their assessment.

Not here: what is done about a finding. The shield decides, and no assessment overrides a block of tier 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, get_args

from pipeline.domain.events import Decision
from pipeline.domain.frozen import dataclass

Severity = Literal["low", "medium", "high", "critical"]
Kind = Literal["type", "command", "path", "url", "argument", "text"]
"""What a part is: the action's type, a value of its payload, or text that a tool, page or file returned."""

SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""From the mildest to the gravest."""
KINDS: tuple[Kind, ...] = get_args(Kind)
CONFIDENCE: Mapping[Severity, float] = {"low": 0.5, "medium": 0.7, "high": 0.85, "critical": 0.95}
"""How sure a finding of each severity is that the part is an attack."""
NOTHING_FOUND = 0.7
"""The confidence of an assessment without findings."""
PRECEDENCE: tuple[Decision, ...] = ("BLOCK", "ESCALATE", "ALLOW")
"""The first of these that a finding leads to is the decision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanPart:
    """One text to examine."""

    kind: Kind
    text: str
    where: str = ""
    """The place in words for people, such as `url` or `result of fetch_page`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanFinding:
    """One reason to distrust a part. It quotes nothing, so that it can be logged and audited."""

    name: str
    """Of the rule, in kebab-case, or `classifier`."""
    severity: Severity
    decision: Decision
    """What this finding alone leads to: BLOCK or ESCALATE."""
    score: float
    """How sure it is, from 0 to 1."""
    where: str
    """The part's."""
    disguise: str = ""
    """How the text was hidden, such as `base64` or `html comment`; empty if it was readable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """The result of tier 1 for an action or a result."""

    decision: Decision
    confidence: float
    """That the decision is right, from 0 to 1."""
    findings: tuple[ScanFinding, ...] = ()
    """The gravest first."""


NO_FINDINGS = Assessment(decision="ALLOW", confidence=NOTHING_FOUND)


def assessment_of(findings: Iterable[ScanFinding]) -> Assessment:
    """The decision that takes precedence among `findings`, and the highest score of those that lead to it."""
    ordered = tuple(sorted(findings, key=_gravity))
    if not ordered:
        return NO_FINDINGS
    decision = ordered[0].decision
    confidence = max(one.score for one in ordered if one.decision == decision)
    return Assessment(decision=decision, confidence=confidence, findings=ordered)


def _gravity(finding: ScanFinding) -> tuple[int, int, float, str, str]:
    return (
        PRECEDENCE.index(finding.decision),
        -SEVERITIES.index(finding.severity),
        -finding.score,
        finding.name,
        finding.where,
    )

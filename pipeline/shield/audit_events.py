"""The events of the audit: what is recorded about an action. No arguments, results and messages.

Not here: the chain of the records, which the store keeps (`gateway.storage.audit`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, get_args

from pipeline.domain.frozen import dataclass
from pipeline.shield.levels import Labels
from pipeline.shield.proposal import Proposal
from pipeline.shield.verdict import Verdict

EventType = Literal[
    "action_proposed",
    "action_evaluated",
    "action_answered",
    "action_blocked",
    "action_executed",
    "action_failed",
    "action_unknown",
    "result_suspected",
    "rule_granted",
    "rule_revoked",
    "chain_damaged",
    "audit_pruned",
    "person_erased",
]
EVENT_TYPES: tuple[EventType, ...] = get_args(EventType)
_LONGEST = 100

Details = Mapping[str, str | int | bool | list[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEvent:
    """One event, without its place in the chain."""

    type: EventType
    details: Details = field(default_factory=dict)


def event_of(type_: EventType, proposal: Proposal, **more: str | int | bool | list[str]) -> AuditEvent:
    """An event about an action. The payload is in it as its hash alone."""
    details: dict[str, str | int | bool | list[str]] = {
        "action": proposal.action_id,
        "hash": proposal.action_hash,
        "tool": proposal.tool[:_LONGEST],
        "action_type": proposal.type,
        "session": proposal.session_id,
        "message": proposal.message_id,
        "thread": proposal.thread,
        "person": proposal.person,
        **more,
    }
    return AuditEvent(type=type_, details=details)


def evaluated(proposal: Proposal, verdict: Verdict, labels: Labels) -> AuditEvent:
    """The verdict on an action."""
    return event_of(
        "action_evaluated",
        proposal,
        decision=verdict.decision,
        tier=verdict.tier,
        rule=verdict.rule,
        flags=list(verdict.flags),
        level=labels.level.word,
        private=labels.private,
        foreign=bool(proposal.foreign),
        suspects=bool(labels.suspects),
    )

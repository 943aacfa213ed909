"""Extract procedural rules from one message: by patterns, and by a model where there is one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.domain.clock import Clock
from pipeline.llm.structured import Ask
from pipeline.memory.candidates import Held, Judged, RuleCandidate
from pipeline.memory.extraction.facts import item_id
from pipeline.memory.extraction.model_candidates import Proposed, judged_of, propose
from pipeline.memory.extraction.outcome import Extraction, SaidTurn
from pipeline.memory.extraction.rule_patterns import asked_rules
from pipeline.memory.extraction.skipping import skipped
from pipeline.memory.plain_text import meaningful
from pipeline.memory.policy.decisions import decide_rule
from pipeline.memory.policy.rule_topics import replaces, topics
from pipeline.memory.values import Rule
from pipeline.redaction.redactor import Redactor

_ASKED = Judged(explicitness="explicit", durability="stable", sensitivity="low", scope="cross_session")


async def extract_rules(said: SaidTurn, *, ask: Ask | None, clock: Clock, redactor: Redactor) -> Extraction:
    """The rules in `said` to write now, and the candidates to hold; otherwise as `extract_facts`. A room's
    rules never say what a person is called."""
    began = clock.monotonic()
    if reason := skipped(said):
        return Extraction(reason=reason, diagnostics=_diagnostics(reason, began, clock))
    candidates = _by_patterns(said)
    proposed = await propose("rules", said, ask) if ask is not None and said.private else Proposed()
    grounded = [one for one in proposed.candidates if _is_grounded(one["text"], one["evidence_quote"])]
    for one in (_of_model(said, found) for found in grounded):
        if not any(replaces(one.text, known.text) for known in candidates):
            candidates.append(one)
    counts: Counter[str] = Counter(proposed.dropped)
    counts["drop"] += len(proposed.candidates) - len(grounded)
    rules: list[Rule] = []
    held: list[Held] = []
    for one in candidates:
        decided = decide_rule(one) if redactor.text(one.evidence_quote) == one.evidence_quote else None
        counts[decided.decision if decided is not None else "drop"] += 1
        if decided is None or decided.decision == "drop":
            continue
        if decided.decision == "commit_now":
            rules.append(_rule(one, clock.now()))
        elif said.private:
            held.append(Held(candidate=one, decision=decided.decision))
    reason = _reason(len(candidates), proposed)
    return Extraction(
        rules=tuple(rules),
        held=tuple(held),
        reason=reason,
        diagnostics=_diagnostics(reason, began, clock, counts, candidates),
    )


def _by_patterns(said: SaidTurn) -> list[RuleCandidate]:
    return [
        RuleCandidate(
            id=item_id(said.message_id, one.text),
            text=one.text,
            evidence_quote=one.quote,
            judged=_ASKED,
            session_id=said.session_id,
            turn_index=said.turn_index,
        )
        for one in asked_rules(said.text)
        if said.private or not one.names_person
    ]


def _of_model(said: SaidTurn, one: Mapping[str, Any]) -> RuleCandidate:
    return RuleCandidate(
        id=item_id(said.message_id, one["text"]),
        text=one["text"],
        evidence_quote=one["evidence_quote"],
        judged=judged_of(one),
        session_id=said.session_id,
        turn_index=said.turn_index,
    )


def _is_grounded(rule: str, quote: str) -> bool:
    """Whether the rule is about something that the quote speaks of."""
    return bool(meaningful(rule) & meaningful(quote)) or bool(topics(rule) & topics(quote))


def _rule(candidate: RuleCandidate, now: float) -> Rule:
    return Rule(
        id=candidate.id,
        text=candidate.text,
        source="explicit_user",
        confidence="high",
        evidence=(candidate.evidence_quote,),
        created_at=now,
    )


def _reason(candidates: int, proposed: Proposed) -> str:
    if proposed.failed:
        return f"{candidates} candidates by rules; the model gave no answer of the form"
    dropped = ", ".join(f"{count} {problem}" for problem, count in sorted(proposed.dropped.items()))
    return f"{candidates} candidates" + (f"; dropped: {dropped}" if dropped else "")


def _diagnostics(
    reason: str,
    began: float,
    clock: Clock,
    counts: Mapping[str, int] | None = None,
    candidates: Sequence[RuleCandidate] = (),
) -> Mapping[str, Any]:
    counts = counts or {}
    return {
        "extract_procedural_ms": round((clock.monotonic() - began) * 1_000, 2),
        "extract_procedural_reason": reason,
        "procedural_candidates": len(candidates),
        "procedural_commit_now_candidates": counts.get("commit_now", 0),
        "procedural_session_end_holds": counts.get("commit_at_session_end", 0),
        "procedural_policy_drops": counts.get("drop", 0),
    }

"""Extract facts from one message: by patterns, and by a model where there is one."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pipeline.domain.clock import Clock
from pipeline.llm.structured import Ask
from pipeline.memory.candidates import FactCandidate, Held, Judged
from pipeline.memory.extraction.fact_patterns import PERSON, Stated, stated_facts, stated_notes
from pipeline.memory.extraction.model_candidates import Proposed, judged_of, propose
from pipeline.memory.extraction.outcome import Extraction, SaidTurn
from pipeline.memory.extraction.skipping import skipped
from pipeline.memory.policy.decisions import decide_fact
from pipeline.memory.policy.small_talk import asks_to_remember, is_small_talk
from pipeline.memory.recall import same_evidence
from pipeline.memory.values import MAX_WRITE_REASON_CHARS, EntityRef, Fact
from pipeline.redaction.redactor import Redactor

_STATED: Final = Judged(
    explicitness="explicit", durability="stable", sensitivity="medium", scope="cross_session"
)
"""What a pattern says of its candidates: it fits plain statements alone."""
_DANGER: Final = 2
"""From this level of the crisis gate on, what is said is sensitive, whatever a model says."""


async def extract_facts(said: SaidTurn, *, ask: Ask | None, clock: Clock, redactor: Redactor) -> Extraction:
    """The facts in `said` to write now, and the candidates to hold. `ask`: None without a model; in a room,
    none is asked. Nothing is stored here. Raises only what `ask` raises beside ModelError."""
    began = clock.monotonic()
    if reason := skipped(said):
        return Extraction(reason=reason, diagnostics=_diagnostics(reason, began, clock))
    candidates = list(_by_patterns(said))
    proposed = await propose("facts", said, ask) if ask is not None and said.private else Proposed()
    by_model = [_of_model(said, one) for one in proposed.candidates]
    candidates += [one for one in by_model if not _is_known(one, candidates)]
    if said.crisis_level >= _DANGER:
        candidates = [replace(one, judged=replace(one.judged, sensitivity="high")) for one in candidates]
    counts: Counter[str] = Counter(proposed.dropped)
    facts: list[Fact] = []
    held: list[Held] = []
    for one in candidates:
        if redactor.text(one.evidence_quote) != one.evidence_quote:
            counts["drop"] += 1
            continue
        decided = decide_fact(one)
        counts[decided.decision] += 1
        if decided.decision == "commit_now":
            facts.append(fact_of(one, decided.reason, clock.now()))
        elif decided.decision != "drop" and said.private:
            held.append(Held(candidate=one, decision=decided.decision))
    reason = _reason(len(candidates), proposed, asked=ask is not None and said.private)
    return Extraction(
        facts=tuple(facts),
        held=tuple(held),
        reason=reason,
        diagnostics=_diagnostics(reason, began, clock, counts, candidates),
    )


def fact_of(candidate: FactCandidate, reason: str, now: float, **changes: Any) -> Fact:
    """The fact that a candidate becomes."""
    values: dict[str, Any] = {
        "id": candidate.id,
        "category": candidate.category,
        "subject": candidate.subject,
        "predicate": candidate.predicate,
        "object": candidate.object,
        "evidence_quote": candidate.evidence_quote,
        "confidence": candidate.confidence,
        "source_session_id": candidate.session_id,
        "source_turn_index": candidate.turn_index,
        "created_at": now,
        "last_referenced_at": now,
        "write_timing": "immediate",
        "write_reason": reason[:MAX_WRITE_REASON_CHARS],
    }
    return Fact(**(values | changes))


def item_id(*parts: str) -> str:
    """The id of what a message says: the same when the work is repeated."""
    return hashlib.sha256("\x1f".join(parts).encode("utf-8", "backslashreplace")).hexdigest()[:20]


def _by_patterns(said: SaidTurn) -> Iterable[FactCandidate]:
    if not said.private:
        return [_candidate(said, one) for one in stated_notes(said.text)]
    agreed = asks_to_remember(said.asked) and is_small_talk(said.text) and bool(said.earlier)
    stated = stated_facts(said.earlier[-1], is_noted=True) if agreed and _agrees(said.text) else ()
    return [_candidate(said, one) for one in (*stated, *stated_facts(said.text))]


def _agrees(words: str) -> bool:
    first = words.strip(" .!,").casefold().split()
    return bool(first) and first[0].strip(".!,") in _YES


_YES: Final = frozenset(
    (
        *(
            "yes",
            "yeah",
            "yep",
            "sure",
            "ok",
            "okay",
            "please",
            "right",
            "exactly",
            "absolutely",
            "definitely",
        ),
        *("ja", "klar", "gerne", "bitte", "genau", "oui", "d'accord", "si", "sí", "vale", "claro"),
    )
)


def _candidate(said: SaidTurn, stated: Stated) -> FactCandidate:
    return FactCandidate(
        id=item_id(said.message_id, stated.predicate, stated.object.identifier),
        category=stated.category,
        subject=stated.subject,
        predicate=stated.predicate,
        object=stated.object,
        evidence_quote=stated.quote,
        confidence="high",
        judged=_STATED,
        session_id=said.session_id,
        turn_index=said.turn_index,
    )


def _of_model(said: SaidTurn, one: Mapping[str, Any]) -> FactCandidate:
    about = EntityRef(**one["object"])
    subject = EntityRef(**one["subject"])
    return FactCandidate(
        id=item_id(said.message_id, one["predicate"], about.identifier),
        category=one["category"],
        subject=PERSON if subject.type == "User" else subject,
        predicate=one["predicate"],
        object=about,
        evidence_quote=one["evidence_quote"],
        confidence=one["confidence"],
        judged=judged_of(one),
        session_id=said.session_id,
        turn_index=said.turn_index,
    )


def _is_known(candidate: FactCandidate, others: Sequence[FactCandidate]) -> bool:
    """Whether another candidate of the message says the same."""
    return any(
        candidate.id == one.id
        or (
            candidate.category == one.category and same_evidence(candidate.evidence_quote, one.evidence_quote)
        )
        for one in others
    )


def _reason(candidates: int, proposed: Proposed, *, asked: bool) -> str:
    if proposed.failed:
        return f"{candidates} candidates by rules; the model gave no answer of the form"
    dropped = ", ".join(f"{count} {problem}" for problem, count in sorted(proposed.dropped.items()))
    by = "rules and the model" if asked else "rules"
    return f"{candidates} candidates by {by}" + (f"; dropped: {dropped}" if dropped else "")


def _diagnostics(
    reason: str,
    began: float,
    clock: Clock,
    counts: Mapping[str, int] | None = None,
    candidates: Sequence[FactCandidate] = (),
) -> Mapping[str, Any]:
    counts = counts or {}
    return {
        "extract_facts_ms": round((clock.monotonic() - began) * 1_000, 2),
        "extract_facts_reason": reason,
        "semantic_candidates": len(candidates),
        "semantic_commit_now_candidates": counts.get("commit_now", 0),
        "semantic_session_end_holds": counts.get("commit_at_session_end", 0),
        "semantic_repeat_required": counts.get("require_repetition", 0),
        "semantic_policy_drops": counts.get("drop", 0),
    }

"""Values for the contract tests of the memory."""

from __future__ import annotations

from dataclasses import replace

from gateway.storage.ports import Store
from pipeline.memory.candidates import FactCandidate, Held, Judged, RuleCandidate
from pipeline.memory.ports import MemoryWrites, Question, Written
from pipeline.memory.values import EntityRef, Fact, Profile, Rule, SessionArc

NOW = 1_796_000_000.0
DAY_S = 86_400.0
ANN, BEN = "telegram:main:user:ann", "telegram:main:user:ben"
USER = EntityRef("User", "user")


def fact(
    fact_id: str, quote: str, *, session: str = "s1", turn: int = 0, about: str = "", **more: object
) -> Fact:
    known = Fact(
        id=fact_id,
        category="context",
        subject=USER,
        predicate="EXPERIENCED",
        object=EntityRef("Concern", about or fact_id),
        evidence_quote=quote,
        confidence="high",
        source_session_id=session,
        source_turn_index=turn,
        created_at=NOW,
        last_referenced_at=NOW,
        write_timing="immediate",
        write_reason="said so",
    )
    return replace(known, **more)  # type: ignore[arg-type]  # names of fields


def arc(session: str, summary: str, *, ended_at: float = NOW, **more: object) -> SessionArc:
    known = SessionArc(
        session_id=session,
        started_at=ended_at - 600,
        ended_at=ended_at,
        turn_count=3,
        primary_themes=("sleep",),
        summary=summary,
        open_loops=("call the doctor",),
    )
    return replace(known, **more)  # type: ignore[arg-type]  # names of fields


def rule(rule_id: str, text: str = "Answer in short sentences.") -> Rule:
    return Rule(
        id=rule_id,
        text=text,
        source="explicit_user",
        confidence="high",
        evidence=("keep it short",),
        created_at=NOW,
    )


def held(candidate_id: str, *, is_rule: bool = False) -> Held:
    judged = Judged(explicitness="explicit", reason="said once")
    if is_rule:
        waiting: FactCandidate | RuleCandidate = RuleCandidate(
            id=candidate_id,
            text="Use my first name.",
            evidence_quote="call me Ann",
            judged=judged,
            session_id="s1",
            turn_index=2,
        )
    else:
        waiting = FactCandidate(
            id=candidate_id,
            category="goal",
            subject=USER,
            predicate="WANTS",
            object=EntityRef("Goal", "marathon"),
            evidence_quote="I want to run a marathon",
            confidence="medium",
            judged=judged,
            session_id="s1",
            turn_index=1,
        )
    return Held(candidate=waiting, decision="commit_at_session_end")


async def write(store: Store, owner: str, *facts: Fact, key: str = "", **more: object) -> Written:
    writes = MemoryWrites(
        key=key or "-".join(one.id for one in facts) or "k", session_id="s1", at=NOW, facts=facts
    )
    return await store.memories.write(owner, replace(writes, **more))  # type: ignore[arg-type]  # names of fields


async def found(store: Store, owner: str, words: str, *, limit: int = 5) -> list[str]:
    facts = await store.memories.find_facts(owner, Question(text=words), limit=limit)
    return [one.id for one in facts]


async def kept(store: Store, owner: str) -> list[str]:
    return [one.id for one in await store.memories.facts(owner)]


PROFILE = Profile(rules=(rule("r1"), rule("r2", "Do not use emoji.")), proactive_recall_enabled=True)

"""Candidates, messages and answers of models for the tests of the write policy."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from pipeline.domain.chat import ChatMessage
from pipeline.domain.clock import ManualClock
from pipeline.llm.structured import Ask
from pipeline.memory.candidates import Decision, FactCandidate, Held, Judged, RuleCandidate
from pipeline.memory.extraction.outcome import SaidTurn
from pipeline.memory.sessions.ended import EndedSession, SessionTurn
from pipeline.memory.values import EntityRef
from pipeline.redaction.redactor import Redactor

CLOCK = ManualClock()
REDACTOR = Redactor(clock=CLOCK)
PERSON = EntityRef("User", "user")
_LASTING = Judged(explicitness="explicit", durability="stable", sensitivity="medium", scope="cross_session")


def fact(quote: str, *, about: str = "thing", judged: Judged = _LASTING, **more: Any) -> FactCandidate:
    """A candidate that is written at once, unless its fields say otherwise."""
    known = FactCandidate(
        id=more.pop("id", f"{quote}:{about}"),
        category="context",
        subject=PERSON,
        predicate="KNOWS",
        object=EntityRef("Concern", about),
        evidence_quote=quote,
        confidence="medium",
        judged=judged,
        session_id="s1",
        turn_index=0,
    )
    return replace(known, **more)


def judged(**more: Any) -> Judged:
    """What an extractor says of a lasting statement, but for these fields."""
    return replace(_LASTING, **more)


def rule(quote: str, *, text: str = "", turn: int = 0, **more: Any) -> RuleCandidate:
    """A candidate whose rule is its quote."""
    return RuleCandidate(
        id=f"{quote}:{turn}",
        text=text or quote,
        evidence_quote=quote,
        judged=more.pop("judged", _LASTING),
        session_id="s1",
        turn_index=turn,
    )


def held(candidate: FactCandidate | RuleCandidate, decision: Decision = "commit_at_session_end") -> Held:
    """A candidate that waits for the end of the session."""
    assert decision in {"commit_at_session_end", "require_repetition"}
    return Held(candidate=candidate, decision=decision)


def said(text: str, **more: Any) -> SaidTurn:
    """A message in a private chat."""
    known = SaidTurn(text=text, message_id="m1", session_id="s1", turn_index=0, private=True)
    return replace(known, **more)


def ended(*texts: str, **more: Any) -> EndedSession:
    """A session with these messages of the person."""
    turns = tuple(SessionTurn(text=text, answer="I see.") for text in texts)
    return replace(EndedSession(session_id="s1", started_at=1_000.0, ended_at=1_600.0, turns=turns), **more)


class Answering:
    """A model that gives these answers in their order, then none; `asked` has what it was shown."""

    def __init__(self, *answers: object) -> None:
        self._answers = [one if isinstance(one, str) else json.dumps(one) for one in answers]
        self.asked: list[tuple[ChatMessage, ...]] = []

    @property
    def ask(self) -> Ask:
        return self._ask

    async def _ask(self, messages: tuple[ChatMessage, ...]) -> str:
        self.asked.append(messages)
        return self._answers.pop(0) if self._answers else ""


def proposed_fact(quote: str, about: str, **more: Any) -> dict[str, Any]:
    """A fact as a model proposes it."""
    return {
        "category": "preference",
        "subject": {"type": "User", "identifier": "user"},
        "predicate": "KNOWS",
        "object": {"type": "Concern", "identifier": about},
        "confidence": "medium",
        "evidence_quote": quote,
        "explicitness": "explicit",
        "durability": "stable",
        "sensitivity": "low",
        "scope": "cross_session",
        "reason": "said so",
        **more,
    }


def proposed_rule(quote: str, text: str, **more: Any) -> dict[str, Any]:
    """A rule as a model proposes it."""
    judgement = ("explicitness", "durability", "sensitivity", "scope", "reason", "evidence_quote")
    common = {name: value for name, value in proposed_fact(quote, "x").items() if name in judgement}
    return {"text": text, **common, **more}

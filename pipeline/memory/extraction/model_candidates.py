"""Candidates by a model: the question, the form of its answer, and a check of each candidate by itself."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Final, Literal, get_args

from pipeline.domain.chat import ChatMessage
from pipeline.domain.errors import ModelError
from pipeline.domain.frozen import dataclass
from pipeline.domain.json_schema import JsonSchema, SchemaMismatch, check_value
from pipeline.llm.structured import Ask, structured
from pipeline.memory.candidates import Durability, Explicitness, Judged, Scope, Sensitivity
from pipeline.memory.extraction.outcome import SaidTurn
from pipeline.memory.policy.evidence import is_said
from pipeline.memory.values import (
    MAX_IDENTIFIER_CHARS,
    MAX_QUOTE_CHARS,
    MAX_RULE_CHARS,
    Category,
    Confidence,
    EntityType,
    Predicate,
)

Kind = Literal["facts", "rules"]
MAX_CANDIDATES: Final = 8
"""Of one answer; the others are dropped and counted."""
MAX_TOKENS: Final = 900
_SHOWN_CHARS: Final = 4_000
_SHOWN_ANSWER_CHARS: Final = 600
_MAX_REASON_CHARS: Final = 240

_ENTITY: Final = {
    "type": "object",
    "properties": {
        "type": {"type": "string", "enum": list(get_args(EntityType))},
        "identifier": {"type": "string", "minLength": 1, "maxLength": MAX_IDENTIFIER_CHARS},
    },
    "required": ["type", "identifier"],
    "additionalProperties": False,
}
_JUDGED: Final = {
    "evidence_quote": {"type": "string", "minLength": 1, "maxLength": MAX_QUOTE_CHARS},
    "explicitness": {"type": "string", "enum": list(get_args(Explicitness))},
    "durability": {"type": "string", "enum": list(get_args(Durability))},
    "sensitivity": {"type": "string", "enum": list(get_args(Sensitivity))},
    "scope": {"type": "string", "enum": list(get_args(Scope))},
    "policy_recommendation": {"type": "string", "maxLength": 60},
    "reason": {"type": "string", "maxLength": _MAX_REASON_CHARS},
}
_OPTIONAL: Final = ("policy_recommendation", "reason")
_FIELDS: Final[Mapping[Kind, Mapping[str, Any]]] = {
    "facts": {
        "category": {"type": "string", "enum": list(get_args(Category))},
        "subject": _ENTITY,
        "predicate": {"type": "string", "enum": list(get_args(Predicate))},
        "object": _ENTITY,
        "confidence": {"type": "string", "enum": list(get_args(Confidence))},
        **_JUDGED,
    },
    "rules": {"text": {"type": "string", "minLength": 1, "maxLength": MAX_RULE_CHARS}, **_JUDGED},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """What a model proposes: candidates of the asked form whose quote the person has said."""

    candidates: tuple[Mapping[str, Any], ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)
    """How many were no candidates, by the reason."""
    failed: bool = False
    """There was no readable answer."""


def candidate_schema(kind: Kind) -> Mapping[str, Any]:
    """The form of one candidate."""
    fields = _FIELDS[kind]
    required = [name for name in fields if name not in _OPTIONAL]
    return {"type": "object", "properties": fields, "required": required, "additionalProperties": False}


def answer_schema(kind: Kind) -> JsonSchema:
    """The form of a whole answer, for clients that can hold a model to it."""
    items = {"type": "array", "maxItems": MAX_CANDIDATES, "items": candidate_schema(kind)}
    return _wrapped(kind, items)


async def propose(kind: Kind, said: SaidTurn, ask: Ask) -> Proposed:
    """Ask the model about one message. Raises only what `ask` raises beside ModelError."""
    try:
        # Each candidate is checked by itself: a bad one takes no good one with it.
        found = await structured(_question(kind, said), _wrapped(kind, {"type": "array"}), ask)
    except ModelError:
        return Proposed(failed=True)
    dropped: Counter[str] = Counter()
    kept = []
    for number, one in enumerate(found[kind]):
        if problem := "too_many" if number >= MAX_CANDIDATES else _problem(kind, one, said):
            dropped[problem] += 1
        else:
            kept.append(one)
    return Proposed(candidates=tuple(kept), dropped=dict(dropped))


def judged_of(candidate: Mapping[str, Any]) -> Judged:
    """What the model says of its candidate."""
    return Judged(
        explicitness=candidate["explicitness"],
        durability=candidate["durability"],
        sensitivity=candidate["sensitivity"],
        scope=candidate["scope"],
        recommendation=candidate.get("policy_recommendation", ""),
        reason=candidate.get("reason", ""),
    )


def _problem(kind: Kind, candidate: Any, said: SaidTurn) -> str:
    """Why it is no candidate; empty if it is one."""
    try:
        check_value(candidate_schema(kind), candidate)
    except SchemaMismatch:
        return "invalid"
    return "" if is_said(candidate["evidence_quote"], said.text) else "not_said"


def _question(kind: Kind, said: SaidTurn) -> tuple[ChatMessage, ...]:
    lines = [f"The message:\n<data>\n{said.text[:_SHOWN_CHARS]}\n</data>"]
    if said.asked:
        lines.insert(
            0,
            f"What the assistant said before, for context alone:\n<data>\n{said.asked[-_SHOWN_ANSWER_CHARS:]}"
            "\n</data>",
        )
    return (
        ChatMessage(role="system", content=_prompt(kind)),
        ChatMessage(role="user", content="\n\n".join(lines)),
    )


def _wrapped(kind: Kind, items: Mapping[str, Any]) -> JsonSchema:
    reason = {"type": "string", "maxLength": _MAX_REASON_CHARS}
    form = {"type": "object", "properties": {kind: items, "reason": reason}, "required": [kind, "reason"]}
    return JsonSchema(name=kind, schema=form)


@functools.cache
def _prompt(kind: Kind) -> str:
    name = {"facts": "fact_prompt.txt", "rules": "rule_prompt.txt"}[kind]
    return Path(__file__).with_name(name).read_text(encoding="utf-8").strip()

"""The limits of what is kept, checked before it is stored."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.domain.errors import StorageError
from pipeline.memory.values import (
    MAX_IDENTIFIER_CHARS,
    MAX_MOOD_CHARS,
    MAX_QUOTE_CHARS,
    MAX_RULE_CHARS,
    MAX_RULES,
    MAX_SUMMARY_CHARS,
    MAX_THEMES,
    MAX_WRITE_REASON_CHARS,
    EntityRef,
    Fact,
    Profile,
    Rule,
    SessionArc,
)

_MAX_RULE_QUOTES = 3


def require_fact(fact: Fact) -> None:
    """Raise StorageError, which names the field, for a fact out of its limits."""
    _require(f"the fact {fact.id}", _fact_problems(fact))


def require_arc(arc: SessionArc) -> None:
    """As `require_fact`, for an arc."""
    _require(f"the arc of the session {arc.session_id}", _arc_problems(arc))


def require_profile(profile: Profile) -> None:
    """As `require_fact`, for a profile and its rules."""
    _require("the profile", _profile_problems(profile))


def _fact_problems(fact: Fact) -> Iterator[str]:
    yield from _length("evidence_quote", fact.evidence_quote, 1, MAX_QUOTE_CHARS)
    yield from _length("write_reason", fact.write_reason, 0, MAX_WRITE_REASON_CHARS)
    yield from _entity("subject", fact.subject)
    yield from _entity("object", fact.object)
    if fact.source_turn_index < 0:
        yield f"source_turn_index is {fact.source_turn_index} and must not be negative"


def _entity(field: str, entity: EntityRef) -> Iterator[str]:
    yield from _length(f"{field}.identifier", entity.identifier, 1, MAX_IDENTIFIER_CHARS)


def _arc_problems(arc: SessionArc) -> Iterator[str]:
    yield from _length("summary", arc.summary, 1, MAX_SUMMARY_CHARS)
    yield from _length("mood_opened", arc.mood_opened, 0, MAX_MOOD_CHARS)
    yield from _length("mood_closed", arc.mood_closed, 0, MAX_MOOD_CHARS)
    if len(arc.primary_themes) > MAX_THEMES:
        yield f"primary_themes has {len(arc.primary_themes)} and at most {MAX_THEMES} are kept"


def _profile_problems(profile: Profile) -> Iterator[str]:
    if len(profile.rules) > MAX_RULES:
        yield f"rules has {len(profile.rules)} and at most {MAX_RULES} are active"
    for rule in (*profile.rules, *profile.archived_rules):
        yield from _rule(rule)


def _rule(rule: Rule) -> Iterator[str]:
    yield from _length(f"the text of the rule {rule.id}", rule.text, 1, MAX_RULE_CHARS)
    if len(rule.evidence) > _MAX_RULE_QUOTES:
        yield f"the evidence of the rule {rule.id} has more than {_MAX_RULE_QUOTES} quotes"


def _length(field: str, text: str, least: int, most: int) -> Iterator[str]:
    if not least <= len(text) <= most:
        yield f"{field} has {len(text)} characters and may have {least} to {most}"


def _require(what: str, problems: Iterator[str]) -> None:
    if found := "; ".join(problems):
        raise StorageError(f"{what} cannot be stored: {found}")

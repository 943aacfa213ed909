"""Find the clearest facts without a model: statements whose meaning one pattern gives away.

Precise before complete: what no pattern fits is left to a model. The write policy decides about all of them.
"""

from __future__ import annotations

import functools
import itertools
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pipeline.domain.frozen import dataclass
from pipeline.memory.extraction.clauses import Clause, clauses_of
from pipeline.memory.extraction.values_of_clauses import Ending, value_of
from pipeline.memory.plain_text import has_phrase, words
from pipeline.memory.policy.decisions import is_transient, is_turn_scoped
from pipeline.memory.policy.markers import has
from pipeline.memory.values import (
    MAX_IDENTIFIER_CHARS,
    MAX_QUOTE_CHARS,
    Category,
    EntityRef,
    EntityType,
    Predicate,
)

FILE: Final = Path(__file__).with_name("fact_patterns.toml")
PERSON: Final = EntityRef("User", "user")
"""The subject of facts about the person whose memory it is."""
ROOM: Final = EntityRef("User", "room")
"""The subject of facts in a room's memory, which name no person."""
MAX_FACTS: Final = 8
"""From one message."""
_LEAST_NOTE_WORDS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """A fact that a clause states."""

    category: Category
    subject: EntityRef
    predicate: Predicate
    object: EntityRef
    quote: str


def stated_facts(message: str, *, is_noted: bool = False) -> tuple[Stated, ...]:
    """What `message` states about its author, each once. `is_noted`: the person asks for the message to be
    remembered."""
    found: dict[tuple[str, str], Stated] = {}
    for clause in clauses_of(message):
        facts = list(_of_clause(clause))
        if not facts and (clause.is_noted or is_noted):
            facts = list(_note(clause))
        for fact in facts:
            found.setdefault((fact.predicate, fact.object.identifier.casefold()), fact)
    return tuple(found.values())[:MAX_FACTS]


def stated_notes(message: str) -> tuple[Stated, ...]:
    """What `message` asks a room's memory to keep, in clauses that speak of no person."""
    noted = [note for clause in clauses_of(message) if clause.is_noted for note in _note(clause)]
    return tuple(
        Stated(category="context", subject=ROOM, predicate="KNOWS", object=one.object, quote=one.quote)
        for one in noted
        if not has("personal", one.quote)
    )[:MAX_FACTS]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pattern:
    category: Category
    predicate: Predicate
    object_type: EntityType
    form: str
    value: str
    until: str
    after_greeting: bool
    any_word_follows: bool
    within: re.Pattern[str] | None
    needs: tuple[str, ...]
    patterns: tuple[re.Pattern[str], ...]


def _of_clause(clause: Clause) -> Iterator[Stated]:
    lowered = clause.text.lower()
    for one in _patterns():
        if one.after_greeting and not clause.after_greeting:
            continue
        if one.needs and not any(need in lowered for need in one.needs):
            continue
        for matched in _matches(one, clause.text):
            if (fact := _fact(one, matched, clause)) is not None:
                yield fact


def _matches(one: _Pattern, text: str) -> Iterator[re.Match[str]]:
    """The first match at the beginning of the text, or all within one that begins as a list does."""
    if one.within is None:
        found = (matched for pattern in one.patterns if (matched := pattern.match(text)) is not None)
        yield from itertools.islice(found, 1)
    elif one.within.match(text) is not None:
        for pattern in one.patterns:
            yield from pattern.finditer(text)


def _fact(one: _Pattern, matched: re.Match[str], clause: Clause) -> Stated | None:
    groups = matched.groupdict()
    value = ""
    if one.value:
        rule = Ending(until=one.until, any_word=one.any_word_follows)
        value = value_of(groups["x"], one.value, rule, message=clause.text)
    identifier = one.form.format(x=value, r=groups.get("r", ""))
    if (one.value and not value) or len(identifier) > MAX_IDENTIFIER_CHARS:
        return None
    return Stated(
        category=one.category,
        subject=PERSON,
        predicate=one.predicate,
        object=EntityRef(one.object_type, identifier),
        quote=_quote(clause),
    )


def _quote(clause: Clause) -> str:
    """The clause; the sentence where another part of it says for how long it is true."""
    passing = is_transient(clause.sentence) or is_turn_scoped(clause.sentence)
    return (clause.sentence if passing else clause.text)[:MAX_QUOTE_CHARS].rstrip()


def _note(clause: Clause) -> Iterator[Stated]:
    """The clause itself, for a person who asks for it to be remembered."""
    text = clause.text[: MAX_IDENTIFIER_CHARS - len("note: ")].rstrip()
    if len(words(text)) >= _LEAST_NOTE_WORDS and not any(has_phrase(text, one) for one in ("remember", "to")):
        yield Stated(
            category="context",
            subject=PERSON,
            predicate="KNOWS",
            object=EntityRef("User", f"note: {text}"),
            quote=_quote(clause),
        )


@functools.cache
def _patterns() -> tuple[_Pattern, ...]:
    table: dict[str, Any] = tomllib.loads(FILE.read_text(encoding="utf-8"))
    shared: dict[str, str] = table["words"]
    return tuple(
        _Pattern(
            category=row.get("category", "context"),
            predicate=row.get("predicate", "KNOWS"),
            object_type=row.get("object_type", "User"),
            form=row["object"],
            value=row["value"],
            until=row.get("until", ""),
            after_greeting=row.get("after_greeting", False),
            any_word_follows=row.get("any_word_follows", False),
            within=re.compile(row["within"], re.IGNORECASE) if "within" in row else None,
            needs=tuple(row.get("needs", ())),
            patterns=tuple(re.compile(_expanded(one, shared), re.IGNORECASE) for one in row["patterns"]),
        )
        for row in table["fact"]
    )


def _expanded(pattern: str, shared: dict[str, str]) -> str:
    for name, text in shared.items():
        pattern = pattern.replace(f"{{{name}}}", text)
    return pattern

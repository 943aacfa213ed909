"""What an extractor is given, and what it returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from pipeline.domain.frozen import dataclass
from pipeline.memory.candidates import Held
from pipeline.memory.values import Fact, Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidTurn:
    """One message of a person, as evidence."""

    text: str
    """The author's own words alone: nothing forwarded, none of a message that they reply to."""
    message_id: str
    session_id: str
    turn_index: int
    """The number of the person's message in the session, from 0."""
    private: bool
    """In a room, facts about a person are not kept."""
    off_the_record: bool = False
    """Also in the memory mode incognito, and where `Profile.enabled` is false."""
    crisis_level: int = 0
    """What the crisis gate says of the message."""
    asked: str = ""
    """The bot's answer before the message; empty if there is none."""
    earlier: tuple[str, ...] = ()
    """The author's own words of the session before, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """What one extractor makes of one message."""

    facts: tuple[Fact, ...] = ()
    """To write now."""
    rules: tuple[Rule, ...] = ()
    """To add to the profile now."""
    held: tuple[Held, ...] = ()
    reason: str
    """Why there are these or none; begins with "skipped: " if nothing was looked for. Holds no words of a
    person."""
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    """By names: `extract_facts_…` and `semantic_…` of one extractor, `extract_procedural_…`
    and `procedural_…` of the other. They have none in common."""

    @property
    def writes_something(self) -> bool:
        """Whether there is anything to store."""
        return bool(self.facts or self.rules or self.held)

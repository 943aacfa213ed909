"""The values of the memory: semantic facts, session arcs, and the profile of procedural rules.

An owner is a person in private chats and a room in rooms (`TurnScope.owner`); nothing here holds two owners.
"""

from __future__ import annotations

from typing import Final, Literal

from pipeline.domain.frozen import dataclass

Category = Literal["loss", "preference", "coping_strategy", "relationship", "trigger", "goal", "context"]
EntityType = Literal["User", "Person", "Concern", "Event", "CopingStrategy", "Goal", "Session", "Turn"]
Predicate = Literal[
    "KNOWS", "WORRIES_ABOUT", "EXPERIENCED", "USES", "WANTS", "PARTICIPATED_IN", "MENTIONED_IN"
]
Confidence = Literal["low", "medium", "high"]
WriteTiming = Literal["immediate", "session_end", "promotion"]
RuleSource = Literal["explicit_user", "consolidation", "manual"]
MemoryMode = Literal["incognito", "local", "synced"]
"""Nothing is read or written; the store on this machine; a store that several gateways share."""

MAX_IDENTIFIER_CHARS: Final = 200
MAX_QUOTE_CHARS: Final = 280
MAX_WRITE_REASON_CHARS: Final = 240
MAX_SUMMARY_CHARS: Final = 600
MAX_MOOD_CHARS: Final = 40
MAX_THEMES: Final = 3
MAX_RULE_CHARS: Final = 280
MAX_RULES: Final = 20
"""Active rules of a profile; the oldest is archived for a new one."""
PROFILE_KEY: Final = "user_response_style"
POLICY_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class EntityRef:
    """What a fact is about, or what it relates that to."""

    type: EntityType
    identifier: str
    """1 to 200 characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A semantic fact: subject, predicate, object, and the words of the person that it rests on."""

    id: str
    category: Category
    subject: EntityRef
    predicate: Predicate
    object: EntityRef
    evidence_quote: str
    """1 to 280 characters, said by the person."""
    confidence: Confidence
    source_session_id: str
    source_turn_index: int
    created_at: float
    last_referenced_at: float
    write_timing: WriteTiming
    write_reason: str
    dormant_at: float | None = None
    superseded_by: str | None = None
    """The id of the fact that replaced it."""
    user_visible: bool = True
    policy_version: int = POLICY_VERSION

    @property
    def triple(self) -> tuple[EntityRef, Predicate, EntityRef]:
        """What makes two facts the same statement."""
        return self.subject, self.predicate, self.object

    @property
    def is_live(self) -> bool:
        """Whether it is recalled: neither dormant nor superseded."""
        return self.dormant_at is None and self.superseded_by is None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionArc:
    """An episode: what one session was about."""

    session_id: str
    started_at: float
    ended_at: float
    turn_count: int
    primary_themes: tuple[str, ...]
    """At most 3."""
    summary: str
    """1 to 600 characters."""
    mood_opened: str = ""
    """At most 40 characters; as `mood_closed`."""
    mood_closed: str = ""
    open_loops: tuple[str, ...] = ()
    resolved_threads: tuple[str, ...] = ()
    crisis_level_max: int = 0
    """The highest level of the crisis gate in the session; no model judges it."""

    @property
    def duration_s(self) -> float:
        return max(0.0, self.ended_at - self.started_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A procedural rule: how the person wants to be answered."""

    id: str
    text: str
    """1 to 280 characters, in the second person."""
    source: RuleSource
    confidence: Confidence
    evidence: tuple[str, ...]
    """At most 3 quotes of the person."""
    created_at: float
    superseded_by: str | None = None
    """Of an archived rule: the id of the rule that replaced it, or "eviction"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """An owner's procedural profile: one document."""

    rules: tuple[Rule, ...] = ()
    """At most 20, oldest first."""
    archived_rules: tuple[Rule, ...] = ()
    proactive_recall_enabled: bool = False
    enabled: bool = True
    """Whether the person lets anything be remembered; set by `/memory off` and `/memory on`."""
    last_consolidated_at: float | None = None
    revision: int = 0
    """Grows with every write; 0 for a profile that is not stored."""

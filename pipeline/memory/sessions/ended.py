"""A session that has ended, as its memory needs it."""

from __future__ import annotations

from pipeline.domain.frozen import dataclass
from pipeline.memory.plain_text import has_phrase, meaningful
from pipeline.memory.policy.evidence import own_words


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTurn:
    """One exchange."""

    text: str
    """The person's own words: nothing forwarded, none of a message that they reply to."""
    answer: str = ""
    """The bot's; empty for one that was made with text from elsewhere, which is no memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedSession:
    """What is known of a session when it ends."""

    session_id: str
    started_at: float
    ended_at: float
    """Both as Unix times."""
    turns: tuple[SessionTurn, ...]
    """In their order; the index is the `source_turn_index` of candidates."""
    private: bool = True
    off_the_record: bool = False
    """Also in the memory mode incognito."""
    crisis_level_max: int = 0
    """The highest level in the records of the crisis gate; no model judges it."""


LEAST_OVERLAP = 2
"""Meaningful words that two texts on the same topic share at least."""


def mentions(text: str, term: str, topic: frozenset[str]) -> bool:
    """Whether `text` has the term as whole words, or at least two of the words of the topic."""
    said = own_words(text)
    return has_phrase(said, term) or len(meaningful(said) & topic) >= LEAST_OVERLAP

"""Assess a message by patterns alone: pure functions, microseconds a message, time in proportion to the text.

The order: words of imminent danger; an idiom, unless the message also says something clear or ambiguous; an
explicit denial after the bot has asked; then the ladder of tiers over the person's recent messages. Negated
intent counts for no tier.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from pipeline.domain.frozen import dataclass
from pipeline.safety.assessment import CLEAR, IMMINENT, UNCLEAR, CrisisAssessment
from pipeline.safety.patterns import Family, PatternBook, Tier, shipped_patterns
from pipeline.safety.plain_words import plain_words

WINDOW: Final = 6
"""Earlier entries of the conversation that are looked at, of the person and of the bot."""
_CHECK_WINDOW: Final = 4
"""Earlier entries among which the bot's newest one may have asked about safety."""
_LADDER: Final[tuple[tuple[Tier, int], ...]] = (
    ("imminent", IMMINENT),
    ("clear", CLEAR),
    ("ambiguous", UNCLEAR),
    ("distress", UNCLEAR),
)


@dataclass(frozen=True, slots=True)
class Entry:
    """An earlier entry of the conversation."""

    said_by: Literal["person", "bot"]
    text: str


def assess(
    message: str, history: Sequence[Entry] = (), *, patterns: PatternBook | None = None
) -> CrisisAssessment:
    """The assessment of `message` after `history`, oldest first, of which the last six entries count."""
    book = patterns or shipped_patterns()
    current = plain_words(message)
    recent = history[-WINDOW:]
    before = [plain_words(entry.text) for entry in recent if entry.said_by == "person"]
    if not book.says_something("\n".join((*before, current))):
        return CrisisAssessment()
    said = book.without("denial", current)
    earlier = [book.without("denial", plain) for plain in before]
    scope = "\n".join((*earlier, said))
    if (family := book.first("imminent", scope)) is not None:
        return CrisisAssessment(
            level=IMMINENT,
            reason=_codes(family, earlier=not family.matches(said)),
            override="imminent_risk",
            path="override",
            language=family.language,
        )
    own = book.first("clear", said) or book.first("ambiguous", said)
    if own is None:
        if (idiom := book.first("idiom", current)) is not None:
            return CrisisAssessment(
                reason=idiom.code, override="idiomatic_safe", path="override", language=idiom.language
            )
        denial = book.first("denial", current)
        if denial is not None and _was_asked(recent, book):
            return CrisisAssessment(
                reason=denial.code, override="safety_denial", path="override", language=denial.language
            )
    for tier, level in _LADDER[1:]:
        if (family := book.first(tier, scope)) is not None:
            return CrisisAssessment(
                level=level,
                confidence="high" if level == CLEAR else "medium",
                reason=_codes(family, earlier=not family.matches(said)),
                language=family.language,
            )
    return CrisisAssessment()


def _codes(family: Family, *, earlier: bool) -> str:
    return f"{family.code} earlier" if earlier else family.code


def _was_asked(recent: Sequence[Entry], book: PatternBook) -> bool:
    """Whether the bot's newest entry asked about safety."""
    for entry in reversed(recent[-_CHECK_WINDOW:]):
        if entry.said_by == "bot":
            return book.first("check", plain_words(entry.text)) is not None
    return False

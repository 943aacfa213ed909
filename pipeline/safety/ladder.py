"""Assess a message by patterns and a linear model: pure functions, time in proportion to the text.

The order: words of imminent danger; an idiom, unless the message also says something clear or ambiguous; an
explicit denial after the bot has asked; then the tiers over the person's recent messages, and where these
find less, the model; then an answer about a plan. Negated intent counts for no tier. The model only raises a
level.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple

from pipeline.domain.frozen import dataclass
from pipeline.safety.assessment import CLEAR, IMMINENT, NONE, UNCLEAR, CrisisAssessment
from pipeline.safety.danger_model import DangerModel, Scores, shipped_concepts, shipped_model, words_of
from pipeline.safety.patterns import Family, PatternBook, Tier, shipped_patterns
from pipeline.safety.plain_words import plain_words

WINDOW: Final = 6
"""Earlier entries of the conversation that are looked at, of the person and of the bot."""
_CHECK_WINDOW: Final = 4
"""Earlier entries among which the bot's newest one may have asked about safety."""
CLEAR_AT: Final = 0.58
"""The probability from which the model's verdict on a text of no words would be level 2."""
CLEAR_MORE: Final = 0.008
"""What each word adds to it: a long text has more words that count, and a short one few."""
CLEAR_MOST: Final = 0.88
"""What no text needs more than."""
IMMINENT_AT: Final = 0.3
"""The probability of imminent danger from which what is clear is level 3."""
NEARLY: Final = 0.2
"""How far below clear a message may be that counts as clear because it is likely imminent."""
SURE_AT: Final = 0.53
"""The probability of imminent danger from which it does."""
TOGETHER_AT: Final = 0.55
"""The same for what only the patterns or another message make clear."""
UNCLEAR_AT: Final = 0.7
"""The probability from which the model's verdict is level 1."""
_TIERS: Final[tuple[Tier, ...]] = ("ambiguous", "distress")
_ANSWERS: Final[tuple[tuple[Tier, Tier], ...]] = (("asks_safety", "no"), ("asks_danger", "yes"))
"""Questions of the bot, and the answers that confirm danger."""
_OTHER_QUESTIONS: Final[tuple[Tier, ...]] = ("asks_safety", "asks_plan", "fears")
"""Questions to which a no denies no danger."""
_MODEL_CODES: Final = ("", "model.unclear", "model.clear", "model.imminent")
"""The reason of a verdict of the model, by level."""
_EARLIER: Final = " earlier"
"""What follows a reason that an earlier message gave."""
_NO_CRISIS: Final = CrisisAssessment()
_FEWEST_WORDS: Final = 3
"""Words and marks from which the model judges: it knows nothing of a bare "no"."""
_KEPT: Final = 1_024
_KEPT_CHARS: Final = 2_000
_LAST_QUESTION: Final = re.compile(r"[^.!?\n]*\?[^?]*$")


class DangerJudgement(NamedTuple):
    """What the model says of a message."""

    level: int
    imminent: float
    """The probability of imminent danger."""
    language: str


_NOTHING: Final = DangerJudgement(NONE, 0.0, "")


class PersonWords(NamedTuple):
    """What a person said."""

    plain: str
    """In its plain form, without what it denies and what somebody else wants."""
    possible: int
    """The families that it may match (`PatternBook.possible`)."""


class _Before(NamedTuple):
    """An earlier message of the person."""

    said: PersonWords
    words: Sequence[str]
    """What the model judges of it."""


@dataclass(frozen=True, slots=True)
class EarlierEntry:
    """An earlier entry of the conversation."""

    said_by: Literal["person", "bot"]
    text: str


def assess(
    message: str,
    history: Sequence[EarlierEntry] = (),
    *,
    patterns: PatternBook | None = None,
    model: DangerModel | None = None,
    only_named: bool = False,
) -> CrisisAssessment:
    """The assessment of `message` after `history`, oldest first, of which the last six entries count.
    `only_named`: the model counts only for messages with a word that names danger; fewer false alarms, for
    agents to whom people do not come with what troubles them."""
    book, model = patterns or shipped_patterns(), model or shipped_model()
    current = plain_words(message)
    possible = book.possible(current)
    recent = history[-WINDOW:]
    before = [_read_before(book, entry.text) for entry in recent if entry.said_by == "person"]
    said, found = _said(book, current, possible), _NO_CRISIS
    # Most conversations hold nothing that any family needs.
    some = possible or any(one.said.possible for one in before)
    if some and (recent or book.says_something(current, possible)):
        found = _by_patterns(book, current, said, [one.said for one in before], recent)
    if found.level == IMMINENT:
        return found
    own = _by_model(model, words_of(book.without("idiom", *said)), only_named=only_named)
    if found.override != "none" and own.level < CLEAR:
        return found
    judged = (_by_model(model, one.words, only_named=only_named) for one in reversed(before))
    return _with_plan(book, current, recent, _raised(found, own, judged))


def left_open(text: str) -> tuple[str, Sequence[str]]:
    """What of a message a model may know more about than the patterns, and its words: nothing that it denies
    or that somebody else says, and nothing at all of a message with an idiom, which is harmless."""
    book, plain = shipped_patterns(), plain_words(text)
    before = _read_before(book, text)
    if book.first("idiom", plain, before.said.possible) is not None:
        return "", ()
    kept = before.said.plain
    return text if kept == plain else kept, before.words


def _raised(
    found: CrisisAssessment, own: DangerJudgement, before: Iterable[DangerJudgement]
) -> CrisisAssessment:
    """The verdict `found` of the patterns, raised by what the model says of the message and of those before
    it. What is clear anywhere in the scope is imminent if the model finds that anywhere in it."""
    top, imminent = own, own.imminent
    if own.level < IMMINENT:
        for one in before:
            imminent = max(imminent, one.imminent)
            if one.level >= CLEAR and one.level > top.level:
                top = one
    level = top.level
    if max(level, found.level) >= CLEAR and imminent >= TOGETHER_AT:
        level = IMMINENT
    elif found.level >= CLEAR:
        return found
    if level <= found.level:
        return found
    now = own.level >= CLEAR or own.imminent >= TOGETHER_AT or level < CLEAR
    now = now or (found.level >= CLEAR and not found.reason.endswith(_EARLIER))
    return CrisisAssessment(
        level=level,
        confidence="medium" if level >= CLEAR else "low",
        reason=_MODEL_CODES[level] if now else f"{_MODEL_CODES[level]}{_EARLIER}",
        language=top.language or found.language,
    )


def _read_before(book: PatternBook, text: str) -> _Before:
    """An earlier message. It is read again with each later one, so that the last short ones are kept."""
    return _kept_before(book, text) if len(text) <= _KEPT_CHARS else _before(book, text)


def _before(book: PatternBook, text: str) -> _Before:
    plain = plain_words(text)
    said = _said(book, plain, book.possible(plain))
    return _Before(said, words_of(book.without("idiom", *said)))


_kept_before = functools.lru_cache(maxsize=_KEPT)(_before)


def _said(book: PatternBook, plain: str, possible: int) -> PersonWords:
    if not possible:
        return PersonWords(plain, 0)
    return PersonWords(book.without("others", book.without("denial", plain, possible), possible), possible)


def _by_patterns(
    book: PatternBook,
    current: str,
    said: PersonWords,
    earlier: Sequence[PersonWords],
    recent: Sequence[EarlierEntry],
) -> CrisisAssessment:
    """The verdict of the patterns on the message `current`, which is `said` without what it denies, after the
    person's words `earlier`."""
    scope, possible = "\n".join([one.plain for one in (*earlier, said)]), said.possible
    for one in earlier:
        possible |= one.possible
    if (family := book.first("imminent", scope, possible)) is not None:
        return CrisisAssessment(
            level=IMMINENT,
            reason=_codes(family, earlier=not family.matches(said.plain)),
            override="imminent_risk",
            path="override",
            language=family.language,
        )
    safe = _safe(book, current, said.possible, recent)
    if safe and book.first("clear", *said) is None and book.first("ambiguous", *said) is None:
        return safe
    if (family := book.first("clear", scope, possible)) is not None:
        return _of_family(CLEAR, family, said.plain)
    if (family := _answered(book, current, said.possible, recent)) is not None:
        return _of_family(CLEAR, family, current)
    for tier in _TIERS:
        if (family := book.first(tier, scope, possible)) is not None:
            return _of_family(UNCLEAR, family, said.plain)
    return _NO_CRISIS


def _safe(
    book: PatternBook, current: str, possible: int, recent: Sequence[EarlierEntry]
) -> CrisisAssessment | None:
    """The verdict on an idiom, or on a denial of what the bot asked; None for other words."""
    if (idiom := book.first("idiom", current, possible)) is not None:
        return CrisisAssessment(
            reason=idiom.code, override="idiomatic_safe", path="override", language=idiom.language
        )
    denial = book.first("denial", current, possible)
    if denial is None or not _was_asked(recent, book):
        denial = _not_at_all(book, current, possible, recent)
    if denial is None:
        return None
    return CrisisAssessment(
        reason=denial.code, override="safety_denial", path="override", language=denial.language
    )


def _of_family(level: int, family: Family, said: str) -> CrisisAssessment:
    return CrisisAssessment(
        level=level,
        confidence="high" if level == CLEAR else "medium",
        reason=_codes(family, earlier=not family.matches(said)),
        language=family.language,
    )


def _by_model(model: DangerModel, words: Sequence[str], *, only_named: bool) -> DangerJudgement:
    """What the model says of the words of one message."""
    if len(words) < _FEWEST_WORDS or (only_named and not shipped_concepts().names_danger(words)):
        return _NOTHING
    scores = model.score_words(words)
    level = level_of(scores, len(words))
    language = shipped_concepts().language_of(words) if level else ""
    return DangerJudgement(level, scores.imminent, language)


def clear_at(words: int) -> float:
    """The probability from which the model's verdict on a text of so many words is level 2."""
    return min(CLEAR_MOST, CLEAR_AT + CLEAR_MORE * words)


def level_of(scores: Scores, words: int) -> int:
    """The level of a message of `words` by itself. What is nearly clear and likely imminent is imminent: a
    number of help too much is the smaller mistake."""
    clear = clear_at(words)
    if scores.clear >= clear:
        return IMMINENT if scores.imminent >= IMMINENT_AT else CLEAR
    if scores.clear >= clear - NEARLY and scores.imminent >= SURE_AT:
        return IMMINENT
    return UNCLEAR if max(scores.unclear, scores.clear) >= UNCLEAR_AT else NONE


def _codes(family: Family, *, earlier: bool) -> str:
    return f"{family.code}{_EARLIER}" if earlier else family.code


def _answered(
    book: PatternBook, current: str, possible: int, recent: Sequence[EarlierEntry]
) -> Family | None:
    """The family of an answer that confirms danger to the bot's question about it; None without one."""
    # Most messages are none of these answers, so the bot's words are not read.
    if all(book.first(answer, current, possible) is None for _, answer in _ANSWERS):
        return None
    question = _last_question(recent)
    for asked, answer in _ANSWERS:
        if book.first(asked, question) is not None:
            return book.first(answer, current, possible)
    return None


def _not_at_all(
    book: PatternBook, current: str, possible: int, recent: Sequence[EarlierEntry]
) -> Family | None:
    """The family of a plain no, with words after it, to the bot's question about danger; None without one. To
    "are you safe?" or "are you afraid to die?" the same no is no denial."""
    family = book.first("not_at_all", current, possible)
    if family is None or book.first("asks_danger", question := _last_question(recent)) is None:
        return None
    others = any(book.first(tier, question) is not None for tier in _OTHER_QUESTIONS)
    return None if others else family


def _last_question(recent: Sequence[EarlierEntry]) -> str:
    """The question with which the bot's newest entry ends, in its plain form; empty without one."""
    if not recent or recent[-1].said_by != "bot":
        return ""
    found = _LAST_QUESTION.search(plain_words(recent[-1].text))
    return found[0] if found else ""


def _with_plan(
    book: PatternBook, current: str, recent: Sequence[EarlierEntry], found: CrisisAssessment
) -> CrisisAssessment:
    """The verdict, imminent where what is clear is followed by a yes to the bot's question how or when."""
    if found.level != CLEAR or book.first("asks_plan", _last_question(recent)) is None:
        return found
    family = book.first("yes", current)
    return found if family is None else _of_family(IMMINENT, family, current)


def _was_asked(recent: Sequence[EarlierEntry], book: PatternBook) -> bool:
    """Whether the bot's newest entry asked about safety."""
    for entry in reversed(recent[-_CHECK_WINDOW:]):
        if entry.said_by == "bot":
            return book.first("check", plain_words(entry.text)) is not None
    return False

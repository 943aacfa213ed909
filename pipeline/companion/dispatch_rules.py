"""Choose a message's mode by phrases alone: pure functions, no model, time in proportion to the text.

The order: a running exercise; a pattern that is named; what the bot said is unclear; then phrases of high
precision for tips, an exercise, leave-taking, an explanation, and greetings, thanks or distress. `None` is
for all between, which a model judges; `fallback` decides without one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

from pipeline.companion.decision import DispatchDecision, Mode
from pipeline.companion.exercise_answers import is_question
from pipeline.companion.phrases import first, plain
from pipeline.safety.ladder import EarlierEntry

SHORT_WORDS: Final = 5
"""A message of this many words or fewer, about nothing that the person reports of themselves, gets a
question."""
_WORD: Final = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")
_FIRST: Final[tuple[tuple[str, Mode], ...]] = (("reflective", "reflective"), ("confusion", "clarifying"))
_LAST: Final[tuple[tuple[str, Mode], ...]] = (
    ("explain", "psychoeducation"),
    ("supportive", "supportive"),
)
_DISTRESS: Final = "distress"


def dispatch_by_rules(
    message: str, history: Sequence[EarlierEntry] = (), *, in_exercise: bool = False
) -> DispatchDecision | None:
    """The mode that the phrases of `message` choose; None where they choose none.

    `history`: what was said before, oldest first. `in_exercise`: whether an exercise is running, which is
    then entered again unless the person leaves it or asks what it is about.
    """
    read = plain(message)
    if in_exercise:
        return _in_exercise(read)
    last = _last_of_bot(history)
    for kind, mode in _FIRST:
        if (found := first(kind, read)) is not None:
            return _ruled(mode, found.code)
    return _started(read, last)


def fallback(message: str) -> DispatchDecision:
    """The mode where neither rules nor a model choose one: a question back to a short message that reports
    nothing, else support."""
    read = plain(message)
    if _readable(read) and len(_WORD.findall(read)) <= SHORT_WORDS and first("self_report", read) is None:
        return DispatchDecision(mode="clarifying", source="fallback", type="short_message")
    return DispatchDecision(mode="supportive", source="fallback", type="default")


def asks_tips(message: str) -> bool:
    """Whether the message asks for tips or strategies, which are explained and not practised."""
    return first("tips", plain(message)) is not None


def asks_exercise(message: str, history: Sequence[EarlierEntry] = ()) -> bool:
    """Whether the message asks for an exercise, or accepts the one that the bot has just offered."""
    return _exercise_code(plain(message), _last_of_bot(history)) != ""


def in_distress(message: str) -> bool:
    """Whether the message says how bad it is, which asks for no technique."""
    found = first("supportive", plain(message))
    return found is not None and found.name == _DISTRESS


def _in_exercise(read: str) -> DispatchDecision | None:
    """None for a question that no phrase knows: whether it belongs to the exercise is for a model to say."""
    if (left := first("leaves_exercise", read)) is not None:
        return _ruled("supportive", left.code, clears=True)
    if (unclear := first("confusion", read)) is not None:
        return _ruled("clarifying", unclear.code)
    if is_question(read):
        if (asked := first("explain", read)) is not None:
            return _ruled("psychoeducation", asked.code)
        return None
    return DispatchDecision(mode="guided_exercise", source="exercise", type="active_exercise")


def _started(read: str, last: str) -> DispatchDecision | None:
    if asked := _exercise_code(read, last):
        return _ruled("guided_exercise", asked)
    if (tips := first("tips", read)) is not None:
        return _ruled("psychoeducation", tips.code)
    if (leave := first("closing", read)) is not None:
        return _ruled("closing", leave.code)
    ends = first("winding_down", last) is not None
    for kind, mode in _LAST:
        if (found := first(kind, read)) is not None:
            if "thanks" in found.name and ends:
                return _ruled("closing", f"{found.language}.thanks_at_the_end")
            return _ruled(mode, found.code)
    if ends and (found := first("nothing_else", read)) is not None:
        return _ruled("closing", "any.nothing_else")
    return None


def _exercise_code(read: str, last: str) -> str:
    asked = first("exercise_request", read)
    if asked is not None and first("exercise_not_asked", read) is None and not _asks_about(read):
        return asked.code
    accepted = first("accepts", read)
    if accepted is not None and first("exercise_offer", last) is not None:
        return f"{accepted.language}.accepts_offer"
    return ""


def _asks_about(read: str) -> bool:
    """Whether the message asks what an exercise is, why it works, or for tips."""
    return first("explain", read) is not None or first("tips", read) is not None


def _ruled(mode: Mode, code: str, *, clears: bool = False) -> DispatchDecision:
    return DispatchDecision(mode=mode, source="rules", type=code, clears_exercise=clears)


def _last_of_bot(history: Sequence[EarlierEntry]) -> str:
    for entry in reversed(history):
        if entry.said_by == "bot":
            return plain(entry.text)
    return ""


def _readable(read: str) -> bool:
    """Whether the rules could know the language: no letter of another script than the Latin one."""
    return all(char.isascii() or not char.isalpha() or "LATIN" in unicodedata.name(char, "") for char in read)

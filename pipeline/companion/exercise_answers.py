"""Read the answer to a step of an exercise: leave it, be stuck, complete the step, or stay. Pure functions.

The first that matches counts. What only looks like an end or like being stuck is not one ("I don't want to
lose this feeling", "I can't see anything but a lamp"), and a question to the bot completes no step.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from pipeline.companion.exercise_book import ExerciseStep
from pipeline.companion.phrases import first, plain, without
from pipeline.domain.frozen import dataclass

Outcome = Literal["exit", "stuck", "complete", "hold"]
_SPLIT: Final = "\x1f"
_ENOUGH: Final = re.compile(r"[^\W_]{2}|[\u3040-\u30ff\u3400-\u9fff]")
"""A part with two letters in a row is a thing that is named; so is one sign of Chinese or Japanese."""
_NUMBER: Final = re.compile(r"\d{1,3}(?:[.,]\d)?\.?")
_LISTED_WORDS: Final = 3
"""This many words or more that are no sentence are a list."""
_TENTATIVE_WORDS: Final = 4
"""A thing named with a question mark behind it ("a lamp?") has at most this many words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReading:
    """What an answer means for its step."""

    outcome: Outcome
    type: str
    """The grounds, as a code."""
    items: int = 0
    """How many different things it names."""


def read_answer(text: str, step: ExerciseStep, *, named: int = 0) -> StepReading:
    """What `text` means for `step`. `named`: how many things earlier answers to the step have named."""
    read = plain(text)
    if (left := first("exit", without("no_exit", read, " ... "))) is not None:
        return StepReading(outcome="exit", type=left.code)
    answer = without("all_but", read)
    if (stuck := first("stuck", answer)) is not None:
        answer = _all_the_same(answer)
        if not answer or count_items(answer) == 0:
            return StepReading(outcome="stuck", type=stuck.code)
    if is_question(answer):
        return StepReading(outcome="hold", type="question")
    if step.kind == "confirm":
        return _confirmed(answer)
    items = count_items(answer)
    enough = items > 0 and named + items >= step.minimum
    return StepReading(outcome="complete" if enough else "hold", type="items", items=items)


def count_items(read: str) -> int:
    """How many different things a text in its plain form names."""
    if first("no_item", read) is not None:
        return 0
    if _NUMBER.fullmatch(read) is not None:
        return 1
    cleared = without("filler", read)
    parts = _parts("separator", cleared)
    if len(parts) == 1:
        # Speech has no commas: "a lamp a table my phone", "lamp table phone".
        words = parts[0].split()
        listed = len(words) >= _LISTED_WORDS and first("sentence", parts[0]) is None
        parts = [word for word in words if _bare(word)] if listed else _parts("article", cleared)
    return len(set(parts))


def is_question(read: str) -> bool:
    """Whether a text in its plain form asks the bot something, and not the person themselves."""
    asked = without("own_question", read, " _ ")
    if first("question", asked) is None:
        return False
    return not (asked.endswith("?") and len(asked.split()) <= _TENTATIVE_WORDS and "," in asked)


def _confirmed(read: str) -> StepReading:
    whole = first("confirm", read)
    if whole is not None and (whole.name == "whole" or first("not_yet", read) is None):
        return StepReading(outcome="complete", type=whole.code)
    return StepReading(outcome="hold", type="not_confirmed")


def _all_the_same(read: str) -> str:
    """What a person names who also says that they are stuck: before it, or after words such as "maybe"."""
    before, *after = without("stuck", read, _SPLIT).split(_SPLIT)
    shows = first("names", before) is not None and first("clause_ends", before) is not None
    named = [before] if shows else []
    named += [without("all_the_same", part) for part in after if first("all_the_same", part) is not None]
    return ", ".join(named)


def _parts(separators: str, read: str) -> list[str]:
    return [part for part in map(_bare, without(separators, read, _SPLIT).split(_SPLIT)) if part]


def _bare(part: str) -> str:
    part = part.strip(" .,;:!?-*()\"'")
    part = re.sub(
        r"^(?:(?:a|an|the|my|some|another|ein|eine|der|die|das|un|une|le|la|el|los|las|una) )+", "", part
    )
    return part if _ENOUGH.search(part) and not first("no_item", part) else ""

"""Choose the exercise for a message by a table of keywords, of which the first row that matches counts."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterable, Sequence
from typing import Final

from pipeline.companion.exercise_book import FOLDER, BadExercises, default_exercise, exercises
from pipeline.companion.phrases import first, plain
from pipeline.safety.ladder import EarlierEntry

WINDOW: Final = 6
"""Earlier entries that are looked at where a message refers to them."""


def choose_exercise(message: str, history: Sequence[EarlierEntry] = ()) -> str:
    """The id of the exercise that `message` names or whose words it uses, else the default one.

    A message that only refers to what was said ("let's work through that", "yes, please") is judged by the
    last entries of `history`, the newest first.
    """
    read = plain(message)
    if (named := _match(read)) is not None:
        return named
    if first("refers_back", read) is not None or first("accepts", read) is not None:
        return _newest(entry.text for entry in reversed(history[-WINDOW:])) or default_exercise()
    return default_exercise()


def _newest(texts: Iterable[str]) -> str | None:
    for text in texts:
        if (found := _match(plain(text))) is not None:
            return found
    return None


def _match(read: str) -> str | None:
    for pattern, exercise in _rows():
        if pattern.search(read) is not None:
            return exercise
    return None


@functools.cache
def _rows() -> tuple[tuple[re.Pattern[str], str], ...]:
    table = tomllib.loads((FOLDER / "keywords.toml").read_text(encoding="utf-8"))["row"]
    for row in table:
        if row["exercise"] not in exercises():
            raise BadExercises(f"exercises/keywords.toml: there is no exercise {row['exercise']}")
    return tuple((re.compile(row["words"]), row["exercise"]) for row in table)

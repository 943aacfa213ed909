"""Word error rate: the distance of a transcript from what was said."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence


def word_error_rate(reference: str, hypothesis: str) -> float:
    """Insertions, deletions and substitutions of words, divided by the reference's words.

    Case and punctuation do not count. 0 is perfect; inserted words can make it greater than 1.
    An empty reference gives 0 for an empty transcript and 1 for any other.
    """
    expected, actual = normalised_words(reference), normalised_words(hypothesis)
    if not expected:
        return 1.0 if actual else 0.0
    return _edit_distance(expected, actual) / len(expected)


def normalised_words(text: str) -> list[str]:
    """Lower-case words without punctuation; an apostrophe inside a word is dropped with it."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    kept = (
        char if char.isalnum() else ("" if char in "'’" else " ")  # noqa: RUF001 - the typographic apostrophe is meant
        for char in folded
    )
    return "".join(kept).split()


def _edit_distance(first: Sequence[str], second: Sequence[str]) -> int:
    previous = list(range(len(second) + 1))
    for row, word in enumerate(first, start=1):
        current = [row]
        for column, other in enumerate(second, start=1):
            substitution = previous[column - 1] + (word != other)
            current.append(min(previous[column] + 1, current[column - 1] + 1, substitution))
        previous = current
    return previous[-1]

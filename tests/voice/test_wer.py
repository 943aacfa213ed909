"""Word error rate."""

from __future__ import annotations

import pytest

from tests.support.tables import each
from voice.wer import normalised_words, word_error_rate


@each(
    "reference, heard, rate",
    [
        ("he was not", "He was not!", 0.0),
        ("he was not", "", 1.0),
        ("", "", 0.0),
        ("", "invented", 1.0),
        ("a b c d", "a x c d", 0.25),
        ("a b c d", "a c d", 0.25),
        ("a b c d", "a b b c d", 0.25),
        ("one", "one two three", 2.0),
        ("ill disposed", "ill-disposed", 0.0),
        ("don't", "dont", 0.0),
    ],
)
def test_the_rate_counts_changed_missing_and_added_words(reference: str, heard: str, rate: float) -> None:
    assert word_error_rate(reference, heard) == pytest.approx(rate)


def test_letters_of_every_script_are_words() -> None:
    assert normalised_words("Grüße, Жизнь! 生活") == ["grüsse", "жизнь", "生活"]

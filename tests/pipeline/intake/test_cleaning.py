"""Cleaning harms nothing that a person meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.intake.cleaning import MAX_MESSAGE_CHARS, TRUNCATION_MARK, clean_text


@pytest.mark.parametrize(
    "text",
    [
        "👨\u200d👩\u200d👧 family",
        "می\u200cخواهم",  # noqa: RUF001 - Persian, with its joiner
        "שלום\u200f (abc)",
        "def f():\n    if x:\n        return 1",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "prix\u202f: 3\u00a0€",
        "tab\there",
    ],
)
def test_what_people_write_stays_as_it_is(text: str) -> None:
    assert clean_text(text) == text


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("a\r\nb\rc", "a\nb\nc"),
        ("nul\x00 bell\x07 esc\x1b[31m", "nul bell esc[31m"),
        ("abc\u202etxt.exe", "abctxt.exe"),
        ("\ufeffhello", "hello"),
        ("  spaced  \n", "spaced"),
        ("c1\x9bcsi", "c1csi"),
    ],
)
def test_what_no_keyboard_sends_goes(text: str, cleaned: str) -> None:
    assert clean_text(text) == cleaned


def test_exactly_the_limit_is_kept_and_one_more_is_cut_with_a_mark() -> None:
    assert clean_text("x" * MAX_MESSAGE_CHARS) == "x" * MAX_MESSAGE_CHARS
    cut = clean_text("x" * (MAX_MESSAGE_CHARS + 1))
    assert cut == "x" * MAX_MESSAGE_CHARS + TRUNCATION_MARK
    assert clean_text(cut) == cut


@given(text=st.text(max_size=300))
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    assert clean_text(clean_text(text)) == clean_text(text)

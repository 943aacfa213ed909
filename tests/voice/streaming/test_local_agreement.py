"""Two hearings in a row that agree settle a word, and a settled word never changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.streaming.local_agreement import Agreed, Agreement


def agreed(*texts: str) -> list[tuple[str, str]]:
    """The stable beginning and the rest after each hearing."""
    agreement = Agreement()
    return [_split(agreement.add(text)) for text in texts]


def _split(found: Agreed) -> tuple[str, str]:
    return found.text[: found.stable_chars], found.text[found.stable_chars :]


def test_nothing_is_stable_after_the_first_hearing() -> None:
    assert agreed("And so my") == [("", "And so my")]


def test_words_that_two_hearings_share_are_stable_and_the_newest_shows_them() -> None:
    assert agreed("and so my", "And so, my fellow")[-1] == ("And so, my", " fellow")


def test_a_full_stop_at_the_cut_is_not_settled() -> None:
    assert agreed("Ask not.", "Ask not.", "Ask not, what your") == [
        ("", "Ask not."),
        ("Ask not", "."),
        ("Ask not", ", what your"),
    ]


def test_punctuation_that_came_late_is_settled_with_the_next_word() -> None:
    assert agreed("Ask not", "Ask not", "Ask not, what", "Ask not, what your")[-1] == (
        "Ask not, what",
        " your",
    )


def test_a_stable_word_stays_when_later_transcripts_differ() -> None:
    stable = agreed("my fellow", "my fellow", "by yellow Americans", "by yellow Americans ask")
    assert [beginning for beginning, _ in stable] == [
        "",
        "my fellow",
        "my fellow",
        "my fellow Americans",
    ]


def test_a_shorter_hearing_leaves_the_stable_words() -> None:
    assert agreed("one, two three", "one, two three", "one.")[-1] == ("one, two three", "")


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("今日は天気", "今日は天気がいい", ("今日は天気", "がいい")),
        ("สวัสดีครับ", "สวัสดีครับผม", ("สวัสดีครับ", "ผม")),
    ],
)
def test_scripts_without_spaces_are_compared_by_letters(
    first: str, second: str, expected: tuple[str, str]
) -> None:
    assert agreed(first, second)[-1] == expected


_HEARINGS = st.lists(
    st.lists(st.sampled_from(["a", "A,", "b", "c.", "...", "日本", "-"]), max_size=6).map(" ".join),
    max_size=8,
)


@given(_HEARINGS)
def test_the_stable_beginning_only_grows_and_begins_every_text(hearings: list[str]) -> None:
    agreement, before = Agreement(), ""
    for text in hearings:
        found = agreement.add(text)
        stable = found.text[: found.stable_chars]
        assert stable.startswith(before)
        before = stable


@given(st.lists(st.text(max_size=12), max_size=5))
def test_any_text_is_taken_and_heard_twice_is_stable_but_for_its_last_punctuation(words: list[str]) -> None:
    text = " ".join(" ".join(words).split())
    agreement = Agreement()
    agreement.add(text)
    twice = agreement.add(text)
    assert twice.text == text
    assert not any(char.isalnum() for char in text[twice.stable_chars :])

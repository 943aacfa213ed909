"""The small-talk gate, with its edges."""

from __future__ import annotations

import pytest

from pipeline.memory.policy.small_talk import MAX_CHARS, is_small_talk
from tests.support.tables import each

QUESTION = "That sounds important. Do you want me to remember that?"


@each(
    "message",
    [
        "hi",
        "Hello!",
        "thank you so much",
        "ok",
        "  good morning  ",
        "continue",
        "yes",
        "Danke dir!",
        "D\u2019accord",
        "muchas gracias",
    ],
)
def test_greetings_and_acknowledgements_are_small_talk(message: str) -> None:
    assert is_small_talk(message)


@pytest.mark.parametrize("message", ["", "   ", "🙂", "🎉🎉", "…", "!!!"])
def test_a_message_without_words_is_none(message: str) -> None:
    assert not is_small_talk(message)


@pytest.mark.parametrize("message", ["thanks, Anna", "ok I live in Rome", "hi there", "good dog", "yes 3"])
def test_one_unknown_word_is_enough(message: str) -> None:
    assert not is_small_talk(message)


def test_the_length_counts_after_spaces_are_removed() -> None:
    longest = "ok " * 12 + "okay"
    assert len(longest) == MAX_CHARS
    assert is_small_talk(f"   {longest}   ")
    assert not is_small_talk(f"{longest} ok")


@pytest.mark.parametrize("message", ["yes", "no", "sure", "ja", "oui", "sí"])
def test_an_answer_to_the_question_whether_to_remember_is_none(message: str) -> None:
    assert not is_small_talk(message, asked=QUESTION)
    assert is_small_talk(message, asked="I remember. How are you?")
    assert is_small_talk(message, asked="I will remember that.")

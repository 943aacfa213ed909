"""The history that fits is the newest, without a gap, and begins with a question."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pipeline.domain.chat import ChatMessage
from pipeline.intake.budget import MAX_BUDGET_TOKENS, fit_history


def _talk(*texts: str) -> tuple[ChatMessage, ...]:
    return tuple(
        ChatMessage(role="user" if index % 2 == 0 else "assistant", content=text)
        for index, text in enumerate(texts)
    )


def _tokens(talk: tuple[ChatMessage, ...]) -> int:
    return sum(message.tokens for message in talk)


def test_everything_is_kept_when_it_fits_exactly_and_the_oldest_goes_first_when_not() -> None:
    talk = _talk("one", "two", "three", "four")
    exact = _tokens(talk)
    assert fit_history(talk, exact) == talk
    assert fit_history(talk, exact - 1) == talk[2:]


def test_a_kept_history_never_begins_with_an_answer_to_a_lost_question() -> None:
    talk = _talk("q" * 400, "short answer", "next question", "next answer")
    budget = _tokens(talk[1:])
    assert fit_history(talk, budget) == talk[2:]


def test_a_negative_budget_keeps_nothing() -> None:
    assert fit_history(_talk("a", "b"), -5) == ()


def test_the_ceiling_holds_whatever_the_model_could_take() -> None:
    long = _talk(*["x" * 40_000] * 12)
    kept = fit_history(long, 10_000_000)
    assert _tokens(kept) <= MAX_BUDGET_TOKENS


def test_scripts_that_take_a_token_per_character_are_counted_so() -> None:
    latin = ChatMessage(role="user", content="a" * 300)
    chinese = ChatMessage(role="user", content="字" * 300)
    assert chinese.tokens >= 300
    assert latin.tokens < 150


@given(
    texts=st.lists(st.text(max_size=80), max_size=12),
    budget=st.integers(min_value=0, max_value=300),
)
def test_what_is_kept_is_always_a_suffix_within_the_budget(texts: list[str], budget: int) -> None:
    talk = _talk(*texts)
    kept = fit_history(talk, budget)
    assert kept == talk[len(talk) - len(kept) :]
    assert _tokens(kept) <= budget

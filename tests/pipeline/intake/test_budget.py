"""The history that fits is the newest, without a gap, and begins with a question."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pipeline.domain.chat import ChatMessage, ToolCall
from pipeline.domain.conversation import PastTurn
from pipeline.intake.budget import MAX_BUDGET_TOKENS, fit_history
from tests.support.contexts import talk


def _turns(*texts: str) -> tuple[PastTurn, ...]:
    return talk(*texts).turns


def _tokens(turns: tuple[PastTurn, ...]) -> int:
    return sum(turn.tokens for turn in turns)


def test_everything_is_kept_when_it_fits_exactly_and_the_oldest_goes_first_when_not() -> None:
    turns = _turns("one", "two", "three", "four")
    exact = _tokens(turns)
    assert fit_history(turns, exact) == turns
    assert fit_history(turns, exact - 1) == turns[1:]


def test_a_question_its_tool_calls_and_its_answer_stay_together() -> None:
    call = ToolCall(id="1", name="read_file", arguments="{}")
    turn = PastTurn(
        id=9,
        messages=(
            ChatMessage(role="user", content="what is in it?"),
            ChatMessage(role="assistant", content="", tool_calls=(call,)),
            ChatMessage(role="tool", content="x" * 300, tool_call_id="1"),
            ChatMessage(role="assistant", content="exes"),
        ),
    )
    turns = (*_turns("q", "a"), turn)
    assert fit_history(turns, turn.tokens) == (turn,)
    assert fit_history(turns, turn.tokens - 1) == ()


def test_nothing_older_is_kept_behind_a_gap() -> None:
    turns = _turns("short", "short", "q" * 400, "long", "short", "short")
    assert fit_history(turns, turns[0].tokens + turns[2].tokens) == turns[2:]


def test_a_negative_budget_keeps_nothing() -> None:
    assert fit_history(_turns("a", "b"), -5) == ()


def test_the_ceiling_holds_whatever_the_model_could_take() -> None:
    kept = fit_history(_turns(*["x" * 40_000] * 12), 10_000_000)
    assert kept
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
    turns = _turns(*texts)
    kept = fit_history(turns, budget)
    assert kept == turns[len(turns) - len(kept) :]
    assert _tokens(kept) <= budget

"""What a text takes of a model's window, by our own estimate."""

from __future__ import annotations

import pytest

from pipeline.domain.chat import estimate_tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("a", 1), ("abc", 1), ("abcd", 2), ("字", 1), ("abc字字", 3), ("a字b字c", 3), ("é\ud800x", 3)],
)
def test_three_ascii_characters_are_a_token_and_so_is_any_other_character(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens

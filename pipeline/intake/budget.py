"""How much of the history fits: the newest messages without a gap."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.domain.chat import ChatMessage

MAX_BUDGET_TOKENS = 96_000
"""Ceiling whatever the model's window (seed 0: MAX_TOKEN_BUDGET)."""


def fit_history(history: Sequence[ChatMessage], budget_tokens: int) -> tuple[ChatMessage, ...]:
    """The longest suffix of `history` within `budget_tokens`. It never begins with an answer whose
    question was left out."""
    remaining = min(budget_tokens, MAX_BUDGET_TOKENS)
    first_kept = len(history)
    for index in range(len(history) - 1, -1, -1):
        remaining -= history[index].tokens
        if remaining < 0:
            break
        first_kept = index
    while first_kept < len(history) and history[first_kept].role != "user":
        first_kept += 1
    return tuple(history[first_kept:])

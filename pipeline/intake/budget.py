"""Fit the history into a budget: the newest turns without a gap, each with all its tool calls."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.domain.conversation import PastTurn

MAX_BUDGET_TOKENS = 96_000
"""The ceiling for every model's window."""


def fit_history(turns: Sequence[PastTurn], budget_tokens: int) -> tuple[PastTurn, ...]:
    """The longest suffix of `turns` within `budget_tokens`, which may be met exactly. The time it takes grows
    with the turns that fit, not with all turns."""
    remaining = min(budget_tokens, MAX_BUDGET_TOKENS)
    first_kept = len(turns)
    for index in range(len(turns) - 1, -1, -1):
        remaining -= turns[index].tokens
        if remaining < 0:
            break
        first_kept = index
    return tuple(turns[first_kept:])

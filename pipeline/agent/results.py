"""Fit this run's tool results into the window: drop old ones whole, then cut the newest.

Only the run's own messages are handled here; `pipeline.history.stale_results` shortens earlier turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipeline.domain.chat import ChatMessage, estimate_tokens
from pipeline.domain.marking import unmarked
from pipeline.history.summarization import cut_to_tokens

_GONE = "[A result of {chars} characters that is no longer shown.]"
_CUT = "\n[{chars} more characters are left out: there is no room for them.]"
_SHORT_CHARS = 200
"""Results up to this length are kept."""
_LEAST_TOKENS = 50
"""The least that is left of a cut result, however small the budget."""


def fitted(messages: Sequence[ChatMessage], budget: int) -> list[ChatMessage]:
    """`messages` within `budget` tokens, as far as shorter results make that possible.

    Results that the model has answered to are dropped first, oldest first; then the longest of the newest
    results is cut.
    """
    kept = list(messages)
    if not kept:
        return kept
    over = sum(message.tokens for message in kept) - budget
    newest = _after_last_answer(kept)
    for index in range(newest):
        if over <= 0:
            return kept
        over -= _replace(kept, index, _gone(kept[index]))
    while over > 0:
        longest = max(range(newest, len(kept)), key=lambda at: _weight(kept[at]), default=None)
        if longest is None:
            break
        saved = _replace(kept, longest, _cut(kept[longest], over))
        if saved <= 0:
            break
        over -= saved
    return kept


def _after_last_answer(messages: Sequence[ChatMessage]) -> int:
    """The index of the first message after the model's last answer."""
    first = len(messages)
    while first > 0 and messages[first - 1].role != "assistant":
        first -= 1
    return first


def _weight(message: ChatMessage) -> int:
    return message.tokens if message.role == "tool" else 0


def _replace(kept: list[ChatMessage], at: int, message: ChatMessage) -> int:
    """Replace `kept[at]` by `message` if that is shorter. Returns the tokens saved."""
    saved = kept[at].tokens - message.tokens
    if saved > 0:
        kept[at] = message
    return saved


def _gone(message: ChatMessage) -> ChatMessage:
    if message.role != "tool" or len(message.content) <= _SHORT_CHARS:
        return message
    return replace(message, content=_GONE.format(chars=len(message.content)))


def _cut(message: ChatMessage, over: int) -> ChatMessage:
    """The result without its end; its marks stay."""
    if message.role != "tool" or len(message.content) <= _SHORT_CHARS:
        return message
    body = unmarked(message.content)
    begin = message.content.index("\n") + 1 if body != message.content else 0
    head, tail = message.content[:begin], message.content[begin + len(body) :]
    note = _CUT.format(chars=len(body))
    room = estimate_tokens(body) - over - estimate_tokens(note) - 1
    shorter = cut_to_tokens(body, max(_LEAST_TOKENS, room))
    note = _CUT.format(chars=len(body) - len(shorter))
    return replace(message, content=f"{head}{shorter}{note}{tail}")

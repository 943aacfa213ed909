"""Shorten old tool results to one line in what the model is sent; the log keeps them whole.

A result is stale when more than a set number of user messages have followed its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from pipeline.domain.chat import ChatMessage
from pipeline.domain.conversation import PastTurn
from pipeline.history.content_type import guess_content_type

_LINE = "[Summary: Returned {size} bytes ({lines} lines) of {kind}]"
_IS_LINE = re.compile(r"\[Summary: Returned \d+ bytes \(\d+ lines\) of [A-Za-z ]+\]")


def as_sent(turns: Sequence[PastTurn], index: int, stale_after: int) -> PastTurn:
    """One of `turns` as it is sent before a new message: in brief if it is stale."""
    # The newest turn has the age 1: the present user message has followed it.
    return turns[index] if len(turns) - index <= stale_after else brief(turns[index])


def brief(turn: PastTurn) -> PastTurn:
    """The turn with each tool result in one line; the same object where that changes nothing."""
    if len(turn.messages) == 2:  # a question and its answer: no tool was used
        return turn
    return turn.brief or _shortened(turn)


def with_brief(turn: PastTurn) -> PastTurn:
    """The turn with its brief form stored in it, computed once per conversation."""
    # For a question and its answer, `brief` returns the turn itself.
    return turn if len(turn.messages) == 2 else replace(turn, brief=brief(turn))


def sent(turns: Sequence[PastTurn]) -> tuple[ChatMessage, ...]:
    """The messages of `turns`. An assistant message that repeats the one before is sent once."""
    messages: list[ChatMessage] = []
    for turn in turns:
        if len(turn.messages) == 2:  # a question and its answer: no repetition is possible
            messages += turn.messages
            continue
        messages.append(turn.messages[0])
        messages += [message for before, message in pairwise(turn.messages) if not _repeats(before, message)]
    return tuple(messages)


def one_line(content: str) -> str:
    """The line that replaces a stale result: its size and content type. A result that is not longer than that
    line, or is such a line, stays as it is."""
    if _IS_LINE.fullmatch(content):
        return content
    line = _LINE.format(
        size=len(content.encode("utf-8", "surrogatepass")),
        lines=len(content.splitlines()),
        kind=guess_content_type(content),
    )
    return line if len(line) < len(content) else content


def _shortened(turn: PastTurn) -> PastTurn:
    messages = tuple(
        replace(message, content=one_line(message.content)) if message.role == "tool" else message
        for message in turn.messages
    )
    return turn if messages == turn.messages else replace(turn, messages=messages, brief=None)


def _repeats(before: ChatMessage, message: ChatMessage) -> bool:
    return (
        before.role == message.role == "assistant"
        and message.content == before.content
        and not message.tool_calls
        and not before.tool_calls
    )

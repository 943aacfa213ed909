"""Conversations with tools, for the tests of what is kept of them."""

from __future__ import annotations

from pipeline.domain.chat import ChatMessage, ToolCall
from pipeline.domain.conversation import Conversation, PastTurn


def plain_turn(number: int, words: int = 10) -> PastTurn:
    """A question and its answer, of so many words each."""
    return PastTurn(
        id=number,
        messages=(
            ChatMessage(role="user", content=f"question {number} " + "word " * words),
            ChatMessage(role="assistant", content=f"answer {number} " + "word " * words),
        ),
    )


def tool_turn(number: int, result: str, words: str = "I look it up.") -> PastTurn:
    """A question that was answered with a tool."""
    call = ToolCall(id=f"call-{number}", name="read_file", arguments="{}")
    return PastTurn(
        id=number,
        messages=(
            ChatMessage(role="user", content=f"question {number}"),
            ChatMessage(role="assistant", content=words, tool_calls=(call,)),
            ChatMessage(role="tool", content=result, tool_call_id=call.id),
            ChatMessage(role="assistant", content=f"answer {number}"),
        ),
    )


def of(*turns: PastTurn) -> Conversation:
    return Conversation(turns=turns)

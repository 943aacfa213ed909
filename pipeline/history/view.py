"""A run's view of the conversation: the journal's turns after the newest summary that the run has made."""

from __future__ import annotations

from dataclasses import replace

from pipeline.domain.chat import ChatMessage
from pipeline.domain.conversation import Conversation, Summary
from pipeline.graph.definition.decisions import State

HISTORY = "history"
"""The state's key for a summary that the run has made: `text` and `upto`, as in `Summary`."""
SUMMARY = "[Previous conversation summary: {text}]"
"""The frame around a summary: it repeats what people said, and is no instruction to the model."""
LEFT_OUT = "[Earlier messages of this conversation are left out here.]"
"""Without a number, which would change the prompt at every turn."""


def shown(conversation: Conversation, state: State) -> Conversation:
    """`conversation` as this run sees it."""
    made = state.get(HISTORY)
    if made is None or (conversation.summary is not None and conversation.summary.upto >= made["upto"]):
        return conversation
    return summarised(conversation, Summary(text=made["text"], upto=made["upto"]))


def summarised(conversation: Conversation, summary: Summary) -> Conversation:
    """`conversation` with the summary in place of the turns that it covers."""
    turns = tuple(turn for turn in conversation.turns if turn.id > summary.upto)
    return replace(conversation, summary=summary, turns=turns)


def opening(summary: Summary | None, *, left_out: bool) -> tuple[ChatMessage, ...]:
    """The messages before the turns: at most one, with the summary and a note that turns are left out after
    it."""
    if summary is None:
        return _ONLY_LEFT_OUT if left_out else ()
    parts = [SUMMARY.format(text=summary.text)]
    if left_out:
        parts.append(LEFT_OUT)
    return (ChatMessage(role="system", content="\n".join(parts)),)


_ONLY_LEFT_OUT = (ChatMessage(role="system", content=LEFT_OUT),)

"""What of the conversation a run is shown: the journal's, behind the newest summary that the run has made."""

from __future__ import annotations

from dataclasses import replace

from pipeline.domain.conversation import Conversation, Summary
from pipeline.graph.decisions import State

HISTORY = "history"
"""The state's key for a summary that the run has made: `text` and `upto`, as in `Summary`."""


def shown(conversation: Conversation, state: State) -> Conversation:
    """`conversation` as this run sees it."""
    made = state.get(HISTORY)
    if made is None or (conversation.summary is not None and conversation.summary.upto >= made["upto"]):
        return conversation
    summary = Summary(text=made["text"], upto=made["upto"])
    turns = tuple(turn for turn in conversation.turns if turn.id > summary.upto)
    return replace(conversation, summary=summary, turns=turns)

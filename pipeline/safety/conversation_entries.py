"""The entries of a conversation between one person and the bot, as the crisis gate and the companion read
them."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.domain.conversation import Conversation, PastTurn
from pipeline.safety.ladder import WINDOW, Entry


def entries_of(known: Conversation, author: str, most: int = WINDOW) -> list[Entry]:
    """The newest entries of the conversation between the author and the bot, oldest first; none of other
    people in a room."""
    return [entry for past in known.turns[-most // 2 :] for entry in _entries(past, author)]


def _entries(past: PastTurn, author: str) -> Iterator[Entry]:
    """What the author said in an earlier turn, and what the bot answered."""
    source = past.source
    if source.author in ("", author):
        yield Entry("person", source.text or past.messages[0].content)
    last = past.messages[-1]
    if last.role == "assistant":
        yield Entry("bot", last.content)

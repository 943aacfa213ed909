"""The entries of a conversation between one person and the bot, as the crisis gate and the companion read
them."""

from __future__ import annotations

from pipeline.domain.conversation import Conversation
from pipeline.safety.ladder import WINDOW, EarlierEntry


def entries_of(known: Conversation, author: str, most: int = WINDOW) -> list[EarlierEntry]:
    """The newest entries of the conversation between the author and the bot, oldest first; none of other
    people in a room."""
    found: list[EarlierEntry] = []
    for past in known.turns[-most // 2 :]:
        source, last = past.source, past.messages[-1]
        if source.author in ("", author):
            found.append(EarlierEntry("person", source.text or past.messages[0].content))
        if last.role == "assistant":
            found.append(EarlierEntry("bot", last.content))
    return found

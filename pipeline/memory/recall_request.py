"""Whether a person asks to be reminded of earlier conversations: then the bot may bring them up by itself."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from pipeline.memory.plain_text import plain
from pipeline.memory.ports import MemoryBook, ProfileChanged

_ASKED: Final = re.compile(
    r"\b(?:remind me (?:of |about )?what (?:we|i) (?:talked|spoke|said|discussed)"
    r"|remind me (?:of|about) (?:our last|last time|earlier)"
    r"|erinner\w* mich (?:bitte )?(?:daran, )?(?:woruber|was) wir"
    r"|rappelle[sz]?[- ]moi (?:ce dont|de quoi) (?:nous|on)"
    r"|recu[e\u00e9]rd[ae]me (?:de )?(?:qu[e\u00e9]|lo que) (?:hablamos|dij))"
)
_TRIES: Final = 20


def asks_for_recall(message: str) -> bool:
    """Whether `message` asks for what was said in earlier conversations."""
    return _ASKED.search(plain(message)) is not None


async def allow_recall(book: MemoryBook, owner: str) -> bool:
    """Have the owner's profile allow proactive recall; whether that changed it. Two writers lose nothing.
    Raises StorageError."""
    for attempt in range(_TRIES):
        profile = await book.profile(owner)
        if profile.proactive_recall_enabled or not profile.enabled:
            return False
        try:
            await book.write_profile(owner, replace(profile, proactive_recall_enabled=True))
        except ProfileChanged:
            if attempt == _TRIES - 1:
                raise
        else:
            return True
    return False
